"""facts.changes: a schema before and after -> what was added, removed and changed, and whether it breaks a reader."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

_WIDER = (
    ("tinyint", "smallint", "int", "bigint", "decimal"),
    ("float", "double"),
    ("date", "timestamp"),
)
_SAME = {
    "byte": "tinyint", "int8": "tinyint", "short": "smallint", "int16": "smallint", "int2": "smallint",
    "integer": "int", "int32": "int", "int4": "int", "long": "bigint", "int64": "bigint", "numeric": "decimal",
    "real": "float", "float4": "float", "float32": "float", "float8": "double", "float64": "double",
    "double precision": "double", "varchar": "string", "text": "string", "char": "string",
    "character varying": "string", "bool": "boolean",
}  # fmt: skip
_SIZED = re.compile(r"^([a-z_ ]+?)\s*\(([\d\s,]+)\)$")


class Change(NamedTuple):
    """One column that is not as it was: `added`, `removed` or `type`."""

    kind: str
    field: str
    before: str | None
    after: str | None
    breaking: bool


def compare_schemas(before: Iterable[Mapping[str, Any]], after: Iterable[Mapping[str, Any]]) -> list[Change]:
    """What a reader of the one meets in the other; nested fields by their dotted path.

    >>> compare_schemas([{"name": "id", "type": "int"}], [{"name": "id", "type": "bigint"}])
    [Change(kind='type', field='id', before='int', after='bigint', breaking=False)]
    """
    old, new = dict(columns(before)), dict(columns(after))
    found = [Change("removed", name, old[name], None, True) for name in old if name not in new]
    found += [Change("added", name, None, new[name], False) for name in new if name not in old]
    found += [
        Change("type", name, old[name], new[name], not widens(old[name], new[name]))
        for name in old
        if name in new and old[name] != new[name]
    ]
    return sorted(found, key=lambda each: (each.field, each.kind))


def columns(fields: Iterable[Mapping[str, Any]], above: str = "") -> Iterator[tuple[str, str]]:
    """Every column of a schema, nested ones too: dotted path and type."""
    for each in fields:
        path = f"{above}{each['name']}"
        yield path, each["type"]
        yield from columns(each.get("fields", ()), f"{path}.")


def widens(before: str, after: str) -> bool:
    """Whether every value of the one type is one of the other: a reader goes on as before.

    >>> widens("varchar(10)", "varchar(20)"), widens("bigint", "int"), widens("INTEGER", "int")
    (True, False, True)
    """
    (old, old_size), (new, new_size) = _type(before), _type(after)
    if old == new:
        return new_size is None or (old_size is not None and _holds(old_size, new_size))
    for line in _WIDER:
        if old in line and new in line:
            return line.index(old) < line.index(new) and new_size is None
    return False


def _holds(old: tuple[int, ...], new: tuple[int, ...]) -> bool:
    """Whether a size has room for the other: characters; or digits before the point and after it."""
    if len(old) == len(new) == 2:
        old, new = (old[0] - old[1], old[1]), (new[0] - new[1], new[1])
    return len(old) == len(new) and all(a <= b for a, b in zip(old, new, strict=True))


def _type(text: str) -> tuple[str, tuple[int, ...] | None]:
    plain = " ".join(text.lower().split())
    if sized := _SIZED.match(plain):
        numbers = tuple(int(each) for each in sized[2].split(",") if each.strip())
        return _SAME.get(sized[1], sized[1]), numbers
    return _SAME.get(plain, plain), None
