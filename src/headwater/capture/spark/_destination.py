"""capture.spark._destination: `spark.headwater.*`, `spark.openlineage.*` -> layers of settings: where events go, and as whose."""

from __future__ import annotations

import re
import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

from headwater import config
from headwater.config import openlineage, parse_bool
from headwater.errors import ConfigError

OURS, THEIRS = "spark.headwater.", "spark.openlineage."
_URL = re.compile(
    r"/api/(?P<version>v?\d+)(?:/namespaces/(?P<namespace>[^/]+)"
    r"(?:/jobs?/(?P<job>[^/]+)(?:/runs/(?P<run>[^/]+))?)?)?/?"
)


def under(mapping: Mapping[str, str], prefix: str) -> dict[str, str]:
    """The keys that begin so, without it."""
    return {key.removeprefix(prefix): value for key, value in mapping.items() if key.startswith(prefix)}


def our_layer(ours: Mapping[str, str]) -> config.Layer:
    """Settings as in headwater.toml; a dot opens a table."""
    values: dict[str, Any] = {}
    for key, text in ours.items():
        name, _, option = key.partition(".")
        name = {"apiKey": "api_key", "logLevel": "log_level"}.get(name, name)
        if name == "disabled":
            values[name] = _flag(OURS + name, text)
        elif not option:
            values.setdefault(name, {})
            values[name] = {**values[name], "url": text} if values[name] else text
        else:
            inner = values.setdefault(name, {})
            if not isinstance(inner, dict):  # spark.headwater.transport itself came first
                inner = values[name] = {"url": inner}
            option, _, last = option.partition(".")
            if last:
                inner.setdefault(option, {})[last] = text
            else:
                inner[option] = text
    return config.layer(values, OURS.rstrip("."))


def their_layer(
    theirs: Mapping[str, str], place: Mapping[str, Any], cwd: Path, *, wanted: bool
) -> tuple[config.Layer, set[str]]:
    """The settings of the OpenLineage agent in our words, and the keys that were understood."""
    out: config.Layer = {}
    used = {"url", "host", "version", "apiKey", "namespace", "disabled", "timeout"}
    used |= {key for key in theirs if key.startswith(("transport.", "url.param."))}
    if "disabled" in theirs:
        out["disabled"] = (_flag(f"{THEIRS}disabled", theirs["disabled"]), f"{THEIRS}disabled")
    if namespace := theirs.get("namespace") or place.get("namespace"):
        out["namespace"] = (namespace, f"{THEIRS}{'namespace' if theirs.get('namespace') else 'url'}")
    if key := theirs.get("apiKey") or place.get("key"):
        out["api_key"] = (key, f"{THEIRS}{'apiKey' if theirs.get('apiKey') else 'url'}")
    if wanted:
        table, origin = _transport(theirs, place)
        params = {**place.get("params", {}), **under(theirs, "url.param.")}
        if params and table.get("type") == "http":
            table["urlParams"] = {**params, **table.get("urlParams", {})}
        try:
            made = openlineage.translate({"transport": table} if table else {}, cwd)
        except ConfigError as fault:
            said = str(fault).replace("\n", f"\n{THEIRS}")
            raise ConfigError(f"{THEIRS}{said}; {OURS}transport takes its place") from None
        out |= {name: (value, origin) for name, value in made.items()}
    return out, used


def _transport(theirs: Mapping[str, str], place: Mapping[str, Any]) -> tuple[dict[str, Any], str]:
    """The transport as an openlineage.yml would hold it: by `transport.*`, else by `url`, else by `host`."""
    flat = under(theirs, "transport.")
    if flat:
        return _table(flat), f"{THEIRS}transport"
    host = place.get("host") or theirs.get("host")
    if not host:
        return {}, ""
    version = place.get("version") or theirs.get("version") or "1"
    table = {
        "type": "http",
        "url": host if "://" in host else f"http://{host}",
        "endpoint": place.get("endpoint", f"api/v{version.lstrip('v')}/lineage"),
    }
    if timeout := place.get("timeout") or theirs.get("timeout"):
        table["timeout"] = timeout
    return table, f"{THEIRS}{'url' if place else 'host'}"


def _table(flat: Mapping[str, str]) -> dict[str, Any]:
    """The keys of the Java client in the words of the Python one."""
    table: dict[str, Any] = {"type": "http"} if "url" in flat else {}
    members: dict[str, dict[str, str]] = {}  # of a composite, as Airflow's provider hands one on
    for key, text in flat.items():
        room, dot, rest = key.partition(".")
        if room == "transports" and "." in rest:
            name, _, option = rest.partition(".")
            members.setdefault(name, {})[option] = text
        elif dot and room in ("auth", "headers", "properties", "urlParams"):
            table.setdefault({"properties": "config"}.get(room, room), {})[rest] = text
        elif key == "timeoutInMillis":
            if not text.isdecimal():
                raise ConfigError(f"{THEIRS}transport.{key}: {text!r} is no whole number")
            table[key] = int(text)
        else:
            table[{"location": "log_file_path", "topicName": "topic"}.get(key, key)] = text
    table.pop("messageKey", None)  # ours is the run, always
    if members:
        table["transports"] = {name: _table(inner) for name, inner in members.items()}
    return table


def place_of(url: str | None, warnings: list[str]) -> dict[str, Any]:
    """The parts of a url as `…/api/v1/namespaces/{ns}[/job(s)/{name}[/runs/{id}]][?api_key=…]`."""
    if not url:
        return {}
    parts = urlsplit(url.strip())
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ConfigError(f"{THEIRS}url: names no host: write http://host:port/api/v1/namespaces/name")
    query = dict(parse_qsl(parts.query))
    out: dict[str, Any] = {"host": f"{parts.scheme}://{parts.netloc}"}
    out["key"] = query.pop("api_key", None) or query.pop("apiKey", None)
    out["timeout"] = query.pop("timeout", None)
    out["params"] = query
    found = _URL.fullmatch(parts.path)
    if found:
        out |= {name: unquote(value) for name, value in found.groupdict().items() if value}
    elif parts.path.strip("/"):
        warnings.append(
            f"{THEIRS}url: {parts.path!r} is not as in /api/v1/namespaces/name/jobs/name/runs/id: only its host is used"
        )
    if "run" in out and not is_uuid(out["run"]):
        warnings.append(f"{THEIRS}url: the run {out.pop('run')!r} is no UUID: no parent is told")
        out.pop("job")
    return {name: value for name, value in out.items() if value}


def is_uuid(text: str) -> bool:
    """Whether it may be the id of a run."""
    try:
        return str(uuid.UUID(text)) == text.lower()
    except (ValueError, AttributeError, TypeError):
        return False


def _flag(key: str, text: str) -> bool:
    try:
        return parse_bool(text)
    except ConfigError as fault:
        raise ConfigError(f"{key}: {fault}") from None
