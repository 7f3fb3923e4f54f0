"""Schemas of three formats are read into one tree, and nothing a registry answers raises anything else than ours."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.capture.connect.fields import Field, fields_of, node
from headwater.capture.connect.schemas import FORMATS, parse
from headwater.capture.connect.subjects import candidates, compatible, converter
from headwater.connect._sampling import embedded, registered
from headwater.errors import ConfigError
from headwater.naming import Identity


def shape(field: Field) -> Any:
    """name -> type, or (type, fields)."""
    return {each.name: (each.type, shape(each)) if each.fields else each.type for each in field.fields}


def avro(*fields: Any, **more: Any) -> str:
    return json.dumps({"type": "record", "name": "R", "namespace": "n", "fields": list(fields), **more})


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("long", "long"),
        (["null", "long"], "long"),
        (["long", "null"], "long"),
        (["null", "int", "string"], "union<int,string>"),
        ({"type": "bytes", "logicalType": "decimal", "precision": 10, "scale": 2}, "decimal(10,2)"),
        ({"type": "long", "logicalType": "timestamp-millis"}, "timestamp-millis"),
        ({"type": "string", "connect.name": "io.debezium.data.Json"}, "string (Json)"),
        ({"type": "array", "items": "int"}, "array<int>"),
        ({"type": "map", "values": ["null", "int"]}, "map<string,int>"),
        ({"type": "enum", "name": "E", "symbols": ["A"]}, "enum"),
        ({"type": "fixed", "name": "F", "size": 16}, "fixed"),
        (
            {
                "type": "array",
                "items": {"type": "record", "name": "I", "fields": [{"name": "x", "type": "int"}]},
            },
            ("array<I>", {"x": "int"}),
        ),
        (["null", "n.R"], "R"),  # it holds itself
    ],
)
def test_types_of_avro(kind: Any, expected: Any) -> None:
    assert shape(parse("AVRO", avro({"name": "f", "type": kind}))) == {"f": expected}


def test_named_types_of_avro_are_known_after_their_first_use(recorded: Path) -> None:
    answer = json.loads((recorded / "registry.json").read_text())["GET latest (Debezium envelope)"][1]
    found = parse(answer["schemaType"], answer["schema"])
    before, after = shape(found)["before"], shape(found)["after"]
    assert before == after
    assert before[1]["created"] == "string (ZonedTimestamp)"
    assert found.record == "shopdb.sales.orders.Envelope"


def test_references_of_avro() -> None:
    other = json.dumps(
        {"type": "record", "name": "B", "namespace": "o", "fields": [{"name": "q", "type": "int"}]}
    )
    found = parse("AVRO", avro({"name": "b", "type": "o.B"}), {"o.B": other})
    assert shape(found) == {"b": ("B", {"q": "int"})}
    with pytest.raises(ConfigError, match=r"o\.B"):
        parse("AVRO", avro({"name": "b", "type": "o.B"}))


def test_a_key_that_is_no_record() -> None:
    assert parse("AVRO", '"string"').type == "string"
    assert parse("AVRO", '{"type": "long"}').type == "long"


def test_types_that_unfold_without_end_are_given_up() -> None:
    kinds: list[Any] = [
        {"type": "record", "name": f"T{at}", "fields": [
            {"name": "a", "type": f"T{at + 1}"}, {"name": "b", "type": f"T{at + 1}"}]}
        for at in range(24)
    ]  # fmt: skip
    references = {f"T{at}": json.dumps(each) for at, each in reversed(list(enumerate(kinds)))}
    references = {"T24": json.dumps({"type": "record", "name": "T24", "fields": []}), **references}
    with pytest.raises(ConfigError, match="fields"):
        parse(
            "AVRO",
            json.dumps({"type": "record", "name": "R", "fields": [{"name": "t", "type": "T0"}]}),
            references,
        )


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        ({"properties": {"a": {"type": "integer"}}}, {"a": "integer"}),
        ({"properties": {"b": {"type": "string", "connect.index": 1}, "a": {"type": "number", "connect.index": 0}}}, {"a": "number", "b": "string"}),
        ({"properties": {"a": {"type": ["null", "string"]}}}, {"a": "string"}),
        ({"properties": {"a": {"oneOf": [{"type": "null"}, {"type": "integer", "connect.type": "int64"}]}}}, {"a": "int64"}),
        ({"properties": {"a": {"anyOf": [{"type": "string"}, {"type": "integer"}]}}}, {"a": "union<string,integer>"}),
        ({"allOf": [{"properties": {"a": {"type": "string"}}}, {"$ref": "#/$defs/B"}], "$defs": {"B": {"properties": {"b": {"type": "string"}}}}}, {"a": "string", "b": "string"}),
        ({"properties": {"a": {"$ref": "#/definitions/A"}}, "definitions": {"A": {"title": "A", "properties": {"a": {"$ref": "#/definitions/A"}}}}}, {"a": ("A", {"a": "A"})}),
        ({"properties": {"a": {"type": "array", "items": {"properties": {"x": {"type": "string"}}}}}}, {"a": ("array<object>", {"x": "string"})}),
        ({"properties": {"a": {"type": "array", "prefixItems": [{"type": "string"}, {"type": "integer"}]}}}, {"a": "tuple<string,integer>"}),
        ({"properties": {"a": {"type": "object", "additionalProperties": {"type": "integer"}}}}, {"a": "map<string,integer>"}),
        ({"properties": {"a": {"enum": ["x"]}, "b": True}}, {"a": "enum", "b": "any"}),
    ],
)  # fmt: skip
def test_types_of_json_schema(schema: Any, expected: Any) -> None:
    assert shape(parse("JSON", json.dumps(schema))) == expected
    assert list(shape(parse("JSON", json.dumps(schema)))) == list(expected)


def test_references_of_json_schema() -> None:
    other = json.dumps({"$id": "http://x/b.json", "properties": {"q": {"type": "integer"}}, "definitions": {"C": {"type": "string"}}})  # fmt: skip
    text = json.dumps(
        {"properties": {"b": {"$ref": "b.json"}, "c": {"$ref": "http://x/b.json#/definitions/C"}}}
    )
    assert shape(parse("JSON", text, {"b.json": other})) == {"b": ("object", {"q": "integer"}), "c": "string"}
    with pytest.raises(ConfigError, match="nowhere"):
        parse("JSON", text)


def test_types_of_protobuf() -> None:
    text = """
    syntax = "proto3";
    package a.b;
    import "other.proto";
    message Order {
      string s = 1;
      repeated Item items = 2;
      map<string, Item> by_name = 3;
      oneof how { int32 i = 4; o.Other other = 5; }
      Kind kind = 6;
      Order before = 7;
      google.protobuf.Timestamp at = 8;
      message Item { optional int64 q = 1; }
      enum Kind { A = 0; }
    }
    message Second { string x = 1; }
    """
    other = 'syntax = "proto3"; package o; message Other { bytes b = 1; }'
    assert shape(parse("PROTOBUF", text, {"other.proto": other})) == {
        "s": "string",
        "items": ("array<Item>", {"q": "int64"}),
        "by_name": ("map<string,Item>", {"q": "int64"}),
        "i": "int32",
        "other": ("Other", {"b": "bytes"}),
        "kind": "enum",
        "before": "Order",
        "at": "timestamp",
    }


@pytest.mark.parametrize("format", list(FORMATS))
@pytest.mark.parametrize(
    "text",
    ["", "<html>", "{", "[]", "null", "{}", '{"type": "record"}', '{"type": 7}', '{"$ref": "#/x"}', "message A {", 'syntax = "proto3";', '{"type": "record", "name": "A", "fields": 3}', '{"properties": 3}', '{"allOf": [3]}'],
)  # fmt: skip
def test_what_is_no_schema_is_refused_or_empty(
    format: str, text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    try:
        found = parse(format, text)
    except ConfigError as fault:
        assert str(fault)  # noqa: PT017 - some of these are schemas, of nothing
    else:
        assert found.fields == ()
    assert capsys.readouterr() == ("", "")


JSONS = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(-1, 3),
        st.sampled_from(["record", "null", "A", "#/a", "string"]),
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(
            st.sampled_from(
                ["type", "name", "fields", "items", "values", "properties", "$ref", "oneOf", "allOf", "a"]
            ),
            inner,
            max_size=4,
        ),
    ),
    max_leaves=15,
)


@given(JSONS, st.sampled_from(["AVRO", "JSON"]))
def test_no_schema_however_malformed_raises_anything_else(value: Any, format: str) -> None:
    try:
        parse(format, json.dumps(value))
    except ConfigError as fault:
        assert str(fault)  # noqa: PT017 - some of these are schemas


def test_types_of_a_schema_that_records_carry() -> None:
    schema = {
        "type": "struct",
        "name": "shop.Order",
        "fields": [
            {"field": "id", "type": "int64", "optional": False},
            {"field": "at", "type": "int64", "name": "org.apache.kafka.connect.data.Timestamp", "doc": "when"},
            {"field": "tags", "type": "array", "items": {"type": "string"}},
            {"field": "by", "type": "map", "keys": {"type": "string"}, "values": {"type": "struct", "fields": [{"field": "n", "type": "int32"}]}},
        ],
    }  # fmt: skip
    record = registered("t", "value", json.dumps({"schema": schema, "payload": {"id": 1}}).encode())
    assert shape(record.field) == {
        "id": "int64",
        "at": "int64 (Timestamp)",
        "tags": "array<string>",
        "by": ("map<string,struct>", {"n": "int32"}),
    }
    assert record.field.record == "shop.Order"
    wider = {**schema, "fields": [*schema["fields"], {"field": "x", "type": "string"}]}
    assert (
        registered("t", "value", json.dumps({"schema": wider, "payload": None}).encode()).version
        != record.version
    )
    for raw in (b"no", b"{}", b"[1]", b'{"schema": null, "payload": {"id": 1}}', b'{"id": 1}'):
        with pytest.raises(ConfigError):
            registered("t", "value", raw)


def test_fields_come_back_from_the_chain_as_they_went_in() -> None:
    found = parse("AVRO", avro({"name": "a", "type": "int", "doc": "why"}, {"name": "r", "type": {"type": "record", "name": "I", "fields": [{"name": "x", "type": "int"}]}}))  # fmt: skip

    def shown(fields: tuple[Field, ...]) -> list[Any]:
        return [(each.name, each.type, each.doc, shown(each.fields)) for each in fields]

    assert shown(fields_of(node(found, Identity("kafka://b:1", "t")))) == shown(found.fields)


# --- which subject


def test_converters() -> None:
    confluent = {
        "value.converter": "io.confluent.connect.avro.AvroConverter",
        "value.converter.schema.registry.url": "http://sr:8081/,http://sr2:8081",
        "value.converter.value.subject.name.strategy": "io.confluent.kafka.serializers.subject.TopicRecordNameStrategy",
    }
    found = converter(confluent, "value")
    assert (found.registered, found.url, found.strategy) == (True, "http://sr:8081", "topic-record")
    apicurio = {
        "key.converter": "io.apicurio.registry.utils.converter.AvroConverter",
        "key.converter.apicurio.registry.url": "http://r:8080/apis/registry/v2",
    }
    assert converter(apicurio, "key").url == "http://r:8080/apis/ccompat/v7"
    assert converter({}, "value").registered  # the worker's, which nobody tells
    for name in ("json.JsonConverter", "storage.StringConverter", "converters.ByteArrayConverter"):
        assert not converter({"value.converter": f"org.apache.kafka.connect.{name}"}, "value").registered
    assert converter({"value.converter": "io.confluent.connect.json.JsonSchemaConverter"}, "value").registered


def test_which_records_carry_their_schema() -> None:
    json_converter = {"value.converter": "org.apache.kafka.connect.json.JsonConverter"}
    assert embedded(json_converter, "value")
    assert not embedded({**json_converter, "value.converter.schemas.enable": "false"}, "value")
    assert not embedded({"value.converter": "org.apache.kafka.connect.storage.StringConverter"}, "value")
    assert not embedded(json_converter, "key")


def test_subjects() -> None:
    assert candidates("topic", "key", "t", []) == ["t-key"]
    assert candidates("plain", "value", "t", []) == ["t"]
    assert candidates("record", "value", "t", ["shop.Order"]) == []
    others = ["t-eu-shop.EuOrder", "t-eu-value", "t-dlq-value", "t-key"]
    assert candidates("topic-record", "value", "t", ["t-shop.Order", *others]) == ["t-shop.Order"]
    assert compatible("http://sr:8081/") == "http://sr:8081"
