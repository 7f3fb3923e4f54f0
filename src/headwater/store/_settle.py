"""store._settle: runs that a batch touched -> the version each of them now shows."""

from __future__ import annotations

from collections.abc import Collection

from sqlalchemy import Connection, bindparam, select, update

from headwater.facts.versions import COMPLETE, version_of
from headwater.store._schema import TABLE

_CHUNK = 5_000


def settle_versions(connection: Connection, runs: Collection[int], names: dict[int, str]) -> None:
    """Set `runs.io` of the given runs from what the merged tables say of them now.

    `names` remembers datasets by number, for as long as the writer lives.
    """
    numbers = sorted(runs)
    for start in range(0, len(numbers), _CHUNK):
        _settle(connection, numbers[start : start + _CHUNK], names)


def _settle(connection: Connection, numbers: list[int], names: dict[int, str]) -> None:
    table = TABLE["runs"]
    rows = connection.execute(
        select(table.c.id, table.c.state, table.c.io).where(table.c.id.in_(numbers))
    ).all()
    ended = {number for number, state, _ in rows if state == COMPLETE}
    named: dict[int, tuple[list[int], list[int]]] = {}
    if ended:
        for side, which in enumerate(("inputs", "outputs")):
            io = TABLE[which].c
            for run, dataset in connection.execute(select(io.run, io.dataset).where(io.run.in_(ended))):
                named.setdefault(run, ([], []))[side].append(dataset)
    _learn(connection, {each for sides in named.values() for side in sides for each in side}, names)
    changed = []
    for number, _, before in rows:
        io_of = named.get(number)
        now = version_of(*([names[each] for each in side] for side in io_of)) if io_of else None
        if now != before:
            changed.append({"number": number, "shown": now})
    if changed:
        connection.execute(
            update(table).where(table.c.id == bindparam("number")).values(io=bindparam("shown")), changed
        )


def _learn(connection: Connection, datasets: set[int], names: dict[int, str]) -> None:
    table = TABLE["datasets"].c
    missing = [each for each in datasets if each not in names]
    for start in range(0, len(missing), _CHUNK):
        part = missing[start : start + _CHUNK]
        for number, namespace, name in connection.execute(
            select(table.id, table.namespace, table.name).where(table.id.in_(part))
        ):
            names[number] = f"{namespace}\n{name}"
