"""config.openlineage: the configuration of an OpenLineage client -> the same in our words; what has none is refused, not dropped.

To take one more of its transports: a function (options, working directory) -> our settings, one line in TYPES.
The function takes out of `options` what it understands; what is left over is refused.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote

from headwater.config._table import parse_bool, parse_text
from headwater.errors import ConfigError, UnknownName


def translate(config: Mapping[str, Any], cwd: Path) -> dict[str, Any]:
    """An `openlineage.yml` as flat settings of ours.

    >>> translate({"transport": {"type": "http", "url": "http://lineage:5000", "timeout": 3}}, Path())
    {'transport': 'http://lineage:5000', 'transport.timeout': 3}
    """
    for name in config:
        if name != "transport":  # filters or tags left out in silence would be wrong lineage
            raise ConfigError(f"{name}: Headwater has nothing like it")
    return _transport(config["transport"], cwd) if config.get("transport") else {}


def from_environment(environ: Mapping[str, str]) -> dict[str, Any]:
    """OPENLINEAGE__A__B=… and OPENLINEAGE_URL as the table an `openlineage.yml` would hold.

    >>> from_environment({"OPENLINEAGE__TRANSPORT__TYPE": "console"})
    {'transport': {'type': 'console'}}
    """
    table: dict[str, Any] = {}
    for name in sorted(environ):  # OPENLINEAGE__TRANSPORT, itself JSON, comes before its members
        if name.startswith("OPENLINEAGE__") and environ[name]:
            *path, last = name.removeprefix("OPENLINEAGE__").lower().split("__")
            inner = table
            for part in path:
                inner = inner.setdefault(part, {})
                if not isinstance(inner, dict):
                    raise ConfigError(f"{name}: {part} is set to a value as well")
            inner[last] = parse_text(environ[name])
    transport = table.get("transport") or {}
    url = environ.get("OPENLINEAGE_URL")
    if url and isinstance(transport, dict) and transport.get("type", "http") in ("http", "async_http"):
        endpoint = environ.get("OPENLINEAGE_ENDPOINT")
        usual = {"type": "http", "url": url, **({"endpoint": endpoint} if endpoint else {})}
        table["transport"] = usual | transport
    return table


def _transport(table: Any, cwd: Path) -> dict[str, Any]:
    if not isinstance(table, Mapping) or "type" not in table:
        raise ConfigError("transport: must be a table with a `type`")
    options = dict(table)
    kind = options.pop("type")
    if kind == "composite":
        members = options.get("transports") or ()
        members = list(members.values() if isinstance(members, Mapping) else members)
        if len(members) == 1:
            return _transport(members[0], cwd)
        raise ConfigError("transport.type: composite names several transports, Headwater sends to one")
    if kind not in TYPES:
        raise ConfigError(f"transport.type: {UnknownName('transport', kind, TYPES)}")
    made = TYPES[kind](options, cwd)
    if options:
        raise ConfigError(f"transport.{next(iter(options))}: Headwater's {kind} has nothing like it")
    return {name: value for name, value in made.items() if value is not None}


def _http(options: dict[str, Any], cwd: Path) -> dict[str, Any]:
    auth, retry = options.pop("auth", None) or {}, options.pop("retry", None) or {}
    for name, value in (("auth", auth), ("retry", retry)):
        if not isinstance(value, Mapping):
            raise ConfigError(f"transport.{name}: must be a table")
    if auth and auth.get("type", "api_key") != "api_key":
        raise ConfigError(f"transport.auth.type: {auth['type']!r} is not offered; api_key is")
    made = {name: options.pop(name, None) for name in ("endpoint", "timeout", "verify", "compression")}
    if (millis := options.pop("timeoutInMillis", None)) is not None:  # as the Java client says it
        made["timeout"] = millis / 1000
    made["params"] = options.pop("urlParams", None)
    made["headers"] = {**options.pop("headers", {}), **options.pop("custom_headers", {})} or None
    made["retries"] = retry.get("total")  # how long to wait between them stays our own affair
    made["api_key"] = next((auth[name] for name in ("api_key", "apiKey", "apikey") if name in auth), None)
    return {
        "transport": _needed(options, "url"),
        **{f"transport.{name}": value for name, value in made.items()},
    }


def _log_file(options: dict[str, Any], cwd: Path) -> dict[str, Any]:
    path = _needed(options, "log_file_path").removeprefix("file://")
    if "://" in path:
        raise ConfigError(f"transport.log_file_path: {path.split('://')[0]}:// is no file of this machine")
    if not parse_bool(options.pop("append", True)):  # theirs then starts a file for each event
        raise ConfigError("transport.append: Headwater appends all events to one file; write `append: true`")
    return {"transport": f"file://{quote(os.path.abspath(cwd / path))}"}


def _kafka(options: dict[str, Any], cwd: Path) -> dict[str, Any]:
    config = dict(options.pop("config", None) or {})
    brokers = config.pop("bootstrap.servers", None)
    if not brokers:
        raise ConfigError("transport.config: `bootstrap.servers` is missing")
    return {"transport": f"kafka://{brokers}/{_needed(options, 'topic')}", "transport.config": config or None}


def _console(options: dict[str, Any], cwd: Path) -> dict[str, Any]:
    return {"transport": "console:"}


def _noop(options: dict[str, Any], cwd: Path) -> dict[str, Any]:
    return {"disabled": True}


TYPES: Mapping[str, Callable[[dict[str, Any], Path], dict[str, Any]]] = {
    "http": _http,
    "async_http": _http,
    "file": _log_file,
    "kafka": _kafka,
    "console": _console,
    "noop": _noop,
}


def _needed(options: dict[str, Any], name: str) -> str:
    value = options.pop(name, None)
    if not isinstance(value, str) or not value:
        raise ConfigError(f"transport.{name}: is missing")
    return value
