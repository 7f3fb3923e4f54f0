"""store._settle: runs that a batch touches -> the version that each of them shows once it is merged."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from headwater.facts.fold import Tables
from headwater.facts.tables import Type
from headwater.facts.versions import COMPLETE, version_of
from headwater.store._driver import Cursor, among, listed
from headwater.store._upsert import Ids

_SIDES = ("inputs", "outputs")
Named = tuple[set[str], set[str]]
"""What a run read and wrote."""


def show_versions(
    cursor: Cursor, tables: Tables, ids: Ids, new: Collection[int], names: dict[int, str]
) -> dict[tuple[Any, ...], dict[str, Any]]:
    """The batch's rows of `runs`, each with the `io` that it has once the batch is merged.

    It is found out before they are written, for a row that is written and then settled is written twice. Of runs that
    are `new` the batch says all there is; of others the tables are asked. `names` remembers datasets by number, for as
    long as the writer lives.
    """
    numbers = ids[Type.RUN]
    rows = tables.get("runs", {})
    states = _states(cursor, [each for (run,) in rows if (each := numbers[run]) not in new])
    ended = set()
    for (run,), row in rows.items():
        told = [each for each in (row.get("state"), states.get(numbers[run])) if each is not None]
        if told and max(told)[1] == COMPLETE:
            ended.add(run)
    kept = _named(cursor, [each for run in ended if (each := numbers[run]) in states], names)
    named: dict[str, Named] = {run: kept[each] for run in ended if (each := numbers[run]) in kept}
    for side, table in enumerate(_SIDES):
        for run, dataset in tables.get(table, ()):
            if run in ended:
                named.setdefault(run, (set(), set()))[side].add(dataset)
    shown = {run: version_of(*sides) for run, sides in named.items()}
    return {key: {**row, "io": shown.get(key[0])} for key, row in rows.items()}


def settle_versions(cursor: Cursor, runs: Collection[int], names: dict[int, str]) -> None:
    """Set `runs.io` of the given runs from what the tables say of them now: of runs whose rows are not written anew."""
    if not runs:
        return
    cursor.execute(f"SELECT id, state, io FROM runs WHERE id IN {among()}", (listed(runs),))
    rows = cursor.fetchall()
    named = _named(cursor, [number for number, state, _ in rows if state == COMPLETE], names)
    changed = []
    for number, _, before in rows:
        now = version_of(*named[number]) if number in named else None
        if now != before:
            changed.append((now, number))
    if changed:
        cursor.executemany("UPDATE runs SET io = ? WHERE id = ?", changed)


def _states(cursor: Cursor, runs: Collection[int]) -> dict[int, tuple[Any, str] | None]:
    """The state of each of the runs with its stamp, of those that have one."""
    if not runs:
        return {}
    cursor.execute(f"SELECT id, state_at, state FROM runs WHERE id IN {among()}", (listed(runs),))
    return {number: (at, state) if at is not None else None for number, at, state in cursor.fetchall()}


def _named(cursor: Cursor, runs: Collection[int], names: dict[int, str]) -> dict[int, Named]:
    """What each of the runs reads and writes, of those that name anything."""
    named: dict[int, tuple[set[int], set[int]]] = {}
    if runs:
        for side, table in enumerate(_SIDES):
            cursor.execute(f"SELECT run, dataset FROM {table} WHERE run IN {among()}", (listed(runs),))
            for run, dataset in cursor.fetchall():
                named.setdefault(run, (set(), set()))[side].add(dataset)
        _learn(cursor, {each for sides in named.values() for side in sides for each in side}, names)
    return {run: ({names[each] for each in read}, {names[each] for each in written})
            for run, (read, written) in named.items()}  # fmt: skip


def _learn(cursor: Cursor, datasets: set[int], names: dict[int, str]) -> None:
    missing = [each for each in datasets if each not in names]
    if missing:
        cursor.execute(f"SELECT id, namespace, name FROM datasets WHERE id IN {among()}", (listed(missing),))
        names.update((number, f"{namespace}\n{name}") for number, namespace, name in cursor.fetchall())
