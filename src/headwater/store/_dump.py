"""store._dump: one moment of a store -> every table with identities in place of numbers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from sqlalchemy import Connection, func, select

from headwater.facts.fold import Tables
from headwater.facts.tables import REFERENCES, TABLES, Rule, Type
from headwater.store._packing import unpack
from headwater.store._schema import IDENTITIES, OWNER, TABLE

VERSIONS = "job_versions"
"""What is made of runs, and no table of its own."""

Names = dict[Type, dict[int, str]]
"""Number -> identity, by what is numbered."""


def dump(connection: Connection) -> Tables:
    """Every table in the shape of `facts.settle`."""
    names = identities(connection)
    return {name: dict(rows(connection, name, names)) for name in (*TABLES, VERSIONS)}


def identities(connection: Connection) -> Names:
    """The identities that numbers stand for."""
    names: Names = {}
    for kind, owner in OWNER.items():
        owners = TABLE[owner].c
        parts = [owners[name] for name in IDENTITIES[owner]]
        names[kind] = {row[0]: "\n".join(row[1:]) for row in connection.execute(select(owners.id, *parts))}
    return names


def rows(connection: Connection, name: str, names: Names) -> Iterator[tuple[tuple[Any, ...], dict[str, Any]]]:
    """One table, row by row: its key and what is said, so that a large store need not be held whole."""
    if name == VERSIONS:
        yield from _versions(connection, names)
        return

    def value(kind: Type, stored: Any) -> Any:
        if kind in REFERENCES:
            return names[kind][stored]
        return unpack(stored) if kind is Type.BODY else stored

    table = TABLES[name]
    for row in connection.execute(select(TABLE[name])).mappings():
        found: dict[str, Any] = {}
        for column, spec in table.columns.items():
            if row[column] is not None:
                said = value(spec.type, row[column])
                found[column] = (row[f"{column}_at"], said) if spec.rule is Rule.LATEST else said
        if name in IDENTITIES:
            key: tuple[Any, ...] = (names[next(iter(table.key.values()))][row["id"]],)
            if not found:
                continue  # a name that only stands for another, or is an alias
        else:
            key = tuple(value(kind, row[part]) for part, kind in table.key.items())
        if name == "runs" and row["io"] is not None:
            found["io"] = row["io"]
        if name == "datasets":
            found["canonical"] = names[Type.DATASET][row["canonical"] or row["id"]]
        yield key, found


def _versions(connection: Connection, names: Names) -> Iterator[tuple[tuple[Any, ...], dict[str, Any]]]:
    runs = TABLE["runs"].c
    versions = select(runs.job, runs.io, func.min(runs.ended_at), func.max(runs.ended_at))
    query = versions.where(runs.io.is_not(None)).group_by(runs.job, runs.io)
    for job, io, first, last in connection.execute(query):
        yield (names[Type.JOB][job], io), {"first_seen": first, "last_seen": last}
