"""Every key of DataHub's Spark agent: what it becomes here, and which have no effect."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from headwater import config
from headwater.capture.spark.settings import read
from headwater.deliver.datahub import make
from headwater.errors import ConfigError
from headwater.transport import open_transport

REST = {"rest.server": "http://gms:8080"}


def transport(tmp_path: Path, app: str | None = "My App", **keys: str) -> dict[str, Any]:
    """The transport that the settings name, as a host opens it."""
    conf = {f"spark.datahub.{key}": value for key, value in keys.items()}
    if app:
        conf["spark.app.name"] = app
    settings = config.load(between=read(conf, cwd=tmp_path).layers, environ={}, cwd=tmp_path, home=tmp_path)
    return {"url": settings.transport, **settings.rooms.get("transport", {})}


EMITTERS = [
    # keys, the transport
    ({"emitter": "rest"}, {"url": "datahub+rest://localhost:8080", "tls": False}),
    (REST, {"url": "datahub+rest://gms:8080", "tls": False}),
    ({"rest.server": "https://gms.example.org/api"}, {"url": "datahub+rest://gms.example.org/api", "tls": True}),
    ({**REST, "rest.token": "t", "rest.disable_ssl_verification": "true", "rest.disable_chunked_encoding": "true"},
     {"url": "datahub+rest://gms:8080", "tls": False, "token": "t", "verify": False}),
    ({**REST, "rest.max_retries": "4", "rest.retry_interval_in_sec": "7"},
     {"url": "datahub+rest://gms:8080", "tls": False, "retries": "4", "retry_interval": "7"}),
    ({"emitter": "kafka"}, {"url": "datahub+kafka://localhost:9092", "schema_registry": "http://localhost:8081"}),
    ({"emitter": "kafka", "kafka.bootstrap": "b:1", "kafka.mcp_topic": "t", "kafka.schema_registry_url": "http://r:1",
      "kafka.schema_registry_config.basic.auth.user.info": "u:p",
      "kafka.producer_config.security.protocol": "SASL_SSL", "kafka.producer_config.sasl.mechanism": "PLAIN",
      "kafka.producer_config.sasl.jaas.config": 'x.PlainLoginModule required username="u" password="p";'},
     {"url": "datahub+kafka://b:1/t", "schema_registry": "http://r:1", "schema_registry_config": {"basic.auth.user.info": "u:p"},
      "producer_config": {"security.protocol": "SASL_SSL", "sasl.mechanism": "PLAIN", "sasl.username": "u", "sasl.password": "p"}}),
    ({"emitter": "file", "file.filename": "/tmp/x.json"}, {"url": "datahub+file:///tmp/x.json"}),
    ({"emitter": "s3", "s3.bucket": "b"}, {"url": "datahub+s3://b"}),
    ({"emitter": "s3", "s3.bucket": "b", "s3.prefix": "p/q", "s3.filename": "f.json", "s3.region": "eu", "s3.endpoint": "http://m",
      "s3.profile": "pr", "s3.access_key": "a", "s3.secret_key": "s"},
     {"url": "datahub+s3://b/p/q", "filename": "f.json", "storage_options": {
         "endpoint_url": "http://m", "profile": "pr", "key": "a", "secret": "s", "client_kwargs": {"region_name": "eu"}}}),
    ({**REST, "coalesce_jobs": "false"}, {"url": "datahub+rest://gms:8080", "tls": False, "coalesce": "none"}),
    ({**REST, "stage_metadata_coalescing": "true", "log.mcps": "false", "streaming_job": "true", "streaming_heartbeat": "30"},
     {"url": "datahub+rest://gms:8080", "tls": False, "periodic": True, "log_mcps": False, "streaming_job": True, "heartbeat": "30"}),
]  # fmt: skip


@pytest.mark.parametrize(("keys", "expected"), EMITTERS, ids=lambda value: str(value)[:60])
def test_emitters(tmp_path: Path, keys: dict[str, str], expected: dict[str, Any]) -> None:
    made = transport(tmp_path, **keys)
    made.pop("options")
    assert made == expected
    if "s3" not in expected["url"]:  # whose profile is asked for at once
        open_transport(transport(tmp_path, **keys)).close()


OPTIONS = [
    # keys, the options of the conversion
    ({}, {"pipeline_name": "My App"}),
    ({"flow_name": "nightly"}, {"pipeline_name": "nightly"}),
    ({"databricks.cluster": "a,b"}, {"pipeline_name": "ab_My App"}),
    ({"metadata.pipeline.platformInstance": "i"}, {"pipeline_name": "i.My App", "platform_instance": "i"}),
    ({"tags": "a,b", "domains": "urn:li:domain:x"}, {"tags": ["a", "b"], "domains": ["urn:li:domain:x"]}),
    ({"parent.datajob_urn": "urn:li:dataJob:x"}, {"parent_job": "urn:li:dataJob:x"}),
    ({"patch.enabled": "true", "legacyLineageCleanup.enabled": "true"}, {"patch": True, "legacy_cleanup": True}),
    ({"metadata.dataset.platformInstance": "d", "metadata.dataset.env": "dev"}, {"dataset_platform_instance": "d", "env": "dev"}),
    ({"metadata.dataset.hivePlatformAlias": "glue", "metadata.dataset.lowerCaseUrns": "true"},
     {"hive_platform_alias": "glue", "lower_case_urns": True}),
    ({'metadata.dataset.connections."postgres://h.x:5432".platformInstance': "p", 'metadata.dataset.connections."postgres://h.x:5432".env': "QA"},
     {"connections": {"postgres://h.x:5432": {"platform_instance": "p", "env": "QA"}}}),
    ({"metadata.dataset.materialize": "true", "metadata.dataset.include_schema_metadata": "true"}, {"materialize": True, "include_schema": True}),
    ({"metadata.dataset.experimental_include_schema_metadata": "true"}, {"include_schema": True}),
    ({"metadata.dataset.enableEnhancedMergeIntoExtraction": "true"}, {"merge_into": True}),
    ({"platform.s3.path_spec_list": "s3://a/{table},s3://b/{table}", "platform.s3.env": "DEV", "platform.mysql.platformInstance": "m"},
     {"platforms": {"s3": {"path_spec_list": ["s3://a/{table}", "s3://b/{table}"], "env": "DEV"}, "mysql": {"platform_instance": "m"}}}),
    ({"platform.s3.lake.path_spec_list": "s3://a/{table}", "platform.s3.lake.platform_instance": "one"},
     {"platforms": {"s3": {"aliases": {"lake": {"path_spec_list": ["s3://a/{table}"], "platform_instance": "one"}}}}}),
    ({"file_partition_regexp": "year=.*"}, {"partition_pattern": "year=.*"}),
    ({"disableSymlinkResolution": "true"}, {"disable_symlinks": True}),
    ({"captureColumnLevelLineage": "false", "columnLineage.includeIndirect": "false"}, {"column_lineage": False, "include_indirect": False}),
    ({"compat": "datahub-java"}, {"compat": "datahub-java"}),
]  # fmt: skip


@pytest.mark.parametrize(("keys", "expected"), OPTIONS, ids=lambda value: str(value)[:60])
def test_options(tmp_path: Path, keys: dict[str, str], expected: dict[str, Any]) -> None:
    made = transport(tmp_path, **REST, **keys)["options"]
    make(made)  # the conversion takes them
    agents = {"materialize": False, "include_schema": False, "pipeline_name": "My App"}
    assert made == {**agents, **expected}


def warned(**keys: str) -> str:
    return " ".join(read({f"spark.datahub.{key}": value for key, value in keys.items()}).warnings)


def test_keys_without_effect_are_named_in_one_warning() -> None:
    dead = {
        "metadata.remove_partition_pattern": "x",
        "metadata.include_scheme": "x",
        "rest.retry_interval": "3",
        "metadata.dataset.file_partition_regexp": "x",
        "platform.s3.path_alias_list": "x",
        "nonsense": "x",
    }
    told = read({f"spark.datahub.{key}": value for key, value in {**REST, **dead}.items()}).warnings
    assert len(told) == 1
    assert all(f"spark.datahub.{key}" in told[0] for key in dead)
    assert "rest.server" not in told[0]


def test_no_live_key_is_named() -> None:
    live = {key: value for keys, _ in [*EMITTERS, *OPTIONS] for key, value in keys.items()}  # type: ignore[attr-defined]
    assert warned(**live) == ""


def test_where_nothing_says_where_datahub_is_nothing_is_sent(tmp_path: Path) -> None:
    assert "nothing says where DataHub is" in warned(tags="a")
    assert transport(tmp_path, tags="a")["url"] is None


def test_another_transport_goes_first_and_that_is_told(tmp_path: Path) -> None:
    conf = {"spark.datahub.rest.server": "http://gms:8080", "spark.headwater.transport": "console:"}
    said = read(conf, cwd=tmp_path)
    assert "another transport goes before" in said.warnings[0]
    assert config.load(between=said.layers, environ={}, cwd=tmp_path, home=tmp_path).transport == "console:"


@pytest.mark.parametrize(
    ("keys", "why"),
    [
        ({"emitter": "smtp"}, "unknown emitter 'smtp'"),
        ({"emitter": "file"}, "file.filename"),
        ({"emitter": "s3"}, "s3.bucket"),
        ({"rest.server": "ftp://x"}, "names no host"),
        ({**REST, "patch.enabled": "perhaps"}, "patch.enabled"),
    ],
)
def test_wrong_values_are_refused(keys: dict[str, str], why: str) -> None:
    with pytest.raises(ConfigError, match=why):
        warned(**keys)


def test_paths_that_are_cut_by_a_spec_are_not_trimmed_before() -> None:
    assert len(read({"spark.datahub.file_partition_regexp": "x"}).disabled_trimmers) == 4
    assert len(read({"spark.datahub.platform.s3.path_spec_list": "x"}).disabled_trimmers) == 4
    on = {
        "spark.datahub.file_partition_regexp": "x",
        "spark.datahub.metadata.dataset.openLineageTrimmersEnabled": "true",
    }
    assert read(on).disabled_trimmers == ()


def test_a_token_is_shown_nowhere(tmp_path: Path) -> None:
    said = read({"spark.datahub.rest.token": "hush", "spark.datahub.rest.server": "http://gms"}, cwd=tmp_path)
    settings = config.load(between=said.layers, environ={}, cwd=tmp_path, home=tmp_path)
    assert "hush" not in repr(settings) + str(config.describe(settings)) + " ".join(said.warnings)
