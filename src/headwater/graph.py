"""graph: edges -> what is upstream and downstream of a node, its shortest paths, and what two times differ in.

Pure: the walk asks a `Source` for the neighbours of a whole frontier at a time, and touches nothing else, so
its cost is that of the edges it meets. `depth` counts dataset hops.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal, Protocol, TypeVar

from headwater.facts.flows import ColumnKey, Flow, Relation

Direction = Literal["up", "down", "both"]
T = TypeVar("T", bound=Hashable)


class Source(Protocol):
    """Where the walk gets its edges from; every method takes a frontier and answers for all of it."""

    def jobs_of(self, datasets: Collection[int], direction: str) -> Iterable[Flow]:
        """Who reads (`in`) or writes (`out`) these datasets."""

    def datasets_of(self, jobs: Collection[int], direction: str) -> Iterable[Flow]:
        """What these jobs read (`in`) or write (`out`)."""

    def relations_to(self, columns: Collection[ColumnKey]) -> Iterable[Relation]:
        """What makes these columns."""

    def relations_from(self, columns: Collection[ColumnKey]) -> Iterable[Relation]:
        """What these columns make."""


NodeKey = tuple[str, int]
"""What a node is (`job` or `dataset`) and its number."""


@dataclass(slots=True)
class Walk:
    """What a walk met: numbers of nodes with their distance in dataset hops, and the edges between them."""

    datasets: dict[int, int] = field(default_factory=dict)
    jobs: dict[int, int] = field(default_factory=dict)
    reads: set[Flow] = field(default_factory=set)
    writes: set[Flow] = field(default_factory=set)
    more: dict[NodeKey, dict[str, int]] = field(default_factory=dict)
    """Nodes next to which more stands than was walked: how many, `up` and `down`."""

    @property
    def cut(self) -> bool:
        """Whether there is more, beyond the depth or a limit."""
        return bool(self.more)


def walk(
    source: Source,
    *,
    datasets: Collection[int] = (),
    jobs: Collection[int] = (),
    direction: Direction = "both",
    depth: int = 20,
    limit: int | None = 10_000,
    fan: int | None = None,
) -> Walk:
    """Everything within `depth` dataset hops of the given nodes, at most `limit` nodes of it each way.

    From a hub at most `fan` nodes each way are followed. What is left out is counted where it was left out.

    Up and down are walked apart: what is upstream of something downstream is not met, or two readers of one
    table would drag each other's whole past in.
    """
    found = Walk(dict.fromkeys(datasets, 0), dict.fromkeys(jobs, 0))
    for side in ("up", "down") if direction == "both" else (direction,):
        _OneWay(source, found, side, limit, fan).go(set(datasets), set(jobs), depth)
    return found


class _OneWay:
    """A walk in one direction: from a frontier of datasets to its jobs, from those to the next datasets."""

    def __init__(self, source: Source, found: Walk, side: str, limit: int | None, fan: int | None) -> None:
        self._source, self._found, self._side, self._limit, self._fan = source, found, side, limit, fan
        # upstream: who writes it, and what those read
        self._near, self._far = ("out", "in") if side == "up" else ("in", "out")
        self._flows = {"in": found.reads, "out": found.writes}
        self._seen = 0

    def go(self, datasets: set[int], jobs: set[int], depth: int) -> None:
        """Walk `depth` hops, and count what stands behind the last."""
        found = self._found
        seen_datasets, seen_jobs = set(datasets), set(jobs)
        self._seen = len(datasets) + len(jobs)
        edge, ready = datasets, jobs
        for hop in range(1, depth + 1):
            if edge:
                met = self._source.jobs_of(edge, self._near)
                ready = ready | self._keep(met, "dataset", seen_jobs, self._near)
            if not ready:
                return
            seen_jobs |= ready
            for job in ready:
                found.jobs.setdefault(job, hop)
            met = self._source.datasets_of(ready, self._far)
            edge = self._keep(met, "job", seen_datasets, self._far)
            seen_datasets |= edge
            for dataset in edge:
                found.datasets.setdefault(dataset, hop)
            ready = set()
        for flow in self._source.jobs_of(edge, self._near) if edge else ():
            if flow.job not in seen_jobs:
                self._leave("dataset", flow.dataset)
        for flow in self._source.datasets_of(ready, self._far) if ready else ():
            if flow.dataset not in seen_datasets:
                self._leave("job", flow.job)

    def _keep(self, met: Iterable[Flow], kind: str, seen: set[int], direction: str) -> set[int]:
        """The nodes on the other side of these flows that are new and within the limits."""
        fresh: set[int] = set()
        width: dict[int, int] = {}
        for flow in sorted(met):
            near, far = (flow.dataset, flow.job) if kind == "dataset" else (flow.job, flow.dataset)
            if far not in seen and far not in fresh:
                have = width.get(near, 0)
                full = self._limit is not None and self._seen >= self._limit
                if full or (self._fan is not None and have >= self._fan):
                    self._leave(kind, near)
                    continue
                width[near] = have + 1
                fresh.add(far)
                self._seen += 1
            self._flows[direction].add(flow)
        return fresh

    def _leave(self, kind: str, number: int) -> None:
        told = self._found.more.setdefault((kind, number), {})
        told[self._side] = told.get(self._side, 0) + 1


@dataclass(slots=True)
class ColumnWalk:
    """What a walk along columns met."""

    columns: dict[ColumnKey, int] = field(default_factory=dict)
    relations: set[Relation] = field(default_factory=set)
    cut: bool = False


def walk_columns(
    source: Source,
    columns: Collection[ColumnKey],
    *,
    direction: Direction = "both",
    depth: int = 20,
    limit: int = 50_000,
) -> ColumnWalk:
    """Everything that makes the given columns, and that they make, within `depth` hops."""
    found = ColumnWalk(dict.fromkeys(columns, 0))
    for side in ("up", "down") if direction == "both" else (direction,):
        step: Callable[[Collection[ColumnKey]], Iterable[Relation]] = (
            source.relations_to if side == "up" else source.relations_from
        )
        seen = edge = set(columns)
        for hop in range(1, depth + 1):
            if not edge:
                break
            met = list(step(edge))
            found.relations.update(met)
            edge = {relation.source if side == "up" else relation.target for relation in met} - seen
            seen = seen | edge
            for column in edge:
                found.columns.setdefault(column, hop)
            if len(seen) > limit:
                found.cut = True
                break
        else:
            found.cut = found.cut or (bool(edge) and any(True for _ in step(edge)))
    return found


def paths(start: Collection[T], steps: Iterable[tuple[T, T]]) -> dict[T, list[T]]:
    """Each node that steps lead to from `start` -> a shortest way there, the first by order where several are.

    >>> paths([1], [(1, 2), (2, 3), (1, 3)])[3]
    [1, 3]
    """
    onward: dict[T, list[T]] = {}
    for near, far in steps:
        onward.setdefault(near, []).append(far)
    ways: dict[T, list[T]] = {each: [each] for each in start}
    edge = list(ways)
    while edge:
        reached: list[T] = []
        for near in edge:
            for far in onward.get(near, ()):
                if far not in ways:
                    ways[far] = [*ways[near], far]
                    reached.append(far)
        edge = reached
    return ways


def applications(parents: Mapping[int, int | None], leading: Collection[int]) -> dict[int, int]:
    """Each job -> the job that it is a part of: its parent, unless others call the job itself their parent.

    >>> applications({1: 9, 2: 9, 9: 4}, leading={9})
    {1: 9, 2: 9, 9: 9}
    """
    led = set(leading)
    return {job: job if job in led or parent is None else parent for job, parent in parents.items()}


def compare(before: Collection[T], after: Collection[T]) -> tuple[set[T], set[T]]:
    """What was added and what was removed."""
    old, new = set(before), set(after)
    return new - old, old - new
