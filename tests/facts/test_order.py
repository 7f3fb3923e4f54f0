"""Any order, any repeat, any split of a stream gives the same tables, in memory, in SQLite and in Postgres, and after a replay."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from databases import Postgres, empty
from headwater.event import micros, parse
from headwater.facts import derive, derive_command, fold, settle
from headwater.facts.commands import Command, Hide, Say, SetAlias, SetIncident, SetRunState, SetTag, Watch
from headwater.facts.definitions import DefineDataset, DefineField, DefineJob, DefineRun, Name
from headwater.facts.fold import Tables
from headwater.ingest import command, ingest, replay, rows_of
from headwater.naming import DEFAULT_RULES, Aliases, AliasRule
from headwater.store import Store, open_store
from streams import NAMES, NAMESPACES, at, events

moments = st.integers(0, 12).map(lambda second: micros(at(second)))
kinds = st.sampled_from(("job", "dataset"))
commands: st.SearchStrategy[Command] = st.one_of(
    st.builds(
        SetTag,
        at=moments,
        kind=kinds,
        namespace=st.just("etl"),
        name=st.just("load"),
        tag=st.just("pii"),
        live=st.booleans(),
    ),
    st.builds(
        Hide,
        at=moments,
        kind=st.sampled_from(("dataset", "namespace")),
        namespace=st.sampled_from(NAMESPACES),
        name=st.sampled_from(NAMES),
        shown=st.booleans(),
        after=st.none() | moments,
    ),
    st.builds(
        SetRunState,
        at=moments,
        run_id=st.sampled_from(("a", "b")),
        state=st.sampled_from(("START", "COMPLETE", "FAIL")),
        namespace=st.just("etl"),
        job=st.just("load"),
    ),
    st.builds(
        SetAlias,
        at=moments,
        rule=st.sampled_from(
            (
                {"namespace": "kafka://{b}:9092", "to_namespace": "kafka://prod"},
                {"namespace": "hive://{h}", "name": "{t}", "to_namespace": "s3://lake", "to_name": "raw/{t}"},
                {"namespace": "s3://{b}", "name": "raw/{t}", "to_name": "{t}"},
            )
        ),
        live=st.booleans(),
    ),
    st.builds(
        Say,
        at=moments,
        by=st.sampled_from(("", "ann")),
        kind=st.sampled_from(("job", "namespace")),
        namespace=st.just("etl"),
        name=st.just("load"),
        values=st.dictionaries(st.sampled_from(("description", "owner")), st.sampled_from(("a", "b", None))),
    ),
)
datasets = st.tuples(st.sampled_from(NAMESPACES), st.sampled_from(NAMES))
fields = st.builds(
    DefineField,
    st.sampled_from(("id", "amount")),
    type=st.sampled_from(("INT", "TEXT")),
    description=st.sampled_from((None, "a", "b")),
    tags=st.sampled_from(((), ("pii",))),
)
definitions: st.SearchStrategy[Command] = st.one_of(
    st.builds(
        Name,
        at=moments,
        kind=st.sampled_from(Name.KINDS),
        name=st.sampled_from(("etl", "x")),
        shown_at=st.none() | moments,
    ),
    st.builds(
        DefineDataset,
        at=moments,
        namespace=st.sampled_from(NAMESPACES),
        name=st.sampled_from(NAMES),
        type=st.sampled_from(DefineDataset.TYPES),
        source=st.sampled_from(("", "db")),
        description=st.sampled_from((None, "a", "b")),
        fields=st.lists(fields, max_size=2).map(tuple),
        tags=st.sampled_from(((), ("pii",))),
        run_id=st.sampled_from((None, "a", "c")),
        job=st.sampled_from((None, ("etl", "load"))),
        shown_at=st.none() | moments,
    ),
    st.builds(
        DefineJob,
        at=moments,
        namespace=st.just("etl"),
        name=st.sampled_from(("load", "other")),
        type=st.sampled_from(DefineJob.TYPES),
        inputs=st.lists(datasets, max_size=2).map(tuple),
        outputs=st.lists(datasets, max_size=2).map(tuple),
        location=st.sampled_from((None, "a", "b")),
        run_id=st.sampled_from((None, "a")),
    ),
    st.builds(
        DefineRun,
        at=moments,
        run_id=st.sampled_from(("a", "b", "c")),
        namespace=st.just("etl"),
        job=st.sampled_from(("load", "other")),
        nominal_start=st.none() | moments,
        args=st.dictionaries(st.just("k"), st.sampled_from(("1", "2"))),
        inputs=st.lists(datasets, max_size=2).map(tuple),
        outputs=st.lists(datasets, max_size=2).map(tuple),
    ),
)
decisions: st.SearchStrategy[Command] = st.one_of(
    st.builds(
        SetIncident,
        at=moments,
        by=st.sampled_from(("", "ann")),
        incident=st.integers(0, 1),
        status=st.sampled_from(SetIncident.STATUSES),
        note=st.sampled_from(("", "a", "b")),
        until=st.none() | moments,
    ),
    st.builds(
        Watch,
        at=moments,
        pattern=st.sampled_from(("*", "s3://*")),
        measure=st.sampled_from(Watch.MEASURES),
        live=st.booleans(),
        history=st.integers(5, 6),
    ),
)
commands = commands | definitions | decisions
entries = st.lists(events | commands, max_size=25)


def in_memory(stream: list[bytes | Command]) -> Tables:
    """The pure engine: every row folded at once, then settled."""
    rows = (
        row
        for each in stream
        for row in (derive(parse(each)) if isinstance(each, bytes) else derive_command(each))
    )
    tables = fold(rows)
    rules = [
        AliasRule.from_dict(msgspec.json.decode(row["rule"][1]))
        for _, row in sorted(tables["aliases"].items())
        if row["rule"][1]
    ]
    return settle(tables, Aliases([*rules, *DEFAULT_RULES]))


def write(store: Store, stream: list[bytes | Command], cuts: list[int]) -> None:
    """The same through the store, in batches of the given sizes."""
    position, sizes = 0, iter(cuts)
    while position < len(stream):
        if isinstance(stream[position], bytes):
            size = next(sizes, 3)
            batch = [each for each in stream[position : position + size] if isinstance(each, bytes)]
            rest = [each for each in stream[position : position + size] if not isinstance(each, bytes)]
            assert not ingest(store, batch).rejected
            for each in rest:
                command(store, each)
            position += size
        else:
            command(store, stream[position])  # type: ignore[arg-type]
            position += 1


@given(entries, st.data())
def test_order_repeats_and_splits_do_not_matter(stream: list[Any], data: st.DataObject) -> None:
    expected = in_memory(stream)
    messy = data.draw(
        st.permutations(stream + (data.draw(st.lists(st.sampled_from(stream), max_size=5)) if stream else []))
    )
    assert in_memory(messy) == expected
    sizes = data.draw(st.lists(st.integers(1, 6), max_size=20))
    with closing(open_store("memory:")) as store:
        write(store, messy, sizes)
        assert store.dump() == expected
        replay(store)
        assert store.dump() == expected


@pytest.fixture(scope="module")
def on_postgres(postgres: Postgres) -> Iterator[Store]:
    with closing(open_store(postgres.make(), partition_runs=2)) as store:
        yield store


@given(stream=entries, data=st.data())
def test_postgres_merges_as_the_memory_does(
    on_postgres: Store, stream: list[Any], data: st.DataObject
) -> None:
    empty(on_postgres)
    messy = data.draw(st.permutations(stream + stream[:5]))
    write(on_postgres, messy, data.draw(st.lists(st.integers(1, 6), max_size=20)))
    with closing(open_store("memory:")) as store:
        write(store, stream, [])
        assert on_postgres.dump() == store.dump() == in_memory(stream)
    replay(on_postgres)
    assert on_postgres.dump() == in_memory(stream)


@given(entries, entries)
def test_folding_is_associative(left: list[Any], right: list[Any]) -> None:
    """Partial folds may be folded again: what Spark does between its tasks."""

    def rows(stream: list[Any]) -> list[Any]:
        return [
            row
            for each in stream
            for row in (derive(parse(each)) if isinstance(each, bytes) else derive_command(each))
        ]

    def again(tables: Tables) -> list[Any]:
        return [(name, key, row) for name, table in tables.items() for key, row in table.items()]

    assert fold(again(fold(rows(left))) + again(fold(rows(right)))) == fold(rows(left + right))


@given(st.lists(events, min_size=1, max_size=8))
def test_the_log_gives_back_what_came(stream: list[bytes]) -> None:
    store = open_store("memory:")
    outcome = ingest(store, stream)
    kept = [entry for _, entry in store.log()]
    assert {entry.raw for entry in kept} == {parse(each).raw for each in stream}
    assert outcome.stored == len(kept)
    assert outcome.stored + outcome.duplicates == len(stream)
    again = ingest(store, stream)
    assert (again.stored, again.duplicates) == (0, len(stream))
    assert [msgspec.json.decode(entry.raw) for entry in kept] == [
        msgspec.json.decode(entry.raw) for _, entry in store.log()
    ]
    assert all(rows_of(entry.kind, entry.raw) for entry in kept)
    store.close()
