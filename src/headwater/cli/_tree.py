"""cli._tree: a start and what is next to each node -> a tree of rich's, each node with what is behind it once."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from typing import TypeVar

from rich.tree import Tree

T = TypeVar("T", bound=Hashable)


def grow(tree: Tree, start: T, next_to: Callable[[T, Tree], Iterable[tuple[T, str]]]) -> None:
    """Hang below each node what `next_to` tells with its label, depth first; what was met before is only named.

    Not by calling itself: a way through many jobs that read one table may be longer than Python's stack.
    """
    seen = {start}
    ways = [(tree, iter(next_to(start, tree)))]
    while ways:
        here, rest = ways[-1]
        found = next(rest, None)
        if found is None:
            ways.pop()
            continue
        node, label = found
        again = node in seen
        branch = here.add(f"{label}  (above)" if again else label)
        if not again:
            seen.add(node)
            ways.append((branch, iter(next_to(node, branch))))
