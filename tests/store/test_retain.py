"""What is older goes and the catalogue stays, over a replay too; on both stores, for any stream."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from databases import Postgres, empty
from facts.test_order import entries, write
from headwater.event import micros
from headwater.facts.definitions import DefineDataset, DefineField
from headwater.facts.flows import When
from headwater.facts.fold import Tables
from headwater.facts.tables import TABLES, Type
from headwater.ingest import read_entry, replay, restore, rows_of
from headwater.query.lineage import lineage
from headwater.store import Store, open_store
from streams import at

CATALOGUE = (
    "jobs",
    "datasets",
    "symlinks",
    "edges",
    "declared",
    "column_edges",
    "column_sources",
    "tags",
    "aliases",
    "described",
    "named",
    "checks",
    "verdicts",
    "watches",
)
BY_RUN = ("runs", "inputs", "outputs", "assertions", "tests", "run_facets", "io_facets")
kinds = st.sets(st.sampled_from(("runs", "events", "facets", "rejects")), min_size=1)


def staying(tables: Tables, before: int) -> set[str]:
    """The runs that stay: young ones, each job's last, the last that showed its edges, and all they belong to."""
    runs = {key[0]: row for key, row in tables["runs"].items()}
    stay = {run for run, row in runs.items() if row["last_seen"] >= before}
    for job in {row["job"][1] for row in runs.values() if "job" in row}:
        own = [(run, row) for run, row in runs.items() if row.get("job", (0, ""))[1] == job]
        shown = [(row["ended_at"], run) for run, row in own if "io" in row]
        stay.add(max((row["first_seen"], run) for run, row in own)[1])
        stay.update([max(shown)[1]] if shown else [])
    while True:
        more = {
            runs[run][c][1] for run in stay if run in runs for c in ("parent", "root") if c in runs[run]
        } - stay
        if not more:
            return stay
        stay |= more


def graphs(store: Store, tables: Tables) -> list[Any]:
    """The edges of every job now."""
    found = []
    for (job,) in sorted(tables["jobs"]):
        namespace, name = job.split("\n")
        model = lineage(store, f"job:{namespace}:{name}", depth=1, when=When())
        found.append(sorted((each["from"], each["to"]) for each in model["edges"]))
    return found


def holds(store: Store, second: int, chosen: set[str]) -> None:
    moment = micros(at(second))
    before, drawn = store.dump(), graphs(store, store.dump())
    told = store.prune(moment, chosen, rows_of, dry_run=True)
    assert store.dump() == before, "a dry run changes nothing"
    done = store.prune(moment, chosen, rows_of)
    after = store.dump()
    assert done == told, "a dry run tells what goes"
    for table in CATALOGUE:
        assert after[table] == before[table], table
    assert graphs(store, after) == drawn
    stay = staying(before, moment) if "runs" in chosen else {key[0] for key in before["runs"]}
    before_runs = {key[0] for key in before["runs"]}
    for table in BY_RUN:
        assert after[table] == {key: row for key, row in before[table].items() if key[0] in stay}, table
    assert after["said"] == {
        key: row
        for key, row in before["said"].items()
        if key[0] != "run" or key[1] in stay or key[1] not in before_runs
    }
    if "facets" not in chosen:
        assert all(after[table] == before[table] for table in ("dataset_facets", "job_facets", "schemas"))
    for table in ("dataset_facets", "job_facets", "schemas"):
        assert newest(after[table]) == newest(before[table])
        assert (
            after[table].items()
            >= {k: r for k, r in before[table].items() if r["last_seen"] >= moment}.items()
        )
    if chosen & {"events", "facets"}:
        assert all(e.time >= moment for _, e in store.log() if e.kind not in ("command", "base"))
    used = {
        part
        for name, table in TABLES.items()
        if name != "contents"
        for key, row in after[name].items()
        for part in (
            *(p for p, kind in zip(key, table.key.values(), strict=True) if kind is Type.DIGEST),
            *(row[c][1] for c, spec in table.columns.items() if spec.type is Type.DIGEST and c in row),
        )
    }
    assert used <= {key[0] for key in after["contents"]}, "nothing stands on a content that was swept"
    replay(store)
    assert store.dump() == after, "a replay brings nothing back and loses nothing"
    again = store.prune(moment, chosen, rows_of)
    assert (again.runs, again.facets, again.events) == (0, 0, 0)
    assert store.dump() == after


def newest(table: dict[Any, Any]) -> dict[Any, Any]:
    found: dict[Any, Any] = {}
    for key, row in table.items():
        found[key[:-1]] = max(found.get(key[:-1], (0, b"")), (row["last_seen"], key[-1]))
    return found


@given(entries, entries, st.integers(0, 13), st.integers(0, 13), kinds, kinds)
def test_old_runs_go_and_the_catalogue_stays(
    stream: list[Any], later: list[Any], one: int, other: int, first: set[str], second: set[str]
) -> None:
    with closing(open_store("memory:")) as store:
        write(store, stream, [])
        holds(store, one, first)
        write(store, later, [])
        holds(store, other, second)
        with closing(open_store("memory:")) as copy:
            restore(copy, (read_entry(entry.raw) for _, entry in store.log()))
            assert copy.dump() == store.dump(), "it can be carried elsewhere"


def test_what_was_superseded_at_the_same_moment_stays_gone() -> None:
    """Two definitions by hand in one microsecond: what the lesser told goes, and a replay does not bring it back."""
    names = (("id",), ("id", "sku"))
    defined = [
        DefineDataset(
            namespace="db",
            name="orders",
            type="DB_TABLE",
            at=micros(at(6)),
            fields=tuple(DefineField(name=name, type="INT") for name in fields),
        )
        for fields in names
    ]
    for order in (defined, defined[::-1]):
        with closing(open_store("memory:")) as store:
            write(store, [*order], [])
            holds(store, 8, {"facets"})


@pytest.fixture(scope="module")
def on_postgres(postgres: Postgres) -> Iterator[Store]:
    with closing(open_store(postgres.make(), partition_runs=2)) as store:
        yield store


@given(stream=entries, later=entries, one=st.integers(0, 13), other=st.integers(0, 13), chosen=kinds)
def test_old_runs_go_from_postgres(
    on_postgres: Store, stream: list[Any], later: list[Any], one: int, other: int, chosen: set[str]
) -> None:
    empty(on_postgres)
    write(on_postgres, stream, [])
    holds(on_postgres, one, chosen)
    write(on_postgres, later, [])
    holds(on_postgres, other, chosen)
