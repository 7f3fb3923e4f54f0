"""Each fault of the Java converter, what is done about it, and that it can be switched by name, both ways."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import pytest
from making import (
    JAVA,
    PARENT,
    RUN,
    SPARK,
    aspect,
    aspects,
    columns,
    convert,
    dataset,
    event,
    options,
    schema,
    short,
    symlinks,
    urns,
)

from headwater.deliver.datahub import Converter, Fixes
from headwater.errors import ConfigError, EventError, UnknownName
from headwater.event import Event

Made = list[dict[str, Any]]
FAILS = "fails"


def inputs(made: Made) -> list[str | None]:
    edges = aspect(made, "dataJobInputOutput", {"inputDatasetEdges": []})["inputDatasetEdges"]
    return [short(each["destinationUrn"]) for each in edges]


def orchestrator(made: Made) -> str:
    return str(aspect(made, "dataJobInfo")["type"]["string"])


class Row(NamedTuple):
    fix: str
    told: list[Event]
    probe: Callable[[Made], Any]
    better: Any
    java: Any
    given: dict[str, Any] = {}  # noqa: RUF012 - nobody changes it
    by: str = "none"


GLUE = "arn:aws:glue:r:1"
LINEAGE = [columns(x=[("hive", "in", "a")]), columns(y=[("hive", "in", "b")])]
SPEC = {"platforms": {"s3": {"path_spec_list": ["s3://b/{table}"], "env": "DEV"}}}
ALIAS = {"platforms": {"s3": {"aliases": {"a": {"path_spec_list": ["s3://b/{table}"]}}}}}

ROWS = [
    Row("encode_urns", [event(inputs=[dataset("hive", "f(a,b)")])], inputs, ["hive,f%28a%2Cb%29"], ["hive,f(a,b)"]),
    Row("encode_urns", [event(job="app.f(")], lambda made: len(urns(made, "dataJob")), 1, FAILS),
    Row(
        "group_aliases",
        [event("START", at=1, inputs=[dataset("s3://b", "t")]),
         event(at=2, inputs=[dataset("s3://b", "t", symlinks=symlinks(("hive://m", "db.t")))])],
        inputs, ["hive,db.t"], ["hive,db.t", "s3,b/t"], by="run",
    ),
    Row("symlink_platforms", [event(inputs=[dataset(GLUE, "table/db/t")])], inputs, ["glue,db.t"], [f"{GLUE},table/db/t"]),
    Row("keep_illegal_uris", [event(inputs=[dataset("s3://b", "a b")])], inputs, ["s3,b/a b"], []),
    Row("path_spec_instances", [event(inputs=[dataset("s3://b", "t/p")])], inputs, ["s3,b/t,DEV"], ["s3,b/t"], SPEC),
    Row("lower_case_envs", [event(inputs=[dataset("mysql://h", "t")])], inputs, ["mysql,t,DEV"], ["mysql,t"], {"platforms": {"mysql": {"env": "dev"}}}),
    Row("path_aliases", [event(inputs=[dataset("s3://b", "t/p")])], inputs, ["s3,b/t"], ["s3,b/t/p"], ALIAS),
    Row(
        "parent_instances", [event(run_facets={"parent": {"run": {"runId": PARENT}}})],
        lambda made: aspect(made, "dataProcessInstanceRelationships").get("parentInstance"),
        f"urn:li:dataProcessInstance:{PARENT}", None,
    ),
    Row(
        "skip_nulls", [event(run_facets={"spark_properties": {"properties": {"a": None, "b": 1}}})],
        lambda made: aspect(made, "dataJobInfo")["customProperties"], {"b": "1"}, FAILS,
    ),
    Row("guess_orchestrator", [event(producer="https://example.org/loader")], orchestrator, "loader", FAILS),
    Row(
        "domain_entity", [event()], lambda made: [each["entityType"] for each in made if each["aspectName"] == "domains"],
        ["dataFlow"], ["dataflow"], {"domains": ("urn:li:domain:d",)},
    ),
    Row(
        "ownership", [event(job_facets={"ownership": {"owners": [{"name": "ada"}]}})],
        lambda made: len(aspects(made, "ownership")), 1, 0,
    ),
    Row(
        "job_tags", [event(job_facets={"tags": {"tags": [{"key": "k", "value": "v"}]}})],
        lambda made: len(aspects(made, "globalTags", "dataJob")), 1, 0,
    ),
    Row("skip_other_runs", [event("OTHER")], lambda made: len(aspects(made, "dataProcessInstanceRunEvent")), 0, 1),
    Row(
        "full_types", [event(inputs=[dataset("hive", "t", schema=schema(x="bigint"))])],
        lambda made: list(aspect(made, "schemaMetadata")["fields"][0]["type"]["type"]),
        ["com.linkedin.schema.NumberType"], ["com.linkedin.schema.NullType"],
    ),
    Row(
        "schema_platform",
        [event(inputs=[dataset("s3://b", "t", schema=schema(x="int"), symlinks=symlinks(("hive://m", "t")))])],
        lambda made: aspect(made, "schemaMetadata")["platform"], "urn:li:dataPlatform:hive", "urn:li:dataPlatform:s3",
    ),
    Row(
        "escape_patches",
        [event(outputs=[dataset("hive", "o", columnLineage=LINEAGE[0])], job_facets={"sql": {"query": "SELECT 1/2"}})],
        lambda made: [each["path"].split("/")[2] for each in aspect(made, "dataJobInputOutput")][1:],
        ["TRANSFORM"], ["SELECT 1"], {"patch": True},
    ),
    Row(
        "job_instance", [event()], lambda made: len(aspects(made, "dataPlatformInstance")), 2, 1,
        {"platform_instance": "i"}, "group",
    ),
    Row(
        "union_columns",
        [event("RUNNING", at=n, outputs=[dataset("hive", "o", columnLineage=each)]) for n, each in enumerate(LINEAGE)],
        lambda made: len(aspect(made, "dataJobInputOutput")["fineGrainedLineages"]), 2, 1, by="group",
    ),
    Row(
        "run_span", [event("START", at=1), event("COMPLETE", at=3), event("COMPLETE", at=5, run=PARENT, run_facets={
            "parent": {"run": {"runId": RUN}, "job": {"namespace": "ns", "name": "app"}, "_producer": SPARK}})],
        lambda made: [(each["status"], each["timestampMillis"] % 60000, each.get("durationMillis"))
                      for each in aspects(made, "dataProcessInstanceRunEvent")],
        [("STARTED", 1000, None), ("COMPLETE", 5000, 4000)], [("COMPLETE", 3000, None)], by="group",
    ),
    Row("keep_edges", [event("RUNNING")], lambda made: len(aspects(made, "dataJobInputOutput")), 0, 1),
    Row(
        "run_facets", [event(run_facets={"errorMessage": {"message": "m"}})],
        lambda made: aspect(made, "dataProcessInstanceProperties")["customProperties"], {"errorMessage": "m"}, {},
    ),
    Row(
        "source_location", [event(job_facets={"sourceCodeLocation": {"url": "https://x"}})],
        lambda made: len(aspects(made, "institutionalMemory")), 1, 0,
    ),
    Row(
        "operations", [event(outputs=[dataset("hive", "t", outputFacets={"outputStatistics": {"rowCount": 1}})])],
        lambda made: len(aspects(made, "operation")), 1, 0,
    ),
    Row(
        "profiles", [event(inputs=[dataset("hive", "t", inputFacets={"dataQualityMetrics": {"rowCount": 1}})])],
        lambda made: len(aspects(made, "datasetProfile")), 1, 0,
    ),
    Row("all_events", [event(None)], lambda made: len(urns(made, "dataJob")), 1, FAILS),
]  # fmt: skip


def result(row: Row, **given: Any) -> Any:
    faults: list[Any] = []
    converter = Converter(options(**row.given, **given), row.by)
    made = list(converter.convert_all([each.raw for each in row.told], faults.append))
    return FAILS if faults else row.probe(made)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.fix)
def test_each_fix_is_on_by_default_off_in_compat_and_switched_by_name(row: Row) -> None:
    assert result(row) == row.better
    assert result(row, **JAVA) == row.java
    assert result(row, **{row.fix: False}) == row.java
    assert result(row, **JAVA, **{row.fix: True}) == row.better


def test_every_fix_has_its_row() -> None:
    assert {row.fix for row in ROWS} == set(Fixes.__struct_fields__)


def test_an_unknown_option_or_fix_is_refused_with_those_there_are() -> None:
    with pytest.raises(UnknownName, match="did you mean 'encode_urns'"):
        options(encode_urn=True)
    with pytest.raises(ConfigError, match="unknown compat 'java'"):
        options(compat="java")
    with pytest.raises(ConfigError, match="unknown fix"):
        options(fixes={"nothing": True})


def test_compat_alone_fails_what_java_fails_and_says_why() -> None:
    with pytest.raises(EventError, match="UUID"):
        convert(event(run="nightly"), **JAVA)
