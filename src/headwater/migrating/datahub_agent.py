"""migrating.datahub_agent: the settings of DataHub's Spark agent -> what becomes of each under Headwater's capture."""

from __future__ import annotations

from collections.abc import Mapping

from headwater.migrating._rules import Rule, Verdict

_D = "spark.datahub."
_REST = {f"{_D}rest.server": "http://gms:8080", "spark.app.name": "nightly"}
_KAFKA = {f"{_D}emitter": "kafka"}
_S3 = {f"{_D}emitter": "s3", f"{_D}s3.bucket": "lake"}
_CUT = {f"{_D}file_partition_regexp": "/day=.*", **_REST}


def _rule(
    key: str,
    verdict: Verdict,
    why: str = "",
    example: str = "x",
    beside: Mapping[str, str] = _REST,
) -> Rule:
    return Rule(f"{_D}{key}", verdict, why, example=example, beside=beside)


RULES = (
    Rule(
        "spark.extraListeners",
        "remove",
        "the agent's listener would tell everything twice; `headwater run --replace-agents` takes it out for you",
    ),
    Rule("spark.jars.packages", "remove", "of the list only `io.acryl:acryl-spark-lineage_…`: no jar is needed"),
    Rule("spark.jars", "remove", "of the list only the agent's jar"),
    _rule("emitter", "honoured", "`rest`, `kafka`, `file`, `s3`", "file", {f"{_D}file.filename": "mcps.json"}),
    _rule("rest.server", "honoured", "GMS; where nothing else names a transport, events go there", "http://gms:8080", {}),
    _rule("rest.token", "honoured"),
    _rule("rest.disable_ssl_verification", "honoured", example="true"),
    _rule("rest.disable_chunked_encoding", "no effect", "bodies are never chunked", "true"),
    _rule("rest.max_retries", "honoured", "what waits in the spool is tried again in any case", "2"),
    _rule("rest.retry_interval_in_sec", "honoured", example="2"),
    _rule("rest.retry_interval", "no effect", "the agent's docs name it so, but it reads `rest.retry_interval_in_sec`", "2"),
    _rule("kafka.bootstrap", "honoured", example="k:9092", beside=_KAFKA),
    _rule("kafka.schema_registry_url", "honoured", example="http://registry:8081", beside=_KAFKA),
    _rule("kafka.schema_registry_config.{name*}", "honoured", beside=_KAFKA),
    _rule("kafka.producer_config.{name*}", "honoured", "properties of Java's client, translated to librdkafka's; a login in `sasl.jaas.config` too", beside=_KAFKA),
    _rule("kafka.mcp_topic", "honoured", "`MetadataChangeProposal_v1` unless set", "other", _KAFKA),
    _rule("file.filename", "honoured", "needed by the emitter `file`; it is added to, not overwritten by each batch", "mcps.json", {f"{_D}emitter": "file"}),
    _rule("s3.bucket", "honoured", "needed by the emitter `s3`", "lake", {f"{_D}emitter": "s3"}),
    _rule("s3.prefix", "honoured", beside=_S3),
    _rule("s3.filename", "honoured", beside=_S3),
    _rule("s3.region", "honoured", beside=_S3),
    _rule("s3.endpoint", "honoured", beside=_S3),
    _rule("s3.profile", "honoured", beside=_S3),
    _rule("s3.access_key", "honoured", beside=_S3),
    _rule("s3.secret_key", "honoured", beside=_S3),
    _rule("coalesce_jobs", "honoured", "an application is one job in DataHub; `false`: each event by itself", "false"),
    _rule("stage_metadata_coalescing", "honoured", "told again after each batch; Databricks and Glue need it no more, a group is told when it is idle", "true"),
    _rule("parent.datajob_urn", "honoured"),
    _rule("patch.enabled", "honoured", example="true"),
    _rule("legacyLineageCleanup.enabled", "honoured", example="true"),
    _rule("log.mcps", "honoured", example="false"),
    _rule("tags", "honoured", "of the flow"),
    _rule("domains", "honoured", "of the flow", "urn:li:domain:a"),
    _rule("flow_name", "honoured", "the application's name in job names, too"),
    _rule("databricks.cluster", "honoured", "stands before the flow's name"),
    _rule("metadata.pipeline.platformInstance", "honoured"),
    _rule("metadata.dataset.platformInstance", "honoured"),
    _rule("metadata.dataset.env", "honoured", example="DEV"),
    _rule("metadata.dataset.hivePlatformAlias", "honoured", example="glue"),
    _rule('metadata.dataset.connections.{namespace*}.platformInstance', "honoured"),
    _rule('metadata.dataset.connections.{namespace*}.env', "honoured", example="DEV"),
    _rule("metadata.dataset.lowerCaseUrns", "honoured", example="true"),
    _rule("metadata.dataset.materialize", "honoured", "off unless set, as with the agent", "true"),
    _rule("metadata.dataset.include_schema_metadata", "honoured", "off unless set, as with the agent", "true"),
    _rule("metadata.dataset.experimental_include_schema_metadata", "honoured", "the older name of it", "true"),
    _rule("metadata.dataset.enableEnhancedMergeIntoExtraction", "honoured", example="true"),
    _rule("metadata.dataset.openLineageTrimmersEnabled", "honoured", "unset, trimmers are off where paths are cut by `file_partition_regexp` or a path spec", "true", _CUT),
    _rule("metadata.remove_partition_pattern", "no effect", "the agent documents it and does not read it: `file_partition_regexp` does that"),
    _rule("metadata.include_scheme", "no effect", "the agent documents it and does not read it"),
    _rule("platform.{platform}.path_spec_list", "honoured", example="s3://lake/{table}"),
    _rule("platform.{platform}.env", "honoured", example="DEV"),
    _rule("platform.{platform}.platformInstance", "honoured"),
    _rule("platform.{platform}.{alias}.path_spec_list", "honoured", "the agent documents aliases and does not follow them; here they are", "s3://lake/{table}"),
    _rule("platform.{platform}.{alias}.env", "honoured", "the same", "DEV"),
    _rule("platform.{platform}.{alias}.platform_instance", "honoured", "the same"),
    _rule("platform.{platform}.path_alias_list", "no effect", "every alias that has a path spec is followed"),
    _rule("file_partition_regexp", "honoured", example="/day=.*"),
    _rule("disableSymlinkResolution", "honoured", example="true"),
    _rule("captureColumnLevelLineage", "honoured", "`false`: neither captured nor delivered", "false", {}),
    _rule("columnLineage.includeIndirect", "honoured", example="false"),
    _rule("capture_spark_plan", "honoured", "the facet `spark.logicalPlan`", "true", {}),
    _rule("streaming_job", "honoured", "every group is taken for a stream", "true"),
    _rule("streaming_heartbeat", "honoured", "seconds; the agent itself ignores it", "60"),
    _rule("compat", "honoured", "ours: `datahub-java` brings the faults of DataHub's converter back", "datahub-java"),
)  # fmt: skip
"""Every setting of the agent that is documented or read."""

ENVIRONMENT = (
    Rule("INGESTION_MAX_SERIALIZED_STRING_LENGTH", "honoured", "the longest aspect; its longest texts are cut, with a mark"),
)  # fmt: skip
