"""capture.dlt.leaves: items as a resource yields them -> the paths of the values in them.

A path is a tuple of keys; None stands for each element of a list. `{"a": {"b": [1]}}` has the one path `("a", "b", None)`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

Path = tuple[str | None, ...]

MOST = 5_000
"""Paths kept of one table: items whose keys are data (ids, dates) would give ever new ones."""


def collect(item: Any, into: set[Path]) -> None:
    """Add the paths of an item. An empty object or list has none: nothing of it is loaded."""
    stack: list[tuple[Any, Path]] = [(item, ())]
    while stack:
        value, path = stack.pop()
        if isinstance(value, dict):
            stack.extend((inner, (*path, key)) for key, inner in value.items() if isinstance(key, str))
        elif isinstance(value, (list, tuple)):
            deeper = (*path, None)
            stack.extend((inner, deeper) for inner in value)
        elif len(into) < MOST:
            into.add(path)


def item_of(path: Path, value: Any) -> Any:
    """The smallest item that has a value at that path.

    >>> item_of(("a", None, "b"), 1)
    {'a': [{'b': 1}]}
    """
    for step in reversed(path):
        value = [value] if step is None else {step: value}
    return value


def shown(path: Path) -> str:
    """A path as people write it: keys as they are, elements of lists as `[*]`.

    >>> shown(("Orders", None, "order id")), shown(())
    ('Orders[*].order id', 'value')
    """
    text = ""
    for step in path:
        text += "[*]" if step is None else f".{step}" if text else step
    return text or "value"  # an item that is no object is loaded under that name


def told(paths: Iterable[Path]) -> list[list[str | None]]:
    """Paths as JSON keeps them, in one order."""
    return [list(path) for path in sorted(paths, key=lambda path: [step or "" for step in path])]
