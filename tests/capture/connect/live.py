"""Real workers -> an eye on them: the events of each connector as lines to compare."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from connect_workers import Workers
from headwater.connect import Cluster
from headwater.connect._watching import Source, Watcher
from headwater.event import TERMINAL, of

TRANSFORMS = "org.apache.kafka.connect.transforms."
GRACE = 6.0
"""Longer than a rebalance leaves a task without a worker here."""

Line = tuple[str, str, str]
"""What kind of event, of which job, and what matters of it: why, and what it reads and writes, or the error."""


@dataclass
class Eye:
    """A watcher that looks three times a second, and what it told."""

    watcher: Watcher
    events: list[dict[str, Any]] = field(default_factory=list)

    def saw(self, name: str) -> list[Line]:
        """The lines of one connector, in their order."""
        return [line(each) for each in self.events if each["job"]["name"] == name]

    def until(self, name: str, *expected: Line, seconds: float = 90.0) -> None:
        """Look until exactly this was told of a connector, and fail as soon as something else is."""
        wanted = list(expected)
        end = time.monotonic() + seconds
        while (seen := self.saw(name)) != wanted:
            assert seen == wanted[: len(seen)], _differ(seen, wanted)
            assert time.monotonic() < end, _differ(seen, wanted)
            self.round()

    def still(self, name: str, *expected: Line, seconds: float) -> None:
        """Look for a while: nothing else is told."""
        self.for_a_while(seconds)
        assert self.saw(name) == list(expected), _differ(self.saw(name), list(expected))

    def for_a_while(self, seconds: float) -> None:
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            self.round()

    def when(self, condition: Callable[[], bool], seconds: float = 60.0) -> None:
        end = time.monotonic() + seconds
        while not condition():
            assert time.monotonic() < end, [line(each) for each in self.events]
            self.round()

    def round(self) -> None:
        self.watcher.round(time.time())
        time.sleep(0.3)

    def runs(self, name: str) -> int:
        return len({each["run"]["runId"] for each in self.events if each["job"]["name"] == name})


def _differ(seen: Sequence[Line], wanted: Sequence[Line]) -> str:
    return "\n".join(["told:", *map(str, seen), "expected:", *map(str, wanted)])


@contextmanager
def eye(
    workers: Workers, *, source: Callable[[Cluster], Source] | None = None, **options: Any
) -> Iterator[Eye]:
    """An eye on the cluster; whatever it told is valid OpenLineage."""
    events: list[dict[str, Any]] = []
    usual = {"url": ",".join(workers.urls), "bootstrap": workers.bootstrap, "schemas": "none", "grace": GRACE, "refresh": 1.0}  # fmt: skip
    cluster = Cluster(**{"name": "live", **usual, **options})
    watcher = Watcher(cluster, events.extend, source=source(cluster) if source is not None else None)
    try:
        yield Eye(watcher, events)
    finally:
        watcher.close()
    for each in events:
        of(each)


def line(event: dict[str, Any]) -> Line:
    """One event as a line: `RUNNING`, `orders-sink`, `datasets known: orders -> orders.out`."""
    facets = event["run"]["facets"]
    reason = facets["kafkaConnect"].get("reason", "")
    if event["eventType"] in TERMINAL:
        what = facets["errorMessage"]["message"] if "errorMessage" in facets else ""
    else:
        inputs, outputs = ([_short(each) for each in event[half]] for half in ("inputs", "outputs"))
        what = f"{', '.join(inputs)} -> {', '.join(outputs)}"
    return event["eventType"], event["job"]["name"], ": ".join(part for part in (reason, what) if part)


def _short(dataset: dict[str, Any]) -> str:
    name: str = dataset["name"].rpartition("/")[2]
    version = dataset["facets"].get("version", {}).get("datasetVersion", "")
    return f"{name}@{version}" if version else name
