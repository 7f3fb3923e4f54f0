"""capture.spark._datahub: the keys of DataHub's Spark agent -> the same in the OpenLineage agent's words, and a transport to DataHub.

A key that the agent itself does not follow, or that nobody knows, is named in one warning.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

from headwater import config
from headwater.config import parse_bool
from headwater.errors import ConfigError, UnknownName

DATAHUB = "spark.datahub."
_OFF = ("false", "no", "0", "off")
_TRIMMERS = "DateTrimmer;KeyValueTrimmer;MultiDirDateTrimmer;YearMonthTrimmer"
_EMITTERS = ("rest", "kafka", "file", "s3")
_OPTIONS = {
    "parent.datajob_urn": "parent_job",
    "tags": "tags",
    "domains": "domains",
    "metadata.pipeline.platformInstance": "platform_instance",
    "metadata.dataset.platformInstance": "dataset_platform_instance",
    "metadata.dataset.env": "env",
    "metadata.dataset.hivePlatformAlias": "hive_platform_alias",
    "file_partition_regexp": "partition_pattern",
    "compat": "compat",
}
"""Keys whose text is an option of the conversion."""
_FLAGS = {
    "patch.enabled": "patch",
    "legacyLineageCleanup.enabled": "legacy_cleanup",
    "metadata.dataset.lowerCaseUrns": "lower_case_urns",
    "metadata.dataset.materialize": "materialize",
    "metadata.dataset.experimental_include_schema_metadata": "include_schema",
    "metadata.dataset.include_schema_metadata": "include_schema",
    "metadata.dataset.enableEnhancedMergeIntoExtraction": "merge_into",
    "disableSymlinkResolution": "disable_symlinks",
    "captureColumnLevelLineage": "column_lineage",
    "columnLineage.includeIndirect": "include_indirect",
}
_AGENT = {"materialize": False, "include_schema": False}
"""What the agent does unless it is told; the conversion itself does otherwise."""
_OURS = frozenset(
    [
        "emitter",
        "coalesce_jobs",
        "stage_metadata_coalescing",
        "log.mcps",
        "streaming_job",
        "streaming_heartbeat",
        "flow_name",
        "databricks.cluster",
        "rest.server",
        "rest.token",
        "rest.disable_ssl_verification",
        "rest.disable_chunked_encoding",
        "rest.max_retries",
        "rest.retry_interval_in_sec",
        "kafka.bootstrap",
        "kafka.schema_registry_url",
        "kafka.mcp_topic",
        "file.filename",
        "s3.bucket",
        "s3.prefix",
        "s3.filename",
        "s3.region",
        "s3.endpoint",
        "s3.profile",
        "s3.access_key",
        "s3.secret_key",
        "capture_spark_plan",
        "metadata.dataset.openLineageTrimmersEnabled",
    ]
)
_TABLES = re.compile(
    r"kafka\.(?:schema_registry_config|producer_config)\..+"
    r'|metadata\.dataset\.connections\.(?P<connection>"[^"]+"|.+)\.(?:platformInstance|env)'
    r"|platform\.[^.]+(?:\.[^.]+)?\.(?:path_spec_list|env|platformInstance|platform_instance)"
)
_LOGIN = re.compile(r'username="?([^"\s;]+)"?\s+password="?([^"\s;]+)"?')


def of_datahub(given: Mapping[str, str], warnings: list[str]) -> dict[str, str]:
    """What has a counterpart in the capture itself; one warning names what has no effect at all.

    >>> of_datahub({"flow_name": "nightly", "captureColumnLevelLineage": "false"}, [])
    {'appName': 'nightly', 'facets.columnLineage.disabled': 'true'}
    """
    out: dict[str, str] = {}
    for key, text in given.items():
        out |= _counterpart(key, text.strip())
    cuts_paths = any(key == "file_partition_regexp" or key.endswith(".path_spec_list") for key in given)
    if cuts_paths and "metadata.dataset.openLineageTrimmersEnabled" not in given:
        out["dataset.disabledTrimmers"] = _TRIMMERS  # the paths are cut by what was said, and not before
    dead = sorted(key for key in given if not _known(key))
    if dead:
        warnings.append(f"these settings have no effect: {', '.join(DATAHUB + key for key in dead)}")
    rest = sorted(key for key in given if _known(key) and not _captured(key))
    if rest and not delivers(given):
        warnings.append(
            "nothing says where DataHub is, so nothing is sent there; set spark.datahub.emitter or"
            f" spark.datahub.rest.server. These settings wait for it: {', '.join(DATAHUB + key for key in rest)}"
        )
    return out


def delivers(given: Mapping[str, str]) -> bool:
    """Whether the keys say where DataHub is."""
    return any(key == "emitter" or key.split(".")[0] in _EMITTERS for key in given)


def datahub_layer(given: Mapping[str, str], app_name: str | None, cwd: Path) -> config.Layer:
    """The transport that the keys name, as a layer of settings; empty where they name none."""
    if not delivers(given):
        return {}
    text = {key: value.strip() for key, value in given.items()}
    emitter = text.get("emitter", "rest").lower()
    if emitter not in _EMITTERS:
        raise ConfigError(f"{DATAHUB}emitter: {UnknownName('emitter', emitter, _EMITTERS)}")
    table = {"rest": _rest, "kafka": _kafka, "file": _file, "s3": _s3}[emitter](text, cwd)
    table["options"] = _options(text, app_name)
    if "coalesce_jobs" in text and not _flag(text, "coalesce_jobs"):
        table["coalesce"] = "none"
    for key, name in (
        ("stage_metadata_coalescing", "periodic"),
        ("log.mcps", "log_mcps"),
        ("streaming_job", "streaming_job"),
    ):
        if key in text:
            table[name] = _flag(text, key)
    if "streaming_heartbeat" in text:
        table["heartbeat"] = text["streaming_heartbeat"].removesuffix("s").strip()
    return config.layer({"transport": table}, DATAHUB.rstrip("."))


def _known(key: str) -> bool:
    return key in _OURS or key in _OPTIONS or key in _FLAGS or _TABLES.fullmatch(key) is not None


def _captured(key: str) -> bool:
    """Whether the capture itself follows it."""
    return key in (
        "flow_name",
        "captureColumnLevelLineage",
        "capture_spark_plan",
        "metadata.dataset.openLineageTrimmersEnabled",
    )


def _counterpart(key: str, text: str) -> dict[str, str]:
    off = text.lower() in _OFF
    if key == "flow_name":
        return {"appName": text}
    if key == "captureColumnLevelLineage":
        return {"facets.columnLineage.disabled": "true"} if off else {}
    if key == "capture_spark_plan":
        return {} if off else {"facets.spark.logicalPlan.disabled": "false"}
    if key == "metadata.dataset.openLineageTrimmersEnabled":
        return {"dataset.disabledTrimmers": _TRIMMERS} if off else {}
    return {}


def _options(text: Mapping[str, str], app_name: str | None) -> dict[str, Any]:
    out: dict[str, Any] = dict(_AGENT)
    out |= {name: text[key] for key, name in _OPTIONS.items() if text.get(key)}
    out |= {name: _flag(text, key) for key, name in _FLAGS.items() if key in text}
    for name in ("tags", "domains"):
        if name in out:
            out[name] = [each for each in out[name].split(",") if each]
    pipeline = text.get("flow_name") or app_name
    if pipeline:
        instance, cluster = text.get("metadata.pipeline.platformInstance"), text.get("databricks.cluster")
        if cluster:
            pipeline = f"{cluster}_{pipeline}".replace(",", "")
        elif instance:
            pipeline = f"{instance}.{pipeline}"
        out["pipeline_name"] = pipeline
    connections: dict[str, dict[str, str]] = {}
    platforms: dict[str, Any] = {}
    for key, value in text.items():
        head, _, last = key.rpartition(".")
        if key.startswith("metadata.dataset.connections.") and _TABLES.fullmatch(key):
            of = head.removeprefix("metadata.dataset.connections.").strip('"')
            connections.setdefault(of, {})[_word(last)] = value
        elif key.startswith("platform.") and _TABLES.fullmatch(key):
            _, platform, *alias = head.split(".")
            at = platforms.setdefault(platform, {})
            for name in alias:
                at = at.setdefault("aliases", {}).setdefault(name, {})
            at[_word(last)] = value.split(",") if last == "path_spec_list" else value
    if connections:
        out["connections"] = connections
    if platforms:
        out["platforms"] = platforms
    return out


def _word(key: str) -> str:
    return {"platformInstance": "platform_instance"}.get(key, key)


def _rest(text: Mapping[str, str], cwd: Path) -> dict[str, Any]:
    server = text.get("rest.server", "http://localhost:8080")
    parts = urlsplit(server if "://" in server else f"http://{server}")
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ConfigError(f"{DATAHUB}rest.server: names no host: write http://host:8080")
    table: dict[str, Any] = {
        "url": f"datahub+rest://{parts.netloc.rpartition('@')[2]}{parts.path.rstrip('/')}",
        "tls": parts.scheme == "https",
    }
    if text.get("rest.token"):
        table["token"] = text["rest.token"]
    if "rest.disable_ssl_verification" in text and _flag(text, "rest.disable_ssl_verification"):
        table["verify"] = False
    if "rest.max_retries" in text:
        table["retries"] = text["rest.max_retries"]
    if "rest.retry_interval_in_sec" in text:
        table["retry_interval"] = text["rest.retry_interval_in_sec"]
    return table


def _kafka(text: Mapping[str, str], cwd: Path) -> dict[str, Any]:
    topic = text.get("kafka.mcp_topic", "")
    brokers = text.get("kafka.bootstrap", "localhost:9092")
    table: dict[str, Any] = {"url": f"datahub+kafka://{brokers}{f'/{quote(topic)}' if topic else ''}"}
    table["schema_registry"] = text.get("kafka.schema_registry_url", "http://localhost:8081")
    registry, producer = (
        {key.removeprefix(prefix): value for key, value in text.items() if key.startswith(prefix)}
        for prefix in ("kafka.schema_registry_config.", "kafka.producer_config.")
    )
    if registry:
        table["schema_registry_config"] = {
            key.removeprefix("schema.registry."): value for key, value in registry.items()
        }
    if made := _librdkafka(producer):
        table["producer_config"] = made
    return table


def _librdkafka(java: Mapping[str, str]) -> dict[str, str]:
    """Properties of Java's client -> those of librdkafka, which knows no JAAS and serializes nothing."""
    out = {key: value for key, value in java.items() if not key.endswith((".serializer", "sasl.jaas.config"))}
    if found := _LOGIN.search(java.get("sasl.jaas.config", "")):
        out |= {"sasl.username": found[1], "sasl.password": found[2]}
    return out


def _file(text: Mapping[str, str], cwd: Path) -> dict[str, Any]:
    name = text.get("file.filename")
    if not name:
        raise ConfigError(f"{DATAHUB}file.filename: the emitter file needs it")
    return {"url": f"datahub+file://{quote(os.path.join(cwd, name))}"}


def _s3(text: Mapping[str, str], cwd: Path) -> dict[str, Any]:
    bucket = text.get("s3.bucket")
    if not bucket:
        raise ConfigError(f"{DATAHUB}s3.bucket: the emitter s3 needs it")
    prefix = text.get("s3.prefix", "").strip("/")
    table: dict[str, Any] = {"url": f"datahub+s3://{bucket}{f'/{quote(prefix)}' if prefix else ''}"}
    if text.get("s3.filename"):
        table["filename"] = text["s3.filename"]
    words = {"endpoint": "endpoint_url", "profile": "profile", "access_key": "key", "secret_key": "secret"}
    storage: dict[str, Any] = {
        word: text[f"s3.{key}"] for key, word in words.items() if text.get(f"s3.{key}")
    }
    if text.get("s3.region"):
        storage["client_kwargs"] = {"region_name": text["s3.region"]}
    if storage:
        table["storage_options"] = storage
    return table


def _flag(text: Mapping[str, str], key: str) -> bool:
    try:
        return parse_bool(text[key])
    except ConfigError as fault:
        raise ConfigError(f"{DATAHUB}{key}: {fault}") from None
