"""capture.dlt.leaves: items as a resource yields them -> their distinct shapes, and the paths of the values in them.

A shape is the item with the kind of each value in its place: `{"id": 7, "tags": ["a", "b"]}` has the shape
`{"id": "bigint", "tags": ["text"]}`. No value is kept. A path is a tuple of keys; None stands for each element of a list.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

Path = tuple[str | None, ...]
Shape = Any
"""dict, list of distinct shapes, the name of a kind, or None: no value"""

MOST_SHAPES = 300
"""Shapes kept of one table that have nothing new in them: fields that may be missing give ever new combinations."""
MOST_PATHS = 5_000
"""Paths kept of one table: items whose keys are data (ids, dates) would give ever new ones."""
MOST_ELEMENTS = 50
"""Distinct shapes kept of the elements of one list."""
_KINDS = {bool: "bool", int: "bigint", float: "double"}
_TYPED = dict(
    zip(
        map(chr, range(0xF026, 0xF02E)),
        ("decimal", "timestamp", "date", "text", "binary", "binary", "wei", "time"),
        strict=True,
    )
)
"""How dlt marks in JSON what JSON has no type for: by the first letter."""
_encode = msgspec.json.Encoder().encode


def shape_of(value: Any) -> Shape:
    """The shape of an item or of a part of it.

    >>> shape_of({"id": 7, "tags": ["a", "b"], "gone": None})
    {'id': 'bigint', 'tags': ['text'], 'gone': None}
    """
    if isinstance(value, dict):
        return {key: shape_of(inner) for key, inner in value.items()}
    if isinstance(value, list):
        found: dict[bytes, Shape] = {}
        for inner in value:
            if len(found) < MOST_ELEMENTS:
                shape = shape_of(inner)
                found.setdefault(_encode(shape), shape)
        return list(found.values())
    if isinstance(value, str):
        return _TYPED.get(value[:1], "text")
    return None if value is None else _KINDS.get(type(value), "text")


class Shapes:
    """The distinct shapes of one table's items."""

    def __init__(self) -> None:
        self._found: dict[bytes, Shape] = {}
        self._paths: set[tuple[Path, str | None]] = set()

    def add(self, item: Any) -> None:
        """Look at one more item."""
        shape = shape_of(item)
        key = _encode(shape)
        if key in self._found or len(self._paths) >= MOST_PATHS:
            return
        before = len(self._paths)
        self._paths.update(leaves(shape))
        if len(self._found) < MOST_SHAPES or len(self._paths) > before:
            self._found[key] = shape

    def told(self) -> list[Shape]:
        """All that were found."""
        return list(self._found.values())


def leaves(shape: Shape, path: Path = ()) -> Iterator[tuple[Path, str | None]]:
    """Every path of a shape, and the kind of what stands there. An empty object or list has none.

    >>> list(leaves({"a": {"b": ["text", {"c": None}], "d": {}}, "e": []}))
    [(('a', 'b', None), 'text'), (('a', 'b', None, 'c'), None)]
    """
    if isinstance(shape, dict):
        for key, inner in shape.items():
            yield from leaves(inner, (*path, key))
    elif isinstance(shape, list):
        for inner in shape:
            yield from leaves(inner, (*path, None))
    else:
        yield path, shape


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
