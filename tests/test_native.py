"""Differences, impact, the graph of runs, hubs: each against a naive oracle that looks at everything."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.errors import ConfigError, NotFound
from headwater.event import micros
from headwater.facts.changes import compare_schemas, widens
from headwater.facts.commands import Hide, Say, SetAlias, SetTag
from headwater.facts.flows import Flow, When
from headwater.graph import applications, paths, walk
from headwater.ingest import command, ingest
from headwater.query.diff import diff
from headwater.query.edits import Edit, commands_for, preview
from headwater.query.events import events
from headwater.query.impact import impact
from headwater.query.lineage import lineage
from headwater.query.runs import run_graph, runs
from headwater.query.schemas import schemas
from headwater.query.show import show
from headwater.store import Store, open_store
from histories import declared, event, filled, history
from histories import runs as some_runs
from streams import at, facet, run_id
from test_graph import Dictionary, flows, hops


def written(
    second: int, run: int, job: str, inputs: Any = (), outputs: Any = (), kind: str = "COMPLETE", **more: Any
) -> bytes:
    return msgspec.json.encode(
        {
            "eventType": kind,
            "eventTime": at(second),
            "run": {"runId": run_id(run), "facets": more.get("run_facets", {})},
            "job": {"namespace": "etl", "name": job, "facets": more.get("job_facets", {})},
            "inputs": [each if isinstance(each, dict) else {"namespace": "db", "name": each} for each in inputs],
            "outputs": [each if isinstance(each, dict) else {"namespace": "db", "name": each} for each in outputs],
        }
    )  # fmt: skip


def table(name: str, /, **columns: str) -> dict[str, Any]:
    told = [{"name": column, "type": kind} for column, kind in columns.items()]
    return {"namespace": "db", "name": name, "facets": {"schema": facet(fields=told)}}


# ---- differences: against two whole graphs


def whole(store: Store, when: When) -> tuple[set[str], set[tuple[str, str]]]:
    """Every node and edge of a store at a time, asked for job by job."""
    edges: set[tuple[str, str]] = set()
    for job in ("j0", "j1"):
        try:
            model = lineage(store, f"job:etl:{job}", depth=1, when=when)
        except NotFound:
            continue
        edges |= {(each["from"], each["to"]) for each in model["edges"]}
    return {each for edge in edges for each in edge}, edges


@given(some_runs, declared, st.integers(0, 22), st.integers(0, 22))
def test_a_difference_is_that_of_two_whole_graphs(told: Any, words: Any, one: int, two: int) -> None:
    first, second = sorted((one, two))
    store = filled(history(told, words))
    before, after = (whole(store, When(until=micros(at(each)))) for each in (first, second))
    found = diff(store, micros(at(first)), micros(at(second)))
    assert set(found["nodes"]["added"]) == after[0] - before[0]
    assert set(found["nodes"]["removed"]) == before[0] - after[0]
    pairs = {
        side: {(each["from"], each["to"]) for each in found["edges"][side]} for side in ("added", "removed")
    }
    assert pairs == {"added": after[1] - before[1], "removed": before[1] - after[1]}
    store.close()


def test_column_relations_and_schemas_that_differ_are_told() -> None:
    def made(second: int, run: int, source: str, **columns: str) -> bytes:
        out = table("out", **columns)
        out["facets"]["columnLineage"] = facet(
            fields={"a": {"inputFields": [{"namespace": "db", "name": "in", "field": source}]}}
        )
        return written(second, run, "job", ["in"], [out])

    store = open_store("memory:")
    ingest(store, [made(1, 1, "x", a="int"), made(5, 2, "y", a="string"), made(9, 3, "x", a="int")])
    found = diff(store, micros(at(2)), micros(at(6)))
    assert [each["from"]["field"] for each in found["columns"]["added"]] == ["y"]
    assert [each["from"]["field"] for each in found["columns"]["removed"]] == ["x"]
    (schema,) = found["schemas"]
    assert (schema["dataset"], schema["change"], schema["breaking"]) == ("dataset:db:out", "changed", True)
    assert schema["changes"] == [
        {"change": "type", "field": "a", "before": "int", "after": "string", "breaking": True}
    ]
    assert diff(store, micros(at(2)), micros(at(10)))["schemas"] == [], "it went there and back"
    back = diff(store, micros(at(6)), micros(at(10)))["schemas"]
    assert [each["changes"][0]["after"] for each in back] == ["int"]
    assert diff(store, micros(at(2)), micros(at(6)), node="db/in")["schemas"] == found["schemas"]
    shown = [show(store, "db/out", when=When(until=micros(at(second))))["fields"] for second in (0, 2, 6, 10)]
    assert [[each["type"] for each in fields] for fields in shown] == [[], ["int"], ["string"], ["int"]]
    with pytest.raises(ConfigError, match="earlier one first"):
        diff(store, 2, 1)
    store.close()


def test_a_difference_is_found_however_large_the_graph_around_a_node_is() -> None:
    store = open_store("memory:")
    ingest(store, [written(1, each, f"j{each:05}", ["hub"], [f"t{each}"]) for each in range(10_050)])
    ingest(store, [written(5, 20_000, "j10049", ["hub"], ["other"])])
    found = diff(store, micros(at(2)), micros(at(9)), node="db/hub")
    assert found["nodes"] == {"added": ["dataset:db:other"], "removed": ["dataset:db:t10049"]}


def test_a_difference_around_a_node_leaves_the_rest_out() -> None:
    store = open_store("memory:")
    ingest(store, [written(5, 1, "here", ["a"], ["b"]), written(5, 2, "there", ["c"], ["d"])])
    found = diff(store, 0, micros(at(9)), node="db/a")
    assert found["nodes"]["added"] == ["dataset:db:a", "dataset:db:b", "job:etl:here"]
    store.close()


# ---- impact: against a walk as plain as can be


@given(flows, flows, st.integers(0, 8))
def test_impact_meets_all_that_is_downstream(reads: set[Flow], writes: set[Flow], start: int) -> None:
    store = open_store("memory:")
    jobs = {flow.job for flow in (*reads, *writes)}
    ingest(
        store,
        [
            written(
                1, job, f"j{job}",
                [f"d{flow.dataset}" for flow in sorted(reads) if flow.job == job],
                [f"d{flow.dataset}" for flow in sorted(writes) if flow.job == job],
            )
            for job in jobs
        ] + [written(1, 99, "alone", [], [f"d{start}"])],
    )  # fmt: skip
    found = impact(store, f"db/d{start}")
    expected = {
        f"dataset:db:d{each}": hop
        for each, hop in hops(start, reads, writes, up=False).items()
        if each != start
    }
    assert {each["id"]: each["distance"] for each in found["datasets"]} == expected
    ranks = [(each["distance"], not each["owners"]) for each in found["datasets"]]
    assert ranks == sorted(ranks)
    for each in found["datasets"]:
        assert each["path"][0] == f"dataset:db:d{start}"
        assert each["path"][-1] == each["id"]
        assert len(each["path"]) == 2 * each["distance"] + 1, "a shortest way"
    store.close()


def test_impact_is_ranked_and_names_owners_and_last_writers() -> None:
    owned = {
        "namespace": "db",
        "name": "owned",
        "facets": {"ownership": facet(owners=[{"name": "team-a", "type": "OWNER"}])},
    }
    store = open_store("memory:")
    ingest(
        store,
        [
            written(1, 1, "make_old", ["src"], ["old"]),
            written(5, 2, "make_new", ["src"], ["new"]),
            written(2, 3, "make_owned", ["src"], [owned]),
            written(9, 4, "make_new", ["src"], ["new"], kind="FAIL"),
            written(9, 5, "far", ["new"], ["far"]),
        ],
    )
    found = impact(store, "db/src")
    assert [each["name"] for each in found["datasets"]] == ["owned", "new", "old", "far"]
    last = {each["name"]: (each["lastRun"]["state"], each["lastRun"]["job"]) for each in found["datasets"]}
    assert last["new"] == ("FAIL", "job:etl:make_new")
    assert found["owners"] == [{"name": "team-a", "nodes": 1, "first": "dataset:db:owned"}]
    command(
        store,
        Say(at=1, kind="dataset", namespace="db", name="old", values={"owners": '["team-b", "team-c"]'}),
    )
    assert [each["name"] for each in impact(store, "db/src")["owners"]] == ["team-a", "team-b", "team-c"]
    store.close()


def test_impact_of_a_column_follows_columns_and_says_where_it_is_unsure() -> None:
    def out(name: str, **made_of: str) -> dict[str, Any]:
        told = {
            column: {
                "inputFields": [
                    {"namespace": "db", "name": source.split(".")[0], "field": source.split(".")[1]}
                ]
            }
            for column, source in made_of.items()
        }
        return {"namespace": "db", "name": name, "facets": {"columnLineage": facet(fields=told)}}

    store = open_store("memory:")
    ingest(
        store,
        [
            written(1, 1, "one", ["src"], [out("mid", a="src.x", b="src.y")]),
            written(2, 2, "two", ["mid"], [out("end", c="mid.a")]),
            written(2, 3, "three", ["mid"], [out("other", d="mid.b")]),
            written(2, 4, "silent", ["mid"], ["unknown"]),
        ],
    )
    found = impact(store, "db/src", column="x")
    assert [each["name"] for each in found["datasets"]] == ["mid", "end"]
    assert found["datasets"][1]["columns"][0]["path"] == [
        {"dataset": "dataset:db:src", "field": "x"},
        {"dataset": "dataset:db:mid", "field": "a"},
        {"dataset": "dataset:db:end", "field": "c"},
    ]
    assert found["unsure"] == ["job:etl:silent"]
    assert found["start"] == "datasetField:db:src:x"
    with pytest.raises(ConfigError, match="of a dataset only"):
        impact(store, "job:etl:one", column="x")
    with pytest.raises(
        NotFound, match="has no column 'z'"
    ):  # relations tell its columns, though no schema does
        impact(store, "db/src", column="z")
    assert impact(store, "db/unknown", column="z")["datasets"] == [], "of which nobody told a column"
    store.close()


# ---- the graph of runs: against a scan of everything


def writers(store: Store) -> dict[tuple[str, str], str | None]:
    """(run, dataset it read) -> the run that had written it last by then, of those that did not fail."""
    tables = store.dump()
    failed = {
        key[0] for key, row in tables["runs"].items() if row.get("state", (0, ""))[1] in ("6 FAIL", "5 ABORT")
    }
    found: dict[tuple[str, str], str | None] = {}
    for (run, dataset), row in tables["inputs"].items():
        candidates = [
            (wrote["last_seen"], writer)
            for (writer, written_to), wrote in tables["outputs"].items()
            if written_to == dataset
            and writer != run
            and writer not in failed
            and wrote["last_seen"] <= row["first_seen"]
        ]
        found[run, dataset] = max(candidates)[1] if candidates else None
    return found


@given(some_runs)
def test_the_graph_of_runs_is_that_of_a_scan(told: Any) -> None:
    store = filled(history(told, []))
    known = writers(store)
    for number in range(len(told)):
        run = run_id(number)
        up = run_graph(store, run, direction="up", depth=1)
        got = {
            (each["dataset"].removeprefix("dataset:").replace(":", "\n", 1), each["run"])
            for each in up["nodes"]
            if each["type"] == "DATASET_VERSION"
        }
        assert got == {(dataset, writer) for (reader, dataset), writer in known.items() if reader == run}
        down = run_graph(store, run, direction="down", depth=1)
        readers = {each["id"].removeprefix("run:") for each in down["nodes"] if each.get("distance") == 1}
        assert readers == {reader for (reader, _), writer in known.items() if writer == run}
    store.close()


@given(some_runs, st.integers(1, 4))
def test_hops_of_the_graph_of_runs_add_up(told: Any, depth: int) -> None:
    """Everything within so many hops is what is reached by going one hop so many times."""
    store = filled(history(told, []))
    known = writers(store)
    for number in range(len(told)):
        start = run_id(number)
        reached = {start}
        for _ in range(depth):
            reached |= {
                writer for (reader, _), writer in known.items() if reader in reached and writer is not None
            }
        up = run_graph(store, start, direction="up", depth=depth)
        assert {each["id"].removeprefix("run:") for each in up["nodes"] if each["type"] == "RUN"} == reached
    store.close()


def test_failed_attempts_between_writer_and_reader_are_told() -> None:
    store = open_store("memory:")
    ingest(
        store,
        [
            written(1, 1, "load", [], ["t"]),
            written(3, 2, "load", [], ["t"], kind="FAIL"),
            written(5, 3, "read", ["t"], []),
        ],
    )
    model = run_graph(store, run_id(3), direction="up")
    (version,) = (each for each in model["nodes"] if each["type"] == "DATASET_VERSION")
    assert (version["run"], version["failedSince"]) == (run_id(1), [run_id(2)])
    assert model["edges"] == [
        {"from": version["id"], "to": f"run:{run_id(3)}"},
        {"from": f"run:{run_id(1)}", "to": version["id"]},
    ]
    with pytest.raises(NotFound):
        run_graph(store, run_id(77))
    store.close()


@pytest.mark.parametrize("turn", [1, -1])
def test_failures_before_any_reader_are_told_whichever_was_stored_first(turn: int) -> None:
    store = open_store("memory:")
    told = [
        written(1, 1, "load", [], ["t"]),
        written(3, 2, "load", [], ["t"], kind="FAIL"),
        written(5, 3, "early", ["t"], ["a"]),
        written(6, 4, "load", [], ["t"], kind="FAIL"),
        written(8, 5, "late", ["t"], ["b"]),
        written(9, 6, "top", ["a", "b"], []),
    ]
    for each in told[::turn]:
        ingest(store, [each])
    nodes = run_graph(store, run_id(6), direction="up")["nodes"]
    (failed,) = (each["failedSince"] for each in nodes if each.get("failedSince"))
    assert failed == [run_id(4), run_id(2)]
    store.close()


def test_runs_are_listed_by_job_state_and_time() -> None:
    store = open_store("memory:")
    ingest(
        store,
        [
            written(each, each, f"j{each % 2}", kind="FAIL" if each % 3 == 0 else "COMPLETE")
            for each in range(8)
        ],
    )
    assert [each["id"] for each in runs(store)] == [run_id(each) for each in reversed(range(8))]
    assert [each["id"] for each in runs(store, job="j1", state="fail")] == [run_id(3)]
    assert [each["id"] for each in runs(store, since=micros(at(3)), until=micros(at(4)))] == [
        run_id(4),
        run_id(3),
    ]
    with pytest.raises(ConfigError, match="is no state"):
        runs(store, state="LATE")
    store.close()


# ---- hubs, folding


@given(flows, flows, st.integers(0, 8), st.integers(1, 3), st.integers(1, 5))
def test_what_a_narrow_walk_leaves_out_is_counted(
    reads: Any, writes: Any, start: int, fan: int, depth: int
) -> None:
    source = Dictionary(reads, writes)
    narrow = walk(source, datasets=[start], direction="down", depth=depth, fan=fan)
    wide = walk(source, datasets=[start], direction="down", depth=depth)
    assert narrow.datasets.keys() <= wide.datasets.keys()
    assert narrow.reads <= wide.reads
    if not narrow.cut:
        assert (narrow.datasets, narrow.jobs, narrow.reads, narrow.writes) == (
            wide.datasets,
            wide.jobs,
            wide.reads,
            wide.writes,
        )
    readers = {flow.job for flow in reads if flow.dataset == start}
    left = narrow.more.get(("dataset", start), {}).get("down", 0)
    assert left == max(0, len(readers) - fan)


@given(flows, flows, st.integers(0, 8), st.integers(1, 8))
def test_a_walk_never_holds_more_than_its_limit(reads: Any, writes: Any, start: int, limit: int) -> None:
    found = walk(Dictionary(reads, writes), datasets=[start], direction="down", limit=limit)
    assert len(found.datasets) + len(found.jobs) <= max(1, limit)
    if not found.cut:
        assert found.datasets == walk(Dictionary(reads, writes), datasets=[start], direction="down").datasets


def test_a_hub_is_cut_and_counted() -> None:
    store = open_store("memory:")
    ingest(store, [written(1, each, f"r{each}", ["hub"], [f"o{each}"]) for each in range(40)])
    model = lineage(store, "db/hub", fan=10)
    start = next(each for each in model["nodes"] if each["id"] == "dataset:db:hub")
    assert (start["more"], model["cut"], len(model["nodes"])) == ({"down": 30}, True, 21)
    assert len(lineage(store, "db/hub")["nodes"]) == 81
    store.close()


def test_granularities_fold_the_same_graph() -> None:
    def part(second: int, run: int, job: str, inputs: Any, outputs: Any) -> bytes:
        parent = facet(run={"runId": run_id(50)}, job={"namespace": "etl", "name": "app"})
        return written(second, run, job, inputs, outputs, run_facets={"parent": parent})

    store = open_store("memory:")
    ingest(
        store,
        [
            part(1, 1, "app.one", ["a"], ["b"]),
            part(2, 2, "app.two", ["b"], ["c"]),
            written(3, 3, "solo", ["c"], ["d"]),
        ],
    )
    datasets = lineage(store, "db/a", granularity="dataset")
    assert [(each["from"], each["to"], each["via"]) for each in datasets["edges"]] == [
        ("dataset:db:a", "dataset:db:b", ["job:etl:app.one"]),
        ("dataset:db:b", "dataset:db:c", ["job:etl:app.two"]),
        ("dataset:db:c", "dataset:db:d", ["job:etl:solo"]),
    ]
    jobs = lineage(store, "job:etl:app.one", granularity="job")
    assert [(each["from"], each["to"]) for each in jobs["edges"]] == [
        ("job:etl:app.one", "job:etl:app.two"), ("job:etl:app.two", "job:etl:solo"),
    ]  # fmt: skip
    folded = lineage(store, "db/a", granularity="application")
    assert {each["id"]: each["jobs"] for each in folded["nodes"] if each["type"] == "JOB"} == {
        "job:etl:app": 2,
        "job:etl:solo": 1,
    }
    assert {"from": "job:etl:app", "to": "dataset:db:c"} in folded["edges"]
    of_runs = lineage(store, "db/d", granularity="run", direction="up")
    assert [each["id"] for each in of_runs["nodes"] if each["type"] == "RUN"] == [
        f"run:{run_id(each)}" for each in (3, 2, 1)
    ]
    store.close()


def test_paths_are_shortest_and_applications_stop_at_those_that_lead() -> None:
    assert paths(["a"], [("a", "b"), ("b", "c"), ("a", "c"), ("c", "a")])["c"] == ["a", "c"]
    assert applications({1: 2, 2: 3, 3: None, 4: 3}, leading={2, 3}) == {1: 2, 2: 2, 3: 3, 4: 3}


# ---- schemas


def test_schemas_have_their_history_and_what_each_changed() -> None:
    store = open_store("memory:")
    ingest(
        store,
        [
            written(1, 1, "load", [], [table("t", id="int", name="string")]),
            written(3, 2, "load", [], [table("t", id="bigint", name="string", mail="string")]),
            written(5, 3, "load", [], [table("t", id="bigint", mail="string")]),
            written(6, 4, "read", [table("t", id="bigint", mail="string")], []),
        ],
    )
    found = schemas(store, "db/t")["versions"]
    assert [each["run"] for each in found] == [run_id(3), run_id(2), run_id(1)]
    assert [each["breaking"] for each in found] == [True, False, False]
    assert [each["current"] for each in found] == [True, False, False]
    assert [(each["change"], each["field"]) for each in found[1]["changes"]] == [
        ("type", "id"),
        ("added", "mail"),
    ]
    assert found[0]["lastSeen"] == "2026-01-01T00:00:06Z"
    store.close()


@pytest.mark.parametrize(
    ("before", "after", "wider"),
    [
        ("int", "long", True), ("bigint", "int", False), ("float", "double precision", True), ("int", "string", False),
        ("varchar(10)", "varchar(20)", True), ("varchar(20)", "varchar(10)", False), ("varchar(20)", "text", True),
        ("text", "varchar(20)", False), ("decimal(10,2)", "decimal(12,2)", True), ("decimal(10,2)", "decimal(10,4)", False),
        ("date", "timestamp", True), ("INTEGER", "int4", True),
    ],
)  # fmt: skip
def test_a_wider_type_breaks_nobody(before: str, after: str, wider: bool) -> None:
    assert widens(before, after) is wider


columns = st.dictionaries(st.sampled_from("abcd"), st.sampled_from(("int", "bigint", "string")), max_size=4)


@given(columns, columns)
def test_changes_lead_from_one_schema_to_the_other(before: dict[str, str], after: dict[str, str]) -> None:
    as_fields = [[{"name": name, "type": kind} for name, kind in each.items()] for each in (before, after)]
    made = dict(before)
    for change in compare_schemas(*as_fields):
        if change.kind == "removed":
            assert change.breaking
            del made[change.field]
        else:
            made[change.field] = change.after or ""
    assert made == after
    assert compare_schemas(as_fields[0], as_fields[0]) == []


# ---- what people say


def test_what_people_say_outlives_events_and_can_be_taken_back() -> None:
    store = open_store("memory:")
    told = {"namespace": "db", "name": "t", "facets": {"documentation": facet(description="from the tool")}}
    ingest(store, [written(1, 1, "load", [], [told])])

    def edit(**fields: Any) -> None:
        _, said = commands_for(store, msgspec.convert({"node": "db/t", **fields}, Edit), by="ann")
        for each in said:
            command(store, each)

    edit(description="from a person", owners=["team-a"], add_tags=["pii"])
    edit(column="id", description="the key", add_tags=["key"])
    ingest(store, [written(9, 2, "load", [], [told])])
    model = show(store, "db/t")
    assert (model["description"], model["owners"]) == ("from a person", [{"name": "team-a"}])
    assert {(each["field"], each["tag"]) for each in model["tags"]} == {("", "pii"), ("id", "key")}
    assert model["columns"] == [{"name": "id", "type": "", "description": "the key", "tags": ["key"]}]
    edit(description=None, owners=None, remove_tags=["pii"])
    model = show(store, "db/t")
    assert (model["description"], model["owners"]) == ("from the tool", [])
    assert {each["tag"] for each in model["tags"]} == {"key"}
    edit(hidden=True)
    assert all(each["name"] != "t" for each in lineage(store, "job:etl:load")["nodes"])
    edit(hidden=False)
    assert any(each["name"] == "t" for each in lineage(store, "job:etl:load")["nodes"])
    for wrong in ({}, {"column": "x", "owners": ["a"]}, {"add_tags": [""]}, {"description": "a\0b"}):
        with pytest.raises(ConfigError):
            edit(**wrong)
    store.close()


def test_what_was_said_before_a_dataset_got_its_name_can_be_taken_back() -> None:
    store = open_store("memory:")

    def edit(node: str, **fields: Any) -> None:
        _, said = commands_for(store, msgspec.convert({"node": node, **fields}, Edit), by="ann")
        for each in said:
            command(store, each)

    ingest(store, [written(1, 1, "load", [], [{"namespace": "hive", "name": "db.t"}])])
    edit("hive/db.t", description="old", owners=["team-a"], add_tags=["pii", "kept"])
    link = facet(identifiers=[{"namespace": "hive", "name": "db.t", "type": "TABLE"}])
    place = {"namespace": "s3://wh", "name": "db/t", "facets": {"symlinks": link}}
    ingest(store, [written(2, 2, "load", [], [place])])
    model = show(store, "s3://wh/db/t")
    assert (model["id"], model["description"]) == ("dataset:s3://wh:db/t", "old")
    assert [each["tag"] for each in model["tags"]] == ["kept", "pii"]
    edit("s3://wh/db/t", description=None, owners=None, remove_tags=["pii"])
    model = show(store, "s3://wh/db/t")
    assert (model["description"], model["owners"]) == (None, [])
    assert [each["tag"] for each in model["tags"]] == ["kept"]
    store.close()


rules = st.sampled_from(
    [
        {"namespace": "kafka://{b}:9092", "to_namespace": "kafka://prod"},
        {"namespace": "s3://lake-{r}", "to_namespace": "s3://lake"},
        {"name": "old_{t}", "to_name": "{t}"},
    ]
)
names = st.sampled_from(
    [
        (n, t)
        for n in ("kafka://a:9092", "kafka://b:9092", "s3://lake-eu", "s3://lake")
        for t in ("t", "old_t", "u")
    ]
)


@given(st.lists(rules, max_size=2), rules, st.sets(names, max_size=5))
def test_a_preview_tells_what_then_happens(before: list[Any], rule: Any, known: set[tuple[str, str]]) -> None:
    store = open_store("memory:")
    for position, each in enumerate(sorted(known)):
        ingest(store, [written(1, position, f"j{position}", [], [{"namespace": each[0], "name": each[1]}])])
    for each in before:
        command(store, SetAlias(at=1, rule=each))

    def groups() -> dict[tuple[str, str], str]:
        return {each: lineage(store, f"dataset:{each[0]}:{each[1]}", depth=0)["start"] for each in known}

    was, told = groups(), preview(store, rule)
    command(store, SetAlias(at=2, rule=rule))
    now = groups()
    merged: dict[str, set[str]] = {}
    for each in known:
        merged.setdefault(now[each], set()).add(was[each])
    assert {each["to"]: set(each["of"]) for each in told["merges"]} == {
        to: of for to, of in merged.items() if len(of) > 1
    }
    store.close()


# ---- the raw log


def test_events_are_paged_filtered_and_whole() -> None:
    store = open_store("memory:")
    lines = [written(each % 7, each, f"j{each % 3}", ["a"], [f"o{each % 2}"]) for each in range(25)]
    ingest(store, lines)
    command(store, SetTag(at=micros(at(3)), kind="dataset", namespace="db", name="a", tag="x"))

    def every(**filters: Any) -> list[Any]:
        found, cursor = [], None
        while True:
            page = events(store, limit=4, cursor=cursor, **filters)
            found += page["events"]
            if (cursor := page["next"]) is None:
                return found

    assert len(every()) == 26
    assert [each["time"] for each in every()] == sorted(each["time"] for each in every())
    assert {bytes(each["event"]) for each in every(kind="run")} == set(lines)
    assert len(every(job="j1")) == sum(each % 3 == 1 for each in range(25))
    assert len(every(dataset="db/o1")) == 12
    assert [each["run"] for each in every(run=run_id(7))] == [run_id(7)]
    assert len(every(since=micros(at(2)), until=micros(at(3)))) == 8 + 1
    assert every(kind="command")[0]["node"] == "dataset:db:a"
    for wrong in ("x", "1", "1.x", "9" * 40 + ".1"):
        with pytest.raises(ConfigError, match="is no cursor"):
            events(store, cursor=wrong)
    store.close()


def test_hidden_jobs_do_not_count_as_differences() -> None:
    store = filled([event("COMPLETE", 5, 1, 0, {0}, {1})])
    command(store, Hide(at=micros(at(9)), kind="job", namespace="etl", name="j0"))
    found = diff(store, 0, micros(at(8)))
    assert found["edges"] == {"added": [], "removed": []}
    store.close()
