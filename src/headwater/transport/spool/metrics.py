"""transport.spool.metrics: the places of a spool -> their state as Prometheus reads it, to be scraped or written to a file."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator
from pathlib import Path

from prometheus_client import CollectorRegistry, Metric, write_to_textfile
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.registry import Collector

from headwater.errors import ConfigError
from headwater.guard import guard
from headwater.transport.spool import drainer
from headwater.transport.spool.census import Census, Counted
from headwater.transport.spool.identity import clock
from headwater.transport.spool.place import Place, places

LABELS = ("spool", "destination")
DOING = ("draining", "waiting", "ended", "stopped", "died", "never started")
"""What a drainer may be doing; `waiting` and `stopped` are an open circuit."""


class SpoolCollector(Collector):
    """What waits, what is dead and how delivery goes, of each destination in a spool directory."""

    def __init__(self, root: Path) -> None:
        self._root, self._lock = root, threading.Lock()
        self._known: dict[Place, Census] = {}

    def collect(self) -> Iterable[Metric]:
        """Look at every destination now."""
        families = {name: made(name, told, labels=(*LABELS, *more)) for name, made, told, more in _FAMILIES}
        with self._lock:
            found = self._places()
            self._known = {place: self._known.get(place) or Census(place) for place in found}
            for place, census in self._known.items():
                with guard("measuring the spool"):
                    labels = (place.name, place.shown())
                    for name, more, value in (*_waiting(census.look()), *_delivery(place)):
                        families[name].add_metric((*labels, *more), value)
        return families.values()

    def _places(self) -> list[Place]:
        try:
            return places(self._root)
        except ConfigError:  # nothing was ever spooled, or it is another user's
            return []


def write_metrics(path: Path, collector: SpoolCollector) -> None:
    """Write a file for node_exporter's textfile collector, whole or not at all.

    Raises:
        OSError: it cannot be written.

    """
    registry = CollectorRegistry()
    registry.register(collector)
    write_to_textfile(str(path), registry)


_FAMILIES = (
    ("headwater_spool_waiting_events", GaugeMetricFamily, "Events that wait for delivery.", ()),
    ("headwater_spool_waiting_bytes", GaugeMetricFamily, "Bytes that wait for delivery.", ()),
    ("headwater_spool_oldest_seconds", GaugeMetricFamily, "How long the oldest of them has waited.", ()),
    ("headwater_spool_dead_events", GaugeMetricFamily, "Dead letters.", ()),
    ("headwater_spool_lost_events", GaugeMetricFamily, "Events deleted for want of room even there.", ()),
    ("headwater_spool_delivered_events", CounterMetricFamily, "Events delivered by the last drainer.", ()),
    (
        "headwater_spool_drainer",
        GaugeMetricFamily,
        "1 for what the drainer does, 0 for the rest.",
        ("doing",),
    ),
    (
        "headwater_spool_circuit_open",
        GaugeMetricFamily,
        "1 where the destination is left alone for a while.",
        (),
    ),
    ("headwater_spool_failing_seconds", GaugeMetricFamily, "How long delivery has been failing.", ("cause",)),
)


def _waiting(seen: Counted) -> Iterator[tuple[str, tuple[str, ...], float]]:
    yield "headwater_spool_waiting_events", (), seen.events
    yield "headwater_spool_waiting_bytes", (), seen.size
    yield "headwater_spool_oldest_seconds", (), seen.oldest
    yield "headwater_spool_dead_events", (), seen.dead
    yield "headwater_spool_lost_events", (), seen.lost


def _delivery(place: Place) -> Iterator[tuple[str, tuple[str, ...], float]]:
    told = drainer.state(place)
    doing = "never started" if told is None else told.doing
    if doing in ("draining", "waiting") and not drainer.drained(place):
        doing = "died"
    for each in DOING:
        yield "headwater_spool_drainer", (each,), each == doing
    yield "headwater_spool_circuit_open", (), doing in ("waiting", "stopped")
    if told is not None:
        yield "headwater_spool_delivered_events", (), told.delivered
        if told.fault is not None:
            since = clock.wall() - (told.failing_since or clock.wall())
            yield "headwater_spool_failing_seconds", (told.cause or "other",), max(0.0, since)
