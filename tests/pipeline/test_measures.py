"""Reach, depth and cycles against a plain walk; hubs and long runs; a graph that was rebuilt under a running server."""

from __future__ import annotations

import json
import random
import threading
from collections import defaultdict
from contextlib import closing
from pathlib import Path
from typing import Any

import httpx
import msgspec
import numpy as np
from dumping import dumped, in_memory, same
from hypothesis import given
from hypothesis import strategies as st

from headwater import pipeline
from headwater.cli.demo import recorded
from headwater.event import parse
from headwater.facts.commands import Hide
from headwater.graph import walk
from headwater.ingest import command, ingest, ingest_all, rows_of
from headwater.pipeline._reach import blocks, depths, order, reached
from headwater.store import open_store
from serving import serving
from streams import run_id


def walked(nodes: int, edges: set[tuple[int, int]], start: int) -> set[int]:
    after = defaultdict(list)
    for a, b in edges:
        after[a].append(b)
    met, left = {start}, [start]
    while left:
        for each in after[left.pop()]:
            if each not in met:
                met.add(each)
                left.append(each)
    return met


@given(st.data())
def test_reach_is_that_of_a_plain_walk(data: st.DataObject) -> None:
    """Any graph, with cycles, loops and loose nodes; blocks that are smaller than it too."""
    nodes = data.draw(st.integers(1, 150))
    ends = st.integers(0, nodes - 1)
    edges = data.draw(st.sets(st.tuples(ends, ends), max_size=200))
    marked = np.asarray(data.draw(st.lists(st.booleans(), min_size=nodes, max_size=nodes)))
    pairs = np.asarray(sorted(edges), np.int64).reshape(-1, 2)
    graph = order(nodes, pairs[:, 0], pairs[:, 1], marked)
    _, words = blocks(graph)
    words = data.draw(st.sampled_from((1, words)))
    count = -(-int(np.count_nonzero(graph.weight)) // (64 * words))
    total = sum(
        (reached(graph, [block], words) for block in range(count)), np.zeros(len(graph.weight), np.int64)
    )
    for node in range(nodes):
        found = walked(nodes, edges, node)
        assert total[graph.component[node]] == sum(marked[each] for each in found)
    assert len(depths(graph)) == len(graph.weight)


def test_depth_counts_datasets_on_the_longest_way() -> None:
    #  0 -> 1 -> 2 -> 3,  0 -> 3; all but 2 marked; walked backwards from each to the sources
    edges = np.asarray([(0, 1), (1, 2), (2, 3), (0, 3)])
    back = order(4, edges[:, 1], edges[:, 0], np.asarray([True, True, False, True]))
    assert [int(depths(back)[back.component[each]]) for each in range(4)] == [0, 1, 2, 2]


def measured(spark: Any, sink: str) -> dict[tuple[str, str], Any]:
    return {(row.kind, row.node): row for row in pipeline.read(spark, sink, "measures").collect()}


def test_measures_agree_with_the_servers_graph(spark: Any, tmp_path: Path) -> None:
    """For every node of a recorded day, and of runs that dropped an input: what `graph.walk` meets on a store."""
    lines = list(recorded())
    for hour, inputs in ((1, ("a", "b")), (2, ("a",))):
        lines.append(
            msgspec.json.encode(
                {
                    "eventTime": f"2026-06-01T0{hour}:00:00Z",
                    "eventType": "COMPLETE",
                    "run": {"runId": run_id(hour)},
                    "job": {"namespace": "etl", "name": "narrowed"},
                    "inputs": [{"namespace": "s3a://lake", "name": name} for name in inputs],
                    "outputs": [{"namespace": "s3://lake", "name": "c"}],
                }
            )
        )
    (tmp_path / "x.jsonl").write_bytes(b"\n".join(lines))
    sinks = [f"parquet://{tmp_path}/tables", f"sqlite:///{tmp_path}/x.db"]
    pipeline.run(spark, str(tmp_path / "x.jsonl"), sinks)
    found = measured(spark, sinks[0])
    store = open_store(sinks[1])
    with store.read() as reader:
        seen = 0
        for (kind, node), row in found.items():
            numbers = reader.find(kind, [tuple(node.split("\n", 1))])
            for way, count in (("up", row.reach_up), ("down", row.reach_down)):
                met = walk(reader.edges(), **{f"{kind}s": numbers}, direction=way, depth=1000)
                others = met.datasets.keys() - (set(numbers) if kind == "dataset" else set())
                assert count == len(others), (node, way)
            seen += 1
        assert seen == len(found) >= 15
    assert found["dataset", "s3://lake\nb"].reach_down == 0  # the later run lacks it
    assert found["dataset", "s3://lake\na"].reach_down == 1
    store.close()


def test_a_hidden_dataset_is_measured_again_after_an_event_that_gives_any_of_its_names(
    spark: Any, tmp_path: Path
) -> None:
    def line(number: int, at: str, name: str) -> bytes:
        return msgspec.json.encode(
            {
                "eventTime": at,
                "eventType": "COMPLETE",
                "run": {"runId": run_id(number)},
                "job": {"namespace": "etl", "name": name},
                "outputs": [{"namespace": "s3a://lake", "name": name}],
            }
        )

    lines = [line(each, "2026-06-01T00:00:00Z", name) for each, name in enumerate(("stays", "back"))]
    with closing(open_store(f"sqlite:///{tmp_path}/x.db")) as store:
        ingest(store, lines)
        with store.read() as reader:
            _, _, last = reader.catalogue().hidden_at("dataset", "s3a://lake", "back")
        for name in ("stays", "back"):
            command(store, Hide(at=1, kind="dataset", namespace="s3://lake", name=name, after=last))
        ingest(store, [line(7, "2026-06-01T01:00:00Z", "back")])
    pipeline.run(spark, f"sqlite:///{tmp_path}/x.db", [f"parquet://{tmp_path}/tables"])
    found = measured(spark, f"parquet://{tmp_path}/tables")
    assert {node for kind, node in found if kind == "dataset"} == {"s3://lake\nback"}
    assert found["dataset", "s3://lake\nback"].last_written is not None


def test_a_hub_and_a_run_with_many_events(spark: Any, tmp_path: Path, scale: float) -> None:
    """100,000 jobs read one dataset, one run sends 10,000 events (at scale 1)."""
    jobs, many = max(2_000, int(100_000 * scale)), max(500, int(10_000 * scale))
    with (tmp_path / "x.jsonl").open("wb") as out:
        for number in range(jobs):
            out.write(
                json.dumps(
                    {
                        "eventTime": "2026-01-01T00:00:00Z",
                        "job": {"namespace": "etl", "name": f"job {number}"},
                        "inputs": [{"namespace": "s3://lake", "name": "hub"}],
                        "outputs": [{"namespace": "s3://lake", "name": f"out {number}"}],
                    }
                ).encode()
                + b"\n"
            )
        for number in range(many):
            out.write(
                json.dumps(
                    {
                        "eventTime": f"2026-01-01T{number // 3600:02d}:{number // 60 % 60:02d}:{number % 60:02d}Z",
                        "eventType": "COMPLETE" if number == many - 1 else "RUNNING",
                        "run": {"runId": run_id(1)},
                        "job": {"namespace": "etl", "name": "long"},
                        "inputs": [{"namespace": "s3://lake", "name": f"in {number}"}],
                    }
                ).encode()
                + b"\n"
            )
    sink = f"parquet://{tmp_path}/tables"
    report = pipeline.run(spark, str(tmp_path / "x.jsonl"), sink)
    assert report.events == jobs + many
    (run,) = pipeline.read(spark, sink, "runs").collect()
    assert run.io is not None
    hub = measured(spark, sink)["dataset", "s3://lake\nhub"]
    assert (hub.reach_up, hub.reach_down, hub.depth) == (0, jobs, 0)
    assert hub.criticality > 0.8


def test_groups_of_runs(spark: Any, tmp_path: Path) -> None:
    def event(run: int, job: str, tool: str, kind: str, parent: tuple[int, str] | None) -> bytes:
        facets: dict[str, Any] = {}
        if parent:
            facets["parent"] = {
                "run": {"runId": run_id(parent[0])}, "job": {"namespace": "etl", "name": parent[1]},
            }  # fmt: skip
        job_type = {"processingType": "BATCH", "integration": tool, "jobType": kind}
        return msgspec.json.encode(
            {
                "eventTime": "2026-01-01T00:00:00Z",
                "eventType": "START",
                "run": {"runId": run_id(run), "facets": facets},
                "job": {"namespace": "etl", "name": job, "facets": {"jobType": job_type}},
            }
        )

    lines = [
        event(1, "dag", "AIRFLOW", "DAG", None),
        event(2, "dag.task", "AIRFLOW", "TASK", (1, "dag")),
        event(3, "app", "SPARK", "APPLICATION", (2, "dag.task")),
        event(4, "app.sql", "SPARK", "SQL_JOB", (3, "app")),
        event(5, "app.rdd", "SPARK", "RDD_JOB", (3, "app")),
    ]
    (tmp_path / "x.jsonl").write_bytes(b"\n".join(lines))
    sink = f"parquet://{tmp_path}/tables"
    pipeline.run(spark, str(tmp_path / "x.jsonl"), sink)
    found = {row.run: row.group for row in pipeline.read(spark, sink, "run_groups").collect()}
    assert [found[run_id(i)] for i in range(1, 6)] == [run_id(i) for i in (1, 1, 3, 3, 3)]


def test_rebuild_under_a_running_server(spark: Any, store_url: str, tmp_path: Path) -> None:
    """Tables that were damaged come anew from the log; what is sent meanwhile is in them."""
    url = store_url
    store = open_store(url)
    lines = list(recorded())
    list(ingest_all(store, lines[:10]))
    store.prune(parse(lines[5]).time, {"events"}, rows_of)  # what is left of old events comes back too
    with store._transaction() as damaged:  # type: ignore[attr-defined]
        damaged.exec_driver_sql("DELETE FROM edges")
        damaged.exec_driver_sql("UPDATE runs SET state = 'nonsense'")
    store.close()
    with serving(url) as server:
        faults: list[Exception] = []

        def send() -> None:
            try:
                for line in lines[10:]:
                    answer = httpx.post(
                        f"{server.url}/api/v1/lineage",
                        content=line,
                        headers={"Content-Type": "application/json"},
                        timeout=60,
                    )
                    assert answer.status_code == 201
            except Exception as fault:  # noqa: BLE001 - told to the test
                faults.append(fault)

        sender = threading.Thread(target=send)
        sender.start()
        report = pipeline.rebuild(spark, url)
        sender.join()
        assert not faults
        late = b'{"eventTime": "2030-01-01T00:00:00Z", "job": {"namespace": "etl", "name": "after"}}'
        headers = {"Content-Type": "application/json"}
        assert httpx.post(f"{server.url}/api/v1/lineage", content=late, headers=headers).status_code == 201
    assert "swap" in report.seconds
    store = open_store(url)
    same(in_memory([*lines, late]), store.dump())
    assert store.check() == []
    store.close()
    assert [each.name for each in tmp_path.iterdir() if "rebuild" in each.name] == []


def test_export_is_what_read_shows(spark: Any, tmp_path: Path) -> None:
    (tmp_path / "x.jsonl").write_bytes(b"\n".join(recorded()))
    sink = f"parquet://{tmp_path}/tables"
    pipeline.run(spark, str(tmp_path / "x.jsonl"), sink)
    rows = pipeline.export(spark, sink, f"{tmp_path}/shown", form="json", tables=("datasets", "job_versions"))
    shown = [
        json.loads(line)
        for file in (tmp_path / "shown" / "datasets").glob("*.json")
        for line in file.read_text().splitlines()
    ]
    assert {each["canonical"] for each in shown} == {
        row["canonical"] for row in dumped(spark, sink)["datasets"].values()
    }
    assert rows["datasets"] == len(shown)
    assert pipeline.status(spark, sink)["batches"] == 1


def test_all_that_a_store_has_is_exported(spark: Any, tmp_path: Path) -> None:
    (tmp_path / "x.jsonl").write_bytes(b"\n".join(recorded()))
    folder, store = f"parquet://{tmp_path}/tables", f"sqlite:///{tmp_path}/x.db"
    pipeline.run(spark, str(tmp_path / "x.jsonl"), [folder, store])
    of_folder = pipeline.export(spark, folder, f"{tmp_path}/folder")
    of_store = pipeline.export(spark, store, f"{tmp_path}/store")
    assert set(of_folder) == set(pipeline.NAMES)
    assert of_store == {
        name: rows for name, rows in of_folder.items() if name not in ("events", "quarantine")
    }


def test_steps_alone_give_what_they_give_together(spark: Any, tmp_path: Path) -> None:
    """Between steps that are not fused the same things travel as columns."""
    from headwater.pipeline.sinks import open_sink
    from headwater.pipeline.sources import open_source
    from headwater.pipeline.steps import Step

    lines = [*recorded(), b"{", *recorded()]
    random.Random(1).shuffle(lines)
    (tmp_path / "x.jsonl").write_bytes(b"\n".join(lines))
    sinks = [f"parquet://{tmp_path}/{name}" for name in ("one", "two")]
    pipeline.run(spark, str(tmp_path / "x.jsonl"), sinks[0])
    alone = tuple(lambda frame, step=step: step(frame) for step in pipeline.STEPS if isinstance(step, Step))
    report = pipeline.run(spark, open_source(str(tmp_path / "x.jsonl")), open_sink(sinks[1]), steps=alone)
    assert (report.events, report.bad, report.duplicates) == (len(lines), 1, len(lines) // 2)
    same(dumped(spark, sinks[0]), dumped(spark, sinks[1]))
