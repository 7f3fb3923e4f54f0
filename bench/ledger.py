"""ledger: what a generator sends, run by run -> what must be found at the end, without a line of the house's own folding.

Counts and sums of digests: a set of any size in constant memory, whatever its order. What a company has few of (jobs,
datasets, edges, incidents) is kept whole.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone
from hashlib import blake2b
from typing import Any

_ALL = (1 << 128) - 1
_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)

Key = tuple[str, str, str, str]
"""Of a test: kind, node, test, column."""


@dataclass
class Sum:
    """How many things there are, and the sum of their digests."""

    count: int = 0
    total: int = 0

    def add(self, thing: bytes) -> None:
        """Count a thing; twice, if it is told twice."""
        self.count += 1
        self.total = self.total + int.from_bytes(blake2b(thing, digest_size=16).digest(), "big") & _ALL

    def join(self, other: Sum) -> None:
        """What another has counted."""
        self.count += other.count
        self.total = self.total + other.total & _ALL


def of_run(run: str, state: str, job: str, parent: str) -> bytes:
    """A run as both sides write it down."""
    return "\0".join((run, state, job, parent)).encode()


def of_assertion(run: str, dataset: str, test: str, column: str, failed: bool) -> bytes:
    """The outcome of a test as both sides write it down."""
    return "\0".join((run, dataset, test, column, str(int(failed)))).encode()


@dataclass
class Episode:
    """A test that fails: since when, and how often."""

    opened: int
    last: int
    failures: int = 1
    status: str = "open"


@dataclass
class Ledger:
    """What one generator knows of all that it has sent."""

    events: Sum = field(default_factory=Sum)
    runs: Sum = field(default_factory=Sum)
    assertions: Sum = field(default_factory=Sum)
    states: Counter[str] = field(default_factory=Counter)
    told: Counter[str] = field(default_factory=Counter)
    """Of the stream: sent, bytes, repeats, late, disordered."""
    jobs: set[str] = field(default_factory=set)
    datasets: set[str] = field(default_factory=set)
    edges: set[tuple[str, str, str]] = field(default_factory=set)
    columns: set[tuple[str, str]] = field(default_factory=set)
    """(job, dataset) whose columns are told."""
    aliases: dict[str, str] = field(default_factory=dict)
    """A catalog's name -> the place of the table."""
    episodes: dict[Key, list[Episode]] = field(default_factory=dict)
    schemas: dict[tuple[str, str], dict[int, tuple[int, int]]] = field(default_factory=dict)
    """(dataset, column that is taken away) -> whether it lacks it -> when it was first and last written so."""

    # --- told by the generator

    def event(self, body: dict[str, Any], raw: bytes) -> None:
        """An event that is sent, however often."""
        self.events.add(raw)
        job = f"{body['job']['namespace']}\n{body['job']['name']}"
        self.jobs.add(job)
        for direction in ("in", "out"):
            for each in body[f"{direction}puts"]:
                dataset = f"{each['namespace']}\n{each['name']}"
                self.datasets.add(dataset)
                self.edges.add((job, direction, dataset))
                facets = each["facets"]
                for link in facets.get("symlinks", {"identifiers": ()})["identifiers"]:
                    self.aliases[f"{link['namespace']}\n{link['name']}"] = dataset
                if direction == "out" and "columnLineage" in facets:
                    self.columns.add((job, dataset))
                checked = each.get("inputFacets", {}).get("dataQualityAssertions", {"assertions": ()})
                for one in checked["assertions"]:
                    self.assertions.add(
                        of_assertion(
                            body["run"]["runId"], dataset, one["assertion"], one["column"], not one["success"]
                        )
                    )

    def run(self, run: Any, state: str) -> None:
        """A run, and the state that it is in when all is told."""
        self.states[state] += 1
        self.runs.add(
            of_run(run.id, state, f"{run.namespace}\n{run.job}", run.parent.id if run.parent else "")
        )

    def outcome(self, key: Key, at: int, failed: bool) -> None:
        """How a test ended; told in the order of time, one for each root run."""
        known = self.episodes.get(key)
        now = known[-1] if known and known[-1].status == "open" else None
        if failed and now:
            now.failures, now.last = now.failures + 1, at
        elif failed:
            self.episodes.setdefault(key, []).append(Episode(at, at))
        elif now:
            now.status = "resolved"

    def wrote(self, dataset: str, column: str, lacks: bool, at: int) -> None:
        """A dataset was written with a column, or without it."""
        seen = self.schemas.setdefault((dataset, column), {})
        first, last = seen.get(lacks, (at, at))
        seen[lacks] = (min(first, at), max(last, at))

    # --- asked at the end

    def incidents(self) -> set[tuple[str, str, str, str, str, int, int, int]]:
        """(kind, node, test, column, status, opened, last failed, failures) of every incident."""
        found = {
            (*key, each.status, each.opened, each.last, each.failures)
            for key, told in self.episodes.items()
            for each in told
        }
        for (dataset, column), seen in self.schemas.items():
            if True in seen and seen[False][0] < seen[True][0]:
                since = seen[True][0]
                back = seen[False][1] > seen[True][1]
                node = f"dataset:{dataset.replace(chr(10), ':')}"
                found.add(
                    (
                        "schema",
                        node,
                        "schema_change",
                        column,
                        "resolved" if back else "open",
                        since,
                        since,
                        1,
                    )
                )
        return found

    def join(self, other: Ledger) -> None:
        """What another generator, of other jobs, has told."""
        for mine, theirs in ((self.events, other.events), (self.runs, other.runs), (self.assertions, other.assertions)):  # fmt: skip
            mine.join(theirs)
        self.states += other.states
        self.told += other.told
        self.jobs |= other.jobs
        self.datasets |= other.datasets
        self.edges |= other.edges
        self.columns |= other.columns
        self.aliases |= other.aliases
        self.episodes |= other.episodes
        self.schemas |= other.schemas


def joined(ledgers: Iterable[Ledger]) -> Ledger:
    """One ledger of several."""
    whole = Ledger()
    for each in ledgers:
        whole.join(each)
    return whole


def micros(text: str) -> int:
    """A time on the wire -> microseconds since 1970."""
    return (datetime.fromisoformat(text.replace("Z", "+00:00")) - _EPOCH) // timedelta(microseconds=1)
