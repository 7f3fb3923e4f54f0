"""How many events a span has, from hours that are counted: as many as the log holds, whatever came, came twice or went."""

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
