"""capture.spark.deps: sets of dependencies -> sets of dependencies.

A dependency set is {source: mask}: a source stands for a column of a dataset, the mask tells how it got there. Sets are
shared between attributes and never changed: what passes through a node costs nothing.
"""

from __future__ import annotations

from collections.abc import Iterable
from weakref import WeakValueDictionary

from headwater.naming import Identity

IDENTITY, TRANSFORMATION, AGGREGATION, FILTER, JOIN, GROUP_BY, SORT, WINDOW, CONDITIONAL, OPEN, MASKED = (
    1 << bit for bit in range(11)
)
DIRECT = IDENTITY | TRANSFORMATION | AGGREGATION
WAYS = OPEN | MASKED
"""Whether a direct way shows the value (OPEN) or hides it (MASKED); a column is masked when no way is open."""
KINDS = {
    IDENTITY: "IDENTITY",
    TRANSFORMATION: "TRANSFORMATION",
    AGGREGATION: "AGGREGATION",
    FILTER: "FILTER",
    JOIN: "JOIN",
    GROUP_BY: "GROUP_BY",
    SORT: "SORT",
    WINDOW: "WINDOW",
    CONDITIONAL: "CONDITIONAL",
}


class Source:
    """A column of a dataset: one object however often it is read, so that sets compare it by identity."""

    __slots__ = ("__weakref__", "column", "dataset")

    def __init__(self, dataset: Identity, column: str) -> None:
        self.dataset, self.column = dataset, column

    def __repr__(self) -> str:
        return f"Source({self.dataset.name}.{self.column})"


Deps = dict[Source, int]
NONE: Deps = {}


class Sources:
    """The columns that somebody still speaks of; an application that runs for months reads ever new directories."""

    def __init__(self) -> None:
        self._known: WeakValueDictionary[tuple[Identity, str], Source] = WeakValueDictionary()

    def of(self, dataset: Identity, column: str) -> Source:
        """A column of a dataset."""
        key = (dataset, column)
        known = self._known.get(key)
        if known is None:
            known = self._known[key] = Source(dataset, column)
        return known


def union(sets: Iterable[Deps]) -> Deps:
    """All of them together; the only one itself where there is but one."""
    out: Deps | None = None
    own = False
    for each in sets:
        if not each or each is out:
            continue
        if out is None:
            out = each
            continue
        if not own:
            out, own = dict(out), True
        for source, mask in each.items():
            out[source] = out.get(source, 0) | mask
    return out or NONE


def transformed(deps: Deps) -> Deps:
    """As the argument of a function: what was the value itself is now a part of it."""
    if not any(mask & IDENTITY for mask in deps.values()):
        return deps
    return {s: mask & ~IDENTITY | TRANSFORMATION if mask & IDENTITY else mask for s, mask in deps.items()}


def masked(deps: Deps) -> Deps:
    """As the argument of a hash or a mask: the value is in it, but hidden."""
    return {s: mask & ~OPEN | MASKED if mask & DIRECT else mask for s, mask in deps.items()}


def aggregated(deps: Deps) -> Deps:
    """As the argument of an aggregate."""
    return {s: mask & ~DIRECT | AGGREGATION if mask & DIRECT else mask for s, mask in deps.items()}


def indirect(deps: Deps, kind: int) -> Deps:
    """As what decides on values or rows, without being in them."""
    return {s: mask & ~(DIRECT | WAYS) | kind if mask & DIRECT else mask for s, mask in deps.items()}
