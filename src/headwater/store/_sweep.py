"""store._sweep: facets that a later one stands before, and contents that nothing stands on -> found, counted, taken out."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from headwater.facts.fold import fold
from headwater.facts.tables import TABLES, Row, Type, ref
from headwater.store._driver import Cursor, among, cursor_of, listed
from headwater.store._packing import unpack

if TYPE_CHECKING:
    from headwater.store._retain import Ground

SUPERSEDED = {
    "dataset_facets": ("dataset", "name", "body"),
    "job_facets": ("job", "name", "body"),
    "schemas": ("dataset", "schema"),
}
"""Tables whose rows a later one can stand before, and their keys: owner first, what differs last."""
_DIGESTS = [
    (name, column)
    for name, table in TABLES.items()
    for column, kind in {**table.key, **{c: spec.type for c, spec in table.columns.items()}}.items()
    if kind is Type.DIGEST and name != "contents"
]
"""Where contents are referred to."""


def sweep(ground: Ground, derive: Callable[[str, bytes], Iterable[Row]]) -> int:
    """Take out the contents that nothing stands on any more; how many they were.

    They are looked for while others write. What has been written since is looked at before any of them goes.
    """
    used = " EXCEPT ".join(f'SELECT "{column}" FROM {table}' for table, column in _DIGESTS)
    with ground.moment() as connection:
        cursor = cursor_of(connection)
        cursor.execute("SELECT coalesce(max(id), 0) FROM log")
        ((last,),) = cursor.fetchall()
        cursor.execute(f"SELECT digest FROM contents EXCEPT {used}")
        unused = [row[0] for row in cursor.fetchall()]
    done = 0
    for part in parts(unused, 1_000):
        with ground.transaction() as connection:
            cursor = cursor_of(connection)
            cursor.execute("SELECT kind, body FROM log WHERE id > ?", (last,))
            told = fold(row for kind, body in cursor.fetchall() for row in derive(kind, unpack(body)))
            free = [(digest,) for digest in part if (digest,) not in told["contents"]]
            cursor.executemany("DELETE FROM contents WHERE digest = ?", free)
            ground.renew(connection)
        done += len(free)
    return done


def count_unused(cursor: Cursor, runs: Collection[int], before: int | None) -> int:
    """How many contents nothing would stand on, were these runs gone, and what was superseded before that moment."""
    used, given = [], list[Any]()
    for table, column in _DIGESTS:
        stays = "true"
        if "run" in TABLES[table].key:
            stays = f"NOT f.run IN {among()}"  # as both databases read it
            given.append(listed(runs))
        elif table in SUPERSEDED and before is not None:
            stays = f"NOT ({_later(table)})"
            given.append(before)
        used.append(f'SELECT f."{column}" FROM {table} AS f WHERE {stays}')
    cursor.execute(f"SELECT digest FROM contents EXCEPT {' EXCEPT '.join(used)}", tuple(given))
    return len(cursor.fetchall())


def find_superseded(cursor: Cursor, table: str, before: int) -> list[tuple[tuple[Any, ...], tuple[Any, ...]]]:
    """Facets or schemas that a later one stands before: their keys in the table, and with references."""
    owner, *names = SUPERSEDED[table]
    told = ", ".join(f'f."{name}"' for name in names)
    cursor.execute(
        f"SELECT o.namespace, o.name, f.{owner}, {told} FROM {table} AS f JOIN {owner}s AS o ON o.id = f.{owner}"
        f" WHERE {_later(table)}",
        (before,),
    )
    return [(tuple(row[2:]), (ref(row[0], row[1]), *row[3:])) for row in cursor.fetchall()]


def _later(table: str) -> str:
    """Whether the row `f` was last seen before a moment, and a later one stands before it."""
    owner, *names = SUPERSEDED[table]
    same, value = "".join(f" AND n.{name} = f.{name}" for name in names[:-1]), names[-1]
    return (
        f"f.last_seen < ? AND EXISTS (SELECT 1 FROM {table} AS n WHERE n.{owner} = f.{owner}{same}"
        f" AND (n.last_seen > f.last_seen OR (n.last_seen = f.last_seen AND n.{value} > f.{value})))"
    )


def parts(values: Sequence[Any], size: int) -> Iterator[Sequence[Any]]:
    """Values, so many at a time."""
    return (values[start : start + size] for start in range(0, len(values), size))
