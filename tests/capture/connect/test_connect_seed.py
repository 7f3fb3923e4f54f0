"""What the transform of the Factor House labs documents is here, line by line; its four limits are not."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from cluster import Fake, serving

from headwater import config
from headwater.connect import load
from headwater.connect._watching import Watcher, open_watchers
from openlineage_schemas import SHARED

SEED = SHARED / "seeds" / "kafka-connect-smt.md"
QUOTED: dict[str, str] = {}
"""a line of the document -> the test that holds it"""

Test = Callable[..., None]


def line(*quotes: str) -> Callable[[Test], Test]:
    """The lines that a test is for."""

    def mark(test: Test) -> Test:
        QUOTED.update(dict.fromkeys(quotes, test.__name__))
        return test

    return mark


CONVERTER = {"key.converter": "org.apache.kafka.connect.storage.StringConverter", "value.converter": "io.confluent.connect.avro.AvroConverter"}  # fmt: skip
TRANSFORM = {
    "transforms": "openlineage",
    "transforms.openlineage.type": "io.factorhouse.smt.OpenLineageLifecycleSmt",
}
SOURCE = {
    **CONVERTER,
    **TRANSFORM,
    "connector.class": "com.amazonaws.mskdatagen.GeneratorSourceConnector",
    "genv.orders.order_id.with": "#{Internet.uuid}",
    "genv.orders.price.with": "#{number.random_double '2','1','150'}",
    "transforms": "openlineage,unwrapUnion,extractKey,flattenKey",
    "transforms.openlineage.topics": "orders",
    "transforms.unwrapUnion.type": "io.factorhouse.smt.UnwrapUnionTransform",
    "transforms.extractKey.type": "org.apache.kafka.connect.transforms.ValueToKey",
    "transforms.extractKey.fields": "order_id",
    "transforms.flattenKey.type": "org.apache.kafka.connect.transforms.ExtractField$Key",
    "transforms.flattenKey.field": "order_id",
}
S3 = {
    **CONVERTER,
    **TRANSFORM,
    "connector.class": "io.confluent.connect.s3.S3SinkConnector",
    "topics": "orders",
    "s3.bucket.name": "fh-dev-bucket",
    "transforms.openlineage.s3.bucket.name": "fh-dev-bucket",
}
ICEBERG = {
    **CONVERTER,
    **TRANSFORM,
    "connector.class": "io.tabular.iceberg.connect.IcebergSinkConnector",
    "topics": "orders",
    "iceberg.catalog": "demo_ib",
    "iceberg.catalog.type": "hive",
    "iceberg.catalog.uri": "thrift://hive-metastore:9083",
    "iceberg.catalog.warehouse": "s3://warehouse",
    "iceberg.tables": "default.orders",
}
ORDERS = {"type": "record", "name": "Order", "fields": [{"name": "order_id", "type": ["null", "string"]}, {"name": "price", "type": "double"}]}  # fmt: skip
ENVIRONMENT = {
    "OPENLINEAGE_NAMESPACE": "fh-local",
    "CONNECT_BOOTSTRAP_SERVERS": "kafka-1:19092,kafka-2:19093",
}


class Lab:
    """A cluster with the seed's profile, a clock that a test turns, and what was told."""

    def __init__(self, fake: Fake, folder: Path, more: str = "") -> None:
        self.fake, self.events, self.now = fake, list[dict[str, Any]](), 0.0
        file = folder / "connect.toml"
        profile = "" if "naming" in more else 'naming = "factorhouse-seed"\nlifecycle = "seed"\n'
        file.write_text(
            f'[[clusters]]\nname = "lab"\nurl = "{fake.url}"\nschema_registry = "{fake.url}"\n{profile}{more}'
        )
        settings = config.load(environ=ENVIRONMENT)
        self.watcher: Watcher
        (self.watcher,) = open_watchers(load(file, ENVIRONMENT), settings, self.events.extend, keep=False)

    def rounds(self, count: int = 1, every: float = 60.0) -> list[str]:
        before = len(self.events)
        for _ in range(count):
            self.now += every
            self.watcher.round(self.now)
        return [each["eventType"] for each in self.events[before:]]


@pytest.fixture
def fake() -> Iterator[Fake]:
    with serving() as made:
        yield made


@pytest.fixture
def lab(fake: Fake, tmp_path: Path) -> Iterator[Lab]:
    made = Lab(fake, tmp_path)
    yield made
    made.watcher.close()


def flowing(fake: Fake, name: str, given: dict[str, str], type: str = "sink", **more: Any) -> None:
    fake.put(name, given, type, **more)
    fake.topics[name] = ["orders"]


def names(datasets: list[dict[str, Any]]) -> list[tuple[str, str]]:
    return [(each["namespace"], each["name"]) for each in datasets]


def fields(dataset: dict[str, Any]) -> list[str]:
    return [each["name"] for each in dataset["facets"]["schema"]["fields"]]


# --- supported connectors, datasets, namespaces


@line(
    "Amazon MSK Data Generator (`com.amazonaws.mskdatagen.GeneratorSourceConnector`)",
    "Confluent S3 Sink Connector (`io.confluent.connect.s3.S3SinkConnector`)",
    "Iceberg Sink Connector (`io.tabular.iceberg.connect.IcebergSinkConnector`)",
    "The SMT identifies Kafka topics from the `topics` property",
    "to determine if the topics are **inputs** (for a sink connector) or **outputs** (for a source connector)",
    "using sink-specific properties you provide, such as `s3.bucket.name` or `iceberg.catalog`",
    "designed to work with multiple Kafka Connect source and sink connectors",
    "a clear and consistent namespacing strategy",
    "`OPENLINEAGE_NAMESPACE` environment variable.",
    "`CONNECT_BOOTSTRAP_SERVERS` environment variable (first host).",
    "`s3://fh-dev-bucket`",
    "`iceberg://demo_ib`",
)
@pytest.mark.parametrize(
    ("given", "type", "inputs", "outputs"),
    [
        (SOURCE, "source", [], [("kafka-1:19092", "orders")]),
        (S3, "sink", [("kafka-1:19092", "orders")], [("s3://fh-dev-bucket", "fh-dev-bucket")]),
        (ICEBERG, "sink", [("kafka-1:19092", "orders")], [("iceberg://demo_ib", "demo_ib")]),
    ],
    ids=["source", "s3", "iceberg"],
)
def test_the_three_connectors(
    fake: Fake, lab: Lab, given: dict[str, str], type: str, inputs: Any, outputs: Any
) -> None:
    fake.register("orders-value", ORDERS)
    flowing(fake, "c", given, type)
    assert lab.rounds() == ["START"]
    (start,) = lab.events
    assert (start["job"]["namespace"], start["job"]["name"]) == ("fh-local", "c")
    assert (names(start["inputs"]), names(start["outputs"])) == (inputs, outputs)
    kind = start["job"]["facets"]["jobType"]
    assert (kind["processingType"], kind["integration"], kind["jobType"]) == (
        "STREAMING",
        "KAFKA_CONNECT",
        "CUSTOM_CONNECTOR_TASK",
    )


@line(
    "fetch the latest Avro schema for the topics",
    "attaches it to the sink's _output dataset_",
    "discovers input and output datasets based on the explicit configuration you provide to it",
)
@pytest.mark.parametrize("given", [S3, ICEBERG], ids=["s3", "iceberg"])
def test_the_sink_carries_the_topics_schema(fake: Fake, lab: Lab, given: dict[str, str]) -> None:
    fake.register("orders-value", ORDERS)
    flowing(fake, "c", given)
    lab.rounds()
    (start,) = lab.events
    schema = [("(value) order_id", "UNION"), ("(value) price", "DOUBLE")]
    for half in ("inputs", "outputs"):
        told = start[half][0]["facets"]["schema"]["fields"]
        assert [(each["name"], each["type"]) for each in told] == schema
    columns = start["outputs"][0]["facets"]["columnLineage"]["fields"]
    assert {name: [each["field"] for each in told["inputFields"]] for name, told in columns.items()} == {
        "(value) order_id": ["(value) order_id"],
        "(value) price": ["(value) price"],
    }


def test_each_output_has_the_schema_of_its_own_topics(fake: Fake, lab: Lab) -> None:
    """The transform gave every output the schema of the first topic; that is no line of its documentation."""
    fake.register("orders-value", ORDERS)
    fake.register(
        "bids-value", {"type": "record", "name": "Bid", "fields": [{"name": "bid", "type": "long"}]}
    )
    flowing(fake, "c", {**S3, "topics": "orders,bids"})
    lab.rounds()
    (start,) = lab.events
    assert [fields(each) for each in start["inputs"]] == [
        ["(value) order_id", "(value) price"],
        ["(value) bid"],
    ]
    assert fields(start["outputs"][0]) == ["(value) order_id", "(value) price", "(value) bid"]


def test_the_job_is_called_as_the_transform_was_told(fake: Fake, tmp_path: Path) -> None:
    fake.register("orders-value", ORDERS)
    named = {**S3, "transforms.openlineage.connector.name": "fh-dev-s3-sink"}
    flowing(fake, "c", named)
    file = tmp_path / "connect.toml"
    file.write_text(f'state = "state"\n[[clusters]]\nname = "lab"\nurl = "{fake.url}"\nschema_registry = "{fake.url}"\nnaming = "factorhouse-seed"\nlifecycle = "seed"\n')  # fmt: skip
    events: list[dict[str, Any]] = []
    for gone in (False, True):  # the second watcher knows the connector by its memory alone
        (watcher,) = open_watchers(load(file, ENVIRONMENT), config.load(environ=ENVIRONMENT), events.extend)
        if gone:
            fake.connectors.clear()
        for now in (100.0, 200.0):
            watcher.round(now + 200.0 * gone)
        watcher.close()
    assert [(each["eventType"], each["job"]["name"]) for each in events] == [
        ("START", "fh-dev-s3-sink"),
        ("COMPLETE", "fh-dev-s3-sink"),
    ]


def test_by_default_the_job_is_called_as_the_connector_is(fake: Fake, free: Lab) -> None:
    flowing(fake, "c", {**S3, "transforms.openlineage.connector.name": "fh-dev-s3-sink"})
    free.rounds()
    assert {each["job"]["name"] for each in free.events} == {"c"}


@line("It can be configured to fetch schemas for keys, values, or both.")
@pytest.mark.parametrize(
    ("schemas", "switches", "expected"),
    [
        ("value", {}, ["(value) order_id", "(value) price"]),
        ("key", {}, ["(key) id"]),
        ("both", {}, ["(value) order_id", "(value) price", "(key) id"]),
        ("none", {}, None),
        ("value", {"key": "true"}, ["(value) order_id", "(value) price", "(key) id"]),
        ("value", {"key": "true", "value": "false"}, ["(key) id"]),
        ("both", {"key": "false"}, ["(value) order_id", "(value) price"]),
        ("both", {"key": "false", "value": "false"}, None),
    ],
)
def test_which_schemas_are_read(
    fake: Fake, tmp_path: Path, schemas: str, switches: dict[str, str], expected: list[str] | None
) -> None:
    fake.register("orders-value", ORDERS)
    fake.register("orders-key", {"type": "record", "name": "Key", "fields": [{"name": "id", "type": "long"}]})
    avro = CONVERTER["value.converter"]
    own = {f"transforms.openlineage.{part}.converter.schema.read": text for part, text in switches.items()}
    flowing(fake, "c", {**S3, "key.converter": avro, **own})
    lab = Lab(fake, tmp_path, f'schemas = "{schemas}"\n')
    lab.rounds()
    lab.watcher.close()
    (start,) = lab.events
    assert (
        fields(start["inputs"][0]) if expected else start["inputs"][0]["facets"].get("schema")
    ) == expected


@line("If a Schema Registry URL is provided")
def test_the_registry_that_the_transform_was_told(fake: Fake, tmp_path: Path) -> None:
    with serving() as registry:
        registry.register("orders-value", ORDERS)
        below = "transforms.openlineage.value.converter"
        told = {f"{below}.schema.registry.url": registry.url, f"{below}.basic.auth.credentials.source": "USER_INFO",
                f"{below}.basic.auth.user.info": "me:hunter2"}  # fmt: skip
        flowing(fake, "c", {**S3, **told})
        file = tmp_path / "connect.toml"
        file.write_text(f'[[clusters]]\nname = "lab"\nurl = "{fake.url}"\nnaming = "factorhouse-seed"\nlifecycle = "seed"\n')  # fmt: skip
        events: list[dict[str, Any]] = []
        (watcher,) = open_watchers(load(file, ENVIRONMENT), config.load(environ=ENVIRONMENT), events.extend, keep=False)  # fmt: skip
        watcher.round(60.0)
        watcher.close()
        assert fields(events[0]["inputs"][0]) == ["(value) order_id", "(value) price"]
        assert {each.get("Authorization") for each in registry.headers} == {"Basic bWU6aHVudGVyMg=="}
        assert "hunter2" not in str(events)


# --- life


@line(
    "that all required schemas (e.g., `orders-value`) are available in the Schema Registry",
    "The `START` event is emitted from the `apply()` method.",
)
def test_start_waits_for_the_schemas(fake: Fake, lab: Lab) -> None:
    flowing(fake, "c", S3)
    assert lab.rounds(3) == []
    fake.register("orders-value", ORDERS)
    assert lab.rounds(3) == ["START"]


@line("The event is emitted immediately on the **first record** processed by the SMT.")
def test_start_waits_for_the_first_record(fake: Fake, tmp_path: Path) -> None:
    lab = Lab(fake, tmp_path, 'schemas = "none"\n')
    fake.put("c", S3)
    assert lab.rounds(3) == []
    fake.topics["c"] = ["orders"]
    assert lab.rounds(2) == ["START"]
    lab.watcher.close()


@line(
    "It contains the job, a unique `runId`, and the full input/output datasets with their schemas (if available)."
)
def test_start_is_rich(fake: Fake, lab: Lab) -> None:
    fake.register("orders-value", ORDERS)
    flowing(fake, "a", S3)
    flowing(fake, "b", ICEBERG)
    lab.rounds()
    assert len({each["run"]["runId"] for each in lab.events}) == 2
    for each in lab.events:
        assert each["inputs"]
        assert each["outputs"]


@line(
    "A **minimal `FAIL` event** is emitted with the corresponding `runId`.",
    "An exception is caught during record processing in the `apply()` method.",
)
def test_fail_is_minimal(fake: Fake, lab: Lab) -> None:
    fake.register("orders-value", ORDERS)
    flowing(fake, "c", S3)
    lab.rounds()
    flowing(fake, "c", S3, tasks="F", trace="org.x.DataException: bad record")
    assert lab.rounds(3) == ["FAIL"]
    start, fail = lab.events
    assert fail["run"]["runId"] == start["run"]["runId"]
    assert fail["inputs"] == fail["outputs"] == []
    assert "bad record" in fail["run"]["facets"]["errorMessage"]["message"]


@line(
    "The connector task is stopped cleanly (e.g., the connector is deleted or updated).",
    "it does not contain datasets, preventing the creation of incorrect dataset versions on shutdown",
)
@line("automatically tracks the complete lifecycle of a connector run")
@pytest.mark.parametrize("how", ["deleted", "updated", "stopped"])
def test_complete_is_minimal(fake: Fake, lab: Lab, how: str) -> None:
    fake.register("orders-value", ORDERS)
    flowing(fake, "c", S3)
    lab.rounds()
    if how == "deleted":
        fake.connectors.clear()
    else:
        changed = {**S3, "flush.size": "7"} if how == "updated" else S3
        flowing(
            fake,
            "c",
            changed,
            state="STOPPED" if how == "stopped" else "RUNNING",
            tasks="" if how == "stopped" else "R",
        )
    assert lab.rounds(3) == (["COMPLETE", "START"] if how == "updated" else ["COMPLETE"])
    start, complete = lab.events[:2]
    assert complete["run"]["runId"] == start["run"]["runId"]
    assert complete["inputs"] == complete["outputs"] == []


@line("records are not modified")
def test_the_transform_itself_may_stay(fake: Fake, lab: Lab) -> None:
    """It is an identity here, so the columns of a source that carries it are still followed."""
    fake.register("orders-value", ORDERS)
    flowing(fake, "c", SOURCE, "source")
    lab.rounds()
    assert fields(lab.events[0]["outputs"][0]) == ["(value) order_id", "(value) price"]
    assert "unresolved" not in lab.events[0]["run"]["facets"]["kafkaConnect"]


# --- its limits, which are none here


@pytest.fixture
def free(fake: Fake, tmp_path: Path) -> Iterator[Lab]:
    made = Lab(fake, tmp_path, 'naming = "openlineage"\n')
    yield made
    made.watcher.close()


@line("**`tasks.max` Must Be `1`:**")
def test_any_number_of_tasks_is_one_run(fake: Fake, free: Lab) -> None:
    fake.register("orders-value", ORDERS)
    flowing(fake, "c", {**S3, "tasks.max": "3"}, tasks="RRR")
    assert free.rounds(3) == ["START", "RUNNING"]
    flowing(fake, "c", {**S3, "tasks.max": "3"}, tasks="RFR", trace="boom")
    assert free.rounds(3) == ["FAIL"]
    assert "task 1: boom" in free.events[-1]["run"]["facets"]["errorMessage"]["stackTrace"]


@line("**`ABORT` Status Not Supported:**")
def test_a_stop_by_a_user_is_an_abort_and_a_reconfiguration_is_not(fake: Fake, free: Lab) -> None:
    flowing(fake, "c", S3)
    free.rounds()
    flowing(fake, "c", {**S3, "flush.size": "7"})
    assert free.rounds() == ["COMPLETE", "START", "RUNNING"]
    flowing(fake, "c", {**S3, "flush.size": "7"}, state="STOPPED", tasks="")
    assert free.rounds() == ["ABORT"]


@line("**Initial Connector Failures:**")
def test_a_failure_before_the_first_record_is_told(fake: Fake, free: Lab) -> None:
    fake.put("c", S3, state="FAILED", tasks="", trace="boom at connector start")
    assert free.rounds(3) == ["START", "FAIL"]
    assert free.events[-1]["run"]["facets"]["errorMessage"]["message"] == "boom at connector start"


@line("**Schema Versioning on Redeployment:**")
def test_a_new_schema_version_is_a_new_dataset_version(fake: Fake, free: Lab) -> None:
    fake.register("orders-value", ORDERS)
    flowing(fake, "c", S3)
    free.rounds()
    fake.register(
        "orders-value", {**ORDERS, "fields": [*ORDERS["fields"], {"name": "coupon", "type": "string"}]}
    )
    assert free.rounds() == ["RUNNING"]
    before, after = free.events[-2:]
    assert after["inputs"][0]["facets"]["version"] != before["inputs"][0]["facets"]["version"]
    assert "coupon" in fields(after["inputs"][0])
    assert "coupon" in fields(after["outputs"][0])
    assert after["run"]["runId"] == before["run"]["runId"]


# --- its later names


def test_the_later_names(fake: Fake, tmp_path: Path) -> None:
    fake.register("orders-value", ORDERS)
    later = {
        "transforms.openlineage.dataset.namespace": "s3://warehouse",
        "transforms.openlineage.dataset.names": "orders,bids",
    }
    flowing(fake, "s3", S3)
    flowing(fake, "iceberg", {**ICEBERG, **later})
    lab = Lab(fake, tmp_path, 'naming = "factorhouse"\nlifecycle = "seed"\n')
    lab.rounds()
    lab.watcher.close()
    told = {each["job"]["name"]: each for each in lab.events}
    assert names(told["s3"]["inputs"]) == [("kafka://kafka-1:19092", "orders")]
    assert names(told["s3"]["outputs"]) == [("s3://fh-dev-bucket", "orders")]
    assert names(told["iceberg"]["outputs"]) == [("s3://warehouse", "orders"), ("s3://warehouse", "bids")]
    schema = told["s3"]["inputs"][0]["facets"]["schema"]["fields"]
    assert [(each["name"], each["type"]) for each in schema] == [("order_id", "string"), ("price", "double")]


# --- the document itself


def test_every_line_of_the_document_has_its_test() -> None:
    if not SEED.is_file():
        pytest.skip(f"the document is not there: {SEED}")
    text = SEED.read_text()
    missing = [quote for quote in QUOTED if quote not in text]
    assert not missing, f"no longer in the document: {missing}"
    label = re.compile(
        r"#.*|-? *\*\*[^*]+\*\*|\| *(?:Entity|:---).*"
    )  # headings and heads of tables claim nothing
    claims = [
        each.strip() for each in text.splitlines() if each.strip() and not label.fullmatch(each.strip())
    ]
    assert len(claims) > 25
    for claim in claims:
        assert any(quote in claim for quote in QUOTED), f"nobody tests: {claim}"
