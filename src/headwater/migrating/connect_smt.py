"""migrating.connect_smt: the settings of the OpenLineage transform of the Factor House labs -> what `headwater connect watch` takes instead."""

from __future__ import annotations

from headwater.migrating._rules import Rule

TRANSFORM = (
    Rule("type", "remove", "`io.factorhouse.smt.OpenLineageLifecycleSmt`: connectors are watched from outside; a jar less on every worker"),
    Rule("connector.name", "remove", "the job is named as the connector; with `naming = \"factorhouse\"` this key is read as long as it stands there"),
    Rule("connector.class", "remove", "Connect tells it"),
    Rule("topics", "remove", "Connect tells them, with those that a pattern or a transform leads to"),
    Rule("s3.bucket.name", "remove", "read from the connector's own settings"),
    Rule("iceberg.catalog", "remove", "read from the connector's own settings; a REST catalog is asked where tables lie"),
    Rule("dataset.namespace", "remove", "datasets are named by where they lie; `naming = \"factorhouse\"` follows it as long as it stands there"),
    Rule("dataset.names", "remove", "the same"),
    Rule("key.converter.schema.read", "becomes", to="`schemas = \"both\"` in connect.toml"),
    Rule("value.converter.schema.read", "becomes", "on unless set", "`schemas = \"value\"`, or `none`"),
    Rule("key.converter.schema.registry.url", "becomes", to="`schema_registry`; unless set, the registry that the connector's converter names"),
    Rule("value.converter.schema.registry.url", "becomes", to="`schema_registry`; unless set, the registry that the connector's converter names"),
    Rule("{part}.converter.basic.auth.credentials.source", "becomes", to="`registry_auth`; unless set, what the converter itself shows the registry"),
    Rule("{part}.converter.basic.auth.user.info", "becomes", to="`registry_auth = { username, password }`"),
    Rule("{part}.converter.schema.registry.basic.auth.credentials.source", "becomes", to="`registry_auth`"),
    Rule("{part}.converter.schema.registry.basic.auth.user.info", "becomes", to="`registry_auth = { username, password }`"),
)  # fmt: skip
"""Keys after `transforms.NAME.`"""

CONNECTOR = (
    Rule("transforms", "remove", "of the list only the transform's name"),
    Rule("tasks.max", "honoured", "the transform needs `1`; Headwater takes any number, as one run or as one each (`tasks = true`)"),
)  # fmt: skip
"""Keys of the connector itself."""

ENVIRONMENT = (
    Rule("CONNECT_BOOTSTRAP_SERVERS", "honoured", "the brokers, where connect.toml has no `bootstrap`; on the machine of the watcher"),
    Rule("KAFKA_BOOTSTRAP", "honoured", "the same, after it"),
    Rule("BOOTSTRAP", "honoured", "the same, after both"),
)  # fmt: skip
"""Variables of the worker; OPENLINEAGE_URL and OPENLINEAGE_NAMESPACE hold as everywhere."""

RULES = (
    *(Rule(f"transforms.{{name}}.{each.key}", each.verdict, each.why, each.to) for each in TRANSFORM),
    *CONNECTOR,
    Rule("OPENLINEAGE_URL", "honoured", "where the watcher sends; `http://localhost:5000` unless set"),
    Rule("OPENLINEAGE_NAMESPACE", "honoured", "of the jobs, where connect.toml names none"),
    *ENVIRONMENT,
)
