"""store._identities: references -> numbers, and each dataset's canonical number.

Numbers never change once given, so they are remembered; a replay numbers anew and says so by the store's
generation, at which what is remembered is dropped.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any

from sqlalchemy import Connection, bindparam, select, update

from headwater.facts.canonical import choose, rewrite
from headwater.facts.fold import Tables
from headwater.facts.tables import REFERENCES, TABLES, Type, ref, unref
from headwater.naming import Aliases
from headwater.store._driver import Cursor, among, bulk, cursor_of, listed
from headwater.store._schema import IDENTITIES, OWNER, TABLE

_REMEMBERED = 500_000
_PARTS = {
    name: [(i, kind) for i, kind in enumerate(table.key.values()) if kind in REFERENCES]
    for name, table in TABLES.items()
}
_COLUMNS = {
    name: [(c, column.type) for c, column in table.columns.items() if column.type in REFERENCES]
    for name, table in TABLES.items()
}
_NEW = {name: bulk(TABLE[name], ("id", *parts)) for name, parts in IDENTITIES.items()}


def numbers_of(cursor: Cursor, names: Collection[str], table: str = "datasets") -> dict[str, int]:
    """The numbers of datasets (or jobs), of those that have one."""
    return dict(cursor.pairs(table, names))


class Identities:
    """What a writer remembers of the numbers it met, and how it gives new ones."""

    def __init__(self) -> None:
        self.known: dict[Type, dict[str, int]] = {kind: {} for kind in OWNER}
        self.names: dict[int, str] = {}
        """Datasets by number: what settling versions needs."""
        self.last_run = 0
        """The greatest number of a run that was met."""
        self.contents: set[bytes] = set()
        self._fresh: dict[Type, dict[str, int]] = {kind: {} for kind in OWNER}
        self._new_contents: set[bytes] = set()
        self._born: dict[Type, list[int]] = {}

    def born(self) -> dict[Type, list[int]]:
        """The numbers that were given since this was last asked."""
        born, self._born = self._born, {}
        return born

    def new_runs(self) -> Collection[int]:
        """The numbers of runs among those."""
        return frozenset(self._born.get(Type.RUN, ()))

    def forget(self) -> None:
        """Drop what is remembered: the numbers were given anew."""
        born = self._born  # within one transaction the rules may change: what it numbered stays to be told
        self.__init__()  # type: ignore[misc]
        self._born = born

    def keep(self) -> None:
        """The transaction that gave the new numbers is committed."""
        self._fresh = {kind: {} for kind in OWNER}
        self.contents |= self._new_contents
        self._new_contents = set()
        if sum(map(len, self.known.values())) + len(self.contents) > _REMEMBERED:
            self.forget()

    def drop(self) -> None:
        """The transaction is rolled back: its numbers were never given."""
        for kind, fresh in self._fresh.items():
            for identity in fresh:
                self.known[kind].pop(identity, None)
            fresh.clear()
        self._new_contents = set()
        self._born = {}
        self.names.clear()

    def unseen(self, contents: Mapping[tuple[Any, ...], Any]) -> dict[tuple[Any, ...], Any]:
        """The contents that are not known to be stored already."""
        new = {key: row for key, row in contents.items() if key[0] not in self.contents}
        self._new_contents.update(key[0] for key in new)
        return new

    def number(self, cursor: Cursor, tables: Tables) -> list[str]:
        """Give every reference in `tables` its number; returns the datasets that are new.

        What has a row of its own there is written with it, but for what a column points to: while columns are merged their
        names are compared, so it must be there before.
        """
        found: dict[Type, set[str]] = {kind: set() for kind in OWNER}
        pointed: dict[Type, set[str]] = {kind: set() for kind in OWNER}
        for name, rows in tables.items():
            for position, kind in _PARTS[name]:
                found[kind].update([key[position] for key in rows])
            for column, kind in _COLUMNS[name]:
                pointed[kind].update([row[column][1] for row in rows.values() if column in row])
        datasets: list[str] = []
        for kind, references in found.items():
            missing = (references | pointed[kind]).difference(self.known[kind])
            if missing:
                coming = {key[0] for key in tables.get(OWNER[kind], ())} - pointed[kind]
                new = self._resolve(cursor, kind, missing, coming)
                datasets.extend(new if kind is Type.DATASET else ())
        return datasets

    def ensure(self, cursor: Cursor, datasets: Iterable[str]) -> None:
        """Give these datasets their numbers."""
        missing = set(datasets).difference(self.known[Type.DATASET])
        if missing:
            self._resolve(cursor, Type.DATASET, missing)

    def _resolve(
        self, cursor: Cursor, kind: Type, missing: Collection[str], coming: Collection[str] = ()
    ) -> list[str]:
        """Learn the numbers of what is missing; what has none yet gets one, and is returned."""
        table, known = OWNER[kind], self.known[kind]
        names = IDENTITIES[table]
        if len(names) == 2:
            known.update(cursor.pairs(table, missing))
        else:
            (name,) = names
            cursor.execute(f"SELECT {name}, id FROM {table} WHERE {name} IN {among()}", (listed(missing),))
            known.update(cursor.fetchall())
        new = sorted(each for each in missing if each not in known)
        if not new:
            return new
        # The transaction holds the only write lock, so the numbers after the greatest are ours.
        cursor.execute(f"SELECT coalesce(max(id), 0) + 1 FROM {table}")
        ((first,),) = cursor.fetchall()
        numbered = dict(zip(new, range(first, first + len(new)), strict=True))
        bare = [
            (number, *(unref(each) if len(names) == 2 else (each,)))
            for each, number in numbered.items()
            if each not in coming
        ]
        if bare:
            cursor.insert(_NEW[table], bare)
        known.update(numbered)
        self._fresh[kind].update(numbered)
        self._born.setdefault(kind, []).extend(numbered.values())
        if kind is Type.RUN:
            self.last_run = first + len(new) - 1
        return new


def link(
    connection: Connection,
    ids: Identities,
    aliases: Aliases,
    new: Collection[str],
    links: Collection[tuple[str, str]],
) -> None:
    """Settle the canonical number of what `new` datasets and `links` touch; of nothing else."""
    moved = {each: target for each in new if (target := rewrite(each, aliases)) != each}
    if not moved and not links:
        return
    ids.ensure(
        cursor_of(connection), [*moved.values(), *(rewrite(target, aliases) for target in moved.values())]
    )
    numbers, datasets = ids.known[Type.DATASET], TABLE["datasets"]
    if moved:
        connection.execute(
            update(datasets).where(datasets.c.id == bindparam("number")).values(alias_of=bindparam("target")),
            [{"number": numbers[each], "target": numbers[target]} for each, target in moved.items()],
        )
    touched = {numbers[each] for pair in (*links, *moved.items()) for each in pair}
    settle_groups(connection, touched)


def relink(connection: Connection, ids: Identities, aliases: Aliases) -> None:
    """Settle every dataset anew: the alias rules have changed."""
    datasets = TABLE["datasets"]
    connection.execute(update(datasets).values(alias_of=None, canonical=None))
    names = [ref(*row) for row in connection.execute(select(datasets.c.namespace, datasets.c.name))]
    ids.ensure(cursor_of(connection), names)
    symlinks = TABLE["symlinks"]
    linked = {row[0] for row in connection.execute(select(symlinks.c.dataset))}
    link(connection, ids, aliases, names, ())
    settle_groups(connection, linked)


def settle_groups(connection: Connection, numbers: Collection[int]) -> None:
    """The groups that these datasets belong to, each led by the name that stands for it."""
    left = set(numbers)
    while left:
        group = _group(connection, left.pop())
        left -= group.keys()
        if len(group) < 2:
            continue
        names = {number: name for number, (name, _) in group.items()}
        rewritten = {name: names[target] if target is not None else name for name, target in group.values()}
        symlinks = TABLE["symlinks"].c
        pairs = connection.execute(
            select(symlinks.dataset, symlinks.alias).where(symlinks.dataset.in_(group))
        ).all()
        owners, targets = {names[a] for a, _ in pairs}, {names[b] for _, b in pairs}
        best = choose(names.values(), rewritten, owners, targets)
        leader = next(number for number, name in names.items() if name == best)
        datasets = TABLE["datasets"]
        connection.execute(update(datasets).where(datasets.c.id.in_(group)).values(canonical=leader))


def _group(connection: Connection, start: int) -> dict[int, tuple[str, int | None]]:
    """All datasets that symlinks and alias rules join with `start`: number -> (name, what rules make of it)."""
    datasets, symlinks = TABLE["datasets"].c, TABLE["symlinks"].c
    group: dict[int, tuple[str, int | None]] = {}
    edge = {start}
    while edge:
        part = list(edge)
        rows = connection.execute(
            select(datasets.id, datasets.namespace, datasets.name, datasets.alias_of).where(
                datasets.id.in_(part)
            )
        ).all()
        group.update({row[0]: (ref(row[1], row[2]), row[3]) for row in rows})
        near = {row[3] for row in rows if row[3] is not None}
        for query in (
            select(symlinks.alias).where(symlinks.dataset.in_(part)),
            select(symlinks.dataset).where(symlinks.alias.in_(part)),
            select(datasets.id).where(datasets.alias_of.in_(part)),
        ):
            near.update(connection.execute(query).scalars())
        edge = near - group.keys()
    return group
