"""Ingest: what is accepted is there, what is refused is kept, and one strange event takes no other with it."""

from __future__ import annotations

import json

import pytest

import headwater.ingest as subject
from headwater.cli.demo import recorded
from headwater.event import Event, Limits
from headwater.facts import Row, derive
from headwater.guard import guard
from headwater.ingest import Outcome, ingest, ingest_all
from headwater.store import open_store

GOOD = list(recorded())


def test_good_and_bad_in_one_batch() -> None:
    store = open_store("memory:")
    outcome = ingest(
        store,
        [b"{", GOOD[0], b'{"eventTime": "x", "job": {"namespace": "a", "name": "b"}}', GOOD[1], GOOD[0]],
    )
    assert (outcome.received, outcome.stored, outcome.duplicates) == (5, 2, 1)
    assert [(at, fault.path) for at, fault in outcome.rejected] == [(0, ""), (2, "eventTime")]
    assert [each["reason"] for each in store.rejected()] != []
    assert store.counts()["rejects"] == 2
    store.close()


def test_limits_hold() -> None:
    store = open_store("memory:")
    outcome = ingest(store, [GOOD[0]], Limits(max_bytes=100))
    assert outcome.stored == 0
    assert "max_bytes" in outcome.rejected[0][1].reason
    store.close()


def test_an_event_that_cannot_be_understood_is_kept_and_the_others_stored(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fragile(event: Event) -> list[Row]:
        if event.raw == GOOD[2]:
            raise KeyError("a fault of ours")
        return derive(event)

    monkeypatch.setattr(subject, "_derive", guard("understanding an event")(fragile))
    store = open_store("memory:")
    outcome = ingest(store, GOOD[:5])
    assert outcome.stored == 4
    assert [at for at, _ in outcome.rejected] == [2]
    assert json.loads(store.rejected()[0]["payload"]) == json.loads(GOOD[2])
    store.close()


def test_many_are_taken_in_batches() -> None:
    store = open_store("memory:")
    outcomes = list(ingest_all(store, [*GOOD, b"{", *GOOD], size=5))
    total = sum(outcomes[1:], outcomes[0])
    assert total.received == 2 * len(GOOD) + 1
    assert (total.stored, total.duplicates) == (len(GOOD), len(GOOD))
    assert [at for at, _ in total.rejected] == [len(GOOD)]
    store.close()


def test_outcomes_add_up() -> None:
    assert Outcome(2, 1, 1) + Outcome(3, 3, 0) == Outcome(5, 4, 1)
