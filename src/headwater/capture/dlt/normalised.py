"""capture.dlt.normalised: the paths of a table's items, and dlt's schema -> the column that each of them became.

Names cannot be turned back: dlt's normaliser loses letters, shortens, flattens. So it is asked: a marked value is put at
each path alone and sent through the schema's own normaliser, with its naming convention, nesting limits and hints, and
where the mark comes out is the column. One mark at a time, so that two fields that fall on one column are both seen.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from headwater.capture.dlt.leaves import Path, item_of

Columns = dict[str, dict[str, list[Path]]]
"""table -> column -> the paths it comes from"""


class _Mark(str):
    """A value that is known again: a text, so that nothing on the way takes it for something to open."""


def columns_of(schema: Any, table: str, paths: Iterable[Path]) -> Columns:
    """Which columns the values at these paths are loaded into; columns that the schema lacks are left out."""
    mark = _Mark("headwater")
    found: Columns = {}
    for path in paths:
        for name, row in _rows(schema, item_of(path, mark), table):
            known = schema.tables.get(name, {}).get("columns", {})
            for column, value in row.items():
                if not _holds(value, mark):
                    continue
                for each in (column, *_variants(schema, column, known)):
                    if each in known:
                        found.setdefault(name, {}).setdefault(each, []).append(path)
    return found


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


def _holds(value: Any, mark: _Mark) -> bool:
    """Whether a value is the mark, or (a column of JSON) has it somewhere inside."""
    if isinstance(value, dict):
        return any(_holds(inner, mark) for inner in value.values())
    if isinstance(value, list):
        return any(_holds(inner, mark) for inner in value)
    return value is mark


def _variants(schema: Any, column: str, known: dict[str, Any]) -> Iterator[str]:
    """The columns beside a column that take its values of other types."""
    for name, hints in known.items():
        if hints.get("variant") and name == schema.naming.shorten_fragments(
            column, f"v_{hints.get('data_type')}"
        ):
            yield name
