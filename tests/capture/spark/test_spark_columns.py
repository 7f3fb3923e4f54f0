"""Expressions and types, each alone: masking, conditions, windows, fields of structs, nested schemas."""

from __future__ import annotations

import json
from typing import Any

import pytest

from headwater.capture.spark import deps
from headwater.capture.spark.deps import Deps, Sources
from headwater.capture.spark.expressions import Reader
from headwater.capture.spark.facets import fields, input_fields, normalized
from headwater.naming import Identity

T = Identity("file", "/t")
A, B, C = ["@", 1, "a"], ["@", 2, "b"], ["@", 3, "c"]
LITERAL = ["L"]


def told(expression: list[Any]) -> dict[str, set[str]]:
    """column -> its kinds; `masked` among them where it is hidden"""
    sources = Sources()
    env = {n: {sources.of(T, name): deps.IDENTITY | deps.OPEN} for n, name in ((1, "a"), (2, "b"), (3, "c"))}
    found: Deps = Reader(sources, {}, lambda at: env[at]).read(expression, env)
    return {
        each["field"]: {how["subtype"] for how in each["transformations"]}
        | ({"masked"} if any(how["masking"] for how in each["transformations"]) else set())
        for each in input_fields(found)
    }


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        (A, {"a": {"IDENTITY"}}),
        (["=", 9, "x", A], {"a": {"IDENTITY"}}),
        (LITERAL, {}),
        (["Add", A, B], {"a": {"TRANSFORMATION"}, "b": {"TRANSFORMATION"}}),
        (["Add", A, LITERAL], {"a": {"TRANSFORMATION"}}),
        (["KnownNotNull", A], {"a": {"IDENTITY"}}),
        (["AggregateExpression", ["Sum", A]], {"a": {"AGGREGATION"}}),
        (["AggregateExpression", ["Sum", A], ["GreaterThan", B, LITERAL]], {"a": {"AGGREGATION"}, "b": {"CONDITIONAL"}}),
        (["AggregateExpression", ["Count", LITERAL]], {}),
        (["CaseWhen", ["IsNull", A], B, C], {"a": {"CONDITIONAL"}, "b": {"TRANSFORMATION"}, "c": {"TRANSFORMATION"}}),
        (["CaseWhen", ["IsNull", A], B], {"a": {"CONDITIONAL"}, "b": {"TRANSFORMATION"}}),
        (["CaseWhen", ["IsNull", A], A], {"a": {"CONDITIONAL", "TRANSFORMATION"}}),
        (["CaseWhen", A, LITERAL, B, LITERAL, LITERAL], {"a": {"CONDITIONAL"}, "b": {"CONDITIONAL"}}),
        (["If", A, B, C], {"a": {"CONDITIONAL"}, "b": {"TRANSFORMATION"}, "c": {"TRANSFORMATION"}}),
        (["Coalesce", A, B], {"a": {"TRANSFORMATION"}, "b": {"TRANSFORMATION"}}),
        (["WindowExpression", ["RowNumber"], ["WindowSpecDefinition", A, ["SortOrder", B]]], {"a": {"WINDOW"}, "b": {"WINDOW"}}),
        (["WindowExpression", ["Rank", B], ["WindowSpecDefinition", A, ["SortOrder", B]]], {"a": {"WINDOW"}, "b": {"WINDOW"}}),
        (["WindowExpression", ["Lag", C, LITERAL], ["WindowSpecDefinition", A]], {"c": {"TRANSFORMATION"}, "a": {"WINDOW"}}),
        (["WindowExpression", ["AggregateExpression", ["Sum", A]], ["WindowSpecDefinition", A]], {"a": {"AGGREGATION", "WINDOW"}}),
        ([".", "city", A], {"a.city": {"IDENTITY"}}),
        ([".", "zip", [".", "address", A]], {"a.address.zip": {"IDENTITY"}}),
        (["Upper", [".", "city", A]], {"a.city": {"TRANSFORMATION"}}),
        ([".", "x", ["Named", A]], {"a": {"TRANSFORMATION"}}),
        (["[]", A, LITERAL], {"a": {"IDENTITY"}}),
        (["[]", A, B], {"a": {"IDENTITY"}, "b": {"CONDITIONAL"}}),
        (["$", "ScalarSubquery", 2], {"b": {"TRANSFORMATION"}}),
        (["$", "Exists", 2], {}),
        (["ArrayTransform", A, ["LambdaFunction", ["Add", ["NamedLambdaVariable"], B]]], {"a": {"TRANSFORMATION"}, "b": {"TRANSFORMATION"}}),
    ],
    ids=lambda value: json.dumps(value, default=sorted)[:80],  # sets have no order of their own
)  # fmt: skip
def test_expressions(expression: list[Any], expected: dict[str, set[str]]) -> None:
    assert told(expression) == expected


@pytest.mark.parametrize("function", ["Sha2", "Sha1", "Md5", "XxHash64", "Murmur3Hash", "Mask", "AesEncrypt"])
def test_what_hides(function: str) -> None:
    assert told([function, A]) == {"a": {"TRANSFORMATION", "masked"}}
    assert told(["Concat", [function, ["Upper", A]], LITERAL]) == {"a": {"TRANSFORMATION", "masked"}}
    assert told(["AggregateExpression", ["Max", [function, A]]]) == {"a": {"AGGREGATION", "masked"}}


def test_one_open_way_shows_it() -> None:
    assert told(["Concat", ["Sha2", A], A]) == {"a": {"TRANSFORMATION"}}
    assert told(["Concat", ["Sha2", A], B]) == {"a": {"TRANSFORMATION", "masked"}, "b": {"TRANSFORMATION"}}


def test_what_only_decides_is_not_masked() -> None:
    assert told(["If", ["EqualTo", ["Sha2", A], LITERAL], B, LITERAL]) == {
        "a": {"CONDITIONAL"},
        "b": {"TRANSFORMATION"},
    }


@pytest.mark.parametrize("function", ["Length", "Crc32"])
def test_a_count_of_distinct_values_does_not_show_one(function: str) -> None:
    """A length is no mask; a checksum is."""
    assert ("masked" in told([function, A])["a"]) is (function == "Crc32")


TOPIC = Identity("kafka://b:9092", "shop.public.orders")
VALUE, KEY, OFFSET = ["@", 1, "value"], ["@", 2, "key"], ["@", 3, "offset"]


def told_of_a_record(dataset: Identity, expression: list[Any]) -> dict[str, set[str]]:
    """column -> its kinds, of a record as Spark's source of Kafka gives it"""
    sources = Sources()
    names = ((1, "value"), (2, "key"), (3, "offset"))
    env = {n: {sources.of(dataset, name): deps.IDENTITY | deps.OPEN} for n, name in names}
    found: Deps = Reader(sources, {}, lambda at: env[at]).read(expression, env)
    return {
        each["field"]: {how["subtype"] for how in each["transformations"]} for each in input_fields(found)
    }


@pytest.mark.parametrize("decoder", ["JsonToStructs", "AvroDataToCatalyst", "ProtobufDataToCatalyst"])
def test_a_field_of_a_decoded_record_is_the_topics_own_column(decoder: str) -> None:
    """What Connect calls `total` is `from_avro(value).total` to Spark: one column, or no path goes through a topic."""
    value = [decoder, ["Substring", VALUE, LITERAL, LITERAL]]
    bytes_of = {"value": {"TRANSFORMATION"}}
    assert told_of_a_record(TOPIC, [".", "total", value]) == {**bytes_of, "total": {"IDENTITY"}}
    after = [".", "total", [".", "after", ["=", 9, "row", value]]]
    assert told_of_a_record(TOPIC, after) == {**bytes_of, "after.total": {"IDENTITY"}}
    twice = ["Multiply", [".", "total", value], LITERAL]
    assert told_of_a_record(TOPIC, twice) == {**bytes_of, "total": {"TRANSFORMATION"}}
    of_key = [".", "id", [decoder, KEY]]
    assert told_of_a_record(TOPIC, of_key) == {"key": {"TRANSFORMATION"}, "__key.id": {"IDENTITY"}}
    assert told_of_a_record(TOPIC, value) == bytes_of  # as a whole it has no column but its bytes


def test_only_records_of_a_topic_have_such_columns() -> None:
    decoded = [".", "total", ["JsonToStructs", VALUE]]
    assert told_of_a_record(T, decoded) == {"value": {"TRANSFORMATION"}}
    assert told_of_a_record(TOPIC, [".", "x", ["JsonToStructs", OFFSET]]) == {"offset": {"TRANSFORMATION"}}
    assert told_of_a_record(TOPIC, [".", "x", ["Named", VALUE]]) == {"value": {"TRANSFORMATION"}}


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("string", {"type": "string"}),
        ("decimal(10,2)", {"type": "decimal(10,2)"}),
        ("array<string>", {"type": "array<string>"}),
        ("map<string,int>", {"type": "map<string,int>"}),
        ("struct<a:int,b:decimal(3,1)>", {"type": "struct", "fields": [{"name": "a", "type": "int"}, {"name": "b", "type": "decimal(3,1)"}]}),
        (
            "struct<a:struct<b:int>>",
            {"type": "struct", "fields": [{"name": "a", "type": "struct", "fields": [{"name": "b", "type": "int"}]}]},
        ),
        (
            "array<struct<a:int>>",
            {"type": "array", "fields": [{"name": "_element", "type": "struct", "fields": [{"name": "a", "type": "int"}]}]},
        ),
        (
            "map<string,struct<a:int,c:string>>",
            {
                "type": "map",
                "fields": [
                    {"name": "key", "type": "string"},
                    {"name": "value", "type": "struct", "fields": [{"name": "a", "type": "int"}, {"name": "c", "type": "string"}]},
                ],
            },
        ),
        ("struct<`a:b`:int,`c,d`:string>", {"type": "struct", "fields": [{"name": "a:b", "type": "int"}, {"name": "c,d", "type": "string"}]}),
        ("struct<>", {"type": "struct<>"}),
        ("interval day to second", {"type": "interval day to second"}),
        (None, {}),
    ],
    ids=str,
)  # fmt: skip
def test_types(kind: str | None, expected: dict[str, Any]) -> None:
    assert fields([("x", kind)]) == [{"name": "x", **expected}]


def test_a_type_of_any_depth_is_taken() -> None:
    deep = 150
    (found,) = fields([("x", "struct<a:" * deep + "int" + ">" * deep)])
    assert found["name"] == "x"


@pytest.mark.parametrize(
    "kind",
    [
        *("struct<a:int", "struct<", "array<", "map<a>", "<>", ">", "struct<a>"),
        "struct<`a:int>",  # what Spark writes for a field called `a: it quotes nothing
    ],
)
def test_a_type_that_is_none_is_taken(kind: str) -> None:
    assert fields([("x", kind)])[0]["name"] == "x"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Nightly Load", "nightly_load"),
        ("nightlyLoad2", "nightly_load2"),
        ("SQLThing", "sql_thing"),
        ("  a--b  ", "a_b"),
        ("Größe", "gro_e"),
        ("日本", ""),
    ],
)
def test_names_of_jobs(text: str, expected: str) -> None:
    assert normalized(text) == expected
