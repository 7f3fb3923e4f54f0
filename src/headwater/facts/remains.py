"""facts.remains: what events told that are no longer kept -> one entry of the raw log that tells it in their place.

Rows merge in any order and any split, so the rows of many events, folded, say the same as those events did. An entry
of kind `base` holds such rows: old events go, what they told of the catalogue stays, and a replay gives it back. What
is to be gone (old runs, a dataset that must be forgotten) is left out of the rows before they are folded.
"""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec

from headwater.errors import EventError
from headwater.facts.fold import Tables, fold
from headwater.facts.tables import REFERENCES, TABLES, Row, Rule, Type

KIND = "base"
"""The kind of such an entry in the log; beside `command` and the kinds of events."""
_BYTES = (Type.DIGEST, Type.BODY)
_KEYS = {name: list(table.key.values()) for name, table in TABLES.items()}
_OWNED = {Type.JOB: "job", Type.DATASET: "dataset", Type.RUN: "run"}
_REFERRING = {
    name: [column for column, spec in table.columns.items() if spec.type in REFERENCES]
    for name, table in TABLES.items()
}
_DIGESTS = {
    name: (
        [i for i, kind in enumerate(table.key.values()) if kind is Type.DIGEST],
        [column for column, spec in table.columns.items() if spec.type is Type.DIGEST],
    )
    for name, table in TABLES.items()
    if name != "contents"
}


@dataclass(frozen=True, slots=True)
class Gone:
    """References that are to be told of no more, by their kind."""

    runs: frozenset[str] = frozenset()
    jobs: frozenset[str] = frozenset()
    datasets: frozenset[str] = frozenset()
    of: Mapping[Type, frozenset[str]] = field(init=False)

    def __post_init__(self) -> None:
        found = {Type.RUN: self.runs, Type.JOB: self.jobs, Type.DATASET: self.datasets}
        object.__setattr__(self, "of", found)


def touches(rows: Iterable[Row], gone: Gone) -> bool:
    """Whether any of the rows is about what is gone, or refers to it."""
    return any(_is_gone(name, key, gone) or _referring(name, row, gone) for name, key, row in rows)


def without(rows: Iterable[Row], gone: Gone) -> Iterator[Row]:
    """The rows that are left: none about what is gone, no reference to it."""
    for name, key, row in rows:
        if _is_gone(name, key, gone):
            continue
        dead = _referring(name, row, gone)
        yield (
            name,
            key,
            {column: value for column, value in row.items() if column not in dead} if dead else row,
        )


def _is_gone(name: str, key: tuple[Any, ...], gone: Gone) -> bool:
    if name in ("tags", "said"):
        return any(key[0] == word and key[1] in gone.of[kind] for kind, word in _OWNED.items())
    return any(
        kind in REFERENCES and part in gone.of[kind] for part, kind in zip(key, _KEYS[name], strict=True)
    )


def _referring(name: str, row: Mapping[str, Any], gone: Gone) -> list[str]:
    columns = TABLES[name].columns
    return [c for c in _REFERRING[name] if c in row and row[c][1] in gone.of[columns[c].type]]


def needed(tables: Tables) -> Tables:
    """The same, with only those contents that a row of another table stands on."""
    used: set[bytes] = set()
    for name, (keys, columns) in _DIGESTS.items():
        for key, row in tables.get(name, {}).items():
            used.update(key[i] for i in keys)
            used.update(row[column][1] for column in columns if column in row)
    contents = {key: row for key, row in tables.get("contents", {}).items() if key[0] in used}
    return {**tables, "contents": contents}


def referred(tables: Tables) -> set[bytes]:
    """The contents that columns of rows stand on."""
    return {
        row[column][1]
        for name, (_, columns) in _DIGESTS.items()
        for row in tables.get(name, {}).values()
        for column in columns
        if column in row
    }


def superseded(tables: Tables, swept: Collection[bytes]) -> Tables:
    """The same without what contents that nothing stands on any more were told of: a later word stands in its place."""
    left = dict(tables)
    for name, (_, columns) in _DIGESTS.items():
        left[name] = {
            key: {c: value for c, value in row.items() if c not in columns or value[1] not in swept}
            for key, row in tables.get(name, {}).items()
        }
    return left


def encode_base(tables: Tables, size: int = 20_000) -> Iterator[bytes]:
    """Folded rows -> entries of at most `size` rows each."""
    rows = [
        [name, list(key), row] for name, table in sorted(tables.items()) for key, row in sorted(table.items())
    ]
    for start in range(0, len(rows), size):
        yield msgspec.json.encode({"base": 1, "rows": rows[start : start + size]})


class _Base(msgspec.Struct, forbid_unknown_fields=True):
    base: int
    rows: list[tuple[str, list[Any], dict[str, Any]]]


_decoder = msgspec.json.Decoder(_Base)


def is_base(raw: bytes) -> bool:
    """Whether a line of an exported log is such an entry."""
    return raw.startswith(b'{"base":')


def derive_base(raw: bytes) -> list[Row]:
    """The rows that an entry holds."""
    try:
        return [_read(*each) for each in _decoder.decode(raw).rows]
    except (msgspec.MsgspecError, KeyError, ValueError, TypeError) as fault:
        raise EventError("", f"no base of folded rows: {fault}") from None


def fold_bases(raws: Iterable[bytes]) -> Tables:
    """The rows of several entries, merged."""
    return fold(row for raw in raws for row in derive_base(raw))


def _read(name: str, key: list[Any], row: dict[str, Any]) -> Row:
    table = TABLES[name]
    parts = tuple(
        b64decode(part) if kind is Type.DIGEST else part for part, kind in zip(key, _KEYS[name], strict=True)
    )
    values: dict[str, Any] = {}
    for column, value in row.items():
        spec = table.columns[column]
        if spec.rule is Rule.LATEST:
            stamp, said = value
            values[column] = (stamp, b64decode(said) if spec.type in _BYTES else said)
        else:
            values[column] = b64decode(value) if spec.type in _BYTES else value
    return name, parts, values
