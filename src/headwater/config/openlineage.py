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

from headwater.config._expand import expand
from headwater.config._table import parse_bool, parse_text
from headwater.errors import ConfigError, UnknownName

OUR_TYPES = ("headwater.airflow.Transport", "headwater.transport.openlineage.HeadwaterTransport")
"""Transports of ours by the dotted names that an OpenLineage client knows them by."""
_SEVERAL = "composite"


def translate(
    config: Mapping[str, Any], cwd: Path, environ: Mapping[str, str] | None = None
) -> dict[str, Any]:
    """An `openlineage.yml` as flat settings of ours; where `environ` is given, `${VAR}` in values is replaced.

    >>> translate({"transport": {"type": "http", "url": "http://lineage:5000", "timeout": 3}}, Path())
    {'transport': 'http://lineage:5000', 'transport.timeout': 3}
    """
    # filters or tags left out in silence would be wrong lineage
    faults = [f"{name}: Headwater has nothing like it" for name in config if name != "transport"]
    table, made = config.get("transport"), {}
    try:
        if table and environ is not None:
            table = expand(table, environ, "transport")
        made = _transport(table, cwd) if table else {}
    except ConfigError as fault:
        faults.append(str(fault))
    if faults:
        raise ConfigError("\n".join(faults))
    return made


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
    options = {name: value for name, value in table.items() if name not in ("name", "priority")}
    kind = options.pop("type")
    if not isinstance(kind, str):
        raise ConfigError("transport.type: must be the name of one")
    if kind == _SEVERAL:
        return _composite(options, cwd)
    if kind in OUR_TYPES:
        return _flat(ours(options))
    if kind in REFUSED:
        raise ConfigError(f"transport.type: {kind} is not offered: {REFUSED[kind]}")
    if kind not in TYPES:
        raise ConfigError(f"transport.type: {UnknownName('transport', kind, {*TYPES, _SEVERAL})}")
    made = TYPES[kind](options, cwd)
    _refuse(options, kind)
    return {name: value for name, value in made.items() if value is not None}


def _refuse(options: Mapping[str, Any], kind: str) -> None:
    """What nobody understood, each in a line."""
    if options:
        raise ConfigError(
            "\n".join(f"transport.{name}: Headwater's {kind} has nothing like it" for name in options)
        )


def ours(options: Mapping[str, Any]) -> dict[str, Any]:
    """Options as our transports take them; words of the OpenLineage client and of Correlator's plugin are understood.

    >>> ours({"url": "http://lineage:5000", "verify_ssl": False, "auth": {"type": "api_key", "apiKey": "k"}})
    {'url': 'http://lineage:5000', 'verify': False, 'api_key': 'k'}
    """
    out = dict(options)
    for theirs, name in (("verify_ssl", "verify"), ("custom_headers", "headers")):
        if theirs in out:
            if name in out:
                raise ConfigError(f"{theirs}: says what {name} says: leave one of them out")
            out[name] = out.pop(theirs)
    auth = out.get("auth")
    if isinstance(auth, Mapping) and auth.get("type", "api_key") in ("api_key", "oauth2"):
        out.pop("auth")
        out.update(_auth(dict(auth)))
    if out.get("api_key") == "":
        out.pop("api_key")
    return out


def _flat(table: Mapping[str, Any]) -> dict[str, Any]:
    """As settings; `spool` is that setting itself, or a table as the room of that name."""
    named = {"transport": table["url"]} if "url" in table else {}
    spool = table.get("spool")
    if isinstance(spool, Mapping):
        named |= {"spool" if name == "dir" else f"spool.{name}": value for name, value in spool.items()}
    elif spool is not None:
        named["spool"] = spool
    rest = {f"transport.{name}": value for name, value in table.items() if name not in ("url", "spool")}
    return {**named, **rest}


def _composite(options: dict[str, Any], cwd: Path) -> dict[str, Any]:
    """Several at once are a fanout: theirs fails when none took an event, or with the first that did not."""
    members = options.pop("transports", None) or ()
    if not isinstance(members, Mapping | list | tuple):
        raise ConfigError("transport.transports: must be a list or a table of transports")
    members = list(members.values() if isinstance(members, Mapping) else members)
    goes_on = parse_bool(options.pop("continue_on_failure", options.pop("continueOnFailure", True)))
    if not parse_bool(options.pop("continue_on_success", True)):
        raise ConfigError("transport.continue_on_success: Headwater sends to all of them; write `true`")
    options.pop("sort_transports", None)  # all of them get it, whatever the order
    _refuse(options, _SEVERAL)
    made = [each for each in (_transport(member, cwd) for member in members) if "disabled" not in each]
    if not members:
        raise ConfigError("transport.transports: is missing")
    if len(made) <= 1:
        return made[0] if made else {"disabled": True}
    policy = "best_effort" if goes_on else "required"
    named = ({k.removeprefix("transport."): v for k, v in each.items() if k != "transport"} for each in made)
    to = [{"url": each["transport"], **rest} for each, rest in zip(made, named, strict=True)]
    return {"transport": "fanout:", "transport.to": to, "transport.policy": policy}


def _http(options: dict[str, Any], cwd: Path) -> dict[str, Any]:
    auth, retry = options.pop("auth", None) or {}, options.pop("retry", None) or {}
    ssl = next((options.pop(n) for n in ("sslContext", "ssl_context", "sslcontext") if n in options), None)
    for name, value in (("auth", auth), ("retry", retry), ("sslContext", ssl or {})):
        if not isinstance(value, Mapping):
            raise ConfigError(f"transport.{name}: must be a table")
    made = {name: options.pop(name, None) for name in ("endpoint", "timeout", "verify", "compression")}
    if (millis := options.pop("timeoutInMillis", None)) is not None:  # as the Java client says it
        made["timeout"] = _seconds(millis)
    made["params"] = options.pop("urlParams", None)
    made["headers"] = {**_pairs(options, "headers"), **_pairs(options, "custom_headers")} or None
    made["retries"] = retry.get("total")  # how long to wait between them stays our own affair
    made.update(_auth(dict(auth)))
    for name, (wide, snake) in _SSL.items():
        if (
            given := (ssl or {}).get(wide, (ssl or {}).get(snake, (ssl or {}).get(wide.lower())))
        ) is not None:
            made[name] = given
    return {
        "transport": _needed(options, "url"),
        **{f"transport.{name}": value for name, value in made.items()},
    }


def _pairs(options: dict[str, Any], name: str) -> Mapping[str, Any]:
    """A table that may be left empty."""
    value = options.pop(name, None) or {}
    if not isinstance(value, Mapping):
        raise ConfigError(f"transport.{name}: must be a table")
    return value


def _seconds(millis: Any) -> float:
    try:
        return float(millis) / 1000
    except (TypeError, ValueError):
        raise ConfigError(f"transport.timeoutInMillis: {millis!r} is no number of milliseconds") from None


_SSL = {
    "verify": ("caCertPath", "ca_cert_path"),
    "client_cert": ("clientCertPath", "client_cert_path"),
    "client_key": ("clientKeyPath", "client_key_path"),
}


def _auth(auth: dict[str, Any]) -> dict[str, Any]:
    """Who we are, in our words."""
    if not auth:
        return {}
    kind = auth.get("type", "api_key")
    if kind == "api_key":
        key = next((auth[name] for name in ("api_key", "apiKey", "apikey") if auth.get(name)), None)
        # Airflow's provider hands the header's value on where a key belongs
        return {"api_key": str(key).removeprefix("Bearer ")} if key is not None else {}
    if kind == "oauth2":
        method = auth.get("clientAuthMethod", auth.get("client_auth_method", "client_secret_basic"))
        table = {
            "type": "oauth",
            "token_url": auth.get("tokenEndpoint", auth.get("token_endpoint")),
            "client_id": auth.get("clientId", auth.get("client_id")),
            "client_secret": auth.get("clientSecret", auth.get("client_secret")),
            "scope": auth.get("scope"),
            "method": str(method).removeprefix("client_secret_"),
        }
        return {"auth": {name: value for name, value in table.items() if value is not None}}
    raise ConfigError(f"transport.auth.type: {kind!r} is not offered; api_key and oauth2 are")


def _correlator(options: dict[str, Any], cwd: Path) -> dict[str, Any]:
    """As Correlator's plugin for Airflow writes it."""
    known: dict[str, Any] = {
        name: options.pop(name) for name in ("url", "api_key", "timeout", "verify_ssl") if name in options
    }
    if not isinstance(known.get("url"), str):
        raise ConfigError("transport.url: is missing")
    return {**_flat(ours(known)), "transport.profile": "correlator"}


def _log_file(options: dict[str, Any], cwd: Path) -> dict[str, Any]:
    path = _needed(options, "log_file_path").removeprefix("file://")
    append = parse_bool(options.pop("append", True))
    scheme = path.partition("://")[0] if "://" in path else ""
    if scheme in BUCKETS:  # an object cannot be appended to: theirs and ours write one after another
        url = BUCKETS[scheme] + path.removeprefix(scheme)
        return {"transport": url, "transport.storage_options": options.pop("storage_options", None)}
    if scheme:
        raise ConfigError(
            f"transport.log_file_path: {scheme}:// is not offered; {', '.join(BUCKETS)} and files are"
        )
    if not append:  # theirs then starts a file for each event
        raise ConfigError("transport.append: Headwater appends all events to one file; write `append: true`")
    return {"transport": f"file://{quote(os.path.abspath(cwd / path))}"}


BUCKETS = {"s3": "s3", "s3a": "s3", "gs": "gs", "gcs": "gs", "abfs": "abfss", "abfss": "abfss"}
"""Schemes that fsspec knows -> ours"""


def _kafka(options: dict[str, Any], cwd: Path) -> dict[str, Any]:
    config = options.pop("config", None) or {}
    if not isinstance(config, Mapping):
        raise ConfigError("transport.config: must be a table")
    config = dict(config)
    options.pop("flush", None)  # ours waits for the brokers, always
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
    "correlator": _correlator,
    "file": _log_file,
    "kafka": _kafka,
    "console": _console,
    "noop": _noop,
}

REFUSED = {
    "transform": "Headwater sends events as they are; name the job's namespace where the event is made",
    "msk-iam": "use kafka with SASL in `config`",
    "amazon_datazone_api": "Headwater speaks OpenLineage's HTTP API, Kafka and files",
    "datadog": "use http with its url and key",
    "gcplineage": "Headwater speaks OpenLineage's HTTP API, Kafka and files",
}
"""Transports of the client that we have none for, and what to do instead."""


def _needed(options: dict[str, Any], name: str) -> str:
    value = options.pop(name, None)
    if not isinstance(value, str) or not value:
        raise ConfigError(f"transport.{name}: is missing")
    return value
