"""transport.openlineage: events of an OpenLineage client -> our transports, named by the dotted `type:` that such a client loads.

    transport:
      type: headwater.transport.openlineage.HeadwaterTransport
      url: http://lineage:5000

Everything else in the table is an option of the transport that `url` names; `spool` is the directory where events wait, or
a table as `[spool]` is. Without a url, Headwater's own settings say where events go.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import msgspec
from openlineage.client.serde import Serde
from openlineage.client.transport.transport import Config, Transport

from headwater import config as settings
from headwater.config.openlineage import ours
from headwater.errors import ConfigError
from headwater.transport import Transport as Ours
from headwater.transport._host import open_hosted

_FACTORYS = ("type", "name", "priority")  # these the client's own factory has read


class HeadwaterConfig(Config):
    """What stands in the table, checked: `to` opens a transport, `given` are settings."""

    def __init__(self, to: Mapping[str, Any] | None, given: Mapping[str, Any]) -> None:
        self.to, self.given = to, dict(given)

    @classmethod
    def from_dict(cls, params: dict[str, Any]) -> HeadwaterConfig:
        """Read the client's table; `${VAR}` in values is replaced.

        Raises:
            ConfigError: a value cannot be used, or a variable is not set.

        """
        table = {name: value for name, value in params.items() if name not in _FACTORYS and value is not None}
        table = ours(settings.expand(table, os.environ))
        given: dict[str, Any] = {}
        if "spool" in table:
            spool = table.pop("spool")
            if not isinstance(spool, str | Mapping):
                raise ConfigError("spool: must be a directory, or a table as in {dir: /var/spool/headwater}")
            given["spool"] = spool
        if not table:
            return cls(None, given)
        if not isinstance(table.get("url"), str):
            raise ConfigError(f"url: is missing: {', '.join(sorted(table))} without it say nothing")
        return cls(table, given)


class HeadwaterTransport(Transport):
    """An OpenLineage client's transport that hands events to ours; what goes over a network is spooled first.

    >>> table = {"url": "memory:"}
    >>> HeadwaterTransport(HeadwaterConfig.from_dict(table))
    HeadwaterTransport(MemoryTransport(0 events))
    """

    kind = "headwater"
    config_class = HeadwaterConfig

    def __init__(self, config: HeadwaterConfig) -> None:
        self.config = config
        # named by argument: then no other configuration file is even opened
        known = settings.load({**config.given, **({"transport": config.to["url"]} if config.to else {})})
        self.transport: Ours | None = None if known.disabled else open_hosted(config.to, known)
        """The transport behind it; None where everything is switched off."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.transport or 'disabled'})"

    def emit(self, event: Any) -> None:
        """Hand one event on.

        Raises:
            TransportError: it could not be handed on.

        """
        if self.transport is not None:
            self.transport.send([encoded(event)])

    def close(self, timeout: float = -1) -> bool:
        """Close the transport; what was emitted is handed on already."""
        if self.transport is not None:
            self.transport.close()
        return True


def encoded(event: Any) -> bytes:
    """The JSON of an event of the client's classes, as its own transports write it: without nulls, enums as their values."""
    return msgspec.json.encode(Serde.to_dict(event), enc_hook=_placeholder)


def _placeholder(value: object) -> str:
    """Times and ids msgspec writes itself, also where an older client leaves them to us; of the rest we say what it was."""
    return f"<<non-serializable: {type(value).__qualname__}>>"
