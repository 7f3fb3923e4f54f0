"""How the last run of each job stands: as its runs say, whatever comes, goes or is taken back."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing
from datetime import datetime, timedelta, timezone
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from databases import Postgres, empty
from headwater.facts.definitions import DefineRun
from headwater.ingest import command, ingest, rows_of
from headwater.query.marquez._words import RUN_STATES, STORED, state
from headwater.query.marquez.jobs import job_page
from headwater.store import Store, open_store

BEGIN = datetime(2026, 1, 1, tzinfo=timezone.utc)
KINDS = ("START", "RUNNING", "COMPLETE", "FAIL", "ABORT", "OTHER")
Event = tuple[int, int, int, str, bool]
# few seconds, runs and jobs, so that runs tie, come backwards, and move from one job to another
events = st.tuples(
    st.integers(0, 5),
    st.integers(0, 4),
    st.integers(0, 2),
    st.sampled_from((*KINDS, "by hand")),
    st.booleans(),
)
batches = st.lists(st.lists(events, max_size=4), max_size=4)


def told(event: Event) -> bytes:
    second, run, job, kind, child = event
    body: dict[str, Any] = {
        "eventTime": (BEGIN + timedelta(seconds=second)).isoformat(),
        "eventType": kind,
        "run": {"runId": str(UUID(int=run))},
        "job": {"namespace": "n", "name": f"job {job}"},
    }
    if child:
        # a run that only its child tells of, of a job that has others
        parent = {"run": {"runId": str(UUID(int=9))}, "job": {"namespace": "n", "name": "job 0"}}
        body["run"]["facets"] = {"parent": {"_producer": "p", "_schemaURL": "s", **parent}}
    return json.dumps(body).encode()


def take(store: Store, batch: list[Event]) -> None:
    ingest(store, [told(each) for each in batch if each[3] != "by hand"])
    for second, run, job, kind, _ in batch:
        if kind == "by hand":
            at = int((BEGIN.timestamp() + second) * 1_000_000)
            command(
                store, DefineRun(at=at, by="", run_id=str(UUID(int=run)), namespace="n", job=f"job {job}")
            )


def expected(store: Store) -> dict[str, str | None]:
    """For each job how its last run stands that has begun; of runs that only were made by hand, that."""
    tables = store.dump()
    found: dict[str, str | None] = {}
    for (job,) in tables["jobs"]:
        runs = [row for row in tables["runs"].values() if row.get("job", (0, ""))[1] == job]
        stand = [(row["first_seen"], row.get("state", (0, "3 RUNNING"))[1]) for row in runs]
        begun = [each for each in stand if each[1] != STORED[0]]
        found[job.partition("\n")[2]] = max(begun or stand)[1] if stand else None
    return found


def as_they_stand(store: Store) -> None:
    wanted = expected(store)
    for word in RUN_STATES:
        page = job_page(store, None, [word], 2, 0)
        jobs = {name for name, last in wanted.items() if last is not None and state(last) == word}
        assert page["totalCount"] == len(jobs), word
        assert {each["name"] for each in page["jobs"]} <= jobs
        assert {each["latestRun"]["state"] for each in page["jobs"]} <= {word}
        assert len(page["jobs"]) == min(2, len(jobs))
    every = job_page(store, None, [], 100, 0)["jobs"]
    ran = [wanted[each["name"]] is not None for each in every]
    assert len(every) == len(wanted)
    assert ran == sorted(ran, reverse=True)  # those that never ran come last


def holds(store: Store, several: list[list[Event]], before: int) -> None:
    for batch in several:
        take(store, batch)
        as_they_stand(store)
    store.prune(int((BEGIN.timestamp() + before) * 1_000_000), {"runs", "events"}, rows_of)
    as_they_stand(store)
    for kind, table in (("run", "runs"), ("job", "jobs")):
        if found := sorted(key[0] for key in store.dump()[table]):
            store.forget(kind, found[:1], rows_of)
            as_they_stand(store)
    store.replay(rows_of)
    as_they_stand(store)


@given(batches, st.integers(0, 6))
def test_a_job_stands_as_its_last_run_does(several: list[list[Event]], before: int) -> None:
    with closing(open_store("memory:")) as store:
        holds(store, several, before)


@pytest.fixture(scope="module")
def on_postgres(postgres: Postgres) -> Iterator[Store]:
    with closing(open_store(postgres.make())) as store:
        yield store


@given(several=batches, before=st.integers(0, 6))
def test_a_job_stands_as_its_last_run_does_on_postgres(
    on_postgres: Store, several: list[list[Event]], before: int
) -> None:
    empty(on_postgres)
    holds(on_postgres, several, before)
