"""store._upsert: folded rows -> parameters, and the statement that merges them, written from the rules."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from headwater.facts.tables import REFERENCES, TABLES, Rule, Table, Type, unref
from headwater.store._driver import Bulk, bulk
from headwater.store._packing import pack
from headwater.store._schema import IDENTITIES, OWNER, SETTLED, TABLE

Ids = Mapping[Type, Mapping[str, int]]
"""For each kind of reference: identity -> its number."""
Encode = Callable[[Mapping[tuple[Any, ...], Mapping[str, Any]], Ids], list[tuple[Any, ...]]]

_WHOLE = {"runs": ("io",)}
"""Settled columns that come with a row, told of the whole run: they replace what was there."""


def _statement(table: Table) -> Bulk:
    """The statement that merges rows into a table.

    The merge is the same text for SQLite and Postgres: `CASE` in place of the functions in which they differ.
    """
    whole = _WHOLE.get(table.name, ())
    settled = [name for name in SETTLED.get(table.name, ()) if name not in whole]
    names = [name for name in TABLE[table.name].columns.keys() if name not in settled]  # noqa: SIM118 - no dict
    sets: list[str] = []
    for name, column in table.columns.items():
        mine, yours = f'{table.name}."{name}"', f'excluded."{name}"'
        if column.type is Type.BODY:
            continue  # one digest, one body: nothing to merge
        if column.rule is Rule.LATEST:
            newer = _newer(table, name, column.type)
            at = f"{name}_at"
            sets.append(f'"{at}" = CASE WHEN {newer} THEN excluded."{at}" ELSE {table.name}."{at}" END')
            sets.append(f'"{name}" = CASE WHEN {newer} THEN {yours} ELSE {mine} END')
        else:
            better = f"{yours} < {mine}" if column.rule is Rule.MIN else f"{yours} > {mine}"
            sets.append(f'"{name}" = CASE WHEN {mine} IS NULL OR {better} THEN {yours} ELSE {mine} END')
    sets.extend(f'"{name}" = excluded."{name}"' for name in whole)
    key = "id" if table.name in IDENTITIES else ", ".join(f'"{part}"' for part in table.key)
    action = f"UPDATE SET {', '.join(sets)}" if sets else "NOTHING"
    return bulk(TABLE[table.name], names, f"ON CONFLICT ({key}) DO {action}")


def _newer(table: Table, name: str, kind: Type) -> str:
    """Whether the new (stamp, value) is greater; numbers stand for identities, so those are compared."""
    mine, yours = f'{table.name}."{name}"', f'excluded."{name}"'
    greater = f"{yours} > {mine}"
    if kind in REFERENCES:
        greater = f"{yours} <> {mine} AND {_identity(kind, yours)} > {_identity(kind, mine)}"
    at, new_at = f'{table.name}."{name}_at"', f'excluded."{name}_at"'
    return f"{new_at} IS NOT NULL AND ({at} IS NULL OR {new_at} > {at} OR ({new_at} = {at} AND {greater}))"


def _identity(kind: Type, number: str) -> str:
    owner = OWNER[kind]
    text = " || '\n' || ".join(f"owner.{name}" for name in IDENTITIES[owner])
    return f"(SELECT {text} FROM {owner} AS owner WHERE owner.id = {number})"


def encoder(table: Table) -> Encode:
    """What turns a table's folded rows into parameters of its statement, written out as code once.

    A generic loop over columns costs more than the database does; so each table gets its own function,
    made from the same table of rules as the statement.
    """
    lines, keys = [], list(table.key.items())
    for position, (_, kind) in enumerate(keys):
        if kind in REFERENCES:
            lines.append(f"    ids_{position} = ids[Type.{kind.name}]")
    parts: list[str] = []
    for position, (_, kind) in enumerate(keys):
        parts.append(f"ids_{position}[k[{position}]]" if kind in REFERENCES else f"k[{position}]")
    if table.name in IDENTITIES:
        parts.append("*unref(k[0])" if len(IDENTITIES[table.name]) == 2 else "k[0]")
    for name, column in table.columns.items():
        if column.type is Type.BODY:
            parts.append(f"pack(r[{name!r}])")
        elif column.rule is not Rule.LATEST:
            parts.append(f"r.get({name!r})")
        elif column.type in REFERENCES:
            lines.append(f"    ids_{name} = ids[Type.{column.type.name}]")
            parts.append(f"*((v[0], ids_{name}[v[1]]) if (v := r.get({name!r})) else NONE)")
        else:
            parts.append(f"*r.get({name!r}, NONE)")
    parts.extend(f"r[{name!r}]" for name in _WHOLE.get(table.name, ()))
    source = "\n".join(
        ["def encode(rows, ids):", *lines, f"    return [({', '.join(parts)},) for k, r in rows.items()]"]
    )
    scope: dict[str, Any] = {"Type": Type, "unref": unref, "pack": pack, "NONE": (None, None)}
    exec(source, scope)
    made: Encode = scope["encode"]
    return made


ENCODE: dict[str, Encode] = {name: encoder(table) for name, table in TABLES.items()}
UPSERT: dict[str, Bulk] = {name: _statement(table) for name, table in TABLES.items()}
"""For each table the statement that merges rows into it."""
