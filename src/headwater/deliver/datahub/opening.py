"""deliver.datahub.opening: a url and options -> the sink that delivers, its libraries imported only now."""

from __future__ import annotations

import os
from typing import Any
from urllib.parse import unquote, urlsplit

from headwater.deliver.datahub.sinks import Sink
from headwater.errors import ConfigError, NotInstalled
from headwater.plugins import require_host
from headwater.transport._auth import trust
from headwater.transport._options import flag, number

ONLY = {
    "token": "rest", "tls": "rest", "verify": "rest", "client_cert": "rest", "client_key": "rest", "headers": "rest",
    "retry_interval": "rest", "schema_registry": "kafka", "schema_registry_config": "kafka",
    "producer_config": "kafka", "filename": "objects", "storage_options": "objects",
}  # fmt: skip
"""Options of one kind of sink alone."""


def as_environment_says(options: dict[str, Any]) -> dict[str, Any]:
    """Options with the longest string that DataHub's own variable allows, unless they say so themselves."""
    most = os.environ.get("INGESTION_MAX_SERIALIZED_STRING_LENGTH", "")
    if not most or "max_string" in options:
        return options
    if not most.isdecimal():
        raise ConfigError(f"INGESTION_MAX_SERIALIZED_STRING_LENGTH: {most!r} is no whole number")
    return {**options, "max_string": max(1000, int(most))}


def family_of(url: str) -> str:
    """The kind of sink that a `datahub+…` url names, as ONLY calls it."""
    kind = urlsplit(url).scheme.removeprefix("datahub+")
    return kind if kind in ("rest", "kafka", "file") else "objects"


def open_sink(url: str, given: dict[str, Any], timeout: float, most: int, retries: int) -> Sink:
    """The sink that a `datahub+…` url names; nothing is connected yet."""
    parts = urlsplit(url)
    kind, family = parts.scheme.removeprefix("datahub+"), family_of(url)
    for name in given:
        if ONLY[name] != family:
            raise ConfigError(f"{name}: is no option of {parts.scheme}")
    if "@" in parts.netloc and kind in ("rest", "kafka"):
        raise ConfigError("url: holds no user: REST has the option token, Kafka producer_config")
    if kind == "rest":
        return _rest(url, given, timeout, most, retries)
    if kind == "kafka":
        return _kafka(url, given, timeout, most)
    if kind == "file":
        from headwater.deliver.datahub.sinks.file import FileSink

        path = unquote(parts.path)
        if parts.netloc not in ("", "localhost") or not path or path == "/":
            raise ConfigError(
                "url: names no file: write datahub+file:///path/mcps.json, or …/path/ for a file per run"
            )
        return FileSink(path, max_string=most)
    try:
        from headwater.deliver.datahub.sinks.objects import ObjectSink
    except ModuleNotFoundError as fault:
        raise NotInstalled(f"transport {parts.scheme!r}", "s3") from fault
    where = f"{kind}://{parts.netloc}{unquote(parts.path)}"
    return ObjectSink(
        where, filename=given.get("filename"), storage_options=given.get("storage_options"), max_string=most
    )


def _rest(url: str, given: dict[str, Any], timeout: float, most: int, retries: int) -> Sink:
    from headwater.deliver.datahub.sinks.rest import RestSink

    parts = urlsplit(url)
    require_host(parts, "datahub+rest://host:8080")
    secure = flag("tls", given.get("tls", parts.port == 443))
    verify = trust(given.get("verify", True), given.get("client_cert"), given.get("client_key"))
    interval = given.get("retry_interval")
    return RestSink(
        f"{'https' if secure else 'http'}://{parts.netloc}{parts.path.rstrip('/')}",
        token=given.get("token"),
        timeout=timeout,
        retries=retries,
        retry_interval=None if interval is None else number("retry_interval", interval),
        verify=verify if secure else False,
        headers=given.get("headers"),
        max_string=most,
    )


def _kafka(url: str, given: dict[str, Any], timeout: float, most: int) -> Sink:
    try:
        from headwater.deliver.datahub.sinks.kafka import TOPIC, KafkaSink
    except ModuleNotFoundError as fault:
        raise NotInstalled("transport 'datahub+kafka'", "kafka") from fault
    parts = urlsplit(url)
    topic = unquote(parts.path.strip("/")) or TOPIC
    if not parts.netloc or "/" in topic:
        raise ConfigError("url: names no brokers: write datahub+kafka://host:9092,host:9092[/topic]")
    return KafkaSink(
        parts.netloc,
        topic,
        registry=given.get("schema_registry") or "http://localhost:8081",
        registry_config=given.get("schema_registry_config"),
        config=given.get("producer_config"),
        timeout=timeout,
        max_string=most,
    )
