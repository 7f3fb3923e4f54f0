"""The walk against a naive oracle; and time: what held at a moment is what a store would show that had heard no more."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import closing
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from databases import Postgres, empty
from headwater.errors import Ambiguous, ConfigError, NotFound
from headwater.event import micros
from headwater.facts.commands import Hide, SetAlias
from headwater.facts.flows import Flow, Relation, When
from headwater.graph import walk, walk_columns
from headwater.ingest import command, ingest
from headwater.query.lineage import lineage
from headwater.query.nodes import moment
from headwater.query.show import show
from headwater.store import Store, open_store
from histories import declared, event, filled, history, runs
from streams import at, facet, run_id


class Dictionary:
    """A source of edges as plain as can be."""

    def __init__(self, reads: set[Flow], writes: set[Flow], relations: Collection[Relation] = ()) -> None:
        self.flows = {"in": reads, "out": writes}
        self.relations = relations

    def jobs_of(self, datasets: Collection[int], direction: str) -> list[Flow]:
        return [flow for flow in self.flows[direction] if flow.dataset in datasets]

    def datasets_of(self, jobs: Collection[int], direction: str) -> list[Flow]:
        return [flow for flow in self.flows[direction] if flow.job in jobs]

    def relations_to(self, columns: Collection[Any]) -> list[Relation]:
        return [each for each in self.relations if each.target in columns]

    def relations_from(self, columns: Collection[Any]) -> list[Relation]:
        return [each for each in self.relations if each.source in columns]


flows = st.sets(st.builds(Flow, st.integers(0, 6), st.integers(0, 8)), max_size=14)


def hops(start: int, reads: set[Flow], writes: set[Flow], up: bool) -> dict[int, int]:
    """Distance of each dataset, by repeated relaxation."""
    steps = {
        (w.dataset, r.dataset) if up else (r.dataset, w.dataset)
        for w in writes
        for r in reads
        if w.job == r.job
    }
    distance = {start: 0}
    for _ in range(20):
        for near, far in steps:
            if near in distance:
                distance[far] = min(distance.get(far, 99), distance[near] + 1)
    return distance


@given(flows, flows, st.integers(0, 8), st.integers(0, 5), st.sampled_from(("up", "down")))
def test_the_walk_meets_all_within_depth_and_no_more(
    reads: set[Flow], writes: set[Flow], start: int, depth: int, direction: Any
) -> None:
    found = walk(Dictionary(reads, writes), datasets=[start], direction=direction, depth=depth)
    distance = hops(start, reads, writes, direction == "up")
    assert found.datasets == {each: hop for each, hop in distance.items() if hop <= depth}
    assert found.reads <= reads
    assert found.writes <= writes


def test_both_ways_do_not_meet_what_is_only_beside() -> None:
    #  a -> j1 -> b,  a -> j2 -> c : c is beside b, not up- or downstream of it
    reads, writes = {Flow(1, 0), Flow(2, 0)}, {Flow(1, 1), Flow(2, 2)}
    found = walk(Dictionary(reads, writes), datasets=[1])
    assert set(found.datasets) == {0, 1}
    assert set(found.jobs) == {1}


def test_a_circle_ends() -> None:
    reads, writes = {Flow(1, 0), Flow(2, 1)}, {Flow(1, 1), Flow(2, 0)}
    found = walk(Dictionary(reads, writes), datasets=[0], depth=1000)
    assert set(found.datasets) == {0, 1}
    assert not found.cut


def test_depth_that_cuts_says_so() -> None:
    reads, writes = {Flow(1, 0), Flow(2, 1)}, {Flow(1, 1), Flow(2, 2)}
    source = Dictionary(reads, writes)
    assert walk(source, datasets=[0], direction="down", depth=1).cut
    assert not walk(source, datasets=[0], direction="down", depth=2).cut
    assert walk(source, jobs=[1], direction="down", depth=1).datasets == {1: 1}


def test_columns_are_walked_both_ways() -> None:
    def relation(job: int, source: tuple[int, str], target: tuple[int, str]) -> Relation:
        return Relation(job, source, target, "DIRECT", "IDENTITY", False, "")

    told = [relation(1, (0, "a"), (1, "b")), relation(2, (1, "b"), (2, "c")), relation(2, (1, "x"), (2, "y"))]
    found = walk_columns(Dictionary(set(), set(), told), [(1, "b")])
    assert found.columns == {(1, "b"): 0, (0, "a"): 1, (2, "c"): 1}
    assert found.relations == set(told[:2])


# ---- time --------------------------------------------------------------------------------------------------


def edges(store: Store, when: When) -> set[tuple[str, str]]:
    """Every edge of the store at a time."""
    found = set()
    for job in ("j0", "j1"):
        try:
            model = lineage(store, f"job:etl:{job}", depth=1, when=when)
        except NotFound:
            continue
        found |= {(each["from"], each["to"]) for each in model["edges"]}
    return found


@given(runs, declared, st.integers(0, 22))
def test_as_of_a_time_is_what_was_known_by_then(told: Any, words: Any, second: int) -> None:
    stream = history(told, words)
    whole, prefix = filled(stream), filled([each for each in stream if each[0] <= second])
    assert edges(whole, When(until=micros(at(second)))) == edges(prefix, When())
    whole.close()
    prefix.close()


@pytest.fixture(scope="module")
def on_postgres(postgres: Postgres) -> Iterator[Store]:
    with closing(open_store(postgres.make(), partition_runs=3)) as store:
        yield store


@given(told=runs, words=declared, second=st.integers(0, 22))
def test_as_of_a_time_is_alike_on_postgres(on_postgres: Store, told: Any, words: Any, second: int) -> None:
    stream = history(told, words)
    empty(on_postgres)
    ingest(on_postgres, [body for _, body in stream])
    prefix = filled([each for each in stream if each[0] <= second])
    assert edges(on_postgres, When(until=micros(at(second)))) == edges(prefix, When())
    prefix.close()


@given(runs, st.integers(0, 20), st.integers(0, 6))
def test_a_span_holds_its_start_and_all_seen_until_its_end(told: Any, second: int, length: int) -> None:
    stream = history(told, [])
    store = filled(stream)
    since, until = micros(at(second)), micros(at(second + length))
    found = edges(store, When(until=until, since=since))
    start = edges(store, When(until=since))
    seen = filled([each for each in stream if second <= each[0] <= second + length])
    assert start | _ever(seen) == found
    store.close()
    seen.close()


def _ever(store: Store) -> set[tuple[str, str]]:
    found = set()
    for job, direction, name in store.dump()["edges"]:
        job_id, dataset_id = "job:" + job.replace("\n", ":"), "dataset:" + name.replace("\n", ":")
        found.add((dataset_id, job_id) if direction == "in" else (job_id, dataset_id))
    return found


def test_a_bare_start_wipes_nothing_and_a_completed_run_replaces() -> None:
    stream = [
        event("COMPLETE", 1, 1, 0, {0}, {1}),
        event("START", 2, 2, 0, (), ()),
    ]
    store = filled(stream)
    assert len(edges(store, When())) == 2
    ingest(store, [event("FAIL", 3, 2, 0, {0}, ())[1], event("COMPLETE", 4, 3, 0, (), ())[1]])
    assert len(edges(store, When())) == 2, "a failed run and one that names nothing replace nothing"
    ingest(store, [event("COMPLETE", 5, 4, 0, {0}, {2})[1]])
    assert edges(store, When()) == {("dataset:file:/d0", "job:etl:j0"), ("job:etl:j0", "dataset:file:/d2")}
    assert ("job:etl:j0", "dataset:file:/d1") in edges(store, When(until=micros(at(4))))
    versions = show(store, "job:etl:j0")["versions"]
    assert [each["runs"] for each in versions] == [1, 1]
    store.close()


# ---- names -------------------------------------------------------------------------------------------------


def test_symlinks_and_late_rules_make_one_node() -> None:
    def written(second: int, run: int, job: str, inputs: list[Any], outputs: list[Any]) -> bytes:
        return msgspec.json.encode(
            {
                "eventType": "COMPLETE",
                "eventTime": at(second),
                "run": {"runId": run_id(run)},
                "job": {"namespace": "etl", "name": job},
                "inputs": inputs,
                "outputs": outputs,
            }
        )

    lake = {"namespace": "s3://lake", "name": "db/orders"}
    table = {"namespace": "hive://meta:9083", "name": "db.orders"}
    linked = {**lake, "facets": {"symlinks": facet(identifiers=[{**table, "type": "TABLE"}])}}
    store = open_store("memory:")
    ingest(store, [written(1, 1, "reader", [table], [{"namespace": "x", "name": "report"}])])
    ingest(store, [written(2, 2, "writer", [{"namespace": "kafka://b2:9092", "name": "orders"}], [linked])])
    model = lineage(store, "x/report", direction="up")
    assert [node["id"] for node in model["nodes"] if node["type"] == "DATASET"] == [
        "dataset:x:report", "dataset:s3://lake:db/orders", "dataset:kafka://b2:9092:orders",
    ]  # fmt: skip
    ingest(store, [written(3, 3, "cdc", [], [{"namespace": "kafka://b1:9092", "name": "orders"}])])
    assert all(node["name"] != "cdc" for node in lineage(store, "x/report", direction="up")["nodes"])
    rule = {"namespace": "kafka://{b}:9092", "to_namespace": "kafka://prod"}
    command(store, SetAlias(at=1, rule=rule))
    after = lineage(store, "x/report", direction="up")
    assert "job:etl:cdc" in {node["id"] for node in after["nodes"]}
    assert "dataset:kafka://prod:orders" in {node["id"] for node in after["nodes"]}
    assert lineage(store, "dataset:kafka://b1:9092:orders", depth=0)["start"] == "dataset:kafka://prod:orders"
    command(store, SetAlias(at=2, rule=rule, live=False))
    assert lineage(store, "x/report", direction="up") == model
    store.close()


def test_what_is_hidden_is_not_met_until_it_is_seen_again() -> None:
    store = filled([event("COMPLETE", 1, 1, 0, {0}, {1}), event("COMPLETE", 1, 2, 1, {1}, {2})])
    command(store, Hide(at=micros(at(5)), kind="dataset", namespace="file", name="/d1"))
    assert "dataset:file:/d2" not in {node["id"] for node in lineage(store, "file//d0")["nodes"]}
    ingest(store, [event("COMPLETE", 9, 3, 0, {0}, {1})[1]])
    assert "dataset:file:/d2" in {node["id"] for node in lineage(store, "file//d0")["nodes"]}
    store.close()


def test_nodes_are_found_by_id_path_and_suffix() -> None:
    store = filled([event("COMPLETE", 1, 1, 0, {0}, {1})])
    for name in ("dataset:file:/d1", "file//d1", "d1", "/d1"):
        assert lineage(store, name, depth=0)["start"] == "dataset:file:/d1"
    with pytest.raises(NotFound):
        lineage(store, "nothing")
    ingest(store, [event("COMPLETE", 1, 8, 1, (), ())[1].replace(b'"j1"', b'"x/j0"')])
    assert lineage(store, "j0", depth=0)["start"] == "job:etl:j0", "a whole name before a suffix"
    ingest(store, [event("COMPLETE", 2, 9, 1, (), ())[1].replace(b'"j1"', b'"x/d1"')])
    with pytest.raises(Ambiguous) as caught:
        lineage(store, "d1")
    assert caught.value.candidates == ["dataset:file:/d1", "job:etl:x/d1"]
    store.close()


def test_times_as_people_write_them() -> None:
    assert moment("2026-01-01") == moment("2026-01-01T00:00:00Z") == micros("2026-01-01T01:00:00+01:00")
    assert moment("now") - moment("-1h") == pytest.approx(3_600_000_000, abs=5_000_000)
    with pytest.raises(ConfigError, match="is no time"):
        moment("yesterday")
