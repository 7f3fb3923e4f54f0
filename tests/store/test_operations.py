"""Copy, prune and forget as a person calls them, between SQLite and Postgres; pruning and backup while others write."""

from __future__ import annotations

import itertools
import json
import threading
from contextlib import closing
from pathlib import Path
from typing import Any

import msgspec
import pytest
from typer.testing import CliRunner

from databases import Postgres
from headwater.cli import build_app
from headwater.cli.demo import recorded
from headwater.errors import ConfigError
from headwater.event import micros
from headwater.facts.commands import Say, SetTag
from headwater.ingest import Retention, command, ingest, replay, restore, retain, rows_of
from headwater.store import Store, _sql, open_store
from headwater.store._identities import link
from streams import facet, run_id

DAY = 86_400_000_000


def run(*arguments: str) -> Any:
    done = CliRunner().invoke(build_app(), [*arguments])
    assert done.exit_code == 0, done.output
    return done.stdout


def event(number: int, day: int, kind: str = "COMPLETE") -> bytes:
    return msgspec.json.encode(
        {
            "eventTime": f"2026-01-{1 + day:02d}T00:00:{number % 60:02d}Z",
            "eventType": kind,
            "run": {"runId": run_id(number), "facets": {"custom": facet(number=number)}},
            "job": {"namespace": "etl", "name": f"job {number % 3}"},
            "inputs": [{"namespace": "s3://lake", "name": "in"}],
            "outputs": [{"namespace": "s3://lake", "name": f"out {number % 3}"}],
        }
    )


@pytest.fixture(params=["sqlite to postgresql", "postgresql to sqlite", "postgresql to postgresql"])
def pair(request: pytest.FixtureRequest, postgres: Postgres, tmp_path: Path) -> tuple[str, str]:
    names = itertools.count()
    kinds = {"sqlite": lambda: f"sqlite:///{tmp_path}/{next(names)}.db", "postgresql": postgres.make}
    one, other = request.param.split(" to ")
    return kinds[one](), kinds[other]()


def test_a_store_is_copied_and_a_copy_finished(pair: tuple[str, str]) -> None:
    source, target = pair
    with closing(open_store(source)) as store, closing(open_store(target)) as into:
        ingest(store, list(recorded()))
        command(store, SetTag(at=5, kind="job", namespace="spark", name="revenue", tag="core"))
        command(
            store, Say(at=5, by="ann", kind="job", namespace="spark", name="revenue", values={"owner": "ann"})
        )
        store.prune(micros("2026-01-31T12:00:00Z"), {"events"}, rows_of)
        half = list(store.log())[:4]
        restore(into, (entry for _, entry in half))  # what an interrupted copy left
        expected = store.dump()
    told = run("store", "copy", target, "--store", source)
    assert "every one is there" in told
    assert "hidden" not in told, "no password is shown"
    with closing(open_store(target)) as into:
        assert into.dump() == expected
    assert " 0 of them new" in run("store", "copy", target, "--store", source)


def test_prune_tells_before_it_does(store_url: str) -> None:
    with closing(open_store(store_url)) as store:
        ingest(store, [*(event(number, 0) for number in range(12)), event(100, 20), b"no event"])
    told = json.loads(
        run("store", "prune", "--older-than", "1d", "--dry-run", "--json", "--store", store_url)
    )
    assert told == {"dry_run": True, "runs": 10, "events": 13, "facets": 0, "rejects": 0, "contents": 10}
    done = json.loads(run("store", "prune", "--older-than", "1d", "--json", "--store", store_url))
    assert done == told | {"dry_run": False}
    assert "gone: nothing" in run("store", "prune", "--older-than", "1d", "--store", store_url)
    with closing(open_store(store_url)) as store:
        assert store.counts()["runs"] == 3
        before = store.dump()
        replay(store)
        assert store.dump() == before
        assert len(store.rejected()) == 1


@pytest.mark.parametrize("ages", [("1d", "40d"), ("40d", "1d"), ("1d", "")])
def test_prune_by_several_ages_tells_each_event_once(
    store_url: str, ages: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HEADWATER_RETENTION__RUNS", ages[0])
    monkeypatch.setenv("HEADWATER_RETENTION__EVENTS", ages[1])
    with closing(open_store(store_url)) as store:
        ingest(store, [*(event(number, 0) for number in range(12)), event(100, 20)])
    told = json.loads(run("store", "prune", "--dry-run", "--json", "--store", store_url))
    done = json.loads(run("store", "prune", "--json", "--store", store_url))
    assert told | {"dry_run": False} == done
    assert done["events"] == (10 if ages[1] == "" else 13)


@pytest.mark.parametrize("how", ["forget", "prune"])
def test_no_number_of_the_log_is_given_twice(store_url: str, how: str) -> None:
    with closing(open_store(store_url)) as store:
        ingest(store, [event(number, 0) for number in range(6)])
        seen = max(number for number, _ in store.log())
        if how == "forget":
            store.forget("job", sorted({key[0] for key in store.dump()["jobs"]}), rows_of)
        else:
            store.prune(micros("2030-01-01T00:00:00Z"), {"runs", "events"}, rows_of)
        ingest(store, [event(100, 20)])
        assert [entry.kind for _, entry in store.log(seen)][-1] == "run", "who follows from there misses it"


def test_forget_takes_a_run_and_a_dataset_by_their_names(store_url: str) -> None:
    with closing(open_store(store_url)) as store:
        ingest(store, [event(number, 0) for number in range(6)])
    told = json.loads(
        run("store", "forget", f"run:{run_id(1)}", "--json", "--by", "ann", "--store", store_url)
    )
    assert told == {"dry_run": False, "kind": "run", "names": [run_id(1)], "runs": 1, "entries": 1}
    assert "would go: dataset s3://lake/out 0" in run(
        "store", "forget", "out 0", "--dry-run", "--store", store_url
    )
    run("store", "forget", "out 0", "--unnamed", "--by", "ann", "--store", store_url)
    with closing(open_store(store_url)) as store:
        assert run_id(1) not in str(store.dump())
        assert not any(b"out 0" in entry.raw for _, entry in store.log()), "its name is nowhere"
        audit = [msgspec.json.decode(entry.raw) for _, entry in store.log() if entry.kind == "command"]
        assert [(each["command"], each["by"]) for each in audit] == [("forget", "ann")] * 2
        before = store.dump()
        replay(store)
        assert store.dump() == before
    missing = CliRunner().invoke(build_app(), ["store", "forget", "run:nobody", "--store", store_url])
    assert missing.exit_code != 0


def test_writers_go_on_while_old_runs_go_and_a_backup_is_made(
    store_url: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    with closing(open_store(store_url)) as store:
        ingest(store, [event(number, number % 3) for number in range(600)])
        stop, written, faults = threading.Event(), [], []

        def send() -> None:
            with closing(open_store(store_url)) as other:
                for number in itertools.count(1_000):
                    if stop.is_set():
                        return
                    body = event(number, 20)
                    try:
                        ingest(other, [body])
                    except Exception as fault:  # noqa: BLE001 - told below, by the thread that watches
                        faults.append(fault)
                        return
                    written.append(body)

        writer = threading.Thread(target=send)
        writer.start()
        begun = len(written)
        store.prune(micros("2026-01-10T00:00:00Z"), {"runs", "events", "facets"}, rows_of)
        store.backup(tmp_path / "backup")
        stop.set()
        writer.join()
        assert faults == []
        assert len(written) > begun
        after = store.dump()
        replay(store)
        assert store.dump() == after
        assert {key[0] for key in after["runs"]} >= {run_id(1_000 + each) for each in range(len(written))}
    url = (
        request.getfixturevalue("postgres").restore(tmp_path / "backup")
        if store_url.startswith("postgresql")
        else f"sqlite:///{tmp_path}/backup"
    )
    with closing(open_store(url)) as copy:
        assert copy.check() == []
        before = copy.dump()
        replay(copy)
        assert copy.dump() == before, "a backup is one moment, whole"


# ---- retention ---------------------------------------------------------------------------------------------


def filled() -> Store:
    store = open_store("memory:")
    ingest(store, [event(number, number) for number in range(28)])
    return store


def test_the_settings_say_what_goes() -> None:
    now = micros("2026-01-29T00:00:00Z")
    with closing(filled()) as store:
        assert retain(store, Retention(), now).runs == 0, "by default thirteen months are kept"
        assert retain(store, Retention(runs="", events="", rejects=""), now + 9999 * DAY).runs == 0
        done = retain(store, Retention(runs="10d", events=""), now)
        assert done.runs > 10
        assert store.counts()["jobs"] == 3


def test_a_clock_that_has_jumped_empties_no_store() -> None:
    with closing(filled()) as store:
        before = store.dump()
        assert retain(store, Retention(runs="40d", events="40d"), micros("2056-01-01T00:00:00Z")).runs == 0
        assert store.dump() == before


@pytest.mark.parametrize("age", ["90", "d", "-3d", "0d", "9y"])
def test_an_age_that_is_none_is_refused(age: str) -> None:
    with pytest.raises(ConfigError, match="as in 90d"):
        Retention(runs=age)


def test_adopting_tables_made_elsewhere(postgres: Postgres, tmp_path: Path) -> None:
    """What a rebuild of the pipeline does: tables of the log so far, then the entries since."""
    lines = list(recorded())
    with closing(open_store(postgres.make(), partition_runs=3)) as store:
        ingest(store, lines[:10])
        with store.read() as reader:
            last = reader.last_entry()
        made = f"sqlite:///{tmp_path}/made.db"
        with closing(open_store(made)) as beside:
            ingest(beside, lines[:10])
        ingest(store, lines[10:])
        expected = store.dump()
        assert store.adopt(tmp_path / "made.db", last, rows_of) == len(lines) - 10
        assert store.dump() == expected
        assert ingest(store, lines).stored == 0
        ingest(store, [event(number, 3) for number in range(50)])
        before = store.dump()
        replay(store)
        assert store.dump() == before


def test_a_backup_goes_to_postgres_as_the_store_does(
    postgres: Postgres, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the url says of certificates holds for `pg_dump`, too: else a password goes to whoever answers."""
    program = tmp_path / "pg_dump"
    program.write_text(f"#!/bin/sh\nenv | grep ^PG | sort > {tmp_path}/told\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    url = postgres.make()
    with closing(open_store(f"{url}?sslmode=disable&connect_timeout=7")) as store:
        store.backup(tmp_path / "backup")
    told = (tmp_path / "told").read_text().splitlines()
    assert "PGSSLMODE=disable" in told
    assert "PGCONNECT_TIMEOUT=7" in told


def test_a_replay_settles_each_dataset_once(store_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A replay is one transaction: what its first parts numbered is not new to each later one."""
    body = b'{"eventTime": "2026-01-01T00:00:00Z", "job": {"namespace": "j", "name": "%d"}, "outputs": [{"namespace": "s3a://lake", "name": "%d"}]}'
    with closing(open_store(store_url)) as store:
        for start in range(0, 1_600, 200):
            ingest(store, [body % (number, number % 3) for number in range(start, start + 200)])
        settled: list[str] = []

        def listen(*arguments: Any) -> None:
            settled.extend(arguments[3])
            link(*arguments)

        monkeypatch.setattr(_sql, "link", listen)
        before = store.dump()
        replay(store)
        assert store.dump() == before
        assert len(settled) == len(set(settled)) == 3
