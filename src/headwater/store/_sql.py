"""store._sql: a batch -> one transaction; a question -> rows. What every SQL store shares.

A writer numbers the identities, merges the folded rows by the generated upserts, settles what follows from
whole tables, and appends to the raw log: all of it in one transaction or none of it.
"""

from __future__ import annotations

import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

from sqlalchemy import Connection, Engine, Select, delete, exc, func, select

from headwater.errors import StoreError
from headwater.facts.contents import digest_of, text
from headwater.facts.fold import Tables, fold
from headwater.facts.tables import Row, Type
from headwater.naming import DEFAULT_RULES, Aliases, scrub
from headwater.store import Batch, Entry, Forgotten, Offset, Pruned
from headwater.store._driver import Cursor, among, bulk, cursor_of, listed
from headwater.store._dump import dump
from headwater.store._forget import Forgetting
from headwater.store._identities import Identities, link, relink
from headwater.store._kept import Kept
from headwater.store._packing import pack, unpack
from headwater.store._reader import Reader
from headwater.store._retain import Progress, Prune
from headwater.store._schema import BY_RUN, FOLDED, log, meta, offsets, rejects
from headwater.store._search import Index
from headwater.store._settle import jobs_of, settle_states, settle_versions, show_versions, stored_runs
from headwater.store._upsert import ENCODE, UPSERT

_KEPT_OF_A_REJECT = 1 << 20
_STRETCH = 2_000
_LOGGED = bulk(log, ("digest", "kind", "time", "received_at", "body"), "ON CONFLICT (digest) DO NOTHING")
_REJECTED = bulk(
    rejects,
    ("digest", "path", "reason", "first_seen", "last_seen", "times", "size", "body"),
    "ON CONFLICT (digest) DO UPDATE SET last_seen = excluded.last_seen, times = rejects.times + excluded.times",
)


class SqlStore(ABC):
    """A store on an SQL database, with one writer at a time and readers that never wait for it.

    What the databases do each in their own way (excluding other writers, a check, a backup, taking tables from
    elsewhere) is theirs: `_lite.LiteStore`, `postgres.PostgresStore`.
    """

    _faults: tuple[type[Exception], ...] = (exc.SQLAlchemyError,)
    _look_at_room_every = 0.0  # seconds
    _make_space = "`headwater store prune`, or a larger disk"

    def __init__(self, url: str, writer: Engine, reader: Engine, *, shared: bool = False) -> None:
        self.url = scrub(url)
        self._writer, self._reader = writer, reader
        self._kept = Kept(writer)
        self._lock = threading.RLock()
        self._reading: AbstractContextManager[Any] = self._lock if shared else nullcontext()
        self._ids = Identities()
        self._generation: str | None = None
        self._roomy_until = 0.0
        self._aliases = Aliases(DEFAULT_RULES)
        self._index = Index()

    @contextmanager
    def _transaction(self) -> Iterator[Connection]:
        with self._lock:
            try:
                with self._kept.begin(self._exclude) as connection:
                    self._refresh(connection)
                    yield connection
            except BaseException as fault:  # an interrupt rolls back too; whatever it is rises again
                self._ids.drop()
                self._generation = None  # what was loaded inside may be gone: look again
                self._index = Index()
                if isinstance(fault, self._faults):
                    raise self._told(fault) from fault
                raise
            self._ids.keep()

    @abstractmethod
    def _exclude(self, connection: Connection) -> None:
        """Keep every other writer of this database out until the transaction ends."""

    def _ahead(self, cursor: Cursor, run: int) -> None:  # noqa: B027 - SQLite wants nothing made
        """Make room for the rows of runs up to this number, where the database wants it made."""

    @abstractmethod
    def _told(self, fault: Exception) -> StoreError:
        """The database's fault as ours, without a secret."""

    def _refresh(self, connection: Connection) -> None:
        """Another process may have numbered anew or changed the alias rules."""
        cursor = cursor_of(connection)
        cursor.execute("SELECT value FROM meta WHERE key = 'generation'")
        generation = next((row[0] for row in cursor.fetchall()), "0")
        if generation != self._generation:
            self._ids.forget()
            self._generation = generation
            self._aliases = Aliases([*Reader(connection).aliases(), *DEFAULT_RULES])

    def _renew(self, connection: Connection) -> None:
        """Tell every writer, this one too, that numbers or rules have changed."""
        generation = str(int(self._generation or 0) + 1)
        connection.execute(delete(meta).where(meta.c.key == "generation"))
        connection.execute(meta.insert().values(key="generation", value=generation))
        self._refresh(connection)

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        """A transaction for what stands outside the log: keys, leases; no reader is kept waiting."""
        with self._transaction() as connection:
            yield connection

    def unknown(self, digests: Sequence[bytes]) -> set[bytes]:
        """Those of the digests that the log does not hold."""
        missing = set(digests)
        with self._connect() as connection:
            missing.difference_update(cursor_of(connection).held("log", "digest", digests))
        return missing

    def write(self, batch: Batch) -> int:
        """Write a batch in one transaction; how many of its entries were new."""
        self._refuse_when_full()
        now = time.time_ns() // 1000
        packed = [(each.digest, each.kind, each.time, now, pack(each.raw)) for each in batch.entries]
        with self._transaction() as connection:
            cursor = cursor_of(connection)
            if batch.mark is not None and not self._first_time(cursor, batch.mark):
                return 0
            if batch.offsets:
                self._advance(cursor, batch.offsets)
            self._merge(connection, cursor, batch.tables)
            if batch.rejects:
                self._reject(cursor, batch, now)
            if not packed:
                return 0
            cursor.insert(_LOGGED, packed)
            return cursor.rowcount

    @abstractmethod
    def room(self) -> dict[str, Any]:
        """How much space it takes and is left."""

    def _refuse_when_full(self) -> None:
        if time.monotonic() < self._roomy_until:
            return
        told = self.room()
        if told["state"] == "full":
            raise StoreError(
                f"store {self.url}: only {told['free_bytes']:,} bytes are left, and {told['reserve_bytes']:,} are kept"
                f" free: nothing more is written. Make space: {self._make_space}",
                retryable=True,
                cause="full",
            )
        self._roomy_until = time.monotonic() + self._look_at_room_every

    @staticmethod
    def _advance(cursor: Cursor, read: Sequence[Offset]) -> None:
        """Note how far a topic is read, unless another has read the same meanwhile."""
        for each in read:
            cursor.execute(
                "INSERT INTO offsets (consumer, topic, partition, next) VALUES (?, ?, ?, ?)"
                " ON CONFLICT (consumer, topic, partition) DO UPDATE SET next = excluded.next WHERE offsets.next <= ?",
                (each.consumer, each.topic, each.partition, each.next, each.start),
            )
            if cursor.rowcount != 1:
                raise StoreError(
                    f"{each.topic}/{each.partition} is read beyond {each.start} already: by another consumer"
                    f" {each.consumer!r}",
                    retryable=True,
                    cause="moved",
                )

    def offsets(self, consumer: str, topic: str) -> dict[int, int]:
        """For each partition of a topic the record that a consumer reads next."""
        table = offsets.c
        query = select(table.partition, table.next).where(table.consumer == consumer, table.topic == topic)
        with self._connect() as connection:
            return {row[0]: row[1] for row in connection.execute(query)}

    @staticmethod
    def _first_time(cursor: Cursor, mark: str) -> bool:
        cursor.execute(
            "INSERT INTO meta (key, value) VALUES (?, '') ON CONFLICT (key) DO NOTHING", (f"batch {mark}",)
        )
        return cursor.rowcount == 1

    def _merge(self, connection: Connection, cursor: Cursor, tables: Tables) -> None:
        if not tables:
            return
        self._index.ready(connection)
        new = self._ids.number(cursor, tables)
        known = self._ids.known
        self._ahead(cursor, self._ids.last_run)
        before = stored_runs(cursor, tables, known, self._ids.new_runs())
        runs = show_versions(cursor, tables, known, before, self._ids.names)
        with cursor.together():
            for name, rows in {**tables, "runs": runs}.items():
                if name == "contents":
                    rows = self._ids.unseen(rows)
                if rows:
                    cursor.insert(UPSERT[name], ENCODE[name](rows, known))
            settle_states(cursor, jobs_of(tables, known, before))
        if tables.get("aliases"):
            self._renew(connection)
            relink(connection, self._ids, self._aliases)
        else:
            link(connection, self._ids, self._aliases, new, [key[:2] for key in tables.get("symlinks", ())])
        read_or_wrote = {key[0] for name in ("inputs", "outputs") for key in tables.get(name, ())}
        alone = [known[Type.RUN][run] for run in read_or_wrote if (run,) not in runs]
        settle_versions(cursor, alone, self._ids.names)
        self._index.settle(cursor, tables, known, self._ids.born())

    @staticmethod
    def _reject(cursor: Cursor, batch: Batch, now: int) -> None:
        rows: dict[bytes, list[Any]] = {}
        for each in batch.rejects:
            digest = digest_of(each.reason.encode() + each.raw)
            kept = pack(each.raw[:_KEPT_OF_A_REJECT])
            row = rows.setdefault(
                digest,
                [digest, text(each.path) or "", text(each.reason) or "", now, now, 0, len(each.raw), kept],
            )
            row[5] += 1  # one statement may touch a row once only
        cursor.insert(_REJECTED, list(rows.values()))

    def replay(
        self, derive: Callable[[str, bytes], Iterable[Row]], progress: Callable[[int], None] | None = None
    ) -> int:
        """Make every folded table anew from the log; readers see the old ones until all of it is done."""
        done = 0
        with self._transaction() as connection:
            for table in FOLDED:
                connection.execute(delete(table))
            self._index.clear(connection)
            self._renew(connection)
            for count in self._derive_since(connection, 0, derive):
                done += count
                if progress is not None:
                    progress(done)
        return done

    def _derive_since(
        self, connection: Connection, last: int, derive: Callable[[str, bytes], Iterable[Row]]
    ) -> Iterator[int]:
        """Merge what the entries after `last` say, a few hundred at a time."""
        while True:
            rows = connection.execute(
                select(log.c.id, log.c.kind, log.c.body).where(log.c.id > last).order_by(log.c.id).limit(500)
            ).all()
            if not rows:
                return
            tables = fold(row for _, kind, body in rows for row in derive(kind, unpack(body)))
            self._merge(connection, cursor_of(connection), tables)
            last = rows[-1][0]
            yield len(rows)

    def prune(
        self,
        before: int,
        kinds: Collection[str],
        derive: Callable[[str, bytes], Iterable[Row]],
        *,
        dry_run: bool = False,
        counted: int = 0,
        progress: Progress | None = None,
    ) -> Pruned:
        """Let go what is older than `before`, in small transactions; the catalogue stays."""
        work = Prune(self, before, frozenset(kinds), derive, progress or _unseen)
        return work.estimate(counted) if dry_run else work.run()

    def forget(
        self,
        kind: str,
        names: Sequence[str],
        derive: Callable[[str, bytes], Iterable[Row]],
        *,
        by: str = "",
        named: bool = True,
        dry_run: bool = False,
        progress: Progress | None = None,
    ) -> Forgotten:
        """Take a node out of tables and log for good; who did so stays in the log."""
        work = Forgetting(self, kind, names, derive, progress or _unseen)
        return work.estimate() if dry_run else work.run(by, named=named)

    def merge(self, connection: Connection, tables: Tables, runs: Iterable[int] = ()) -> None:
        """Merge rows inside a transaction, and settle these runs and all jobs too, for work of the store's own."""
        self._merge(connection, cursor_of(connection), tables)
        settle_versions(cursor_of(connection), list(runs), self._ids.names)
        settle_states(cursor_of(connection))
        self._index.rebuild(connection)  # what is forgotten is found no more

    def transaction(self) -> AbstractContextManager[Connection]:
        """A transaction that writes, for work of the store's own."""
        return self._transaction()

    def moment(self) -> AbstractContextManager[Connection]:
        """A transaction that reads, for work of the store's own."""
        return self._connect()

    def renew(self, connection: Connection) -> None:
        """Tell every writer that numbers were given back."""
        self._renew(connection)

    def drop_runs(self, connection: Connection, start: int, end: int, gone: Sequence[int]) -> None:
        """Take runs out of every table that is kept by run, in stretches that lie together."""
        cursor = cursor_of(connection)
        self._unsay(cursor, gone)
        cursor.execute("SELECT id FROM runs WHERE id >= ? AND id < ? ORDER BY id", (start, end))
        dead = set(gone)
        staying = [row[0] for row in cursor.fetchall() if row[0] not in dead]
        for low, high in zip([start - 1, *staying], [*staying, end], strict=True):
            if high - low > 1:
                for table, column in (*BY_RUN, ("runs", "id")):
                    cursor.execute(f"DELETE FROM {table} WHERE {column} > ? AND {column} < ?", (low, high))

    @staticmethod
    def _unsay(cursor: Cursor, runs: Sequence[int]) -> None:
        """What was said of runs by hand (their arguments) goes with them."""
        cursor.execute(
            f"DELETE FROM said WHERE kind = 'run' AND owner IN (SELECT run_id FROM runs WHERE id IN {among()})",
            (listed(runs),),
        )

    def ranges(self, connection: Connection, before: int) -> list[tuple[int, int]]:
        """The numbers of all runs, in stretches that are dropped in one transaction."""
        cursor = cursor_of(connection)
        cursor.execute("SELECT min(id), max(id) FROM runs")
        ((low, high),) = cursor.fetchall()
        return [] if low is None else [(each, each + _STRETCH) for each in range(low, high + 1, _STRETCH)]

    @contextmanager
    def read(self) -> Iterator[Reader]:
        """One moment of the store, to ask about."""
        with self._connect() as connection:
            yield Reader(connection)

    @contextmanager
    def _connect(self) -> Iterator[Connection]:
        with self._reading:
            try:
                with self._reader.begin() as connection:
                    yield connection
            except self._faults as fault:
                raise self._told(fault) from fault

    def log(self, after: int = 0, limit: int | None = None) -> Iterator[tuple[int, Entry]]:
        """The entries of the raw log, oldest first, with their numbers."""
        left = limit
        while left is None or left > 0:
            size = 500 if left is None else min(left, 500)
            query: Select[Any] = select(log).where(log.c.id > after).order_by(log.c.id).limit(size)
            with self._connect() as connection:
                rows = connection.execute(query).all()
            if not rows:
                return
            for row in rows:
                yield row.id, Entry(row.digest, row.kind, row.time, unpack(row.body))
            after, left = rows[-1].id, None if left is None else left - len(rows)

    def rejected(self, limit: int = 100) -> list[dict[str, Any]]:
        """The events that were refused, newest first."""
        query = select(rejects).order_by(rejects.c.last_seen.desc(), rejects.c.id.desc()).limit(limit)
        with self._connect() as connection:
            return [
                {**{name: row[name] for name in ("id", "path", "reason", "first_seen", "last_seen", "times", "size")},
                 "payload": unpack(row["body"]).decode("utf-8", "replace")}
                for row in connection.execute(query).mappings()
            ]  # fmt: skip

    def counts(self) -> dict[str, int]:
        """How many rows each table has."""
        with self._connect() as connection:
            return {
                table.name: connection.execute(select(func.count()).select_from(table)).scalar_one()
                for table in (*FOLDED, log, rejects)
            }

    def dump(self) -> Tables:
        """Every table with identities in place of numbers, in the shape of `facts.settle`."""
        with self._connect() as connection:
            return dump(connection)

    def close(self) -> None:
        """Let go of every connection."""
        with self._lock:
            self._kept.release()
            self._reader.dispose()
            self._writer.dispose()


def _unseen(phase: str, done: int, total: int) -> None:
    """Nobody watches."""
