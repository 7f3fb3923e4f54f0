"""migrating.openlineage_spark: the settings of OpenLineage's Spark agent -> what becomes of each under Headwater's capture."""

from __future__ import annotations

from collections.abc import Mapping

from headwater.migrating._rules import Rule, Verdict

_O = "spark.openlineage."
_UUID = "0192c3a4-0000-7000-8000-000000000001"
_CONTEXT = f'{{"parent": {{"run": {{"runId": "{_UUID}"}}, "job": {{"namespace": "n", "name": "p"}}}}}}'
_HOST = {f"{_O}host": "http://h:5000"}
_HTTP = {f"{_O}transport.type": "http", f"{_O}transport.url": "http://h:5000"}
_KAFKA = {
    f"{_O}transport.type": "kafka",
    f"{_O}transport.topicName": "lineage",
    f"{_O}transport.properties.bootstrap.servers": "k:9092",
}
_OAUTH = {
    f"{_O}transport.auth.tokenEndpoint": "http://t",
    f"{_O}transport.auth.clientId": "i",
    f"{_O}transport.auth.clientSecret": "s",
}
_AS_CLIENT = {**_HTTP, **_OAUTH, f"{_O}transport.auth.type": "oauth2"}
_BOTH = {
    f"{_O}transport.type": "composite",
    f"{_O}transport.transports.a.type": "console",
    f"{_O}transport.transports.b.type": "http",
    f"{_O}transport.transports.b.url": "http://h:5000",
}


def _rule(
    key: str,
    verdict: Verdict,
    why: str = "",
    to: str = "",
    example: str = "x",
    beside: Mapping[str, str] | None = None,
    at: str = "",
) -> Rule:
    return Rule(f"{_O}{key}", verdict, why, to, example, beside or {}, at and f"{_O}{at}")


RULES = (
    Rule(
        "spark.extraListeners",
        "remove",
        "the agent's listener would tell everything twice; `headwater run --replace-agents` takes it out for you",
    ),
    Rule("spark.jars.packages", "remove", "of the list only `io.openlineage:openlineage-spark_…`: no jar is needed"),
    Rule("spark.jars", "remove", "of the list only the agent's jar"),
    _rule("host", "honoured", "where events go; `url` and `transport.*` go before it", example="http://h:5000"),
    _rule("version", "honoured", "part of the path that events are posted to", example="2", beside=_HOST),
    _rule("namespace", "honoured", "namespace of jobs"),
    _rule("parentJobNamespace", "honoured", "of the parent", beside={f"{_O}parentRunId": _UUID, f"{_O}parentJobName": "p"}),
    _rule("parentJobName", "honoured", "with `parentRunId`; one without the other tells no parent", beside={f"{_O}parentRunId": _UUID}),
    _rule("parentRunId", "honoured", "must be a UUID", example=_UUID, beside={f"{_O}parentJobName": "p"}),
    _rule("rootParentJobNamespace", "honoured", "of the root", beside={f"{_O}rootParentRunId": _UUID, f"{_O}rootParentJobName": "p"}),
    _rule("rootParentJobName", "honoured", "with `rootParentRunId`", beside={f"{_O}rootParentRunId": _UUID}),
    _rule("rootParentRunId", "honoured", "must be a UUID", example=_UUID, beside={f"{_O}rootParentJobName": "p"}),
    _rule("context", "honoured", "parent and root as one JSON text; goes before the keys above", example=_CONTEXT),
    _rule("apiKey", "honoured", "sent as `Authorization: Bearer …` and as `X-API-Key`"),
    _rule("url.param.{name*}", "honoured", "in the query of every request", beside=_HOST),
    _rule("url", "honoured", "`http://host/api/v1/namespaces/NS/jobs/NAME/runs/ID`: host, namespace and parent are taken from it", example="http://h:5000/api/v1/namespaces/shop"),
    _rule("timeout", "honoured", "seconds; of the sender behind the spool, no query waits for it", example="3", beside=_HOST),
    _rule("disabled", "honoured", "`true`: nothing is captured", example="true"),
    _rule("appName", "honoured", "the application's name in job names"),
    _rule("applicationRunId", "honoured", "must be a UUID", example=_UUID),
    _rule("capturedProperties", "honoured", "`spark.master,spark.app.name` unless set", example="spark.ui.port"),
    _rule("job.tags", "honoured", example="env:prod"),
    _rule("run.tags", "honoured", example="env:prod"),
    _rule("job.owners.{type}", "honoured", "facet `ownership`"),
    _rule("jobName.appendDatasetName", "honoured", example="false"),
    _rule("jobName.replaceDotWithUnderscore", "honoured", example="true"),
    _rule("facets.custom_environment_variables", "honoured", "secrets among them are hidden", example="[A;B]"),
    _rule("facets.variables", "honoured", "the name that the agent's own docs give it", example="[A;B]"),
    _rule("facets.disabled", "honoured", "the old list, which newer agents no longer read", example="[debug;schema]"),
    _rule("facets.{name*}.disabled", "honoured", "`debug` and `spark.logicalPlan` are off unless set", example="true"),
    _rule("columnLineage.datasetLineageEnabled", "honoured", example="false"),
    _rule("columnLineage.descriptionsEnabled", "honoured", example="true"),
    _rule("columnLineage.schemaSizeLimit", "honoured", "unless set there is no limit; the agent's own is 1000", example="10"),
    _rule("dataset.removePath.pattern", "honoured", example="(?<remove>/run_1)"),
    _rule("dataset.disabledTrimmers", "honoured", example="DateTrimmer"),
    _rule("dataset.extraTrimmers", "no effect", "a Java class; teach names by an [extension](../spark-extensions.md) or an [alias](../naming.md)"),
    _rule("dataset.namespaceResolvers.{name}.{option}", "honoured", "`hostList`, `pattern`, `patternGroup`; `schema` as well", example="pattern"),
    _rule("filter.allowedSparkNodes", "honoured", example="[a.B]"),
    _rule("filter.deniedSparkNodes", "honoured", example="[a.B]"),
    _rule("filter.rddEventsDisabled", "honoured", example="true"),
    _rule("vendors.iceberg.metricsReporterDisabled", "no effect", "nothing is put into the catalog that could be switched off", example="true"),
    _rule("circuitBreaker.{option}", "no effect", "the driver pays for writing a plan down and no more; the queue behind it is bounded"),
    _rule("timeout.{option}", "no effect", "the same"),
    _rule("debug.{option}", "no effect", "what could not be told stands in the run facet `headwater_degraded`"),
    _rule("metrics.{option*}", "no effect", "the spool has [metrics](../delivery.md#metrics)"),
    _rule("testExtensionProvider", "no effect", "for the agent's own tests"),
    _rule("transport.type", "honoured", "`http`, `kafka`, `file`, `console`, `composite`, `noop`; `s3`, `gcs`, `kinesis`, `transform`, `gcplineage`, `amazon_datazone_api` are refused", example="console"),
    _rule("transport.url", "honoured", example="http://h:5000", beside={f"{_O}transport.type": "http"}),
    _rule("transport.endpoint", "honoured", example="other/path", beside=_HTTP),
    _rule("transport.timeoutInMillis", "honoured", "of the sender behind the spool", example="3000", beside=_HTTP),
    _rule("transport.timeout", "honoured", "seconds, as the Python client has it", example="3", beside=_HTTP),
    _rule("transport.verify", "honoured", "as the Python client has it", example="false", beside=_HTTP),
    _rule("transport.compression", "honoured", example="gzip", beside=_HTTP),
    _rule("transport.urlParams.{name*}", "honoured", beside=_HTTP),
    _rule("transport.headers.{name*}", "honoured", beside=_HTTP),
    _rule("transport.auth.type", "honoured", "`api_key`, and `oauth2` as the Python client has it; `jwt` and a class of your own are refused", example="oauth2", beside={**_HTTP, **_OAUTH}),
    _rule("transport.auth.apiKey", "honoured", beside=_HTTP),
    _rule("transport.auth.tokenEndpoint", "honoured", "of `oauth2`", example="http://u", beside=_AS_CLIENT),
    _rule("transport.auth.clientId", "honoured", "of `oauth2`", beside=_AS_CLIENT),
    _rule("transport.auth.clientSecret", "honoured", "of `oauth2`", beside=_AS_CLIENT),
    _rule("transport.auth.clientAuthMethod", "honoured", "of `oauth2`", example="client_secret_post", beside=_AS_CLIENT),
    _rule("transport.auth.scope", "honoured", "of `oauth2`", beside=_AS_CLIENT),
    _rule("transport.auth.{option}", "refused", "of `jwt`", "`spark.headwater.transport.auth.type=oauth` with `token_url`, `client_id`, `client_secret`", beside={**_HTTP, f"{_O}transport.auth.type": "jwt"}),
    _rule("transport.sslContext.{option}", "refused", "a Java key store cannot be read", "`spark.headwater.transport.client_cert`, `client_key` and `verify` name PEM files", beside=_HTTP),
    _rule("transport.topicName", "honoured", example="lineage", beside={name: text for name, text in _KAFKA.items() if "topicName" not in name}),
    _rule("transport.messageKey", "no effect", "the key is the root run's id, so a DAG run keeps its order", beside=_KAFKA),
    _rule("transport.properties.{name*}", "honoured", "properties of librdkafka, which knows most of Java's", example="gzip", beside=_KAFKA),
    _rule("transport.location", "honoured", "the file", example="/tmp/events.jsonl", beside={f"{_O}transport.type": "file"}),
    _rule("transport.transports.{name}.{option*}", "honoured", "each member as a transport of its own", example="other", beside=_BOTH, at="transport.transports.b.endpoint"),
    _rule("transport.continueOnFailure", "honoured", "`true`, as unless set: targets are best effort", example="false", beside=_BOTH),
    _rule("transport.withThreadPool", "refused", "every target has a spool of its own, so none waits for another; leave it out", example="true", beside=_BOTH),
    _rule("transport.transformerClass", "refused", "a Java class that rewrites events; Headwater sends them as they are", beside=_HTTP),
    _rule("transport.{option}", "refused", "of a transport that is not offered: `bucketName`, `projectId`, `region` … ; `spark.headwater.transport` takes its place, as `s3://bucket/prefix`", beside=_HTTP),
)  # fmt: skip
"""Every documented setting of the agent, the special before the general."""
