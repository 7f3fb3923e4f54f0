"""store._partitions: the number of a run -> a partition of every table that is kept by run, made ahead of need.

Runs are numbered in the order of their arrival, so old ones lie together: on Postgres whole partitions of them go
at once. A new partition is made aside and then attached, which no reader waits for.
"""

from __future__ import annotations

from headwater.store._driver import Cursor
from headwater.store._schema import PARTITIONED

SIZE = 50_000
"""Runs whose rows share a partition."""
_MARK = "partitions"
"""The key in `meta` under which it stands up to which run there are partitions."""


def ensure(cursor: Cursor, run: int, size: int = SIZE) -> int:
    """Make partitions until there is room for `run` and as many again; up to which run (not with it) there are."""
    cursor.execute("SELECT value FROM meta WHERE key = ?", (_MARK,))
    found = cursor.fetchall()
    upto = have = int(found[0][0]) if found else 0
    while run >= upto:
        for table in PARTITIONED:
            add(cursor, table, None if upto == 0 else upto, upto + size)
        upto += size
    if upto != have:
        cursor.execute(
            "INSERT INTO meta (key, value) VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value",
            (_MARK, str(upto)),
        )
    return upto


def add(cursor: Cursor, table: str, start: int | None, end: int) -> None:
    """Make one partition and attach it."""
    name = f"{table}_to_{end}"
    cursor.execute(f"CREATE TABLE {name} (LIKE {table} INCLUDING ALL)")
    first = "MINVALUE" if start is None else str(start)
    cursor.execute(f"ALTER TABLE {table} ATTACH PARTITION {name} FOR VALUES FROM ({first}) TO ({end})")
