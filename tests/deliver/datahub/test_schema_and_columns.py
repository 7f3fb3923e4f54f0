"""Schemas, column lineage, edges, patches and the clean-up of what older agents left."""

from __future__ import annotations

import json
from typing import Any

import pytest
from making import JAVA, aspect, aspects, columns, convert, dataset, event, raw, schema, symlinks

from headwater.deliver.datahub.fields import type_of
from headwater.errors import EventError

TYPES = [
    # type, by default, as Java has it
    ("string", "StringType", "StringType"),
    ("long", "NumberType", "NumberType"),
    ("int", "NumberType", "NumberType"),
    ("timestamp", "TimeType", "TimeType"),
    ("struct", "RecordType", "MapType"),
    ("STRING", "StringType", "NullType"),
    ("integer", "NumberType", "NullType"),
    ("bigint", "NumberType", "NullType"),
    ("double", "NumberType", "NullType"),
    ("double precision", "NumberType", "NullType"),
    ("decimal(10,2)", "NumberType", "NullType"),
    ("boolean", "BooleanType", "NullType"),
    ("date", "DateType", "NullType"),
    ("timestamp without time zone", "TimeType", "NullType"),
    ("character varying(10)", "StringType", "NullType"),
    ("bytea", "BytesType", "NullType"),
    ("array<string>", "ArrayType", "NullType"),
    ("text[]", "ArrayType", "NullType"),
    ("map<string,int>", "MapType", "NullType"),
    ("struct<a:int>", "RecordType", "NullType"),
    ("VARIANT", "RecordType", "NullType"),
    ("uuid", "StringType", "NullType"),
    ("nonsense", "NullType", "NullType"),
    (None, "NullType", "NullType"),
    ("", "NullType", "NullType"),
]


@pytest.mark.parametrize(("told", "default", "java"), TYPES)
def test_types(told: str | None, default: str, java: str) -> None:
    out = dataset("hive", "t", schema={"fields": [{"name": "x", "type": told}]})

    def kind(**given: Any) -> str:
        field = aspect(convert(event(outputs=[out]), **given), "schemaMetadata")["fields"][0]
        assert field["nativeDataType"] == (told or "")
        (only,) = field["type"]["type"]
        return str(only.removeprefix("com.linkedin.schema."))

    assert kind() == default
    assert kind(**JAVA) == java


def test_types_say_what_is_inside() -> None:
    assert type_of("array<int>") == {"com.linkedin.schema.ArrayType": {"nestedType": ["int"]}}
    assert type_of("map<string, array<int>>") == {
        "com.linkedin.schema.MapType": {"keyType": "string", "valueType": "array<int>"}
    }


NESTED = {
    "fields": [
        {
            "name": "address",
            "type": "struct",
            "description": "where",
            "fields": [
                {"name": "city", "type": "string"},
                {"name": "geo", "type": "struct", "fields": [{"name": "lat", "type": "double"}]},
            ],
        }
    ]
}


def test_fields_inside_of_fields() -> None:
    told = event(outputs=[dataset("hive", "t", schema=NESTED)])
    fields = aspect(convert(told), "schemaMetadata")["fields"]
    assert [each["fieldPath"] for each in fields] == [
        "address",
        "address.city",
        "address.geo",
        "address.geo.lat",
    ]
    assert fields[0]["description"] == "where"
    typed = aspect(convert(told, field_paths="v2"), "schemaMetadata")["fields"]
    assert typed[3]["fieldPath"] == (
        "[version=2.0].[type=struct].[type=struct].address.[type=struct].geo.[type=double].lat"
    )
    java = aspect(convert(told, **JAVA), "schemaMetadata")["fields"]
    assert [each["fieldPath"] for each in java] == ["address"]
    assert "description" not in java[0]


@pytest.mark.parametrize(
    "more", [[], [{"name": "s", "type": "struct", "fields": [{"name": "x", "type": "int"}]}]]
)
def test_of_fields_with_one_name_the_first_stays_in_its_place(more: list[Any]) -> None:
    fields = [
        {"name": "a", "type": "int"},
        {"name": "b", "type": "int"},
        {"name": "a", "type": "long"},
        *more,
    ]
    told = event(outputs=[dataset("hive", "t", schema={"fields": fields})])
    found = aspect(convert(told), "schemaMetadata")["fields"]
    assert [(each["fieldPath"], each["nativeDataType"]) for each in found][:2] == [("a", "int"), ("b", "int")]
    assert len(found) == 2 + 2 * len(more)


def test_the_shape_of_a_schema() -> None:
    told = event(outputs=[dataset("hive", "t", schema=schema(x="int", y="string"))])
    for given in ({}, JAVA):
        made = aspect(convert(told, **given), "schemaMetadata")
        ddl = made["platformSchema"]["com.linkedin.schema.MySqlDDL"]["tableSchema"]
        assert json.loads(ddl) == schema(x="int", y="string")["fields"]
        assert (made["schemaName"], made["version"], made["hash"]) == ("", 1, "")
        assert made["platform"] == "urn:li:dataPlatform:hive"


SHAPES = [
    # schema facet, whether there is an aspect
    ({"fields": []}, True),
    ({"fields": None}, False),
    ({}, False),
    (None, False),
]


@pytest.mark.parametrize("given", [{}, JAVA], ids=["default", "java"])
@pytest.mark.parametrize(("facet", "there"), SHAPES)
def test_schemas_that_say_little(facet: Any, there: bool, given: dict[str, Any]) -> None:
    made = convert(event(outputs=[dataset("hive", "t", schema=facet)]), **given)
    assert bool(aspects(made, "schemaMetadata")) is there


def test_the_platform_of_a_schema_is_that_of_its_dataset() -> None:
    out = dataset(
        "s3://b", "t", schema=schema(x="int"), symlinks=symlinks(("arn:aws:glue:r:1", "table/db/t"))
    )
    told = event(outputs=[out])
    assert aspect(convert(told), "schemaMetadata")["platform"] == "urn:li:dataPlatform:glue"
    assert aspect(convert(told, **JAVA), "schemaMetadata")["platform"] == "urn:li:dataPlatform:s3"


def fine(facet: dict[str, Any], sql: str | None = None, **given: Any) -> list[dict[str, Any]]:
    told = event(
        outputs=[dataset("hive", "out", columnLineage=facet)],
        job_facets={"sql": {"query": sql}} if sql is not None else {},
    )
    return list(aspect(convert(told, **given), "dataJobInputOutput")["fineGrainedLineages"])


def field(name: str, column: str) -> str:
    return f"urn:li:schemaField:(urn:li:dataset:(urn:li:dataPlatform:hive,{name},PROD),{column})"


OPERATIONS = [
    # transformations of two inputs, SQL, operation
    (["DIRECT:IDENTITY"], ["INDIRECT:FILTER"], None, "DIRECT:IDENTITY,INDIRECT:FILTER"),
    (["INDIRECT:FILTER"], ["DIRECT:IDENTITY"], "SELECT 1", "-- DIRECT:IDENTITY,INDIRECT:FILTER\nSELECT 1"),
    ([], [], "SELECT 1", "SELECT 1"),
    ([], [], None, ""),
    (["DIRECT"], [], None, "DIRECT:null"),
    (["DIRECT:IDENTITY"], ["DIRECT:IDENTITY"], "  ", "DIRECT:IDENTITY"),
]


@pytest.mark.parametrize("given", [{}, JAVA], ids=["default", "java"])
@pytest.mark.parametrize(("one", "two", "sql", "expected"), OPERATIONS)
def test_operations(
    one: list[str], two: list[str], sql: str | None, expected: str, given: dict[str, Any]
) -> None:
    facet = columns(x=[("hive", "in", "a", *one), ("hive", "in", "b", *two)])
    assert fine(facet, sql, **given) == [
        {
            "upstreamType": "FIELD_SET",
            "upstreams": [field("in", "a"), field("in", "b")],
            "downstreamType": "FIELD_SET",
            "downstreams": [field("out", "x")],
            "transformOperation": expected,
            "confidenceScore": 0.5,
        }
    ]


def test_indirect_columns_may_be_left_out_but_not_their_text() -> None:
    facet = columns(
        name=[("hive", "in", "name", "DIRECT:IDENTITY"), ("hive", "in", "age", "INDIRECT:FILTER")],
        age=[("hive", "in", "age", "indirect:FILTER", "DIRECT:IDENTITY")],
        gone=[("hive", "in", "age", "INDIRECT:SORT")],
    )
    found = {each["downstreams"][0]: each for each in fine(facet, include_indirect=False)}
    assert {name: each["upstreams"] for name, each in found.items()} == {
        field("out", "name"): [field("in", "name")],
        field("out", "age"): [field("in", "age")],
    }
    assert found[field("out", "name")]["transformOperation"] == "DIRECT:IDENTITY,INDIRECT:FILTER"


def test_upstreams_are_told_once_by_default() -> None:
    facet = columns(x=[("hive", "in", "a"), ("hive", "in", "a")])
    assert len(fine(facet)[0]["upstreams"]) == 1
    assert len(fine(facet, **JAVA)[0]["upstreams"]) == 2


def test_columns_without_sources_have_no_entry_and_columns_may_be_switched_off() -> None:
    assert fine(columns(x=[])) == []
    facet = {"fields": {"x": None, "y": {"inputFields": None}}}
    assert fine(facet) == []
    assert fine(columns(x=[("hive", "in", "a")]), column_lineage=False) == []


def test_column_names_that_no_urn_can_hold() -> None:
    facet = columns(**{"sum(a": [("hive", "in", "b,c")]})
    assert fine(facet)[0]["downstreams"] == [field("out", "sum%28a")]
    assert fine(facet)[0]["upstreams"] == [field("in", "b%2Cc")]
    with pytest.raises(EventError):
        fine(facet, **JAVA)
    empty = columns(**{"": [("hive", "in", "b")]})
    assert fine(empty)
    with pytest.raises(EventError):
        fine(empty, **JAVA)


def test_the_first_of_datasets_with_one_urn_stays() -> None:
    told = event(
        outputs=[dataset("hive", "t", schema=schema(x="int")), dataset("hive", "t", schema=schema(y="int"))]
    )
    (made,) = aspects(convert(told), "schemaMetadata")
    assert [each["fieldPath"] for each in made["fields"]] == ["x"]


def test_edges_are_sorted_and_stamped() -> None:
    told = event(inputs=[dataset("hive", "b"), dataset("hive", "a")], outputs=[dataset("hive", "c")], at=1)
    for given in ({}, JAVA):
        made = aspect(convert(told, **given), "dataJobInputOutput")
        assert [each["destinationUrn"].split(",")[1] for each in made["inputDatasetEdges"]] == ["a", "b"]
        stamp = {"time": 1767225601000, "actor": "urn:li:corpuser:datahub"}
        assert made["outputDatasetEdges"][0]["lastModified"] == stamp
        assert (made["inputDatasets"], made["outputDatasets"], made["inputDatajobs"]) == ([], [], [])


def test_an_event_without_datasets_erases_no_edge() -> None:
    assert aspects(convert(event("RUNNING")), "dataJobInputOutput") == []
    assert aspects(convert(event("RUNNING")), "dataProcessInstanceInput") == []
    java = convert(event("RUNNING"), **JAVA)
    assert aspect(java, "dataJobInputOutput")["inputDatasetEdges"] == []
    assert aspect(java, "dataProcessInstanceInput") == {"inputs": []}


def patch(made: list[dict[str, Any]], name: str = "dataJobInputOutput") -> list[dict[str, Any]]:
    (found,) = [each for each in made if each["aspectName"] == name]
    assert found["changeType"] == "PATCH"
    return list(found["aspect"]["json"])


def test_patches_add_to_what_is_there() -> None:
    facet = columns(x=[("hive", "in", "a", "DIRECT:IDENTITY")])
    told = event(
        inputs=[dataset("s3://b", "in")],
        outputs=[dataset("hive", "out", columnLineage=facet)],
        job_facets={"sql": {"query": "SELECT a/b"}},
    )
    ops = patch(convert(told, patch=True))
    s3 = "urn:li:dataset:(urn:li:dataPlatform:s3,b~1in,PROD)"
    assert [each["op"] for each in ops] == ["add"] * 3
    assert ops[0]["path"] == f"/inputDatasetEdges/{s3}"
    assert ops[0]["value"]["destinationUrn"] == s3.replace("~1", "/")
    assert ops[0]["value"]["lastModified"]["actor"] == "urn:li:corpuser:UNKNOWN"
    expected = f"/fineGrainedLineages/DIRECT:IDENTITY/{field('out', 'x')}/NONE/{field('in', 'a')}"
    assert ops[2] == {"op": "add", "path": expected, "value": {"confidenceScore": 0.5}}
    java = patch(convert(told, patch=True, **JAVA))
    assert (
        "-- DIRECT:IDENTITY\nSELECT a/b" in java[2]["path"]
    )  # the slash breaks the pointer: a fault of theirs


def test_a_patch_without_edges_is_left_out_and_tags_are_patched() -> None:
    for given in ({}, JAVA):
        assert aspects(convert(event("RUNNING"), patch=True, **given), "dataJobInputOutput") == []
        tags = aspect(convert(event(), patch=True, tags="a/b", **given), "globalTags")
        assert tags == {
            "arrayPrimaryKeys": {"tags": ["attribution␟source", "tag"]},
            "patch": [{"op": "add", "path": "/tags//urn:li:tag:a~1b", "value": {"tag": "urn:li:tag:a/b"}}],
        }


def test_what_older_agents_left_is_cleaned_up() -> None:
    facet = columns(x=[("hive", "in", "a", "DIRECT:IDENTITY")])
    told = event(outputs=[dataset("hive", "out", columnLineage=facet), dataset("hive", "plain")])
    assert aspects(convert(told, legacy_cleanup=True), "upstreamLineage") == [{"upstreams": []}]
    ops = patch(convert(told, legacy_cleanup=True, patch=True), "upstreamLineage")
    assert [each["op"] for each in ops] == ["remove", "remove"]
    assert ops[0]["path"] == "/upstreams/urn:li:dataset:(urn:li:dataPlatform:hive,in,PROD)"


def test_columns_of_a_dataset_event_stand_on_the_dataset() -> None:
    body = raw()
    told = {key: body[key] for key in ("eventTime", "producer")}
    facet = columns(x=[("hive", "in", "a")])
    made = convert({**told, "dataset": dataset("hive", "out", columnLineage=facet)})
    lineage = aspect(made, "upstreamLineage")
    assert [each["dataset"] for each in lineage["upstreams"]] == [
        "urn:li:dataset:(urn:li:dataPlatform:hive,in,PROD)"
    ]
    assert lineage["fineGrainedLineages"][0]["downstreams"] == [field("out", "x")]
