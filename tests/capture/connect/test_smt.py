"""Each transform does to topics and fields what its own source does to records."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.capture.connect.chain import follow
from headwater.capture.connect.records import Node, Origin, Record, open_struct
from headwater.capture.connect.smt import TRANSFORMS
from headwater.naming import Identity
from headwater.plugins import find

TOPIC = Identity("kafka://b:9092", "orders")
KAFKA = "org.apache.kafka.connect.transforms."
DEBEZIUM = "io.debezium.transforms."
AIVEN = "io.aiven.kafka.connect.transforms."
ICEBERG = "org.apache.iceberg.connect.transforms."


def struct(shape: Any, path: tuple[str, ...] = ()) -> Node:
    """`{"a": "int", "b": {"c": "string"}}` as the fields of TOPIC."""
    fields = []
    for name, inner in shape.items():
        here = (*path, name)
        if isinstance(inner, dict):
            fields.append((name, struct(inner, here)))
        else:
            fields.append((name, Node(inner, origins=(Origin(TOPIC, here),))))
    return Node("struct", fields=tuple(fields))


def config(*transforms: tuple[str, dict[str, str]], **more: str) -> dict[str, str]:
    made = {"transforms": ",".join(f"t{at}" for at in range(len(transforms)))}
    for at, (kind, settings) in enumerate(transforms):
        made[f"transforms.t{at}.type"] = kind
        made |= {f"transforms.t{at}.{name}": value for name, value in settings.items()}
    return made | more


def columns(record: Record) -> dict[str, str]:
    """column -> `origin way way`."""
    return {
        ".".join(path): " + ".join(
            " ".join([".".join(origin.path), *origin.ways]) for origin in node.all_origins()
        )
        for path, node in record.value.leaves()
    }


def value_after(shape: Any, *transforms: tuple[str, dict[str, str]]) -> dict[str, str]:
    (after,) = follow(config(*transforms), Record("orders", value=struct(shape)))
    return columns(after)


@pytest.mark.parametrize(
    ("shape", "kind", "settings", "expected"),
    [
        ({"a": "int", "b": "int"}, "ReplaceField$Value", {"exclude": "a"}, {"b": "b"}),
        ({"a": "int", "b": "int"}, "ReplaceField$Value", {"blacklist": "a"}, {"b": "b"}),
        ({"a": "int", "b": "int"}, "ReplaceField$Value", {"include": "a,b", "exclude": "a"}, {"b": "b"}),
        ({"a": "int", "b": "int"}, "ReplaceField$Value", {"renames": "a:c"}, {"c": "a", "b": "b"}),
        ({"a": "int", "b": "int"}, "ReplaceField$Value", {"renames": "a:b,b:a"}, {"b": "a", "a": "b"}),
        ({"a": "int", "p": "int"}, "ReplaceField$Value", {"renames": "a:p", "exclude": "a"}, {"p": "a"}),  # as Kafka's does
        ({"a": "int"}, "InsertField$Value", {"offset.field": "o!", "static.field": "s?", "static.value": "1"},
         {"a": "a", "o": "", "s": ""}),
        ({"a": "int"}, "HoistField$Value", {"field": "all"}, {"all.a": "a"}),
        ({"a": {"b": "int", "c": "int"}}, "ExtractField$Value", {"field": "a"}, {"b": "a.b", "c": "a.c"}),
        ({"a": {"b.x": {"c": "int"}}}, "ExtractField$Value", {"field": "a.`b.x`", "field.syntax.version": "V2"},
         {"c": "a.b.x.c"}),
        ({"a": {"b": "int"}, "c": "int"}, "Flatten$Value", {}, {"a.b": "a.b", "c": "c"}),
        ({"a": {"b": {"c": "int"}}}, "Flatten$Value", {"delimiter": "_"}, {"a_b_c": "a.b.c"}),
        ({"a": "int", "b": "int"}, "Cast$Value", {"spec": "a:string"}, {"a": "a CAST string", "b": "b"}),
        ({"a": "int", "b": "int"}, "MaskField$Value", {"fields": "a,zz"}, {"a": "a MASK", "b": "b"}),
        ({"a": "long"}, "TimestampConverter$Value", {"field": "a", "target.type": "Timestamp"}, {"a": "a CAST Timestamp"}),
        ({"a": "int"}, "SetSchemaMetadata$Value", {"schema.name": "x"}, {"a": "a"}),
        ({"a": "int", "b": "int"}, "HeaderFrom$Value", {"fields": "a", "headers": "h", "operation": "move"}, {"b": "b"}),
        ({"a": "int"}, "HeaderFrom$Value", {"fields": "a", "headers": "h", "operation": "copy"}, {"a": "a"}),
    ],
)  # fmt: skip
def test_fields(shape: Any, kind: str, settings: dict[str, str], expected: dict[str, str]) -> None:
    assert value_after(shape, (f"{KAFKA}{kind}", settings)) == expected


def test_an_array_of_structs_is_not_flattened() -> None:
    many = Node("array<Item>", fields=(("x", Node("int", origins=(Origin(TOPIC, ("items", "x")),))),))
    value = Node("struct", fields=(("items", many),))
    (after,) = follow(config((f"{KAFKA}Flatten$Value", {})), Record("orders", value=value))
    assert columns(after) == {"items.x": "items.x"}


def test_the_key_is_the_keys() -> None:
    record = Record("orders", key=struct({"id": "int"}), value=struct({"a": "int", "b": "int"}))
    (after,) = follow(config((f"{KAFKA}ExtractField$Key", {"field": "id"})), record)
    assert after.key.origins == (Origin(TOPIC, ("id",)),)
    assert columns(after) == {"a": "a", "b": "b"}
    (after,) = follow(config((f"{KAFKA}ValueToKey", {"fields": "b"})), record)
    assert [name for name, _ in after.key.fields or ()] == ["b"]


@pytest.mark.parametrize(
    ("kind", "settings", "topic", "expected"),
    [
        (f"{KAFKA}RegexRouter", {"regex": "(.*)", "replacement": "raw.$1"}, "orders", "raw.orders"),
        (f"{KAFKA}RegexRouter", {"regex": "ord", "replacement": "x"}, "orders", "orders"),
        (f"{DEBEZIUM}ByLogicalTableRouter", {"topic.regex": r"(.*)_\d+", "topic.replacement": "$1"}, "s.o_12", "s.o"),
        (f"{DEBEZIUM}outbox.EventRouter", {"route.topic.replacement": "outbox"}, "db.outbox", "outbox"),
    ],
)  # fmt: skip
def test_topics(kind: str, settings: dict[str, str], topic: str, expected: str) -> None:
    value = struct(ENVELOPE if "outbox" in kind else {"a": "int"})
    (after,) = follow(config((kind, settings)), Record(topic, value=value))
    assert (after.topic, after.fits) == (expected, None)


@pytest.mark.parametrize(
    ("unique", "expected"), [("true", ["id", "__dbz__physicalTableIdentifier"]), ("false", ["id"])]
)
def test_a_key_of_many_tables_tells_which_one(unique: str, expected: list[str]) -> None:
    settings = {"topic.regex": "(.*)_.", "topic.replacement": "$1", "key.enforce.uniqueness": unique}
    record = Record("o_1", key=struct({"id": "int"}), value=struct({"a": "int"}))
    (after,) = follow(config((f"{DEBEZIUM}ByLogicalTableRouter", settings)), record)
    assert [name for name, _ in after.key.fields or ()] == expected


@pytest.mark.parametrize(
    ("unique", "expected"),
    [("true", [["id"], ["id", "__dbz__physicalTableIdentifier"]]), ("false", [["id"]])],
)
def test_whether_a_key_tells_its_table_is_left_open_where_only_the_data_tell_the_topic(
    unique: str, expected: list[list[str]]
) -> None:
    settings = {"topic.regex": "o-(.*)", "topic.replacement": "$1", "key.enforce.uniqueness": unique}
    chain = config((f"{KAFKA}TimestampRouter", {}), (f"{DEBEZIUM}ByLogicalTableRouter", settings))
    found = follow(chain, Record("o", key=struct({"id": "int"}), value=struct({"a": "int"})))
    assert [[name for name, _ in after.key.fields or ()] for after in found] == expected
    assert {after.fits for after in found} == {".*"}


@pytest.mark.parametrize(
    ("kind", "settings", "fits", "fits_not"),
    [
        (f"{KAFKA}TimestampRouter", {}, "orders-20260101", "orders"),
        (f"{KAFKA}TimestampRouter", {"topic.format": "${timestamp}.${topic}"}, "2026.orders", "orders.2026"),
        (f"{DEBEZIUM}outbox.EventRouter", {}, "outbox.event.customer", "outbox.customer"),
        (f"{AIVEN}ExtractTopic$Value", {"field.name": "t"}, "anything", ""),
        ("com.example.Unheard$Value", {}, "anything", ""),
    ],
)
def test_topics_that_data_decide(kind: str, settings: dict[str, str], fits: str, fits_not: str) -> None:
    import re

    value = struct(ENVELOPE if "outbox" in kind else {"a": "int"})
    (after,) = follow(config((kind, settings)), Record("orders", value=value))
    assert after.fits is not None
    assert re.fullmatch(after.fits, fits)
    assert not fits_not or not re.fullmatch(after.fits, fits_not)
    assert after.notes


ENVELOPE = {"before": {"id": "int"}, "after": {"id": "int"}, "source": {"ts_ms": "long"}, "op": "string"}


def test_the_row_of_a_change_event() -> None:
    settings = {"add.fields": "op,source.ts_ms:at,table", "delete.tombstone.handling.mode": "rewrite"}
    assert value_after(ENVELOPE, (f"{DEBEZIUM}ExtractNewRecordState", settings)) == {
        "id": "after.id",
        "__op": "op",
        "__at": "source.ts_ms",
        "__table": "",
        "__deleted": "",
    }


def test_a_change_event_by_another_name_is_none() -> None:
    renamed = (f"{KAFKA}SetSchemaMetadata$Value", {"schema.name": "other"})
    told = value_after(ENVELOPE, renamed, (f"{DEBEZIUM}ExtractNewRecordState", {}))
    assert told["after.id"] == "after.id"


def test_what_is_no_change_event_passes() -> None:
    assert value_after({"a": "int"}, (f"{DEBEZIUM}ExtractNewRecordState", {})) == {"a": "a"}


def test_an_open_row_is_followed_by_name() -> None:
    """A source's columns are in no registry: whoever asks for one is told where it came from."""
    table = Identity("postgres://db:5432", "shop.public.orders")
    envelope = Node("struct", fields=(("after", open_struct(table)), ("op", Node("string"))))
    (after,) = follow(
        config(
            (f"{DEBEZIUM}ExtractNewRecordState", {}),
            (f"{KAFKA}ReplaceField$Value", {"exclude": "secret", "renames": "id:order_id"}),
            (f"{KAFKA}MaskField$Value", {"fields": "email"}),
            (f"{KAFKA}InsertField$Value", {"static.field": "site", "static.value": "x"}),
        ),
        Record("s.orders", value=envelope),
    )

    def origin(name: str) -> tuple[Origin, ...] | None:
        node = after.value.child(name)
        return None if node is None else node.all_origins()

    assert origin("order_id") == (Origin(table, ("id",)),)
    assert origin("total") == (Origin(table, ("total",)),)
    assert origin("email") == (Origin(table, ("email",), ("MASK",)),)
    assert origin("site") == ()
    assert origin("secret") is None
    assert origin("id") is None


def test_other_makers() -> None:
    shape = {"a": "int", "b": "int"}
    assert value_after(shape, (f"{AIVEN}Hash$Value", {"field.name": "a", "function": "sha256"})) == {
        "a": "a MASK",
        "b": "b",
    }
    concat = {"field.names": "a,b", "output.field.name": "ab"}
    assert value_after(shape, (f"{AIVEN}ConcatFields$Value", concat))["ab"] == "a CONCAT + b CONCAT"
    assert value_after(shape, (f"{ICEBERG}CopyValue", {"source.field": "a", "target.field": "c"}))["c"] == "a"
    assert value_after(shape, (f"{ICEBERG}KafkaMetadataTransform", {}))["_kafka_metadata_offset"] == ""
    told = value_after(ENVELOPE, (f"{ICEBERG}DebeziumTransform", {}))
    assert told["id"] == "after.id"
    assert "_cdc.target" in told


def test_a_filter_by_value_says_which_column_decides() -> None:
    settings = {"field.name": "a", "field.value": "1"}
    (after,) = follow(
        config((f"{AIVEN}FilterByFieldValue$Value", settings)), Record("t", value=struct({"a": "int"}))
    )
    assert after.filters == (Origin(TOPIC, ("a",)),)
    condition = {"filter.condition": "$[?(@.a == 'x')]", "filter.type": "include"}
    (after,) = follow(
        config(("io.confluent.connect.transforms.Filter$Value", condition)),
        Record("t", value=struct({"a": "int"})),
    )
    assert after.filters == (Origin(TOPIC, ("a",)),)


# --- predicates

NAMED = {
    "predicates": "p",
    "predicates.p.type": f"{KAFKA}predicates.TopicNameMatches",
    "predicates.p.pattern": "raw.*",
}
DROP = (f"{KAFKA}Filter", {"predicate": "p"})
TO_X = (f"{KAFKA}RegexRouter", {"regex": ".*", "replacement": "x", "predicate": "p"})


@pytest.mark.parametrize(
    ("transform", "topic", "negate", "expected"),
    [
        (DROP, "raw.a", "false", []),
        (DROP, "orders", "false", ["orders"]),
        (DROP, "raw.a", "true", ["raw.a"]),
        (DROP, "orders", "true", []),
        (TO_X, "raw.a", "false", ["x"]),
        (TO_X, "orders", "false", ["orders"]),
    ],
)
def test_a_predicate_of_the_name_is_settled(
    transform: tuple[str, dict[str, str]], topic: str, negate: str, expected: list[str]
) -> None:
    made = config((transform[0], {**transform[1], "negate": negate}), **NAMED)
    assert [record.topic for record in follow(made, Record(topic))] == expected


def test_a_predicate_of_the_data_keeps_both_outcomes() -> None:
    by_header = {**NAMED, "predicates.p.type": f"{KAFKA}predicates.HasHeaderKey", "predicates.p.name": "h"}
    assert [record.topic for record in follow(config(TO_X, **by_header), Record("t"))] == ["x", "t"]
    (dropped,) = follow(config(DROP, **by_header), Record("t"))
    assert dropped.filtered


# --- whatever is configured


def test_every_transform_of_the_table_is_there() -> None:
    for kind in TRANSFORMS:
        assert callable(find("smt", kind, TRANSFORMS)), kind


SETTINGS = st.dictionaries(
    st.sampled_from(
        [
            "field",
            "fields",
            "exclude",
            "include",
            "renames",
            "spec",
            "regex",
            "replacement",
            "headers",
            "operation",
            "delimiter",
            "target.type",
            "topic.regex",
            "topic.replacement",
            "add.fields",
            "field.name",
            "field.names",
            "output.field.name",
            "source.field",
            "target.field",
            "filter.condition",
            "predicate",
            "negate",
            "field.syntax.version",
            "key.fields",
            "value.fields",
            "json.root",
            "nested",
        ]
    ),
    st.sampled_from(
        ["a", "b", "a,b", "a:b", "a:int8", "(", "true", "$2", "", "a.b", "`a", "V2", "move", "p", ":"]
    ),
    max_size=5,
)


@given(st.lists(st.tuples(st.sampled_from([*TRANSFORMS, "x.Unknown"]), st.sampled_from(["", "$Key", "$Value"]), SETTINGS), max_size=4))  # fmt: skip
def test_no_chain_however_configured_raises_or_invents(chain: Any) -> None:
    transforms = [(kind + suffix, settings) for kind, suffix, settings in chain]
    shape = {"a": "int", "b": {"c": "int"}, "after": {"a": "int"}, "payload": "string"}
    real = {path for path, _ in struct(shape).leaves()}
    for after in follow(config(*transforms), Record("t", key=struct({"a": "int"}), value=struct(shape))):
        for _, node in after.value.leaves():
            for origin in node.all_origins():
                assert origin.path in real, "an origin that no field of the record has"


@pytest.mark.parametrize(
    ("topic", "settings", "fits"),
    [
        ("srv.public.orders", {}, None),
        ("srv._timescaledb_internal._hyper_1_1_chunk", {}, "timescaledb.public.conditions"),
        ("srv._timescaledb_internal._hyper_1_1_chunk", {"target.topic.prefix": "ts"}, "ts.public.conditions"),
        ("srv.mine.chunk", {"schema.list": "other,mine"}, "timescaledb.public.conditions"),
    ],
)
def test_chunks_go_where_only_the_database_knows(
    topic: str, settings: dict[str, str], fits: str | None
) -> None:
    import re

    kind = "io.debezium.connector.postgresql.transforms.timescaledb.TimescaleDb"
    (after,) = follow(config((kind, settings)), Record(topic, value=struct({"a": "int"})))
    assert after.topic == topic
    assert (after.fits is None) is (fits is None)
    if fits is not None:
        assert after.fits is not None
        assert re.fullmatch(after.fits, fits)
        assert not re.fullmatch(after.fits, topic)
        assert after.notes


KNOWN = {
    "org.apache.kafka.connect.transforms": "Cast DropHeaders ExtractField Filter Flatten HeaderFrom HoistField InsertField InsertHeader MaskField"
    " RegexRouter ReplaceField SetSchemaMetadata TimestampConverter TimestampRouter ValueToKey",
    "io.confluent.connect.transforms": "Drop ExtractTopic Filter MessageTimestampRouter",
    "io.confluent.connect.cloud.transforms": "TopicRegexRouter",
    "io.debezium.transforms": "ByLogicalTableRouter ContentBasedRouter ExtractChangedRecordState ExtractNewRecordState Filter HeaderToValue"
    " TimezoneConverter ToLogicalTopicRouter outbox.EventRouter partitions.PartitionRouting",
    "io.debezium.connector.mongodb.transforms": "ExtractNewDocumentState",
    "io.debezium.connector.postgresql.transforms": "timescaledb.TimescaleDb",
    "io.aiven.kafka.connect.transforms": "CaseTransform ConcatFields ExtractTopic FilterByFieldValue Hash HashField KeyToValue",
    "io.tabular.iceberg.connect.transforms": "CopyValue DebeziumTransform DmsTransform JsonToMapTransform KafkaMetadataTransform",
    "org.apache.iceberg.connect.transforms": "CopyValue DebeziumTransform DmsTransform JsonToMapTransform KafkaMetadataTransform",
    "io.factorhouse.smt": "OpenLineageLifecycleSmt UnwrapUnionTransform",
}  # fmt: skip


@pytest.mark.parametrize(
    "kind", [f"{package}.{name}" for package, names in KNOWN.items() for name in names.split()]
)
def test_what_people_use_is_known(kind: str) -> None:
    assert callable(find("smt", kind, TRANSFORMS))


def test_a_header_becomes_a_field_deep_in_a_struct() -> None:
    chain = config(
        (f"{KAFKA}InsertHeader", {"header": "h", "value.literal": "x"}),
        (f"{DEBEZIUM}HeaderToValue", {"headers": "h", "fields": "after.hv", "operation": "copy"}),
    )
    (after,) = follow(chain, Record("t", value=struct(ENVELOPE)))
    row = after.value.child("after")
    assert row is not None
    assert [name for name, _ in row.fields or ()] == ["id", "hv"]
    (plain,) = follow(chain, Record("t", value=struct({"a": "int"})))
    assert [name for name, _ in plain.value.fields or ()] == ["a", "after"]
    made = plain.value.child("after")
    assert made is not None
    assert [name for name, _ in made.fields or ()] == ["hv"]
