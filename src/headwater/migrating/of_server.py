"""migrating.of_server: the table of a marquez.yml -> what becomes of each key, and the headwater.toml that says the same."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import quote, urlsplit

from headwater import config
from headwater.errors import ConfigError
from headwater.migrating import marquez
from headwater.migrating._rules import Report, found

KIND = "marquez.yml"
OWN = frozenset(
    {
        "server",
        "db",
        "flyway",
        "migrateOnStartup",
        "graphql",
        "dbRetention",
        "exclude",
        "search",
        "sentry",
        "tags",
    }
)
"""Keys by which such a file is known."""
_LEVELS = {"TRACE": "DEBUG", "ALL": "DEBUG", "WARN": "WARNING", "FATAL": "ERROR", "OFF": "ERROR"}
_REACHED = (
    'Marquez listens on every address, `headwater serve` on this machine alone: for others set serve.host = "0.0.0.0"'
    " and make keys, `headwater keys create`"
)
_VARIABLE = re.compile(r"\$\{(\w+)(?::-([^}]*))?\}")


def check(values: Mapping[str, Any], name: str) -> Report:
    """What becomes of it; a `${VAR}` that is not set stays as it is written."""
    leaves = dict(_leaves(_expanded(values)))
    keys, problems = [], []
    for key in dict.fromkeys(re.sub(r"\[\d+\]", "", each) for each in leaves):
        told = found(marquez.RULES, key)
        if told is None:
            problems.append(f"{name}: {key}: no setting of Marquez that is known here")
        else:
            keys.append(told)
    settings: dict[str, Any] = {}
    for key, value in leaves.items():
        _take(re.sub(r"\[\d+\]", "", key), value, settings, name, problems)
    steps = [
        "headwater serve",
        "headwater store import --marquez http://marquez:5000  # its events, while it still runs",
    ]
    if "db.password" in leaves:
        steps.insert(0, "export PGPASSWORD=…")
    if settings.get("store", {}).get("url"):
        steps.insert(0, "createdb headwater  # beside Marquez's own database")
    warnings = () if settings.get("serve", {}).get("host") else (_REACHED,)
    text = _toml(settings)
    problems += _usable(settings)
    return Report(KIND, tuple(keys), tuple(problems), warnings, tuple(steps), text)


def _expanded(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _expanded(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_expanded(inner) for inner in value]
    if isinstance(value, str):
        return _VARIABLE.sub(
            lambda hit: os.environ.get(hit[1]) or (hit[0] if hit[2] is None else hit[2]), value
        )
    return value


def _leaves(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    if isinstance(value, Mapping):
        for key, inner in value.items():
            yield from _leaves(inner, f"{path}.{key}" if path else key)
    elif isinstance(value, list):
        for at, inner in enumerate(value):
            yield from _leaves(inner, f"{path}[{at}]")
    else:
        yield path, value


def _take(key: str, value: Any, settings: dict[str, Any], name: str, problems: list[str]) -> None:
    """What one value says, in our words."""
    text = str(value).strip()
    serve, store, retention = (settings.setdefault(room, {}) for room in ("serve", "store", "retention"))
    if key == "server.applicationConnectors.type" and text != "http":
        problems.append(
            f"{name}: {key}: {text} is not offered: put a proxy that speaks TLS in front of `headwater serve`"
        )
    elif key == "server.applicationConnectors.port":
        if not text.isdecimal():
            problems.append(f"{name}: {key}: {text!r} is no port: set the variable, or write a number")
        elif serve.setdefault("port", int(text)) != int(text):
            problems.append(
                f"{name}: {key}: one server listens on one port, {serve['port']}; start another for {text}"
            )
    elif key == "server.applicationConnectors.bindHost":
        serve["host"] = text
    elif key == "server.applicationContextPath" and text not in ("", "/"):
        serve["base_path"] = text.rstrip("/")
    elif key == "db.url":
        store["url"] = _store(text, name, problems)
    elif key == "db.user":
        store["user"] = text
    elif key == "db.maxSize" and text.isdecimal():
        store["pool_size"] = int(text)
    elif key == "migrateOnStartup" and text.lower() == "false":
        store["migrate_on_open"] = False
    elif key == "logging.level":
        level = _LEVELS.get(text.upper(), text.upper())
        settings["log_level"] = level
    elif key == "dbRetention.retentionDays" and text.isdecimal():
        retention.update(runs=f"{text}d", events=f"{text}d")
    elif key.startswith("exclude.") and key.endswith(".enabled") and text.lower() == "true":
        problems.append(
            f"{name}: {key}: every namespace is kept and shown: do not send what must not be kept, or redact it"
        )


def _store(jdbc: str, name: str, problems: list[str]) -> str:
    """`jdbc:postgresql://host:port/database` -> the same server, another database."""
    parts = urlsplit(jdbc.removeprefix("jdbc:"))
    if parts.scheme != "postgresql":
        problems.append(
            f"{name}: db.url: is no jdbc:postgresql://…: Headwater keeps lineage in SQLite or Postgres"
        )
        return ""
    host = parts.netloc.rpartition("@")[2]
    return f"postgresql://{host}/headwater"


def _toml(settings: dict[str, Any]) -> str:
    """As a headwater.toml."""
    store = settings["store"]
    user = store.pop("user", "")
    if not store.get("url"):
        store.pop("url", None)
    elif user and "$" not in user:
        store["url"] = store["url"].replace("://", f"://{quote(user, safe='')}@", 1)
    lines = [f'{key} = "{value}"' for key, value in settings.items() if isinstance(value, str)]
    for room in ("store", "serve", "retention"):
        if settings[room]:
            lines += ["", f"[{room}]"]
            lines += [f"{key} = {_value(value)}" for key, value in settings[room].items()]
    return "\n".join(lines).strip() + "\n" if lines else ""


def _value(value: object) -> str:
    return (
        str(value).lower()
        if isinstance(value, bool)
        else str(value)
        if isinstance(value, int)
        else f'"{value}"'
    )


def _usable(settings: Mapping[str, Any]) -> list[str]:
    try:
        return config.check_rooms(
            config.load({key: value for key, value in settings.items() if value}, environ={})
        )
    except ConfigError as fault:
        return str(fault).splitlines()
