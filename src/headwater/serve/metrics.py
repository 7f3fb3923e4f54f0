"""serve.metrics: what became of events and requests, and the spool of this machine -> GET /metrics, as Prometheus reads it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from litestar import Response, get
from litestar.datastructures import State
from litestar.plugins.prometheus import PrometheusConfig
from prometheus_client import (
    CONTENT_TYPE_LATEST,
    REGISTRY,
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    generate_latest,
)
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from headwater.errors import EventError, StoreError, TooLarge
from headwater.ingest import Outcome
from headwater.serve.intake import Intake
from headwater.transport.spool.metrics import SpoolCollector

REQUESTS = PrometheusConfig(app_name="headwater", prefix="headwater", group_path=True, exclude=["/metrics$"])
"""Requests and their durations, by Litestar's own middleware; the path is the route, so there are few of them."""
_SIZES = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000)


class Tally:
    """Counts what one app did. `spool` is a spool directory on this machine, to be told of with it."""

    def __init__(
        self,
        spool: Path | None = None,
        room: Callable[[], Mapping[str, Any]] | None = None,
        datahub: Callable[[], Mapping[str, float]] | None = None,
    ) -> None:
        self.registry = known = CollectorRegistry()
        self._events = Counter(
            "headwater_events", "Events received, by what became of them.", ["outcome"], registry=known
        )
        self._refused = Counter(
            "headwater_events_refused", "Events refused, by what was wrong.", ["reason"], registry=known
        )
        self._batches = Histogram(
            "headwater_batch_events", "Events written in one transaction.", buckets=_SIZES, registry=known
        )
        self._seconds = Histogram(
            "headwater_batch_seconds", "Seconds that one transaction took.", registry=known
        )
        self._turned_away = Counter(
            "headwater_requests_refused",
            "Requests turned away before they were read: no key, a wrong one, a wrong scope, too many of them.",
            ["reason"],
            registry=known,
        )
        self._waiting = Gauge(
            "headwater_intake_requests", "Requests that wait to be written.", registry=known
        )
        self._bytes = Gauge("headwater_intake_bytes", "Bytes that wait to be written.", registry=known)
        self._arriving = Gauge("headwater_arriving_bytes", "Bytes of bodies on their way in.", registry=known)
        for outcome in ("accepted", "duplicate", "refused"):  # so that they are there from the start
            self._events.labels(outcome)
        if spool is not None:
            self.registry.register(SpoolCollector(spool))
        if room is not None:
            self.registry.register(_RoomCollector(room))
        if datahub is not None:
            self.registry.register(_DataHubCollector(datahub))

    def count(self, outcome: Outcome, seconds: float) -> None:
        """One transaction was made."""
        self._events.labels("accepted").inc(outcome.stored)
        self._events.labels("duplicate").inc(outcome.duplicates)
        self._events.labels("refused").inc(len(outcome.rejected))
        for _, fault in outcome.rejected:
            self._refused.labels(reason(fault)).inc()
        self._batches.observe(outcome.received)
        self._seconds.observe(seconds)

    def turn_away(self, reason: str) -> None:
        """A request was turned away."""
        self._turned_away.labels(reason).inc()

    def watch(self, intake: Intake | None, arriving: Callable[[], int]) -> None:
        """Tell, when asked, what waits."""
        self._waiting.set_function(lambda: intake.waiting()[0] if intake else 0)
        self._bytes.set_function(lambda: intake.waiting()[1] if intake else 0)
        self._arriving.set_function(arriving)

    def told(self) -> bytes:
        """All of it, and what the process itself tells, in the text format."""
        return generate_latest(REGISTRY) + generate_latest(self.registry)


class _RoomCollector(Collector):
    """How much space the store takes and has left, and whether that is enough."""

    def __init__(self, room: Callable[[], Mapping[str, Any]]) -> None:
        self._room = room

    def describe(self) -> list[Metric]:
        """Nothing to ask the store for beforehand."""
        return []

    def collect(self) -> Iterator[Metric]:
        """Asked at each scrape; a store that does not answer is told as such."""
        try:
            room: Mapping[str, Any] = self._room()
        except StoreError:
            room = {"state": "unknown"}
        state = GaugeMetricFamily(
            "headwater_store_room", "1 for the state that the store's space is in.", labels=["state"]
        )
        for word in ("ok", "low", "full", "unknown"):
            state.add_metric([word], int(room["state"] == word))
        yield state
        for name, key, about in (
            ("headwater_store_bytes", "used_bytes", "Bytes that the store takes on its disk."),
            ("headwater_store_free_bytes", "free_bytes", "Bytes left on the store's disk."),
        ):
            if room.get(key) is not None:  # a database elsewhere does not tell of its disk
                yield GaugeMetricFamily(name, about, value=room[key])


class _DataHubCollector(Collector):
    """How far the delivery to DataHub is behind, and what it holds."""

    def __init__(self, lag: Callable[[], Mapping[str, float]]) -> None:
        self._lag = lag

    def describe(self) -> list[Metric]:
        """Nothing to ask the store for beforehand."""
        return []

    def collect(self) -> Iterator[Metric]:
        """Asked at each scrape; of a store that does not answer nothing is told."""
        try:
            lag = self._lag()
        except StoreError:
            return
        for name, key, about in (
            (
                "headwater_datahub_lag_entries",
                "entries",
                "Entries of the log that DataHub was not told of yet.",
            ),
            ("headwater_datahub_lag_seconds", "seconds", "Seconds since the first of them happened."),
            ("headwater_datahub_open_groups", "open", "Run groups with something that was not told yet."),
            ("headwater_datahub_refused", "refused", "Proposals and events that were refused, and are kept."),
        ):
            yield GaugeMetricFamily(name, about, value=lag[key])


@get("/metrics", sync_to_thread=True, include_in_schema=False, scope="read")
def get_metrics(state: State) -> Response[bytes]:
    """What Prometheus scrapes."""
    return Response(state.tally.told(), headers={"Content-Type": CONTENT_TYPE_LATEST})


def reason(fault: EventError) -> str:
    """What is wrong with an event, in one of a few words: a path without its numbers, never what a client sent.

    >>> reason(EventError("inputs[3].name", "is empty")), reason(TooLarge("", "5 bytes")), reason(EventError("", "broken JSON"))
    ('inputs[].name', 'too_large', 'no_event')
    """
    if isinstance(fault, TooLarge):
        return "too_large"
    return re.sub(r"\[\d+\]", "[]", fault.path) if fault.path else "no_event"
