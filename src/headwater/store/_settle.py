"""store._settle: runs that a batch touched -> the version each of them now shows."""

from __future__ import annotations

from collections.abc import Collection

from headwater.facts.versions import COMPLETE, version_of
from headwater.store._driver import Cursor, among, listed


def settle_versions(cursor: Cursor, runs: Collection[int], names: dict[int, str]) -> None:
    """Set `runs.io` of the given runs from what the merged tables say of them now.

    `names` remembers datasets by number, for as long as the writer lives.
    """
    cursor.execute(f"SELECT id, state, io FROM runs WHERE id IN {among()}", (listed(runs),))
    rows = cursor.fetchall()
    ended = [number for number, state, _ in rows if state == COMPLETE]
    named: dict[int, tuple[list[int], list[int]]] = {}
    if ended:
        for side, table in enumerate(("inputs", "outputs")):
            cursor.execute(f"SELECT run, dataset FROM {table} WHERE run IN {among()}", (listed(ended),))
            for run, dataset in cursor.fetchall():
                named.setdefault(run, ([], []))[side].append(dataset)
        _learn(cursor, {each for sides in named.values() for side in sides for each in side}, names)
    changed = []
    for number, _, before in rows:
        io = named.get(number)
        now = version_of(*([names[each] for each in side] for side in io)) if io else None
        if now != before:
            changed.append((now, number))
    if changed:
        cursor.executemany("UPDATE runs SET io = ? WHERE id = ?", changed)


def _learn(cursor: Cursor, datasets: set[int], names: dict[int, str]) -> None:
    missing = [each for each in datasets if each not in names]
    if missing:
        cursor.execute(f"SELECT id, namespace, name FROM datasets WHERE id IN {among()}", (listed(missing),))
        names.update((number, f"{namespace}\n{name}") for number, namespace, name in cursor.fetchall())
