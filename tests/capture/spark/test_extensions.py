"""Extensions: what they are given, what they may add, and that a broken one harms nobody."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from replaying import APP, RECORDED, VERSIONS, records, replay, state

from headwater.capture.spark import interpret
from headwater.spark import (
    ActiveJob,
    Context,
    Dataset,
    DatasetFactory,
    Extension,
    JobEnd,
    JobStart,
    Node,
    Rdd,
    SqlEnd,
    SqlStart,
    Stage,
    StageInfo,
)

Given = list[Any]


class LogicalRelation(Node):
    """Met by Spark's class of that name."""


class AcmeUpload(Node, spark="com.acme.AcmeUpload"):
    """Met by a class with its package."""


class HadoopRDD(Rdd):
    """Met by Spark's class of that name and those below it."""


class AnyLeaf:
    """One visitor for both sides: the factory knows which."""

    def __init__(self, datasets: DatasetFactory[Any]) -> None:
        self.datasets = datasets

    def __call__(self, node: LogicalRelation) -> list[Dataset]:
        assert isinstance(node, LogicalRelation)
        facets = {"acme_seen": {"columns": len(node.columns)}}
        return [self.datasets.dataset("acme://warehouse", "shelf", facets=facets)]


def extended(*extensions: Extension, version: str = VERSIONS[-1]) -> Any:
    s = state(version)
    for one in extensions:
        s.extensions.add(type(one).__qualname__, lambda one=one: one)
    return s


def ends(events: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [e for e in events if e["eventType"] != "START" and e["run"]["runId"] != APP]


def a_write() -> tuple[str, str]:
    """A recorded program that reads one table and writes one."""
    for version, name in RECORDED:
        told = ends(replay(records(version, name), state(version)))
        if len(told) == 1 and len(told[0]["inputs"]) == len(told[0]["outputs"]) == 1:
            plan = [n for r in records(version, name) for n in r.get("plan", [])]
            if sum(n["n"] == "LogicalRelation" for n in plan) == 1:
                return version, name
    pytest.fail("no such program is recorded")


def test_a_leaf_named_by_a_visitor_carries_the_columns() -> None:
    version, name = a_write()

    class Acme(Extension):
        def input_visitors(self, context: Context) -> Any:
            assert context.run_id == ""  # of the default context
            return [AnyLeaf(context.inputs)]

    [plain] = ends(replay(records(version, name), state(version)))
    [told] = ends(replay(records(version, name), extended(Acme(), version=version)))
    assert [(d["namespace"], d["name"]) for d in told["inputs"]] == [("acme://warehouse", "shelf")]
    assert told["inputs"][0]["facets"]["acme_seen"]["columns"] > 0
    assert told["inputs"][0]["facets"]["acme_seen"]["_producer"]
    was, now = (
        {
            (c, f["field"])
            for c, v in e["outputs"][0]["facets"]["columnLineage"]["fields"].items()
            for f in v["inputFields"]
            if f["namespace"] == namespace
        }
        for e, namespace in ((plain, plain["inputs"][0]["namespace"]), (told, "acme://warehouse"))
    )
    assert was == now


def test_an_output_named_by_a_visitor_has_the_columns_of_its_query() -> None:
    plan = [
        {"n": "LocalTable", "o": [[1, "a", "int"], [2, "b", "string"]]},
        {"n": "Project", "child": {"#": 0}, "projectList": [["@", 1, "a"], ["=", 3, "c", ["Upper", ["@", 2, "b"]]]]},
        {"n": "AcmeUpload", "c": "com.acme.AcmeUpload", "query": {"#": 1}, "q": [[1, "a", "int"], [3, "c", "string"]],
         "bucket": "crates", "o": []},
    ]  # fmt: skip

    class Acme(Extension):
        def input_visitors(self, context: Context) -> Any:
            def table(node: Node) -> Any:
                return context.inputs.dataset("acme://in", "t") if node.name == "LocalTable" else None

            return [table]

        def output_visitors(self, context: Context) -> Any:
            def upload(node: AcmeUpload) -> Dataset:
                assert [c.name for c in node.children] == ["Project"]
                return context.outputs.dataset("acme://out", node["bucket"])

            return [upload]

    told = ends(
        replay(
            [{"kind": "start", "id": 1, "time": 1, "plan": plan}, {"kind": "end", "id": 1, "time": 2}],
            extended(Acme()),
        )
    )
    [out] = told[0]["outputs"]
    assert (out["namespace"], out["name"]) == ("acme://out", "crates")
    fields = out["facets"]["columnLineage"]["fields"]
    assert {c: [(f["name"], f["field"]) for f in v["inputFields"]] for c, v in fields.items()} == {
        "a": [("t", "a")],
        "c": [("t", "b")],
    }


def test_each_kind_of_function_adds_in_its_place_and_later_names_overwrite() -> None:
    version, name = a_write()
    seen: Given = []

    class First(Extension):
        def input_visitors(self, context: Context) -> Any:
            def leaf(node: LogicalRelation) -> Any:
                return context.inputs.dataset(
                    "acme://warehouse", "shelf", facets={"acme_who": {"by": "visitor"}}
                )

            return [leaf]

        def input_builders(self, context: Context) -> Any:
            def more(start: SqlStart) -> Any:
                seen.append(start)
                return [context.inputs.path("s3a://lake/more/")]

            return [more]

        def output_builders(self, context: Context) -> Any:
            def copy(end: SqlEnd | JobEnd) -> Any:
                seen.append(end)
                return context.outputs.topic("b:9092", "copies")

            return [copy]

        def dataset_facets(self, context: Context) -> Any:
            def who(end: SqlEnd) -> Any:
                return {"acme_who": {"by": "builder"}}

            return [who]

        def input_facets(self, context: Context) -> Any:
            return [lambda given: {"acme_read": {"of": type(given).__name__}}]

        def output_facets(self, context: Context) -> Any:
            def wrote(end: SqlEnd) -> Any:
                return {"acme_wrote": {"error": end.error}}

            return [wrote]

        def run_facets(self, context: Context) -> Any:
            def run(start: SqlStart) -> Any:
                return {"acme_run": {"turn": 1}, "acme_first": {}}

            return [run]

        def job_facets(self, context: Context) -> Any:
            def job(start: SqlStart) -> Any:
                return {"acme_job": {"nodes": [n.name for n in start.plan.walk()] if start.plan else []}}

            return [job]

    class Second(Extension):
        def run_facets(self, context: Context) -> Any:
            class Later:
                def defined_at(self, given: object) -> bool:
                    return isinstance(given, SqlStart)

                def __call__(self, given: object) -> Any:
                    return {"acme_run": {"turn": 2}}

            return [Later()]

    [told] = ends(replay(records(version, name), extended(First(), Second(), version=version)))
    assert {(d["namespace"], d["name"]) for d in told["inputs"]} == {
        ("acme://warehouse", "shelf"),
        ("s3://lake", "more"),
    }
    assert ("kafka://b:9092", "copies") in {(d["namespace"], d["name"]) for d in told["outputs"]}
    for one in [*told["inputs"], *told["outputs"]]:
        assert one["facets"]["acme_who"]["by"] == "builder"  # builders override visitors
    assert {one["inputFacets"]["acme_read"]["of"] for one in told["inputs"]} == {"SqlEnd"}
    assert all("acme_wrote" in one["outputFacets"] for one in told["outputs"])
    assert told["run"]["facets"]["acme_run"]["turn"] == 2
    assert "acme_first" in told["run"]["facets"]
    assert told["job"]["facets"]["acme_job"]["nodes"]
    assert {type(each) for each in seen} == {SqlStart, SqlEnd}


def test_one_that_raises_is_named_in_the_run_and_the_rest_go_on() -> None:
    version, name = a_write()

    class Broken(Extension):
        def input_visitors(self, context: Context) -> Any:
            def visit(node: Node) -> Any:
                raise ValueError("jdbc:postgresql://me:hunter2@db/x is odd")

            return [visit]

        def run_facets(self, context: Context) -> Any:
            return [lambda given: {"acme_set": {"of": {object()}}}, lambda given: "no mapping"]

        def output_builders(self, context: Context) -> Any:
            return [lambda given: ["no dataset"]]

    class Unstartable(Extension):
        def job_facets(self, context: Context) -> Any:
            raise RuntimeError("no licence")

    class Good(Extension):
        def run_facets(self, context: Context) -> Any:
            return [lambda given: {"acme_good": {}}]

    [plain] = ends(replay(records(version, name), state(version)))
    s = extended(Broken(), Unstartable(), Good(), version=version)
    events = replay(records(version, name), s)
    [told] = ends(events)
    faults = told["run"]["facets"].pop("headwater_extensions")["faults"]
    assert {f["extension"].rpartition(".")[2] for f in faults} == {"Broken", "Unstartable"}
    assert any("ValueError" in f["error"] for f in faults)
    assert any("RuntimeError: no licence" in f["error"] for f in faults)
    assert told["run"]["facets"].pop("acme_good")
    assert told == plain
    assert "hunter2" not in json.dumps(events)


def test_jobs_stages_and_rdds_reach_builders_and_the_run_that_owns_them() -> None:
    seen: Given = []

    class Acme(Extension):
        def input_builders(self, context: Context) -> Any:
            def files(rdd: HadoopRDD) -> Any:
                seen.append(rdd)
                return [context.inputs.path(each) for each in rdd.paths]

            return [files]

        def run_facets(self, context: Context) -> Any:
            def metrics(info: StageInfo) -> Any:
                return {"acme_stage": dict(info.metrics)}

            def keep(given: JobStart | JobEnd | ActiveJob | Stage) -> None:
                seen.append(given)

            return [metrics, keep]

    rdds = [
        {"id": 2, "name": None, "classes": ["org.apache.spark.rdd.MapPartitionsRDD"], "source": None, "fields": {}},
        {"id": 1, "name": "in", "classes": ["com.acme.MyRDD", "org.apache.spark.rdd.HadoopRDD"],
         "source": {"class": "HadoopRDD", "paths": ["file:/in"]}, "fields": {"minPartitions": 2}},
    ]  # fmt: skip
    stage = {"id": 5, "kind": "ResultStage", "name": "save", "tasks": 2, "rdds": rdds}
    info = {
        "id": 5,
        "attempt": 0,
        "name": "save",
        "tasks": 2,
        "metrics": {"input.recordsRead": 9},
        "accumulators": {},
    }
    told = ends(
        replay(
            [
                {"kind": "x_job_start", "id": 3, "time": 1, "stages": [info], "active": {"id": 3, "stage": stage}},
                {"kind": "job_start", "id": 3, "time": 1, "names": []},
                {"kind": "x_stage_end", "id": 5, "time": 2, "job": 3, "info": info, "stage": stage},
                {"kind": "x_job_end", "id": 3, "time": 3, "stage": stage},
                {"kind": "job_end", "id": 3, "time": 3},
            ],
            extended(Acme()),
        )
    )  # fmt: skip
    [end] = told
    assert [(d["namespace"], d["name"]) for d in end["inputs"]] == [("file", "/in")]
    assert end["run"]["facets"]["acme_stage"]["input.recordsRead"] == 9
    assert [type(each) for each in seen] == [JobStart, ActiveJob, Stage, HadoopRDD, JobEnd, Stage]
    assert seen[3].fields == {"minPartitions": 2}


def test_a_full_queue_says_so_in_the_run() -> None:
    told = replay(
        [
            {"kind": "start", "id": 1, "time": 1, "full": 1},
            {"kind": "end", "id": 1, "time": 2},
            {"kind": "lost", "count": 3},
        ],
        state(),
    )
    [run] = ends(told)
    assert "queue was full" in run["run"]["facets"]["headwater_degraded"]["reasons"][0]
    last = told[-1]
    assert last["run"]["runId"] == APP
    assert "3 records" in last["run"]["facets"]["headwater_degraded"]["reasons"][0]


@pytest.mark.parametrize(("version", "name"), RECORDED[::7])
def test_an_extension_that_says_nothing_changes_nothing(version: str, name: str) -> None:
    class Silent(Extension):
        def input_visitors(self, context: Context) -> Any:
            return [lambda node: None]

        def run_facets(self, context: Context) -> Any:
            return [lambda given: {}]

    plain, told = state(version), extended(Silent(), version=version)
    for record in records(version, name):
        assert interpret(json.loads(json.dumps(record)), told) == interpret(record, plain)


def test_the_worked_example_of_the_docs_runs() -> None:
    docs = Path(__file__).parents[3] / "docs" / "spark-extensions.md"
    [example] = [
        part.split("```", 1)[0] for part in docs.read_text().split("```py\n")[1:] if "class Acme" in part
    ]
    space: dict[str, Any] = {"__name__": "acme_lineage"}
    exec(compile(example, str(docs), "exec"), space)
    version, name = a_write()
    [told] = ends(replay(records(version, name), extended(space["Acme"](), version=version)))
    assert told["job"]["facets"]["acme_tables"]["count"] == 1
    assert told["outputs"][0]["facets"]["acme_zone"]["zone"] == "lake"
