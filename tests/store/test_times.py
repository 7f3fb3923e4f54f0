"""How many events a span has, and how many runs began and ended hour by hour: as many as there are, in any zone."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing
from datetime import datetime, timedelta, timezone
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from databases import Postgres, empty
from headwater.facts.flows import NOW
from headwater.ingest import ingest, rows_of
from headwater.query.marquez.events import event_page
from headwater.query.marquez.stats import event_stats
from headwater.store import Store, open_store

EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
# around the edges of hours, before 1970 and after
seconds = st.builds(
    lambda hour, second: 3_600 * hour + second, st.integers(-3, 3), st.sampled_from((-1, 0, 1, 1_800))
)
told = st.lists(st.tuples(seconds, st.integers(0, 3)), max_size=8)
Story = list[list[tuple[int, int]]]


def event(second: int, run: int) -> bytes:
    body = {
        "eventTime": (EPOCH + timedelta(seconds=second)).isoformat(),
        "eventType": "COMPLETE",
        "run": {"runId": str(UUID(int=run))},
        "job": {"namespace": "n", "name": "j"},
    }
    return json.dumps(body).encode()


def counted(store: Store, *moments: int) -> None:
    """Every span between these moments has as many events as the log holds; so has all of time."""
    times = [entry.time for _, entry in store.log() if entry.kind == "run"]
    for after in (-NOW, *moments):
        for before in (*moments, NOW):
            page = event_page(store, after=after, before=before, limit=2, offset=0)
            assert page["totalCount"] == sum(after <= each < before for each in times), (after, before)


def holds(store: Store, batches: Story, one: int, other: int) -> None:
    moments = (one * 1_000_000, other * 1_000_000)
    for batch in batches:
        ingest(store, [event(*each) for each in batch])
        counted(store, *moments)
    store.prune(moments[0], {"events"}, rows_of)
    counted(store, *moments)
    if found := sorted(key[0] for key in store.dump()["runs"]):
        store.forget("run", found[:1], rows_of)
        counted(store, *moments)


@given(st.lists(told, max_size=3), seconds, seconds)
def test_a_span_has_as_many_events_as_the_log_holds(batches: Story, one: int, other: int) -> None:
    with closing(open_store("memory:")) as store:
        holds(store, batches, one, other)


@pytest.fixture(scope="module")
def on_postgres(postgres: Postgres) -> Iterator[Store]:
    with closing(open_store(postgres.make())) as store:
        yield store


@given(batches=st.lists(told, max_size=3), one=seconds, other=seconds)
def test_a_span_has_as_many_events_as_the_log_of_postgres_holds(
    on_postgres: Store, batches: Story, one: int, other: int
) -> None:
    empty(on_postgres)
    holds(on_postgres, batches, one, other)


# --- runs, hour by hour and day by day

ZONES = ("UTC", "Europe/Berlin", "Asia/Kathmandu", "America/St_Johns", "Australia/Lord_Howe")
"""The last goes forward by half an hour in summer."""
# when summer time begins or ends in one of them, and a moment within an hour
nows = st.builds(
    lambda day, minute: datetime.fromisoformat(f"{day}T00:00:00+00:00") + timedelta(minutes=minute),
    st.sampled_from(("2026-03-29", "2026-04-05", "2026-10-04", "2026-10-25")),
    st.integers(0, 48 * 60),
)
# seconds before then: around whole hours and quarters, within the week and beyond it
ago = st.builds(
    lambda quarter, second: 900 * quarter + second, st.integers(-8, 8 * 96), st.sampled_from((-1, 0, 1))
)
runs = st.lists(st.tuples(ago, ago, st.sampled_from(("COMPLETE", "FAIL", "ABORT", "RUNNING"))), max_size=8)


def adds_up(store: Store, now: datetime, zone: str, told: list[tuple[int, int, str]]) -> None:
    whole = now.replace(minute=0, second=0)
    begun, ended = [], []
    for number, (start, end, state) in enumerate(told):
        moments = (whole - timedelta(seconds=max(start, end)), whole - timedelta(seconds=min(start, end)))
        for kind, moment in zip(("START", state), moments, strict=True):
            body = json.loads(event(0, number)) | {"eventTime": moment.isoformat(), "eventType": kind}
            ingest(store, [json.dumps(body).encode()])
        begun.append(moments[0])
        ended.append((moments[1], state))
    for period in ("DAY", "WEEK"):
        for each in event_stats(store, period, zone, now):
            first, last = (datetime.fromisoformat(each[key].replace("Z", "+00:00")) for key in ("startInterval", "endInterval"))  # fmt: skip
            assert each["start"] == sum(first <= at < last for at in begun)
            for word, kind in (("complete", "COMPLETE"), ("fail", "FAIL"), ("abort", "ABORT")):
                assert each[word] == sum(first <= at < last and state == kind for at, state in ended)


@given(nows, st.sampled_from(ZONES), runs)
def test_runs_are_counted_where_the_calendar_has_them(
    now: datetime, zone: str, told: list[tuple[int, int, str]]
) -> None:
    with closing(open_store("memory:")) as store:
        adds_up(store, now, zone, told)


@given(now=nows, zone=st.sampled_from(ZONES), told=runs)
def test_runs_are_counted_so_by_postgres_too(
    on_postgres: Store, now: datetime, zone: str, told: list[tuple[int, int, str]]
) -> None:
    empty(on_postgres)
    adds_up(on_postgres, now, zone, told)
