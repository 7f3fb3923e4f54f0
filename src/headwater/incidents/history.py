"""incidents.history: what a dataset's runs wrote, and with which schemas -> outcomes like those of a test."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from itertools import pairwise
from statistics import median
from typing import Any, NamedTuple

from headwater.incidents.episodes import Outcome

# ---- what a history tells ----------------------------------------------------------------------------------


def deviation(value: float, history: Sequence[float]) -> float:
    """How far a value is from what came before it, in robust standard deviations (median and MAD).

    A history that hardly varies would make any change infinite, so a twentieth of the median is the least spread.

    >>> round(deviation(1000, [1000, 1010, 990, 1005, 995]), 1), deviation(10, [1000, 1010, 990, 1005, 995]) > 6
    (0.0, True)
    """
    centre = median(history)
    spread = median(abs(each - centre) for each in history) * 1.4826
    return abs(value - centre) / max(spread, abs(centre) * 0.05, 1.0)


class Written(NamedTuple):
    """A run wrote a dataset."""

    at: int
    run: str
    root: str
    rows: int | None
    origin: str = ""
    """The dataset by the name that the run gave it."""


_LEAST = 5
"""Runs that make a history: of fewer nothing can be said."""


def volume(subject: str, written: Sequence[Written], sensitivity: float, history: int) -> list[Outcome]:
    """Each run's row count, held against those of the runs before it."""
    counted = sorted(each for each in written if each.rows is not None)
    made: list[Outcome] = []
    for position, each in enumerate(counted):
        before = [float(one.rows or 0) for one in counted[max(0, position - history) : position]]
        if len(before) >= _LEAST:
            off = deviation(float(each.rows or 0), before)
            told = {"actual": each.rows, "expected": median(before), "deviation": round(off, 1)}
            made.append(
                Outcome(
                    "volume",
                    subject,
                    "row_count",
                    "",
                    each.at,
                    off > sensitivity,
                    each.run,
                    each.root,
                    each.origin,
                    told=told,
                )
            )
    return made


def freshness(
    subject: str, written: Sequence[Written], sensitivity: float, history: int, now: int
) -> list[Outcome]:
    """Each gap between two writes, held against the gaps before it; the last one lasts until now."""
    moments = sorted(each for each in written if each.at <= now)
    made: list[Outcome] = []
    for position, each in enumerate(moments):
        gaps = [float(b.at - a.at) for a, b in pairwise(moments[max(0, position - history) : position + 1])]
        if len(gaps) < _LEAST:
            continue
        centre = median(gaps)
        spread = max(median(abs(gap - centre) for gap in gaps) * 1.4826, centre * 0.05)
        due = each.at + int(centre + sensitivity * spread)
        after = moments[position + 1] if position + 1 < len(moments) else None
        told = {"expected": due, "actual": after.at if after else None, "usual_seconds": round(centre / 1e6)}
        if due < (after.at if after else now):
            made.append(
                Outcome(
                    "freshness",
                    subject,
                    "freshness",
                    "",
                    due,
                    True,
                    each.run,
                    f"due {each.run}",
                    each.origin,
                    told=told,
                )
            )
            if after:
                made.append(
                    Outcome("freshness", subject, "freshness", "", after.at, False, after.run, after.run)
                )
    return made


# ---- what a schema breaks ----------------------------------------------------------------------------------


class Schema(NamedTuple):
    """A schema, and when runs wrote with it."""

    digest: str
    first: int
    last: int
    fields: Sequence[Mapping[str, Any]]
    origin: str = ""
    """The dataset by the name under which it was first written so."""


def schema_outcomes(subject: str, schemas: Sequence[Schema]) -> list[Outcome]:
    """Column by column: where a new schema takes one away or changes its type, and where one gives it back."""
    known = sorted(schemas, key=lambda each: (each.first, each.digest))
    if len(known) < 2:
        return []
    columns = [_columns(each.fields) for each in known]
    expected: dict[str, str] = dict(columns[0])
    broken: dict[str, list[Outcome]] = {}
    for position, each in enumerate(known[1:], 1):
        for name, kind in expected.items():
            how = breaks(kind, columns[position].get(name))
            was = bool(broken.get(name)) and broken[name][-1].failed
            if bool(how) != was:
                broken.setdefault(name, []).append(_changed(subject, name, each, each.first, how))
        for name, kind in columns[position].items():
            if name not in expected or not breaks(expected[name], kind):
                expected[name] = kind
    current = max(range(len(known)), key=lambda at: (known[at].last, known[at].first))
    for name, told in broken.items():
        if told[-1].failed and not breaks(expected[name], columns[current].get(name)):
            told.append(
                _changed(subject, name, known[current], known[current].last, "")
            )  # an old one is back
    return [each for told in broken.values() for each in told]


def _changed(subject: str, column: str, schema: Schema, at: int, how: str) -> Outcome:
    told = {"message": f"column {column} {how}"} if how else None
    root = f"schema {schema.digest} {at if not how else ''}"
    return Outcome(
        "schema", subject, "schema_change", column, at, bool(how), "", root, schema.origin, told=told
    )


def broken(before: Sequence[Mapping[str, Any]], after: Sequence[Mapping[str, Any]]) -> list[str]:
    """What one schema breaks for readers of another."""
    new = _columns(after)
    return [
        f"{name} {how}" for name, kind in _columns(before).items() if (how := breaks(kind, new.get(name)))
    ]


def breaks(before: str, after: str | None) -> str:
    """Why readers of a column break when its type changes; nothing where they do not.

    >>> breaks("int", "bigint"), breaks("bigint", "int"), breaks("string", None), breaks("VARCHAR(20)", "text")
    ('', 'changed from bigint to int', 'was removed', '')
    """
    if after is None:
        return "was removed"
    old, new = _kind(before), _kind(after)
    if old == new or not old[0] or not new[0] or new[0] in _WIDENS.get(old[0], ()):
        return ""
    if old[0] == new[0] and (not new[1] or (old[1] and _fits(old[1], new[1]))):
        return ""
    return f"changed from {before} to {after}"


_SYNONYMS = {
    "integer": "int", "int4": "int", "long": "bigint", "int8": "bigint", "short": "smallint", "int2": "smallint",
    "byte": "tinyint", "float8": "double", "double precision": "double", "real": "float", "float4": "float",
    "varchar": "string", "text": "string", "char": "string", "character varying": "string", "bool": "boolean",
    "numeric": "decimal", "number": "decimal", "timestamp without time zone": "timestamp",
}  # fmt: skip
_WIDENS = {
    "tinyint": ("smallint", "int", "bigint", "float", "double", "decimal"),
    "smallint": ("int", "bigint", "float", "double", "decimal"),
    "int": ("bigint", "double", "decimal"),
    "bigint": ("decimal",),
    "float": ("double",),
    "date": ("timestamp",),
}


def _kind(text: str) -> tuple[str, tuple[int, ...]]:
    """A type's plain name and its sizes; of a nested one, all of its text."""
    found = re.fullmatch(r"\s*([a-z_][a-z0-9_ ]*?)\s*(?:\(([\d\s,]+)\))?\s*", text.lower())
    if found is None:
        return re.sub(r"\s+", "", text.lower()), ()
    sizes = tuple(int(each) for each in (found[2] or "").split(",") if each.strip())
    return _SYNONYMS.get(found[1], found[1]), sizes


def _fits(old: tuple[int, ...], new: tuple[int, ...]) -> bool:
    return len(old) == len(new) and all(a <= b for a, b in zip(old, new, strict=True))


def _columns(fields: Sequence[Mapping[str, Any]], above: str = "") -> dict[str, str]:
    out: dict[str, str] = {}
    for each in fields:
        name = f"{above}{each['name']}"
        inner = each.get("fields")
        out[name] = "" if inner else str(each.get("type") or "")  # a struct is what its fields are
        if inner:
            out.update(_columns(inner, f"{name}."))
    return out
