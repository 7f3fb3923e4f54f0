"""graph: edges -> what is upstream and downstream of a node, dataset by dataset or column by column.

Pure: the walk asks a `Source` for the neighbours of a whole frontier at a time, and touches nothing else, so
its cost is that of the edges it meets. `depth` counts dataset hops.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, field
from typing import Literal, Protocol

from headwater.facts.flows import ColumnKey, Flow, Relation

Direction = Literal["up", "down", "both"]


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


@dataclass(slots=True)
class Walk:
    """What a walk met: numbers of nodes with their distance in dataset hops, and the edges between them."""

    datasets: dict[int, int] = field(default_factory=dict)
    jobs: dict[int, int] = field(default_factory=dict)
    reads: set[Flow] = field(default_factory=set)
    writes: set[Flow] = field(default_factory=set)
    cut: bool = False
    """Whether there is more, beyond the depth or the limit."""


def walk(
    source: Source,
    *,
    datasets: Collection[int] = (),
    jobs: Collection[int] = (),
    direction: Direction = "both",
    depth: int = 20,
    limit: int = 10_000,
) -> Walk:
    """Everything within `depth` dataset hops of the given nodes, at most `limit` nodes of it.

    Up and down are walked apart: what is upstream of something downstream is not met, or two readers of one
    table would drag each other's whole past in.
    """
    found = Walk(dict.fromkeys(datasets, 0), dict.fromkeys(jobs, 0))
    for side in ("up", "down") if direction == "both" else (direction,):
        _one_way(source, found, set(datasets), set(jobs), side == "up", depth, limit)
    return found


def _one_way(
    source: Source, found: Walk, datasets: set[int], jobs: set[int], up: bool, depth: int, limit: int
) -> None:
    near, far = ("out", "in") if up else ("in", "out")  # upstream: who writes it, and what those read
    flows = {"in": found.reads, "out": found.writes}
    seen_datasets, seen_jobs = set(datasets), set(jobs)
    edge, ready = datasets, jobs
    for hop in range(1, depth + 1):
        if edge:
            met = list(source.jobs_of(edge, near))
            flows[near].update(met)
            ready = ready | ({flow.job for flow in met} - seen_jobs)
        if not ready:
            return
        seen_jobs |= ready
        for job in ready:
            found.jobs.setdefault(job, hop)
        met = list(source.datasets_of(ready, far))
        flows[far].update(met)
        edge = {flow.dataset for flow in met} - seen_datasets
        seen_datasets |= edge
        for dataset in edge:
            found.datasets.setdefault(dataset, hop)
        ready = set()
        if len(seen_jobs) + len(seen_datasets) > limit:
            found.cut = True
            return
    found.cut = found.cut or (bool(edge) and any(True for _ in source.jobs_of(edge, near)))


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
