"""Every store does the same; each entry of STORES is enrolled by itself."""

from __future__ import annotations

import os
import shutil
import sqlite3
import threading
from collections.abc import Callable
from contextlib import closing
from datetime import datetime, timezone
from pathlib import Path
from uuid import uuid4

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import create_engine

from headwater.cli.demo import recorded
from headwater.errors import ConfigError, StoreError
from headwater.event import make, micros, parse
from headwater.facts import Command, fold
from headwater.facts.commands import Hide, Say, SetAlias, SetIncident, SetTag, Watch
from headwater.facts.definitions import DefineDataset, DefineField, DefineJob, Name
from headwater.ingest import command, ingest, read_entry, replay, restore, rows_of
from headwater.query.lineage import lineage
from headwater.query.show import show
from headwater.store import STORES, Batch, Entry, Offset, Reject, Store, open_store
from headwater.store._migrate import HEAD
from headwater.store._schema import metadata

Opener = Callable[[], Store]


@pytest.fixture(params=sorted(STORES))
def opener(request: pytest.FixtureRequest, tmp_path: Path) -> Opener:
    urls = {
        "memory": lambda: "memory:",
        "sqlite": lambda: f"sqlite:///{tmp_path}/x.db",
        "postgresql": lambda: request.getfixturevalue("postgres").make(),
    }
    if request.param not in urls:
        pytest.fail(f"give the store {request.param!r} a url here, so that the contract is tested for it too")
    url = urls[request.param]()
    return lambda: open_store(url)


def test_long_texts_in_facets_keep_no_event_from_being_stored(opener: Opener) -> None:
    """Keys of tables hold them, and an index of Postgres takes 2,704 bytes."""
    long = "".join(uuid4().hex for _ in range(2_000))
    checks = {"assertions": [{"assertion": long, "column": long, "success": False}]}
    far = {"namespace": "x", "name": long, "type": long}
    tags = {"tags": [{"key": long, "value": long, "field": long}]}
    table = {
        "namespace": "db",
        "name": "t",
        "facets": {"tags": tags, "symlinks": {"identifiers": [far, {**far, "name": "y"}]}},
        "inputFacets": {"dataQualityAssertions": checks},
    }
    tests = {"tests": [{"name": long, "status": "fail"}]}
    parent = {"run": {"runId": str(uuid4())}, "job": {"namespace": "etl", "name": long}}
    run_facets = {"test": tests, "parent": parent, long: {"a": 1}, "a\0b": {"a": 1}}
    noon = datetime(2026, 1, 1, 12, tzinfo=timezone.utc)
    odd = make("COMPLETE", noon, job=("etl", "a"), run_id=str(uuid4()), inputs=[table], run_facets=run_facets)
    plain = make("COMPLETE", noon, job=("etl", "b"), run_id=str(uuid4()))
    with closing(opener()) as store:
        assert ingest(store, [odd.raw, plain.raw]).stored == 2
        assert store.check() == []


def test_what_a_store_cannot_hold_keeps_no_other_event_out(opener: Opener) -> None:
    """A name within the limit may be more than an index of Postgres takes, where it does not pack well."""
    noon = datetime(2026, 1, 1, 12, tzinfo=timezone.utc)
    long = "".join(uuid4().hex for _ in range(2_000))[:4_000]
    told = [make("COMPLETE", noon, job=("etl", name), run_id=str(uuid4())).raw for name in ("a", long, "b")]
    with closing(opener()) as store:
        read = [Offset("c", "t", 0, 0, 3)]
        outcome = ingest(store, told, offsets=read)
        refused = [1] if store.url.startswith("postgresql") else []
        assert [position for position, _ in outcome.rejected] == refused
        assert (outcome.stored, store.counts()["rejects"]) == (3 - len(refused), len(refused))
        assert store.offsets("c", "t") == {0: 3}
        for _, why in outcome.rejected:
            assert why.reason.startswith("the store cannot hold it: index row size"), why
        again = ingest(store, told)
        assert (again.stored, len(again.rejected)) == (0, len(refused))
        assert store.check() == []


def test_a_batch_is_written_whole_and_once(opener: Opener) -> None:
    store = opener()
    lines = list(recorded())
    assert ingest(store, lines).stored == len(lines)
    before = store.dump()
    assert ingest(store, lines).stored == 0
    assert store.dump() == before
    assert store.counts()["log"] == len(lines)
    assert store.check() == []
    store.close()


def test_a_batch_that_fails_leaves_nothing(opener: Opener) -> None:
    store = opener()
    lines = list(recorded())
    ingest(store, lines[:5])
    before = store.dump()
    event = parse(lines[6])
    broken = fold([("jobs", ("etl\nnew",), {"first_seen": object()})])  # no database takes that
    with pytest.raises((StoreError, sqlite3.Error)):
        store.write(Batch([Entry(event.digest, event.kind, event.time, event.raw)], broken))
    assert store.dump() == before
    assert ingest(store, lines).stored == len(lines) - 5, (
        "and what was rolled back is not remembered as there"
    )
    other = open_store("memory:")
    ingest(other, lines)
    assert store.dump() == other.dump()
    store.close()
    other.close()


def test_replay_makes_the_same_tables(opener: Opener) -> None:
    store = opener()
    ingest(store, list(recorded()))
    command(store, SetTag(at=5, kind="dataset", namespace="s3://lake", name="raw/payments", tag="pii"))
    command(store, SetAlias(at=6, rule={"namespace": "kafka://{b}:9092", "to_namespace": "kafka://prod"}))
    before, seen = store.dump(), []
    assert replay(store, seen.append) == store.counts()["log"] == seen[-1]
    assert store.dump() == before
    assert show(store, "raw/payments")["tags"][0]["tag"] == "pii"
    store.close()


def test_what_is_said_may_hold_any_character(opener: Opener) -> None:
    odd = "a\0b"
    field = DefineField(odd, odd, odd, (odd,))
    said: list[Command] = [
        Name(at=1, kind="source", name=odd),
        Say(at=2, kind="namespace", name="x", values={"owner": odd, odd: odd}),
        SetTag(at=3, kind="dataset", namespace="x", name="y", tag=odd, field=odd, value=odd, by=odd),
        DefineDataset(
            at=4, namespace="x", name=odd, description=odd, source=odd, fields=(field,), tags=(odd,)
        ),
        DefineJob(at=5, namespace=odd, name="j", location=odd, inputs=((odd, odd),)),
        SetIncident(at=6, incident=7, status="resolved", reason=odd, note=odd, by=odd),
        Watch(at=8, pattern=odd, measure="volume"),
        Hide(at=9, kind="namespace", namespace=odd),
    ]
    store, memory = opener(), open_store("memory://")
    for each in said:
        assert command(store, each)
        command(memory, each)
    before = store.dump()
    assert before == memory.dump()
    assert "a\ufffdb" in repr(before)
    replay(store)
    assert store.dump() == before
    store.close()


def test_rejects_are_kept_with_reason_payload_and_time(opener: Opener) -> None:
    store = opener()
    assert store.rejected() == []
    for _ in range(2):
        store.write(
            Batch(
                rejects=[Reject("run.runId", "missing", b'{"run": {}}'), Reject("", "broken", b"\xff\x00{")]
            )
        )
    found = store.rejected()
    assert {(each["path"], each["reason"], each["times"], each["size"]) for each in found} == {
        ("run.runId", "missing", 2, 11),
        ("", "broken", 2, 3),
    }
    assert {each["payload"] for each in found} == {'{"run": {}}', "\ufffd\x00{"}
    assert all(each["first_seen"] <= each["last_seen"] for each in found)
    store.close()


def test_a_log_can_be_carried_into_another_store(opener: Opener, tmp_path: Path) -> None:
    store = opener()
    ingest(store, list(recorded()))
    command(store, SetTag(at=5, kind="job", namespace="spark", name="revenue", tag="core"))
    into = open_store(f"sqlite:///{tmp_path}/other.db")
    exported = [entry.raw for _, entry in store.log()]
    assert restore(into, (read_entry(raw) for raw in exported)) == len(exported)
    assert into.dump() == store.dump()
    assert restore(into, (entry for _, entry in store.log())) == 0
    store.close()
    into.close()


def test_a_backup_is_the_store(opener: Opener, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    store = opener()
    ingest(store, list(recorded()))
    store.backup(tmp_path / "backup")
    copy = open_store(
        request.getfixturevalue("postgres").restore(tmp_path / "backup")
        if store.url.startswith("postgresql")
        else f"sqlite:///{tmp_path}/backup"
    )
    assert copy.dump() == store.dump()
    assert ingest(copy, list(recorded())).stored == 0
    store.close()
    copy.close()


def test_how_far_a_topic_is_read_stands_with_the_rows(opener: Opener) -> None:
    store = opener()
    lines = list(recorded())
    assert store.offsets("us", "lineage") == {}
    assert ingest(store, lines[:3], offsets=[Offset("us", "lineage", 0, 0, 3)]).stored == 3
    assert ingest(store, lines[:3], offsets=[Offset("us", "lineage", 1, 7, 10)]).stored == 0, (
        "repeats move it too"
    )
    assert store.offsets("us", "lineage") == {0: 3, 1: 10}
    before = store.dump()
    bad = b'{"no": "event"}'
    for start in (0, 2):  # one that was thought dead writes what another has taken
        with pytest.raises(StoreError, match="is read beyond") as caught:
            ingest(
                store,
                [*lines, bad],
                offsets=[Offset("us", "lineage", 1, 10, 20), Offset("us", "lineage", 0, start, 9)],
            )
        assert caught.value.cause == "moved"
    assert (store.dump(), store.rejected(), store.offsets("us", "lineage")) == (before, [], {0: 3, 1: 10})
    assert ingest(store, [bad], offsets=[Offset("us", "lineage", 0, 5, 6)]).rejected, (
        "a gap is no fault: records expire"
    )
    assert store.offsets("us", "lineage") == {0: 6, 1: 10}
    assert store.offsets("them", "lineage") == {}
    store.close()


def test_room_is_told_and_kept(opener: Opener, monkeypatch: pytest.MonkeyPatch) -> None:
    store = opener()
    told = store.room()
    assert told["state"] in ("ok", "low"), "whatever this disk has"
    assert told["used_bytes"] >= 0
    monkeypatch.setattr(store, "room", lambda: {"state": "full", "free_bytes": 5, "reserve_bytes": 10})
    monkeypatch.setattr(store, "_roomy_until", 0)
    with pytest.raises(StoreError, match="headwater store prune") as caught:
        ingest(store, list(recorded()))
    assert caught.value.retryable
    assert caught.value.cause == "full"
    with store.read() as reader:
        assert reader.stats()["events"] == 0, "reads go on"
    monkeypatch.undo()
    assert ingest(store, list(recorded())).stored
    store.close()


def test_a_full_disk_takes_events_again_once_something_went(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = open_store(f"sqlite:///{tmp_path}/x.db")
    monkeypatch.setattr(store, "_look_at_room_every", 0.0)
    old = [
        make("COMPLETE", datetime(2020, 1, 1, tzinfo=timezone.utc), job=("j", "j"), run_id=f"r{number}",
             run_facets={"noise": {"text": os.urandom(200_000).hex()}}).raw
        for number in range(10)
    ]  # fmt: skip
    ingest(store, old)
    nearly = shutil.disk_usage(tmp_path)._replace(free=(64 << 20) - 1000)  # a little less than the reserve
    monkeypatch.setattr(shutil, "disk_usage", lambda _: nearly)
    with pytest.raises(StoreError, match="nothing more is written"):
        ingest(store, list(recorded()))
    store.prune(micros("2021-01-01T00:00:00Z"), {"runs", "events"}, rows_of)
    assert store.room()["state"] == "low"
    assert ingest(store, list(recorded())).stored
    monkeypatch.setattr(shutil, "disk_usage", lambda _: nearly._replace(free=1 << 20))
    with pytest.raises(StoreError, match="nothing more is written"):  # its journal would not fit
        ingest(store, [old[0].replace(b"2020-01-01", b"2020-01-03")])
    store.close()


def test_readers_see_one_moment(opener: Opener) -> None:
    store = opener()
    lines = list(recorded())
    ingest(store, lines[:3])
    with store.read() as reader:
        count = reader.stats()["events"]
        writer = threading.Thread(target=ingest, args=(store, lines))
        writer.start()
        writer.join(1)  # a file's reader does not hold the writer up; the memory store's does
        assert reader.stats()["events"] == count
    writer.join()
    with store.read() as reader:
        assert reader.stats()["events"] == len(lines)
    store.close()


# ---- SQLite alone ------------------------------------------------------------------------------------------


def test_two_processes_may_write_one_file(tmp_path: Path) -> None:
    """Each remembers numbers it met; a replay or an alias rule of the other must make it look again."""
    url = f"sqlite:///{tmp_path}/x.db"
    one, two = open_store(url), open_store(url)
    lines = list(recorded())
    ingest(one, lines[:4])
    ingest(two, lines[4:8])
    replay(one)
    ingest(two, lines[8:12])
    command(one, SetAlias(at=6, rule={"namespace": "duckdb://{p*}", "to_namespace": "duckdb://prod"}))
    ingest(two, lines[12:])
    alone = open_store("memory:")
    command(alone, SetAlias(at=6, rule={"namespace": "duckdb://{p*}", "to_namespace": "duckdb://prod"}))
    ingest(alone, lines)
    assert one.dump() == two.dump() == alone.dump()
    assert any(node["namespace"] == "duckdb://prod" for node in lineage(two, "gold/revenue_by_day")["nodes"])
    for store in (one, two, alone):
        store.close()


def test_migrations_make_exactly_the_declared_tables(tmp_path: Path) -> None:
    open_store(f"sqlite:///{tmp_path}/x.db").close()
    engine = create_engine(f"sqlite:///{tmp_path}/x.db")
    with engine.connect() as connection:
        assert compare_metadata(MigrationContext.configure(connection), metadata) == []
        made = dict(
            connection.exec_driver_sql("SELECT name, sql FROM sqlite_master WHERE type = 'table'").fetchall()
        )
    engine.dispose()
    plain = create_engine("sqlite://")
    metadata.create_all(plain)
    with plain.connect() as connection:
        declared = dict(
            connection.exec_driver_sql("SELECT name, sql FROM sqlite_master WHERE type = 'table'").fetchall()
        )
    plain.dispose()
    made.pop("alembic_version")
    assert {name: " ".join(sql.split()) for name, sql in made.items()} == {
        name: " ".join(sql.split()) for name, sql in declared.items()
    }


def test_a_newer_format_is_refused_with_what_to_do(tmp_path: Path) -> None:
    open_store(f"sqlite:///{tmp_path}/x.db").close()
    with sqlite3.connect(tmp_path / "x.db") as connection:
        assert connection.execute("SELECT version_num FROM alembic_version").fetchone() == (HEAD,)
        connection.execute("UPDATE alembic_version SET version_num = '9999'")
    connection.close()
    with pytest.raises(StoreError, match=r"made by a newer one\. Upgrade with: pip install -U headwater"):
        open_store(f"sqlite:///{tmp_path}/x.db")


@pytest.mark.parametrize(
    ("url", "error", "words"),
    [
        ("sqlite://", ConfigError, "names no file"),
        ("sqlite:///x.db?synchronous=maybe", ConfigError, "full, normal, off"),
        ("sqlite:///x.db?colour=red", ConfigError, "unexpected keyword argument 'colour'"),
        ("sqlit:///x.db", ConfigError, "did you mean 'sqlite'"),
        ("x.db", ConfigError, "is no url"),
        ("sqlite:////proc/nowhere/x.db", StoreError, "cannot be made"),
    ],
)
def test_a_wrong_url_is_refused(
    url: str, error: type[Exception], words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(error, match=words):
        open_store(url)


def test_what_is_no_database_is_refused(tmp_path: Path) -> None:
    (tmp_path / "x.db").write_bytes(b"these are my notes, not a database" * 100)
    with pytest.raises(StoreError, match="not a database"):
        open_store(f"sqlite:///{tmp_path}/x.db")
    assert (tmp_path / "x.db").read_bytes().startswith(b"these are my notes")


def test_the_database_of_something_else_stays_as_it_is(tmp_path: Path) -> None:
    file = tmp_path / "other #1.db"
    with closing(sqlite3.connect(file)) as other:
        other.execute("CREATE TABLE alembic_version (version_num TEXT)")
        other.execute("CREATE TABLE dag (dag_id TEXT)")
        other.commit()
    before = file.read_bytes()
    with pytest.raises(StoreError, match="the database of something else"):
        open_store(f"sqlite:///{file}")
    assert file.read_bytes() == before
    assert [each.name for each in tmp_path.iterdir()] == [file.name]


def test_an_older_format_is_left_alone_where_asked(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/x.db"
    with pytest.raises(StoreError, match="headwater store migrate"):
        open_store(url, migrate_on_open="no")
    open_store(url).close()
    open_store(url, migrate_on_open=False).close()


def test_the_raw_log_is_compressed(tmp_path: Path) -> None:
    store = open_store(f"sqlite:///{tmp_path}/x.db")
    ingest(store, list(recorded()))
    store.close()
    with sqlite3.connect(tmp_path / "x.db") as connection:
        (size,) = connection.execute("SELECT sum(length(body)) FROM log").fetchone()
    connection.close()
    assert size < sum(map(len, recorded())) * 0.6


def test_each_event_by_itself_again_changes_nothing(opener: Opener) -> None:
    """So few are not looked up first: merging them again is what must change nothing."""
    store = opener()
    lines = list(recorded())
    assert [ingest(store, [line]).stored for line in lines] == [1] * len(lines)
    before = store.dump()
    assert [ingest(store, [line]).duplicates for line in lines] == [1] * len(lines)
    assert store.dump() == before
    assert store.counts()["log"] == len(lines)
    store.close()


def test_the_newest_runs_of_jobs_are_the_newest_also_of_those_of_one_moment(opener: Opener) -> None:
    store = opener()
    began = [3, 1, 2, 2, 2, 2, 5, 0]
    told: dict[str, list[tuple[int, str]]] = {"many": [], "few": []}
    lines = []
    for job, seconds in (("many", began), ("few", began[:2])):
        for second in seconds:
            run = str(uuid4())
            at = datetime(2026, 1, 1, 0, 0, second, tzinfo=timezone.utc)
            lines.append(make("START", at, job=("etl", job), run_id=run).raw)
            told[job].append((second, run))
    ingest(store, lines)
    with store.read() as reader:
        numbers = {job: reader.find("job", [("etl", job)])[0] for job in told}
        for limit in (1, 3, 4, 6, 20):
            found = reader.history().latest(numbers.values(), limit)
            assert {job: [row["run_id"] for row in found[number]] for job, number in numbers.items()} == {
                job: [run for _, run in sorted(runs, reverse=True)[:limit]] for job, runs in told.items()
            }
    store.close()
