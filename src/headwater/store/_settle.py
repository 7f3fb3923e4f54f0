"""store._settle: runs that a batch touches -> the version that each of them shows, and how the last run of each job stands."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from headwater.facts.definitions import NEW
from headwater.facts.fold import Tables
from headwater.facts.tables import Type
from headwater.facts.versions import COMPLETE, RUNNING, version_of
from headwater.store._driver import Cursor, among, listed
from headwater.store._upsert import Ids

_SIDES = ("inputs", "outputs")
Named = tuple[set[str], set[str]]
"""What a run read and wrote."""


_LAST_STATE = (
    f"coalesce((SELECT coalesce(r.state, '{RUNNING}') FROM runs AS r"
    f" WHERE r.job = t.id AND coalesce(r.state, '') <> '{NEW}'"
    f" ORDER BY r.first_seen DESC, coalesce(r.state, '{RUNNING}') DESC LIMIT 1),"
    " (SELECT r.state FROM runs AS r WHERE r.job = t.id LIMIT 1))"
)
"""Of the last run that has begun; one of which only its children told has. Of a job whose runs were only made by hand: that."""
_LAST_STATES = (
    f"UPDATE jobs SET last_state = found.state FROM (SELECT t.id AS job, {_LAST_STATE} AS state FROM jobs AS t"
    " WHERE {of}) AS found WHERE jobs.id = found.job AND coalesce(jobs.last_state, '') <> coalesce(found.state, '')"
)
_OF = _LAST_STATES.format(of=f"t.id IN {among()}")
_OF_ALL = _LAST_STATES.format(of="1 = 1")


@dataclass(frozen=True, slots=True)
class Stored:
    """What stands of a run before a batch is merged."""

    state: tuple[Any, str] | None
    """With its stamp."""
    job: int | None


_UNHEARD = Stored(None, None)


def stored_runs(cursor: Cursor, tables: Tables, ids: Ids, new: Collection[int]) -> dict[int, Stored]:
    """The batch's runs as they stand in the store, of those that are not `new` to it."""
    numbers = ids[Type.RUN]
    asked = [each for (run,) in tables.get("runs", ()) if (each := numbers[run]) not in new]
    if not asked:
        return {}
    cursor.execute(f"SELECT id, state_at, state, job FROM runs WHERE id IN {among()}", (listed(asked),))
    return {
        number: Stored(None if at is None else (at, state), job)
        for number, at, state, job in cursor.fetchall()
    }


def show_versions(
    cursor: Cursor, tables: Tables, ids: Ids, before: Mapping[int, Stored], names: dict[int, str]
) -> dict[tuple[Any, ...], dict[str, Any]]:
    """The batch's rows of `runs`, each with the `io` that it has once the batch is merged.

    It is found out before they are written, for a row that is written and then settled is written twice. Of new runs
    the batch says all there is; of those that were there `before`, the tables are asked. `names` remembers datasets by
    number, for as long as the writer lives.
    """
    numbers = ids[Type.RUN]
    rows = tables.get("runs", {})
    ended = set()
    for (run,), row in rows.items():
        was = before.get(numbers[run], _UNHEARD)
        told = [each for each in (row.get("state"), was.state) if each is not None]
        if told and max(told)[1] == COMPLETE:
            ended.add(run)
    kept = _named(cursor, [each for run in ended if (each := numbers[run]) in before], names)
    named: dict[str, Named] = {run: kept[each] for run in ended if (each := numbers[run]) in kept}
    for side, table in enumerate(_SIDES):
        for run, dataset in tables.get(table, ()):
            if run in ended:
                named.setdefault(run, (set(), set()))[side].add(dataset)
    shown = {run: version_of(*sides) for run, sides in named.items()}
    return {key: {**row, "io": shown.get(key[0])} for key, row in rows.items()}


def jobs_of(tables: Tables, ids: Ids, before: Mapping[int, Stored]) -> set[int]:
    """The jobs that the batch's runs are of, or were."""
    numbers = ids[Type.JOB]
    said = {numbers[row["job"][1]] for row in tables.get("runs", {}).values() if "job" in row}
    return said | {each.job for each in before.values() if each.job is not None}


def settle_states(cursor: Cursor, jobs: Collection[int] | None = None) -> None:
    """Set `jobs.last_state` from the runs as they are now: of these jobs, or of all."""
    if jobs is None:
        cursor.execute(_OF_ALL)
    elif jobs:
        cursor.execute(_OF, (listed(jobs),))


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
