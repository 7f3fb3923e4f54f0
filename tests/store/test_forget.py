"""What is forgotten is gone from tables and log, over a replay too, and nothing else is; on both stores, for any stream."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from databases import Postgres, empty
from facts.test_order import entries, write
from headwater.errors import NotFound
from headwater.event import run_uuid
from headwater.facts.tables import REFERENCES, TABLES, Type
from headwater.ingest import replay, rows_of
from headwater.store import Store, open_store

KINDS = {"dataset": Type.DATASET, "job": Type.JOB, "run": Type.RUN}


def named_in(value: Any, kind: str, names: set[str]) -> bool:
    """Whether any object in a document is one of these."""
    if isinstance(value, list):
        pairs = (
            len(value) == 7 and kind == "dataset" and isinstance(value[1], str) and value[1] in names
        )  # a relation of columns
        return pairs or any(named_in(each, kind, names) for each in value)
    if not isinstance(value, dict):
        return False
    namespace, name, run = value.get("namespace"), value.get("name"), value.get("runId")
    if kind != "run" and isinstance(namespace, str) and f"{namespace}\n{name}" in names:
        return True
    if kind == "run" and isinstance(run, str) and run_uuid(run) in names:
        return True
    return any(named_in(each, kind, names) for each in value.values())


def group(store: Store, kind: str, name: str) -> set[str]:
    """Every name of a dataset, also those that only others mention."""
    if kind != "dataset":
        return {name}
    namespace, own = name.split("\n")
    with store.read() as reader:
        (number,) = reader.find("dataset", [(namespace, own)])
        return {f"{each[1]}\n{each[2]}" for each in reader.names_of(number)}


def holds(store: Store, kind: str, names: set[str]) -> None:
    before = store.dump()
    told = store.forget(kind, sorted(names), rows_of, dry_run=True)
    assert store.dump() == before
    done = store.forget(kind, sorted(names), rows_of, by="ann")
    assert done == told
    after = store.dump()
    gone = {KINDS[kind]: names, Type.RUN: names if kind == "run" else set()}
    if kind == "job":
        gone[Type.RUN] = {
            key[0] for key, row in before["runs"].items() if row.get("job", (0, ""))[1] in names
        }
    for name, table in TABLES.items():
        for key, row in after[name].items():
            for part, of in zip(key, table.key.values(), strict=True):
                assert of not in REFERENCES or part not in gone.get(of, ()), f"{name} still has it"
            for column, spec in table.columns.items():
                assert (
                    spec.type not in REFERENCES
                    or column not in row
                    or row[column][1] not in gone.get(spec.type, ())
                )
        if name in ("contents", "aliases"):
            continue
        others = {
            key: row
            for key, row in before[name].items()
            if not any(part in gone.get(of, ()) for part, of in zip(key, table.key.values(), strict=True))
            and not (name in ("tags", "said") and key[1] in gone.get(KINDS.get(key[0], Type.RUN), ()))
        }
        if name in (
            "jobs",
            "declared",
            "edges",
            "schemas",
            "symlinks",
            "assertions",
            "inputs",
            "tags",
            "said",
        ):
            assert after[name].keys() == others.keys(), f"{name}: nothing else may go"
    for _, entry in store.log():
        document = msgspec.json.decode(entry.raw)
        if entry.kind == "command":
            continue
        if entry.kind != "base":
            assert not named_in(document, kind, names), "the log still names it"
            continue
        for _, key, _ in document["rows"]:
            assert not names & {part for part in key if isinstance(part, str)}
    for row in after["contents"].values():
        assert not named_in(msgspec.json.decode(row["body"]), kind, names), "a content still names it"
    replay(store)
    assert store.dump() == after, "a replay brings nothing back and loses nothing"
    with pytest.raises(NotFound):
        store.forget(kind, sorted(names), rows_of)
    audit = [msgspec.json.decode(e.raw) for _, e in store.log() if e.kind == "command"]
    assert [(each["by"], each["kind"]) for each in audit if each["command"] == "forget"][-1:] == [
        ("ann", kind)
    ]


def chosen(store: Store, data: st.DataObject) -> tuple[str, set[str]] | None:
    tables = store.dump()
    nodes = [(kind, key[0]) for kind in KINDS for key in sorted(tables[f"{kind}s"])]
    if not nodes:
        return None
    kind, name = data.draw(st.sampled_from(nodes))
    return kind, group(store, kind, name)


@given(entries, entries, st.data())
def test_what_is_forgotten_is_gone_for_good(stream: list[Any], later: list[Any], data: st.DataObject) -> None:
    with closing(open_store("memory:")) as store:
        for part in (stream, later):
            write(store, part, [])
            if found := chosen(store, data):
                holds(store, *found)


@pytest.fixture(scope="module")
def on_postgres(postgres: Postgres) -> Iterator[Store]:
    with closing(open_store(postgres.make(), partition_runs=2)) as store:
        yield store


@given(stream=entries, data=st.data())
def test_what_is_forgotten_is_gone_from_postgres(
    on_postgres: Store, stream: list[Any], data: st.DataObject
) -> None:
    empty(on_postgres)
    write(on_postgres, stream, [])
    if found := chosen(on_postgres, data):
        holds(on_postgres, *found)
