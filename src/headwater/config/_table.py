"""config._table: nothing -> the table of settings and rooms that parsing, variables and docs follow from."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from headwater.errors import ConfigError

_STATE, _LEVELS = "the user's state directory", ("DEBUG", "INFO", "WARNING", "ERROR")


class Setting(msgspec.Struct, frozen=True):
    """One value of the core: its name, what it is, and the variables that set it, ours before OpenLineage's."""

    name: str
    kind: type
    default: Any
    help: str
    env: tuple[str, ...]
    secret: bool = False
    choices: tuple[str, ...] = ()


class Room(msgspec.Struct, frozen=True):
    """A part of Headwater with options of its own.

    `target` is "module:callable", whose parameters with a default are the options; where they depend on the
    scheme of a url, `table` is the "module:table" that names the callable.
    """

    help: str
    target: str | None = None
    table: str | None = None


SETTINGS = (
    Setting("namespace", str, "default", "Namespace of jobs that do not name one.", ("HEADWATER_NAMESPACE", "OPENLINEAGE_NAMESPACE")),
    Setting("store", str, f"`headwater.db` in {_STATE}", "Where lineage is kept: `sqlite:///file.db`, `postgresql://user@host/database` or `memory:`.", ("HEADWATER_STORE",)),
    Setting("transport", str, None, "Where events are sent: a url as in docs/transports.md.", ("HEADWATER_TRANSPORT", "OPENLINEAGE_URL")),
    Setting("spool", Path, f"`spool` in {_STATE}", "Directory where events wait for delivery.", ("HEADWATER_SPOOL",)),
    Setting("url", str, None, "A server that read commands ask instead of the store.", ("HEADWATER_URL",)),
    Setting("api_key", str, None, "Key sent to an http(s) transport that has none of its own.", ("HEADWATER_API_KEY", "OPENLINEAGE_API_KEY"), secret=True),
    Setting("disabled", bool, False, "Send nothing at all.", ("HEADWATER_DISABLED", "OPENLINEAGE_DISABLED")),
    Setting("log_level", str, "WARNING", "What is logged at least.", ("HEADWATER_LOG_LEVEL",), choices=_LEVELS),
)  # fmt: skip

ROOMS: Mapping[str, Room] = {
    "serve": Room("The HTTP server.", "headwater.serve:Serving"),
    "oidc": Room("Tokens of an identity provider that the server believes.", "headwater.serve.oidc:Oidc"),
    "redact": Room(
        "What is hidden in events before they are stored, see docs/operating.md.",
        "headwater.redact:Redaction",
    ),
    "ingest": Room("Limits of what is taken in.", "headwater.event:Limits"),
    "consume": Room("A Kafka topic of events that feeds the server.", "headwater.serve.consume:Consume"),
    "store": Room(
        "Options of the store that `store` names; its `url` is the setting `store`.",
        table="headwater.store:STORES",
    ),
    "retention": Room("For how long what is kept is kept, see docs/stores.md.", "headwater.ingest:Retention"),
    "transport": Room(
        "Options of the transport that `transport` names; its `url` is the setting `transport`.",
        table="headwater.transport:TRANSPORTS",
    ),
    "deliver": Room(
        "Where else what is taken in is delivered to, see docs/datahub.md.",
        "headwater.deliver.datahub.settings:Deliver",
    ),
    "dlt": Room(
        "How pipelines of dlt are captured, see docs/dlt.md.",
        "headwater.dlt:Capturing",
    ),
    "spool": Room(
        "How events wait for delivery, see docs/delivery.md; its `dir` is the setting `spool`.",
        "headwater.transport.spool:SpoolTransport",
    ),
}


def document(options: Mapping[str, str]) -> str:
    """The reference part of docs/settings.md: a heading for each setting and room; `options` tells a room's own."""
    parts = {}
    for s in SETTINGS:
        facts = [s.help, f"Set by {', '.join(f'`{name}`' for name in s.env)}."]
        facts.append(f"Default: {s.default if '`' in str(s.default) else f'`{_toml(s.default)}`'}.")
        facts += [f"One of {', '.join(f'`{choice}`' for choice in s.choices)}."] if s.choices else []
        facts += ["Secret: never shown."] if s.secret else []
        parts[s.name] = " ".join(facts)
    for name, room in ROOMS.items():
        told = f"{room.help} Set by the table `[{name}]` or `HEADWATER_{name.upper()}__OPTION`."
        parts[name] = "\n\n".join(text for text in (parts.get(name), told, options.get(name)) if text)
    return "\n".join(f"### `{name}`\n\n{text}\n" for name, text in parts.items())


def parse_bool(value: object) -> bool:
    """True or False from the words people write.

    >>> parse_bool("Yes"), parse_bool("0")
    (True, False)
    """
    word = str(value).strip().lower()
    if word in ("1", "true", "yes", "on", "0", "false", "no", "off"):
        return word in ("1", "true", "yes", "on")
    raise ConfigError(f"{value!r} is neither true nor false: write 1/true/yes/on or 0/false/no/off")


def parse_text(text: str) -> Any:
    """JSON where a variable holds a table or a list; any other text stays text.

    >>> parse_text('{"X-Team": "shop"}'), parse_text("5001")
    ({'X-Team': 'shop'}, '5001')
    """
    try:
        return json.loads(text) if text[:1] in ("{", "[") else text
    except ValueError:
        return text


def _toml(value: object) -> str:
    return "none" if value is None else str(value).lower() if isinstance(value, bool) else str(value)
