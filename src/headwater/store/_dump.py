"""store._dump: one moment of a store -> every table with identities in place of numbers."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Connection, func, select

from headwater.facts.fold import Tables
from headwater.facts.tables import REFERENCES, TABLES, Rule, Type
from headwater.store._schema import IDENTITIES, OWNER, TABLE
from headwater.store._upsert import unpack


def dump(connection: Connection) -> Tables:
    """Every table in the shape of `facts.settle`."""
    names: dict[Type, dict[int, str]] = {}
    for kind, owner in OWNER.items():
        owners = TABLE[owner].c
        parts = [owners[name] for name in IDENTITIES[owner]]
        names[kind] = {row[0]: "\n".join(row[1:]) for row in connection.execute(select(owners.id, *parts))}

    def value(kind: Type, stored: Any) -> Any:
        if kind in REFERENCES:
            return names[kind][stored]
        return unpack(stored) if kind is Type.BODY else stored

    dumped: Tables = {}
    for name, table in TABLES.items():
        rows = dumped[name] = {}
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
            rows[key] = found
    runs = TABLE["runs"].c
    versions = select(runs.job, runs.io, func.min(runs.ended_at), func.max(runs.ended_at))
    dumped["job_versions"] = {
        (names[Type.JOB][job], io): {"first_seen": first, "last_seen": last}
        for job, io, first, last in connection.execute(
            versions.where(runs.io.is_not(None)).group_by(runs.job, runs.io)
        )
    }
    return dumped
