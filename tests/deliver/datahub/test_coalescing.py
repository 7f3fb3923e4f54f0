"""What events of one run group tell together: the rules one by one, and that order, repeats and splits do not matter."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from making import (
    JAVA,
    PARENT,
    RUN,
    SPARK,
    aspect,
    aspects,
    columns,
    dataset,
    options,
    raw,
    schema,
    short,
    symlinks,
    urns,
)

from headwater.deliver.datahub import Converter
from headwater.deliver.datahub.folding import in_turn
from headwater.deliver.datahub.told import Told
from headwater.event import parse

APP = "0197f3c6-0000-7000-8000-0000000000aa"
OTHER = "0197f3c6-0000-7000-8000-0000000000bb"


def sql(kind: str, run: str, at: int, **told: Any) -> dict[str, Any]:
    """An event of a query inside of the application."""
    parent = {"run": {"runId": APP}, "job": {"namespace": "ns", "name": "app"}, "_producer": SPARK}
    job_facets = {"jobType": {"jobType": "SQL_JOB", "integration": "SPARK", "processingType": "BATCH"}}
    return raw(
        kind,
        run=run,
        at=at,
        job=told.pop("job", "app.query"),
        run_facets={"parent": parent, **told.pop("run_facets", {})},
        job_facets={**job_facets, **told.pop("job_facets", {})},
        **told,
    )


def app(kind: str, at: int, **told: Any) -> dict[str, Any]:
    facets = {"jobType": {"jobType": "APPLICATION", "integration": "SPARK"}, **told.pop("job_facets", {})}
    return raw(kind, run=APP, at=at, job="app", job_facets=facets, **told)


def coalesce(events: list[dict[str, Any]], by: str = "application", **given: Any) -> list[dict[str, Any]]:
    payloads = [json.dumps(each).encode() for each in events]
    return list(Converter(options(**given), by).convert_all(payloads, pytest.fail))


STORY = [
    app("START", 0, run_facets={"spark_applicationDetails": {"applicationId": "app-1", "userName": "ada"}}),
    sql("START", RUN, 1, inputs=[dataset("hive", "a")]),
    sql("COMPLETE", RUN, 2, inputs=[dataset("hive", "a")], outputs=[dataset("hive", "b")]),
    sql("RUNNING", OTHER, 3),
    sql("COMPLETE", OTHER, 4, outputs=[dataset("hive", "c")]),
    app("COMPLETE", 5),
]


@pytest.mark.parametrize("java", [{}, JAVA], ids=["default", "java"])
def test_an_application_is_one_job_named_as_its_flow(java: dict[str, Any]) -> None:
    made = coalesce(STORY, **java)
    assert urns(made, "dataJob") == {"urn:li:dataJob:(urn:li:dataFlow:(spark,app,ns),app)"}
    assert aspect(made, "dataJobInfo")["name"] == "app"
    assert urns(made, "dataProcessInstance") == {f"urn:li:dataProcessInstance:{APP}"}
    edges = aspect(made, "dataJobInputOutput")
    assert [short(each["destinationUrn"]) for each in edges["inputDatasetEdges"]] == ["hive,a"]
    assert [short(each["destinationUrn"]) for each in edges["outputDatasetEdges"]] == ["hive,b", "hive,c"]
    assert {each["lastModified"]["time"] % 60000 for each in edges["outputDatasetEdges"]} == {5000}
    about = aspect(made, "dataProcessInstanceProperties")
    assert (about["name"], about["created"]["time"] % 60000) == (APP, 5000)
    assert aspect(made, "dataJobInfo")["created"]["time"] % 60000 == 0


def test_the_application_is_told_in_the_flow() -> None:
    told = aspect(coalesce(STORY), "dataFlowInfo")["customProperties"]
    assert told == {
        "startedAt": "2026-01-01T00:00:00.000Z",
        "finishedAt": "2026-01-01T00:00:05.000Z",
        "appId": "app-1",
        "sparkUser": "ada",
    }


RESULTS = [
    # types of ends by second, by default (type, at), as Java has it
    ({1: "COMPLETE", 3: "COMPLETE"}, ("SUCCESS", 3), ("SUCCESS", 1)),
    ({1: "FAIL", 3: "COMPLETE"}, ("FAILURE", 3), ("FAILURE", 1)),
    ({1: "COMPLETE", 2: "FAIL", 3: "ABORT", 4: "COMPLETE"}, ("FAILURE", 4), ("FAILURE", 3)),
]


@pytest.mark.parametrize(("ends", "default", "java"), RESULTS)
def test_failure_overrides_success(
    ends: dict[int, str], default: tuple[str, int], java: tuple[str, int]
) -> None:
    events = [sql(kind, f"0197f3c6-0000-7000-8000-0000000000{at:02}", at) for at, kind in ends.items()]

    def result(**given: Any) -> tuple[str, int]:
        (end,) = [
            each
            for each in aspects(coalesce(events, **given), "dataProcessInstanceRunEvent")
            if "result" in each
        ]
        return end["result"]["type"], end["timestampMillis"] // 1000 % 60

    assert result() == default
    assert result(**JAVA) == java


def test_a_run_has_its_earliest_start_and_how_long_it_took() -> None:
    told = aspects(coalesce(STORY), "dataProcessInstanceRunEvent")
    assert [(each["status"], each["timestampMillis"] % 60000) for each in told] == [
        ("STARTED", 0),
        ("COMPLETE", 5000),
    ]
    assert told[1]["durationMillis"] == 5000
    assert [each["status"] for each in aspects(coalesce(STORY, **JAVA), "dataProcessInstanceRunEvent")] == [
        "COMPLETE"
    ]


def test_events_without_datasets_erase_nothing() -> None:
    story = [
        sql("START", RUN, 1, inputs=[dataset("hive", "a")]),
        sql("RUNNING", RUN, 2),
        sql("COMPLETE", RUN, 3),
    ]
    for java in ({}, JAVA):
        assert len(aspect(coalesce(story, **java), "dataJobInputOutput")["inputDatasetEdges"]) == 1


@pytest.mark.parametrize("java", [{}, JAVA], ids=["default", "java"])
def test_properties_keep_their_first_value_and_schemas_their_last(java: dict[str, Any]) -> None:
    def facets(value: str) -> dict[str, Any]:
        return {"spark_properties": {"properties": {"k": value, f"only-{value}": "x"}}}

    story = [
        sql(
            "START",
            RUN,
            1,
            run_facets=facets("first"),
            outputs=[dataset("hive", "t", schema=schema(x="int"))],
        ),
        sql(
            "COMPLETE",
            RUN,
            2,
            run_facets=facets("last"),
            outputs=[dataset("hive", "t", schema=schema(y="int"))],
        ),
        sql("RUNNING", OTHER, 3, outputs=[dataset("hive", "t")]),
    ]
    made = coalesce(story, **java)
    custom = aspect(made, "dataJobInfo")["customProperties"]
    assert custom == {"k": "first", "only-first": "x", "only-last": "x"}
    assert [each["fieldPath"] for each in aspect(made, "schemaMetadata")["fields"]] == ["y"]


def test_columns_are_put_together_and_in_java_replaced_by_the_last() -> None:
    story = [
        sql("COMPLETE", RUN, 1, outputs=[dataset("hive", "t", columnLineage=columns(x=[("hive", "a", "p", "DIRECT:IDENTITY")]))]),
        sql("COMPLETE", OTHER, 2, outputs=[dataset("hive", "t", columnLineage=columns(x=[("hive", "b", "q", "INDIRECT:SORT")], y=[("hive", "b", "r")]))]),
    ]  # fmt: skip
    fine = aspect(coalesce(story), "dataJobInputOutput")["fineGrainedLineages"]
    assert [(len(each["upstreams"]), each["transformOperation"]) for each in fine] == [
        (2, "DIRECT:IDENTITY,INDIRECT:SORT"),
        (1, ""),
    ]
    java = aspect(coalesce(story, **JAVA), "dataJobInputOutput")["fineGrainedLineages"]
    assert [len(each["upstreams"]) for each in java] == [1, 1]
    wiped = [*story, sql("COMPLETE", OTHER, 3, outputs=[dataset("hive", "t", columnLineage={"fields": {}})])]
    assert aspect(coalesce(wiped, **JAVA), "dataJobInputOutput")["fineGrainedLineages"] == []
    assert len(aspect(coalesce(wiped), "dataJobInputOutput")["fineGrainedLineages"]) == 2


def test_tags_and_a_parent_job_come_from_the_configuration() -> None:
    job = "urn:li:dataJob:(urn:li:dataFlow:(airflow,d,PROD),t)"
    made = coalesce(STORY, tags="one", parent_job=job)
    assert aspect(made, "globalTags") == {"tags": [{"tag": "urn:li:tag:one"}]}
    assert aspect(made, "dataJobInputOutput")["inputDatajobs"] == [job]


PARENTS = [
    # what is put together, the parent of a query, the parent of the application
    ("none", APP, PARENT),
    ("run", APP, PARENT),
    ("application", None, PARENT),
    ("group", None, PARENT),
]


@pytest.mark.parametrize(("by", "of_query", "of_application"), PARENTS)
def test_a_query_has_its_application_for_a_parent_unless_it_is_a_part_of_it(
    by: str, of_query: str | None, of_application: str
) -> None:
    above = {"run": {"runId": PARENT}, "job": {"namespace": "airflow", "name": "dag.task"}}

    def parent(told: dict[str, Any]) -> str | None:
        relations = aspect(coalesce([told], by), "dataProcessInstanceRelationships")
        return (relations.get("parentInstance") or "").removeprefix("urn:li:dataProcessInstance:") or None

    assert parent(sql("START", RUN, 1)) == of_query
    assert parent(app("START", 0, run_facets={"parent": above})) == of_application


GROUPS = [
    # event, the run that its group is named for
    (app("START", 0), APP),
    (sql("START", RUN, 0), APP),
    (app("START", 0, run_facets={"parent": {"run": {"runId": PARENT}, "job": {"namespace": "ns", "name": "app"}}}), APP),
    (raw("START", job="dag.task", run_facets={"parent": {"run": {"runId": PARENT}, "job": {"namespace": "ns", "name": "dag"}}}), PARENT),
    (raw("START", job="app", run_facets={"parent": {"run": {"runId": PARENT}, "job": {"namespace": "airflow", "name": "dag.task"}}}), RUN),
    (raw("START", job="app.query", run_facets={"parent": {
        "run": {"runId": APP}, "job": {"namespace": "ns", "name": "app"},
        "root": {"run": {"runId": PARENT}, "job": {"namespace": "airflow", "name": "dag"}}}}), APP),
    (raw("START"), RUN),
]  # fmt: skip


@pytest.mark.parametrize(("told", "group"), GROUPS)
def test_groups_end_at_the_application(told: dict[str, Any], group: str) -> None:
    assert Converter(by="group").read(parse(json.dumps(told))).group == group


def test_tasks_of_a_dag_stay_jobs_of_their_own_unless_the_whole_group_is_asked_for() -> None:
    parent = {"run": {"runId": PARENT}, "job": {"namespace": "ns", "name": "dag"}}
    airflow = {"producer": "https://github.com/apache/airflow/x", "run_facets": {"parent": parent}}
    story = [
        raw("START", job="dag.one", run=RUN, **airflow),
        raw("START", job="dag.two", run=OTHER, **airflow),
    ]
    assert len(urns(coalesce(story), "dataJob")) == 2
    assert urns(coalesce(story, "group"), "dataJob") == {
        "urn:li:dataJob:(urn:li:dataFlow:(airflow,dag,ns),dag)"
    }


# --- any order, repeats and splits

NAMES = st.sampled_from(["a", "b", "c"])
KINDS = st.sampled_from(["START", "RUNNING", "COMPLETE", "FAIL", "ABORT", "OTHER"])


@st.composite
def datasets(draw: st.DrawFn) -> list[dict[str, Any]]:
    out = []
    for name in draw(st.lists(NAMES, max_size=2, unique=True)):
        facets: dict[str, Any] = {}
        if draw(st.booleans()):
            facets["schema"] = schema(**{draw(NAMES): "int"})
        if draw(st.booleans()):
            facets["symlinks"] = symlinks(("hive://m", f"db.{draw(NAMES)}"))
        if draw(st.booleans()):
            made = {draw(NAMES): [("s3://l", draw(NAMES), draw(NAMES), "DIRECT:IDENTITY")] for _ in range(2)}
            facets["columnLineage"] = columns(**made)
        out.append(dataset("s3://l", name, **facets))
    return out


@st.composite
def stories(draw: st.DrawFn) -> list[bytes]:
    out = []
    for _ in range(draw(st.integers(1, 7))):
        whole = draw(st.booleans())
        run = APP if whole else draw(st.sampled_from([RUN, OTHER]))
        make_one = app if whole else sql
        told = {
            "inputs": draw(datasets()),
            "outputs": draw(datasets()),
            "run_facets": draw(
                st.sampled_from([{}, {"spark_properties": {"properties": {"k": draw(NAMES)}}}, {"errorMessage": {"message": draw(NAMES)}}])
            ),
            "job_facets": draw(
                st.sampled_from([{}, {"sql": {"query": draw(NAMES)}}, {"documentation": {"description": draw(NAMES)}}, {"ownership": {"owners": [{"name": draw(NAMES), "type": draw(NAMES)}]}}])
            ),
        }  # fmt: skip
        kind, at = draw(KINDS), draw(st.integers(0, 4))
        body = make_one(kind, at, **told) if whole else sql(kind, run, at, **told)
        out.append(json.dumps(body).encode())
    return out


def of(converter: Converter, events: list[bytes]) -> list[dict[str, Any]]:
    group = converter.group()
    for each in events:
        group.add(converter.read(parse(each)))
    return finish(converter, group.result())


def finish(converter: Converter, told: Told | None) -> list[dict[str, Any]]:
    assert told is not None
    return converter.propose(told)


@pytest.mark.parametrize("java", [{}, JAVA], ids=["default", "java"])
@given(events=stories(), seed=st.integers(0, 2**32), cuts=st.lists(st.integers(0, 7), max_size=3))
def test_order_repeats_and_splits_do_not_matter(
    java: dict[str, Any], events: list[bytes], seed: int, cuts: list[int]
) -> None:
    converter = Converter(options(**java), "application")
    expected = of(converter, events)
    mixed = random.Random(seed)
    again = [*events, *mixed.choices(events, k=3)]
    mixed.shuffle(again)
    assert of(converter, again) == expected
    parts, start = [], 0
    for cut in [*sorted(min(each, len(again)) for each in cuts), len(again)]:
        part = converter.group()
        for each in again[start:cut]:
            part.add(converter.read(parse(each)))
        parts.append(part)
        start = cut
    mixed.shuffle(parts)
    left = parts[0]
    for part in parts[1:]:
        left.join(part)
    assert finish(converter, left.result()) == expected
    assert finish(converter, left.result()) == expected  # asking changes nothing


@given(events=stories())
def test_what_a_group_holds_can_be_written_down_and_read_again(events: list[bytes]) -> None:
    import msgspec

    converter = Converter(by="application")
    group, half = converter.group(), len(events) // 2
    for each in events[:half]:
        group.add(converter.read(parse(each)))
    if group.told is not None:
        kept = msgspec.msgpack.decode(msgspec.msgpack.encode(group.told), type=Told)
        group = converter.group(kept)
    for each in events[half:]:
        group.add(converter.read(parse(each)))
    assert finish(converter, group.result()) == of(converter, events)


@given(events=stories(), seed=st.integers(0, 2**32))
def test_compat_is_what_java_does_with_sorted_events(events: list[bytes], seed: int) -> None:
    """The rules of the agent, written down once more, one event after another."""
    converter = Converter(options(**JAVA), "application")
    tolds = sorted((converter.read(parse(each)) for each in set(events)), key=lambda told: told.stamp)
    aliases: dict[str, str] = {}
    steps = [in_turn(told, aliases) for told in tolds]
    random.Random(seed).shuffle(events)
    made = of(converter, events)
    props: dict[str, str] = {}
    inputs: dict[str, Any] = {}
    outputs: dict[str, Any] = {}
    end: tuple[int, str] | None = None
    for step in steps:
        for name, (_, value) in step.job_properties.items():
            props.setdefault(name, value)
        for known, come in ((inputs, step.inputs), (outputs, step.outputs)):
            for urn, seen in come.items():
                schema_, columns_ = known.get(urn, (None, None))
                fields = seen.schema[1].fields if seen.schema else None
                known[urn] = (fields or schema_, columns_ if seen.columns is None else seen.columns)
        ended = step.failed or step.succeeded
        if ended is not None and (end is None or step.failed):
            end = ended[1]
    assert aspect(made, "dataJobInfo")["customProperties"] == props
    edges = aspect(made, "dataJobInputOutput")
    assert [each["destinationUrn"] for each in edges["inputDatasetEdges"]] == sorted(inputs)
    assert [each["destinationUrn"] for each in edges["outputDatasetEdges"]] == sorted(outputs)
    expected = [
        f"urn:li:schemaField:({urn},{name})"
        for side in (inputs, outputs)
        for urn in sorted(side)
        for name in side[urn][1] or {}
    ]
    assert [each["downstreams"][0] for each in edges["fineGrainedLineages"]] == expected
    told = aspects(made, "dataProcessInstanceRunEvent")
    assert [(each["timestampMillis"], each["result"]["nativeResultType"]) for each in told] == (
        [end] if end else []
    )
    first, latest = steps[0], max(steps, key=lambda step: step.time)  # of several, the first
    assert urns(made, "dataProcessInstance") == {f"urn:li:dataProcessInstance:{first.run[1]}"}  # type: ignore[index]
    about = aspect(made, "dataProcessInstanceProperties")
    assert (about["name"], about["created"]["time"]) == (latest.run[1], latest.time)  # type: ignore[index]


def test_memory_follows_what_is_told_not_how_often() -> None:
    import msgspec

    converter = Converter(by="application")
    group = converter.group()
    sizes = []
    for at in range(600):
        told = sql(
            "COMPLETE" if at % 2 else "START",
            RUN,
            at,
            outputs=[dataset("hive", f"t{at % 5}", schema=schema(x="int"))],
        )
        group.add(converter.read(parse(json.dumps(told))))
        if at % 200 == 199:
            sizes.append(len(msgspec.msgpack.encode(group.told)))
    assert sizes[0] == sizes[1] == sizes[2]
