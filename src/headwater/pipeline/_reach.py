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
WORDS = 4
"""Of 64 bits, of each component at a time: few enough that the sets of a large graph stay near the processor."""


@dataclass(frozen=True, slots=True)
class Order:
    """A graph without its cycles; its components are numbered in the order in which sets can be built."""

    component: Array
    """Node -> the component (a cycle, or itself) it belongs to."""
    weight: Array
    """Component -> how many marked nodes it holds."""
    size: Array
    """Component -> how many nodes it holds."""
    target: Array
    """Edges between components, by their source: where they lead."""
    begin: Array
    """Component -> its first edge."""
    levels: Array
    """Where the components of each level begin; a level is how long the longest way to an end is."""


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
    place = np.argsort(level, kind="stable")
    rank = np.empty(count, np.int64)
    rank[place] = np.arange(count)
    component, tail, head, level = rank[component], rank[tail], rank[head], level[place]
    sort = np.argsort(tail, kind="stable")
    tail, head = tail[sort], head[sort]
    deepest = int(level[-1]) if count else 0
    weight = np.bincount(component, weights=marked.astype(np.float64), minlength=count).astype(np.int64)
    size = np.bincount(component, minlength=count)
    begin = np.searchsorted(tail, np.arange(count + 1))
    return Order(component, weight, size, head, begin, np.searchsorted(level, np.arange(deepest + 2)))


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
    words = (
        WORDS if len(graph.levels) < 200 else 64
    )  # a deep graph has many small levels: fewer, larger blocks
    words = max(1, min(words, (256 << 20) // (8 * max(1, components))))
    targets = int(np.count_nonzero(graph.weight))
    return -(-targets // (64 * words)), words


def reached(graph: Order, chosen: Iterable[int], words: int) -> Array:
    """Component -> how many marked nodes it reaches in the chosen blocks of targets, its own included."""
    count = len(graph.weight)
    total = np.zeros(count, np.int64)
    targets = np.flatnonzero(graph.weight)
    bits = np.empty((count, words), np.uint64)
    for block in chosen:
        mine = targets[block * 64 * words : (block + 1) * 64 * words]
        bits[:] = 0
        places = np.arange(len(mine))
        np.bitwise_or.at(
            bits, (mine, places >> 6), np.left_shift(np.uint64(1), (places & 63).astype(np.uint64))
        )
        lowest = int(np.searchsorted(graph.levels, mine[0], side="right"))  # nobody below can reach them
        for level in range(lowest, len(graph.levels) - 1):
            low, high = graph.levels[level], graph.levels[level + 1]
            begin = graph.begin[low : high + 1]
            heads = graph.target[begin[0] : begin[-1]]
            bits[low:high] |= np.bitwise_or.reduceat(bits.take(heads, axis=0), begin[:-1] - begin[0], axis=0)
        low = int(mine[0])
        total[low:] += np.bitwise_count(bits[low:]).sum(axis=1, dtype=np.int64)
        for place in np.flatnonzero(graph.weight[mine] > 1):  # a cycle counts as many as it holds
            has = (bits[:, place >> 6] >> np.uint64(place & 63)) & np.uint64(1)
            total += has.astype(np.int64) * int(graph.weight[mine[place]] - 1)
    return total


def depths(graph: Order) -> Array:
    """Component -> the longest way to an end, counted in marked nodes; `graph` runs towards that end."""
    depth = np.zeros(len(graph.weight), np.int64)
    step = (graph.weight > 0).astype(np.int64)
    for low, high in zip(graph.levels[1:-1], graph.levels[2:], strict=True):
        begin = graph.begin[low : high + 1]
        heads = graph.target[begin[0] : begin[-1]]
        depth[low:high] = np.maximum.reduceat(depth[heads] + step[heads], begin[:-1] - begin[0])
    return depth
