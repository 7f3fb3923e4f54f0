"""store._partitions: the number of a run -> a partition of every table that is kept by run, made ahead of need.

Runs are numbered in the order of their arrival, so old ones lie together: on Postgres whole partitions of them go
at once. A new partition is made aside and then attached, which no reader waits for.
"""

from __future__ import annotations

import re

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


def bounds(cursor: Cursor) -> list[int]:
    """Where partitions end, in order."""
    cursor.execute(
        "SELECT pg_get_expr(c.relpartbound, c.oid) FROM pg_inherits AS i JOIN pg_class AS c ON c.oid = i.inhrelid"
        f" WHERE i.inhparent = '{PARTITIONED[0]}'::regclass"
    )
    return sorted(int(re.findall(r"\d+", row[0].partition(" TO ")[2])[0]) for row in cursor.fetchall())


def settle(cursor: Cursor, end: int) -> None:
    """All partitions up to `end` -> one, with the rows of those runs that are still there.

    What is left of old runs is little, so this costs next to nothing however much goes.
    """
    for table in PARTITIONED:
        cursor.execute(
            "SELECT c.relname, pg_get_expr(c.relpartbound, c.oid) FROM pg_inherits AS i"
            f" JOIN pg_class AS c ON c.oid = i.inhrelid WHERE i.inhparent = '{table}'::regclass"
        )
        old = [
            name
            for name, bound in cursor.fetchall()
            if int(re.findall(r"\d+", bound.partition(" TO ")[2])[0]) <= end
        ]
        cursor.execute(f"CREATE TABLE {table}_left (LIKE {table} INCLUDING ALL)")
        cursor.execute(
            f"INSERT INTO {table}_left SELECT t.* FROM {table} AS t JOIN runs ON runs.id = t.run WHERE t.run < ?",
            (end,),
        )
        for name in old:
            cursor.execute(f"ALTER TABLE {table} DETACH PARTITION {name}")
            cursor.execute(f"DROP TABLE {name}")
        cursor.execute(f"ALTER TABLE {table}_left RENAME TO {table}_to_{end}")
        cursor.execute(
            f"ALTER TABLE {table} ATTACH PARTITION {table}_to_{end} FOR VALUES FROM (MINVALUE) TO ({end})"
        )
