"""capture.connect.kcql: statements of Lenses' KCQL -> from where to where, and which fields under which names."""

from __future__ import annotations

import re
from dataclasses import dataclass

_STATEMENT = re.compile(
    r"(?:INSERT|UPSERT)\s+INTO\s+(`[^`]+`|\S+)\s+SELECT\s+(.+?)\s+FROM\s+(`[^`]+`|\S+)",
    re.IGNORECASE | re.DOTALL,
)


@dataclass(frozen=True, slots=True)
class Statement:
    """One of them; no fields means all of them."""

    target: str
    source: str
    fields: tuple[tuple[str, str], ...] = ()


def statements(text: str) -> list[Statement]:
    """Read what is understood of a text.

    >>> statements("INSERT INTO bucket:shop SELECT id, total AS sum FROM orders STOREAS `JSON`")
    [Statement(target='bucket:shop', source='orders', fields=(('id', 'id'), ('total', 'sum')))]
    """
    found = []
    for each in text.split(";"):
        if said := _STATEMENT.search(each.strip()):
            fields = []
            for field in said[2].split(","):
                name, _, alias = re.sub(r"\s+AS\s+", "\0", field.strip(), flags=re.IGNORECASE).partition("\0")
                fields.append((name.strip("` "), (alias or name.rpartition(".")[2]).strip("` ")))
            everything = any(name == "*" for name, _ in fields)
            found.append(
                Statement(said[1].strip("`"), said[3].strip("`"), () if everything else tuple(fields))
            )
    return found
