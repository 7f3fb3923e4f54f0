"""store._forget: a dataset, job or run -> gone from tables and log for good; who did it stays.

Entries of the log that name it are replaced by what else they told (`facts.remains`), in small transactions. The tables
follow in one, with the entries that came meanwhile. An interrupted one is finished by the same command.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from sqlalchemy import Connection

from headwater.errors import NotFound
from headwater.facts.commands import Forget, encode_command, spend
from headwater.facts.contents import digest_of
from headwater.facts.fold import Tables, fold
from headwater.facts.oblivion import Oblivion, narrowed
from headwater.facts.remains import Gone, needed
from headwater.facts.tables import REFERENCES, TABLES, Row, Rule, Type
from headwater.store import Forgotten
from headwater.store._driver import Cursor, among, cursor_of, listed
from headwater.store._packing import pack, unpack
from headwater.store._retain import LOGGED, Ground, bases, rewrite_log
from headwater.store._schema import IDENTITIES, OWNER
from headwater.store._sweep import sweep

_PART = 500
_WORDS = {"dataset": Type.DATASET, "job": Type.JOB, "run": Type.RUN}


class Merging(Ground, Protocol):
    """A store that can merge rows inside a transaction."""

    def merge(self, connection: Connection, tables: Tables, runs: Iterable[int] = ()) -> None:
        """Merge rows, and settle the versions of these runs too."""


@dataclass(slots=True)
class Forgetting:
    """One node to be forgotten, under every name it has."""

    ground: Merging
    kind: str
    names: Sequence[str]
    """References: `namespace\\nname`, or a run's id."""
    derive: Callable[[str, bytes], Iterable[Row]]
    progress: Callable[[str, int, int], None] = lambda phase, done, total: None
    _oblivion: Oblivion = field(init=False)
    _numbers: dict[Type, list[int]] = field(init=False)
    _claims: set[tuple[str, str]] = field(init=False)
    """Jobs and runs that say they belong to it: what they said before counts again."""
    _restored: Tables = field(default_factory=lambda: fold(()))

    def estimate(self) -> Forgotten:
        """What would go: runs, and entries of the log that would be told anew."""
        with self.ground.moment() as connection:
            self._look(cursor_of(connection))
            cursor = cursor_of(connection)
            entries = after = 0
            while rows := _entries(cursor, after):
                after = rows[-1][0]
                entries += sum(1 for each in rows if self._changed(each[1], unpack(each[3])) is not None)
        return Forgotten(runs=len(self._numbers[Type.RUN]), entries=entries)

    def run(self, by: str = "", *, named: bool = True) -> Forgotten:
        """Forget it."""
        with self.ground.moment() as connection:
            cursor = cursor_of(connection)
            self._look(cursor)
            cursor.execute("SELECT coalesce(max(id), 0), count(*) FROM log")
            ((end, total),) = cursor.fetchall()
        entries = after = seen = 0
        while True:
            with self.ground.transaction() as connection:
                cursor = cursor_of(connection)
                rows = [each for each in _entries(cursor, after) if each[0] <= end]
                if not rows:
                    break
                after, seen = rows[-1][0], seen + len(rows)
                entries += self._rewrite(cursor, rows)
            self.progress("entries", seen, total)
        with self.ground.transaction() as connection:
            cursor = cursor_of(connection)
            self._look(cursor)  # what came meanwhile has made new runs, perhaps
            while rows := _entries(cursor, end):  # and new entries
                end = rows[-1][0]
                entries += self._rewrite(cursor, rows)
            self._tables(connection, cursor)
            node = " ".join(self.names).replace("\n", "/")
            shown = node if named else digest_of(node.encode()).hex()
            now = time.time_ns() // 1000
            said = encode_command(Forget(at=now, by=by, kind=self.kind, node=shown, entries=entries))
            cursor.insert(LOGGED, [(digest_of(said), "command", now, now, pack(said))])
        sweep(self.ground, self.derive)
        return Forgotten(runs=len(self._numbers[Type.RUN]), entries=entries)

    def _look(self, cursor: Cursor) -> None:
        """What it is in the tables, and who refers to it."""
        numbers: dict[Type, list[int]] = {kind: [] for kind in OWNER}
        runs: list[str] = []
        if self.kind == "run":
            runs = list(self.names)
            cursor.execute(f"SELECT id FROM runs WHERE run_id IN {among()}", (listed(runs),))
            numbers[Type.RUN] = [row[0] for row in cursor.fetchall()]
        else:
            kind = _WORDS[self.kind]
            numbers[kind] = [row[1] for row in cursor.pairs(OWNER[kind], self.names)]
            if self.kind == "job":
                cursor.execute(
                    f"SELECT id, run_id FROM runs WHERE job IN {among()}", (listed(numbers[kind]),)
                )
                for number, run in cursor.fetchall():
                    numbers[Type.RUN].append(number)
                    runs.append(run)
        if not any(numbers.values()):
            raise NotFound(f"no {self.kind} is called {self.names[0]!r}")
        names = frozenset(self.names)
        gone = Gone(
            frozenset(runs),
            names if self.kind == "job" else frozenset(),
            names if self.kind == "dataset" else frozenset(),
        )
        sets: dict[bytes, Any] = {}
        if numbers[Type.DATASET]:
            cursor.execute(
                "SELECT DISTINCT s.fingerprint, c.body FROM column_sources AS s JOIN contents AS c"
                f" ON c.digest = s.fingerprint WHERE s.dataset IN {among()}",
                (listed(numbers[Type.DATASET]),),
            )
            sets = {row[0]: narrowed(unpack(row[1]), gone.datasets) for row in cursor.fetchall()}
        self._numbers, self._oblivion = numbers, Oblivion(gone, sets)
        self._claims = set()
        for table, column, kind in _CLAIMS:
            if numbers[kind]:
                name = "run_id" if table == "runs" else "namespace || '\n' || name"
                cursor.execute(
                    f"SELECT {name} FROM {table} WHERE {column} IN {among()}", (listed(numbers[kind]),)
                )
                self._claims.update((table, row[0]) for row in cursor.fetchall())

    def _changed(self, kind: str, raw: bytes) -> list[Row] | None:
        """What is left of an entry's rows; None where it names nothing that is to be forgotten."""
        rows = list(self.derive(kind, raw))
        left = self._oblivion.left(rows)
        for table, key, row in left:
            if table in ("runs", "jobs") and (table, key[0]) in self._claims:
                claims = {c: row[c] for t, c, _ in _CLAIMS if t == table and c in row}
                fold([(table, key, claims)], self._restored)
        return None if left == rows else left

    def _rewrite(self, cursor: Cursor, entries: Sequence[Any]) -> int:
        tables: Tables = fold(())
        leave: list[int] = []
        spent: list[tuple[Any, ...]] = []
        for number, kind, at, body in entries:
            raw = unpack(body)
            left = self._changed(kind, raw)
            if left is None:
                continue
            if kind == "command":
                said = spend(raw, forget=True)
                spent.append((digest_of(said), kind, at, at, pack(said)))
            fold(left, tables)
            leave.append(number)
        if leave:
            last = max(each[2] for each in entries)
            rewrite_log(cursor, leave, [*bases(needed(tables), last), *spent], last)
        return len(leave)

    def _tables(self, connection: Connection, cursor: Cursor) -> None:
        touched: set[int] = set()
        datasets = listed(self._numbers[Type.DATASET])
        for table in ("inputs", "outputs"):
            cursor.execute(f"SELECT run FROM {table} WHERE dataset IN {among()}", (datasets,))
            touched.update(row[0] for row in cursor.fetchall())
        anew = fold(self._oblivion._told_anew(self._set_rows(cursor), set()))
        for fingerprint in self._oblivion.sets:
            for statement in (
                "DELETE FROM column_edges WHERE fingerprint = ?",
                "DELETE FROM column_sources WHERE fingerprint = ?",
                "UPDATE outputs SET columns = NULL, columns_at = NULL WHERE columns = ?",
            ):
                cursor.execute(statement, (fingerprint,))
        for name, spec in TABLES.items():
            for part, kind in spec.key.items():
                if kind in REFERENCES and self._numbers[kind]:
                    column = "id" if name in IDENTITIES else part
                    cursor.execute(
                        f"DELETE FROM {name} WHERE {column} IN {among()}", (listed(self._numbers[kind]),)
                    )
        for table, column, kind in _CLAIMS:
            if self._numbers[kind]:
                cursor.execute(
                    f"UPDATE {table} SET {column} = NULL, {column}_at = NULL WHERE {column} IN {among()}",
                    (listed(self._numbers[kind]),),
                )
        for word, kind in _WORDS.items():  # a job's runs go with it, and so does what people said of them
            owners = self._oblivion.gone.of[kind]
            for table in ("tags", "said") if owners else ():
                cursor.execute(
                    f"DELETE FROM {table} WHERE kind = ? AND owner IN {among()}", (word, listed(owners))
                )
        self._facets(cursor)
        self.ground.renew(connection)
        fold(((name, key, row) for name, rows in self._restored.items() for key, row in rows.items()), anew)
        gone = self._oblivion.gone
        kept = fold(
            (name, key, row)
            for name, rows in anew.items()
            for key, row in rows.items()
            if not (name in ("jobs", "runs") and key[0] in gone.jobs | gone.runs)
        )
        cursor.execute(f"SELECT id FROM runs WHERE id IN {among()}", (listed(touched),))
        self.ground.merge(connection, kept, [row[0] for row in cursor.fetchall()])

    def _set_rows(self, cursor: Cursor) -> Iterable[Row]:
        """The rows of other datasets that stand on sets which name it."""
        for fingerprint in self._oblivion.sets:
            cursor.execute(
                "SELECT j.namespace, j.name, d.namespace, d.name, c.first_seen, c.last_seen FROM column_edges AS c"
                " JOIN jobs AS j ON j.id = c.job JOIN datasets AS d ON d.id = c.dataset WHERE c.fingerprint = ?",
                (fingerprint,),
            )
            for row in cursor.fetchall():
                job, dataset = f"{row[0]}\n{row[1]}", f"{row[2]}\n{row[3]}"
                if dataset not in self._oblivion.gone.datasets:
                    yield (
                        "column_edges",
                        (job, dataset, fingerprint),
                        {"first_seen": row[4], "last_seen": row[5]},
                    )
            cursor.execute(
                "SELECT r.run_id, d.namespace, d.name, o.columns_at FROM outputs AS o JOIN runs AS r ON r.id = o.run"
                " JOIN datasets AS d ON d.id = o.dataset WHERE o.columns = ?",
                (fingerprint,),
            )
            for run, namespace, name, at in cursor.fetchall():
                if f"{namespace}\n{name}" not in self._oblivion.gone.datasets:
                    yield "outputs", (run, f"{namespace}\n{name}"), {"columns": (at, fingerprint)}
            yield "column_sources", (fingerprint, ""), {}

    def _facets(self, cursor: Cursor) -> None:
        """Facets of others that name it."""
        low = b""
        while True:
            cursor.execute(
                "SELECT digest, body FROM contents WHERE digest > ? ORDER BY digest LIMIT 1000", (low,)
            )
            part = cursor.fetchall()
            if not part:
                return
            low = part[-1][0]
            named = [(each[0],) for each in part if self._oblivion.mentions(each[0], unpack(each[1]))]
            for table in ("run_facets", "job_facets", "dataset_facets", "io_facets") if named else ():
                cursor.executemany(f"DELETE FROM {table} WHERE body = ?", named)


_CLAIMS = [
    (name, column, spec.type)
    for name, table in TABLES.items()
    for column, spec in table.columns.items()
    if spec.type in REFERENCES and spec.rule is Rule.LATEST
]


def _entries(cursor: Cursor, after: int) -> list[Any]:
    cursor.execute("SELECT id, kind, time, body FROM log WHERE id > ? ORDER BY id LIMIT ?", (after, _PART))
    return cursor.fetchall()
