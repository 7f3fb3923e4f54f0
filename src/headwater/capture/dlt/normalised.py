"""capture.dlt.normalised: the shapes of a table's items, and dlt's schema -> the columns that each of their fields became.

Names cannot be turned back: dlt's normaliser loses letters, shortens, flattens. So it is asked: each distinct shape, with a
mark in the place of every value, is sent through the schema's own normaliser, with its naming convention, nesting limits and
hints, and where a mark comes out is its column. Shapes go whole: of two fields of an item that fall on one column dlt loads
one, and its normaliser alone knows which.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from headwater.capture.dlt.leaves import Path, Shape, item_of, leaves

Columns = dict[str, dict[str, list[Path]]]
"""table -> column -> the paths it comes from"""
_Landed = dict[tuple[str, str], dict[Path, set[str]]]
"""(table, column) -> the paths that fall there -> the kinds of their values"""


class _Mark(str):
    """A value that is known again: a text, so that nothing on the way takes it for something to open."""

    path: Path
    kind: str | None
    """None: there is no value, but the field is there. In a row it is nothing, inside of JSON it is loaded."""

    @classmethod
    def of(cls, path: Path, kind: str | None) -> _Mark:
        made = cls("headwater" if kind else "")
        made.path, made.kind = path, kind
        return made


def columns_of(schema: Any, table: str, shapes: Iterable[Shape]) -> Columns:
    """Which columns the fields of these shapes are loaded into; columns that the schema lacks are left out."""
    landed: _Landed = {}
    empty: set[Path] = set()
    filled: set[Path] = set()
    for shape in shapes:
        _follow(schema, table, _marked(shape), landed)
        for path, kind in leaves(shape):
            (empty if kind is None else filled).add(path)
    found: Columns = {}
    for (name, column), paths in landed.items():
        known = schema.tables.get(name, {}).get("columns", {})
        for each, sources in _by_kind(schema, column, known, paths).items():
            found.setdefault(name, {})[each] = sorted(sources, key=_order)
    return _with_empty(schema, table, empty - filled, found)


def _follow(schema: Any, table: str, item: Any, landed: _Landed) -> None:
    for name, row in _rows(schema, item, table):
        for column, value in row.items():
            for mark in _marks(value):
                kind = mark.kind if value is mark else "json"
                if kind is not None:
                    landed.setdefault((name, column), {}).setdefault(mark.path, set()).add(kind)


def _with_empty(schema: Any, table: str, paths: Iterable[Path], found: Columns) -> Columns:
    """Fields that never had a value are followed alone; they are told where nothing else is known of the column."""
    landed: _Landed = {}
    for path in paths:
        _follow(schema, table, item_of(path, _Mark.of(path, "text")), landed)
    for (name, column), sources in landed.items():
        known = schema.tables.get(name, {}).get("columns", {})
        if column in known and column not in found.get(name, {}):
            found.setdefault(name, {})[column] = sorted(sources, key=_order)
    return found


def _by_kind(
    schema: Any, column: str, known: dict[str, Any], paths: dict[Path, set[str]]
) -> dict[str, set[Path]]:
    """A column, and those beside it that take its values of other types -> the paths whose values go there."""
    variants = {
        name: str(hints.get("data_type"))
        for name, hints in known.items()
        if hints.get("variant")
        and name == schema.naming.shorten_fragments(column, f"v_{hints.get('data_type')}")
    }
    found: dict[str, set[Path]] = {}
    for name, kind in variants.items():
        # a text may be read as a number or a moment: where no value has the variant's own kind, it may be any of them
        of_kind = {path for path, kinds in paths.items() if kind in kinds}
        found[name] = of_kind or set(paths)
    if column in known:
        own = str(known[column].get("data_type"))
        certain = {path for path, kinds in paths.items() if kinds - set(variants.values()) or own in kinds}
        found[column] = certain or set(paths)
    return found


def _marked(shape: Shape, path: Path = ()) -> Any:
    if isinstance(shape, dict):
        return {key: _marked(inner, (*path, key)) for key, inner in shape.items()}
    if isinstance(shape, list):
        return [_marked(inner, (*path, None)) for inner in shape]
    return _Mark.of(path, shape)


def _rows(schema: Any, item: Any, table: str) -> Iterator[tuple[str, dict[str, Any]]]:
    rows = schema.data_item_normalizer.normalize_data_item(item, "headwater", table)
    row = next(rows, None)
    while row is not None:
        (name, _, _), values = row
        yield name, values
        try:
            row = rows.send(True)  # go into the lists, too
        except StopIteration:
            return


def _marks(value: Any) -> Iterator[_Mark]:
    """The mark that a value is, or (a column of JSON) those inside of it."""
    if isinstance(value, dict):
        for inner in value.values():
            yield from _marks(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _marks(inner)
    elif isinstance(value, _Mark):
        yield value


def _order(path: Path) -> list[str]:
    return [step or "" for step in path]
