"""deliver.datahub.settings: the table [deliver.datahub] -> where to deliver, how often, and the transport's own options."""

from __future__ import annotations

from collections.abc import Mapping
from inspect import signature
from typing import Any

import msgspec

from headwater import config, plugins
from headwater.deliver.datahub.opening import as_environment_says
from headwater.deliver.datahub.options import Fixes, Options, make
from headwater.deliver.datahub.transport import DataHubTransport
from headwater.errors import ConfigError, UnknownName

_TRANSPORT = frozenset(signature(DataHubTransport).parameters) - {"url", "keep", "direct"}
_CONVERSION = frozenset({*Options.__struct_fields__, *Fixes.__struct_fields__})


class Deliver(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The settings of room `deliver`."""

    datahub: dict[str, Any] = {}
    """A table: `to`, a url as `datahub+rest://gms:8080`; `every`, seconds between two rounds of the server; options of that transport and of the conversion."""

    def __post_init__(self) -> None:
        delivery(self.datahub)


class Delivery(msgspec.Struct, frozen=True):
    """Where and how DataHub is delivered to."""

    to: str | None
    every: float
    transport: dict[str, Any]

    @property
    def options(self) -> Options:
        """How events become proposals."""
        return make(self.transport.get("options", {}))


def delivering(settings: config.Settings) -> Delivery:
    """What the settings of room `deliver` say of DataHub."""
    return delivery(config.options(settings, "deliver").get("datahub", {}))


def delivery(table: Mapping[str, Any]) -> Delivery:
    """The table, checked; an option of the conversion may stand in it beside those of the transport.

    >>> delivery({"to": "datahub+rest://gms:8080", "token": "t", "env": "DEV"}).transport
    {'token': 't', 'options': {'env': 'DEV'}}
    """
    given = dict(table)
    to, every = given.pop("to", None), given.pop("every", 10.0)
    if to is not None and not str(to).startswith("datahub+"):
        raise ConfigError(
            f"deliver.datahub.to: {to!r} does not begin with datahub+: write datahub+rest://gms:8080"
        )
    if to is not None and (parts := plugins.split("deliver.datahub.to", str(to))).scheme == "datahub+rest":
        plugins.require_host(parts, "datahub+rest://host:8080")
    if isinstance(every, bool) or not isinstance(every, int | float) or every <= 0:
        raise ConfigError(f"deliver.datahub.every: {every!r} is no number of seconds")
    options = as_environment_says(dict(given.pop("options", {}) or {}))
    out: dict[str, Any] = {}
    for name, value in given.items():
        if name in _TRANSPORT:
            out[name] = value
        elif name in _CONVERSION:
            options[name] = value
        else:
            raise UnknownName("option of deliver.datahub", name, {"to", "every", *_TRANSPORT, *_CONVERSION})
    make(options)
    if options:
        out["options"] = options
    return Delivery(to, float(every), out)
