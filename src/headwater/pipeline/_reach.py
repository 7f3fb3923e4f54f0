"""pipeline._reach: a directed graph as arrays -> how many marked nodes each node reaches; exact, cycles included.

Nodes on a cycle reach each other, so cycles are drawn together first. What is left has an order, and along it the set
of a node is the union of its successors' sets. Sets are bits of one block of targets at a time: memory is bounded, and
blocks are independent, so workers share them.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

Array = Any
"""A numpy array."""


@dataclass(frozen=True, slots=True)
class Order:
    """A graph without its cycles, in the order in which sets can be built."""

    component: Array
    """Node -> the component (a cycle, or itself) it belongs to."""
    weight: Array
    """Component -> how many marked nodes it holds."""
    source: Array
    target: Array
    """Edges between components, by level of the source, then by source."""
    cuts: Array
    """Where the edges of each level begin."""
    level: Array
    """Component -> the longest way to an end."""
    size: Array
    """Component -> how many nodes it holds."""


def order(nodes: int, source: Array, target: Array, marked: Array) -> Order:
    """Draw cycles together and sort what is left."""
    from scipy.sparse import csr_matrix
    from scipy.sparse.csgraph import connected_components

    ones = np.ones(len(source), np.int8)
    count, component = connected_components(
        csr_matrix((ones, (source, target)), (nodes, nodes)), directed=True, connection="strong"
    )
    pairs = component[source].astype(np.int64) * count + component[target]
    pairs = np.unique(pairs)
    tail, head = pairs // count, pairs % count
    inside = tail == head
    tail, head = tail[~inside], head[~inside]
    level = _levels(count, tail, head)
    sort = np.lexsort((tail, level[tail]))
    tail, head = tail[sort], head[sort]
    deepest = int(level.max()) if count else 0
    cuts = np.searchsorted(level[tail], np.arange(deepest + 2))
    weight = np.bincount(component, weights=marked.astype(np.float64), minlength=count).astype(np.int64)
    size = np.bincount(component, minlength=count)
    return Order(component, weight, tail, head, cuts, level, size)


def _levels(count: int, tail: Array, head: Array) -> Array:
    """The longest way from each node to one without successors."""
    level = np.zeros(count, np.int32)
    left = np.bincount(tail, minlength=count)
    sort = np.argsort(head, kind="stable")
    before = tail[sort]
    begin = np.searchsorted(head[sort], np.arange(count + 1))
    edge = np.flatnonzero(left == 0)
    at = 0
    while edge.size:
        level[edge] = at
        lengths = begin[edge + 1] - begin[edge]
        total = int(lengths.sum())
        if not total:
            break
        starts = np.repeat(begin[edge] - np.concatenate(([0], np.cumsum(lengths)[:-1])), lengths)
        parents = before[starts + np.arange(total)]
        np.subtract.at(left, parents, 1)
        edge = np.unique(parents)
        edge = edge[left[edge] == 0]
        at += 1
    return level


def blocks(graph: Order) -> tuple[int, int]:
    """How many blocks of targets there are, and how many words of bits each has."""
    components = len(graph.weight)
    words = 8 if len(graph.cuts) < 200 else 64  # a deep graph has many small levels: fewer, larger blocks
    words = max(1, min(words, (256 << 20) // (8 * max(1, components))))
    targets = int(np.count_nonzero(graph.weight))
    return -(-targets // (64 * words)), words


def reached(graph: Order, chosen: Iterable[int], words: int) -> Array:
    """Component -> how many marked nodes it reaches in the chosen blocks of targets, its own included."""
    count = len(graph.weight)
    total = np.zeros(count, np.int64)
    targets = np.flatnonzero(graph.weight)
    targets = targets[np.argsort(graph.level[targets], kind="stable")]
    deepest = len(graph.cuts) - 1
    bits = np.empty((count, words), np.uint64)
    for block in chosen:
        mine = targets[block * 64 * words : (block + 1) * 64 * words]
        bits[:] = 0
        places = np.arange(len(mine))
        np.bitwise_or.at(
            bits, (mine, places >> 6), np.left_shift(np.uint64(1), (places & 63).astype(np.uint64))
        )
        for level in range(int(graph.level[mine].min()) + 1, deepest):  # nobody below can reach them
            low, high = graph.cuts[level], graph.cuts[level + 1]
            if low == high:
                continue
            tails = graph.source[low:high]
            begins = np.flatnonzero(np.concatenate(([True], tails[1:] != tails[:-1])))
            bits[tails[begins]] |= np.bitwise_or.reduceat(bits[graph.target[low:high]], begins, axis=0)
        total += np.bitwise_count(bits).sum(axis=1, dtype=np.int64)
        for place in np.flatnonzero(graph.weight[mine] > 1):  # a cycle counts as many as it holds
            has = (bits[:, place >> 6] >> np.uint64(place & 63)) & np.uint64(1)
            total += has.astype(np.int64) * int(graph.weight[mine[place]] - 1)
    return total


def depths(graph: Order) -> Array:
    """Component -> the longest way to an end, counted in marked nodes; `graph` runs towards that end."""
    depth = np.zeros(len(graph.weight), np.int64)
    step = (graph.weight > 0).astype(np.int64)
    for level in range(1, len(graph.cuts) - 1):
        low, high = graph.cuts[level], graph.cuts[level + 1]
        tails, heads = graph.source[low:high], graph.target[low:high]
        np.maximum.at(depth, tails, depth[heads] + step[heads])
    return depth
