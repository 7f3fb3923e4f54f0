"""What a batch costs the database: a row of each run, written once, and no table read whole to find it."""

from __future__ import annotations

import time
from contextlib import closing
from datetime import datetime, timedelta, timezone
from uuid import UUID

import psycopg
import pytest

from databases import Postgres
from headwater.errors import StoreError
from headwater.event import make
from headwater.ingest import ingest
from headwater.store import open_store

BEGIN = datetime(2026, 1, 1, tzinfo=timezone.utc)
REFUSE = {
    "sqlite": ["CREATE TRIGGER twice AFTER UPDATE ON runs BEGIN SELECT RAISE(ABORT, 'written twice'); END"],
    "postgresql": [
        "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS"
        " 'BEGIN RAISE EXCEPTION ''written twice''; END'",
        "CREATE TRIGGER twice AFTER UPDATE ON runs FOR EACH ROW EXECUTE FUNCTION refuse()",
    ],
}


def told(kind: str, run: int, *, reads: str = "", writes: str = "") -> bytes:
    return make(
        kind,
        BEGIN + timedelta(seconds=3 * run + ("START", "COMPLETE", "FAIL").index(kind)),
        job=("etl", f"job {run % 7}"),
        run_id=str(UUID(int=run)),
        inputs=[{"namespace": "s3://lake", "name": reads}] if reads else (),
        outputs=[{"namespace": "s3://lake", "name": writes}] if writes else (),
    ).raw


def whole(runs: range) -> list[bytes]:
    starts = [told("START", run, reads=f"raw/{run % 5}") for run in runs]
    return starts + [told("COMPLETE", run, writes=f"gold/{run % 3}") for run in runs]


def test_a_run_that_comes_whole_is_written_once(store_url: str) -> None:
    with closing(open_store(store_url)) as store:
        ingest(store, whole(range(1)))
        with store.writing() as connection:  # type: ignore[attr-defined]
            for statement in REFUSE[store_url.partition(":")[0]]:
                connection.exec_driver_sql(statement)
        ingest(store, whole(range(1, 20)))
        assert all("io" in row for row in store.dump()["runs"].values())
        with pytest.raises(StoreError, match="written twice"):  # so the trigger does look
            ingest(store, [told("FAIL", 5)])


def test_a_run_shows_all_of_its_parts_however_they_come(store_url: str) -> None:
    at_once, in_turn, backwards, ended_late, spoiled = range(5)
    with closing(open_store(store_url)) as store:
        for batch in (
            [told("START", at_once, reads="raw"), told("COMPLETE", at_once, writes="gold")],
            [told("START", in_turn, reads="raw"), told("COMPLETE", backwards, writes="gold")],
            [told("COMPLETE", in_turn, writes="gold"), told("START", backwards, reads="raw")],
            [told("START", ended_late, reads="raw", writes="gold"), told("COMPLETE", spoiled, writes="gold")],
            [told("COMPLETE", ended_late)],
        ):
            ingest(store, batch)
        shown = {UUID(key[0]).int: row.get("io") for key, row in store.dump()["runs"].items()}
        assert shown[at_once] is not None
        assert {shown[each] for each in (in_turn, backwards, ended_late)} == {shown[at_once]}
        assert shown[spoiled] not in (None, shown[at_once])
        ingest(store, [told("FAIL", spoiled)])
        assert "io" not in store.dump()["runs"][(str(UUID(int=spoiled)),)]


def test_a_young_store_reads_no_table_whole_to_find_a_row(postgres: Postgres) -> None:
    """A statement that was planned while its table was small keeps its plan: it must not be a scan."""
    url = postgres.make()
    database = url.rpartition("/")[2]
    runs = 400
    with closing(open_store(url)) as store:
        events = whole(range(runs))
        for start in range(0, len(events), 5):
            ingest(store, events[start : start + 5])
    with psycopg.connect(url, autocommit=True) as connection:
        sessions = "SELECT count(*) FROM pg_stat_activity WHERE datname = %s"
        deadline = time.monotonic() + 30  # a session says what it read when it ends
        while connection.execute(sessions, (database,)).fetchone() != (1,) and time.monotonic() < deadline:
            time.sleep(0.05)
        read = dict(
            connection.execute(
                "SELECT relname, seq_tup_read FROM pg_stat_user_tables"
                " WHERE relname IN ('runs', 'inputs_to_50000', 'outputs_to_50000', 'datasets', 'jobs', 'log')"
            ).fetchall()
        )
        written = connection.execute(
            "SELECT n_tup_ins FROM pg_stat_user_tables WHERE relname = 'runs'"
        ).fetchone()
    assert written == (runs,)
    assert max(read.values()) <= 2 * runs, read
