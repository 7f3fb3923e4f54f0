"""store.postgres: a `postgresql://user@host/db` url -> a store in that database, for several servers at once."""

from __future__ import annotations

import contextlib
import os
import shutil
import sqlite3
import subprocess
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import psycopg
from psycopg import errors
from sqlalchemy import URL, Connection, Engine, create_engine, event, exc, make_url

from headwater.errors import ConfigError, StoreError
from headwater.facts.tables import Row
from headwater.naming import scrub
from headwater.store import _partitions as partitions
from headwater.store import _wire
from headwater.store._driver import Cursor, among, cursor_of, exclude_writers, listed
from headwater.store._migrate import HEAD, migrate, revision
from headwater.store._schema import BY_RUN, FOLDED, PARTITIONED
from headwater.store._space import Thresholds, size
from headwater.store._sql import SqlStore

_GONE = (
    errors.AdminShutdown,
    errors.CrashShutdown,
    errors.CannotConnectNow,
    errors.IdleInTransactionSessionTimeout,
)
_BUSY = (
    errors.LockNotAvailable,
    errors.DeadlockDetected,
    errors.SerializationFailure,
    errors.TooManyConnections,
)
_UNHELD = (psycopg.DataError, errors.ProgramLimitExceeded)
"""Of what is written, not of the database: a name that no index can hold, say."""
_FULL = (errors.DiskFull, errors.OutOfMemory, errors.InsufficientResources)


def open_postgres(
    url: str,
    *,
    pool_size: int = 8,
    max_overflow: int = 16,
    pool_timeout: float = 30,
    connect_timeout: int = 10,
    statement_timeout: float = 60,
    lock_timeout: float = 30,
    application_name: str = "headwater",
    sslmode: str = "",
    sslrootcert: str = "",
    sslcert: str = "",
    sslkey: str = "",
    partition_runs: int = partitions.SIZE,
    migrate_on_open: bool = True,
    max_size: str = "",
    disk_alarm: str = "10%",
    disk_reserve: str = "64MB",
) -> PostgresStore:
    """Open the store in a Postgres database, whose tables are made where they are missing.

    Args:
        url: `postgresql://user:password@host:5432/database`; what it leaves out comes from `PGHOST`, `PGPASSWORD` …
        pool_size: Connections that readers keep open; one more writes.
        max_overflow: How many more are opened when all of them are taken.
        pool_timeout: Seconds to wait for one of them.
        connect_timeout: Seconds to wait for the database to answer.
        statement_timeout: Seconds that a question may take; 0 is no limit.
        lock_timeout: Seconds to wait for another writer.
        application_name: What `pg_stat_activity` shows.
        sslmode: As libpq has it: `require`, `verify-full` …
        sslrootcert: File with the certificates that the server's is checked against.
        sslcert: File with the client's certificate.
        sslkey: File with its key.
        partition_runs: Runs whose rows share a partition: what old runs are dropped by.
        migrate_on_open: Bring an older store to this version's format, instead of refusing it.
        max_size: How large the database may grow, as in `200GB`; empty: nobody looks.
        disk_alarm: What is left of `max_size` when `/health` and `/metrics` begin to warn: `10%`, or `5GB`.
        disk_reserve: What is left of it when nothing more is written.

    """
    try:
        address = make_url(url).set(drivername="postgresql+psycopg")
    except (exc.ArgumentError, ValueError):
        raise ConfigError(
            f"store {scrub(url)!r} is no url of a database: write postgresql://user@host:5432/database"
        ) from None
    if not address.database:
        raise ConfigError(f"store {scrub(url)} names no database: write postgresql://user@host:5432/database")
    ssl = {"sslmode": sslmode, "sslrootcert": sslrootcert, "sslcert": sslcert, "sslkey": sslkey}
    given: dict[str, Any] = {
        "connect_timeout": int(connect_timeout),
        "application_name": application_name,
        "client_encoding": "utf8",
        "keepalives_idle": 30,  # a database host that vanished is noticed within two minutes
        "keepalives_interval": 10,
        "keepalives_count": 6,
        **{name: value for name, value in ssl.items() if value},
    }
    writing: dict[str, int | str] = {
        "lock_timeout": int(float(lock_timeout) * 1000),
        "idle_in_transaction_session_timeout": 300_000,
        # the writer looks rows up by keys and keeps its plans: those made while a table was small would read all of it
        "enable_seqscan": "off",
    }
    reading = {"statement_timeout": int(float(statement_timeout) * 1000)}
    pool: dict[str, Any] = {"pool_pre_ping": True, "pool_timeout": float(pool_timeout)}
    writer = _engine(address, given, writing, pool_size=1, max_overflow=1, **pool)
    reader = _engine(
        address,
        given,
        reading,
        pool_size=int(pool_size),
        max_overflow=int(max_overflow),
        execution_options={"isolation_level": "REPEATABLE READ", "postgresql_readonly": True},
        **pool,
    )
    store = PostgresStore(
        url,
        writer,
        reader,
        partition_runs=int(partition_runs),
        max_size=size(max_size, 0, "max_size") if max_size else None,
        thresholds=Thresholds(disk_alarm, disk_reserve),
        given=given,
    )
    try:
        store.prepare(migrate_on_open=str(migrate_on_open).lower() not in ("no", "false", "0"))
    except BaseException:  # no connection is left open, whatever it is; it rises again
        store.close()
        raise
    return store


def _engine(address: URL, given: dict[str, Any], settings: Mapping[str, int | str], **pool: Any) -> Engine:
    # compiling a statement that takes milliseconds costs more than it saves
    options = " ".join(f"-c {name}={value}" for name, value in {**settings, "jit": "off"}.items())
    engine = create_engine(address, connect_args={**given, "options": options}, **pool)
    event.listen(engine, "connect", _remember)
    return engine


def _remember(connection: Any, _: object) -> None:
    """A connection keeps every statement of ours prepared: they are more than the hundred it would."""
    connection.prepared_max = 1_000
    _wire.register(connection)


class PostgresStore(SqlStore):
    """A store on Postgres: one writer at a time over all servers, readers each with a moment of their own."""

    _faults = (exc.SQLAlchemyError, psycopg.Error)
    _make_space = (
        "`headwater store prune` and then `VACUUM FULL`, for Postgres keeps what went; or a larger max_size"
    )

    def __init__(
        self,
        url: str,
        writer: Engine,
        reader: Engine,
        *,
        partition_runs: int = partitions.SIZE,
        max_size: int | None = None,
        thresholds: Thresholds = Thresholds(),  # noqa: B008 - frozen
        given: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(url, writer, reader)
        self._given = given or {}
        self._partition_runs, self._max_size, self._thresholds = partition_runs, max_size, thresholds
        self._upto = 0
        self._look_at_room_every = (
            30.0 if max_size else float("inf")
        )  # the database has to count its files for it

    def room(self) -> dict[str, Any]:
        """How much space it takes, and what is left of `max_size`."""
        with self._connect() as connection:
            used = connection.exec_driver_sql("SELECT pg_database_size(current_database())").scalar_one()
        free = max(0, self._max_size - used) if self._max_size is not None else None
        return self._thresholds.judge(used, self._max_size, free)

    def prepare(self, *, migrate_on_open: bool) -> None:
        """Make the tables, or refuse a format that is not ours."""
        try:
            with self._writer.connect() as connection:
                version = connection.dialect.server_version_info or (0,)
            if version < (14,):
                raise StoreError(f"store {self.url} is Postgres {version[0]}: 14 or newer is needed")
            if migrate_on_open:
                migrate(self._writer, self.url)
            elif (have := revision(self._writer)) != HEAD:
                raise StoreError(
                    f"store {self.url} has format {have or 'none'}, not {HEAD}: run `headwater store migrate`"
                )
        except self._faults as fault:
            raise self._told(fault) from fault

    def _exclude(self, connection: Connection) -> None:
        exclude_writers(connection)

    def _ahead(self, cursor: Cursor, run: int) -> None:
        if run >= self._upto:
            self._upto = partitions.ensure(cursor, run, self._partition_runs)

    def _told(self, fault: Exception) -> StoreError:
        return told(self.url, fault)

    def adopt(self, file: Path, after: int, derive: Callable[[str, bytes], Iterable[Row]]) -> int:
        """Take every folded table from a SQLite store of the same log; readers see the old ones until it is done.

        Its rows come into tables of their own first, while others write; then they take the place of the old.
        """
        names = {table.name: ", ".join(f'"{column.name}"' for column in table.columns) for table in FOLDED}
        try:
            with contextlib.closing(sqlite3.connect(f"file:{file}?mode=ro", uri=True)) as made:
                (last,) = made.execute("SELECT coalesce(max(id), 0) FROM runs").fetchone()
                with self._writer.begin() as connection:
                    cursor = connection.connection.cursor()
                    for table, columns in names.items():
                        cursor.execute(f"DROP TABLE IF EXISTS made_{table}")
                        cursor.execute(f"CREATE UNLOGGED TABLE made_{table} (LIKE {table})")
                        with cursor.copy(f"COPY made_{table} ({columns}) FROM STDIN") as into:
                            for row in made.execute(f"SELECT {columns} FROM {table}"):
                                into.write_row(row)
        except self._faults as fault:
            raise self._told(fault) from fault
        except sqlite3.Error as fault:
            raise StoreError(f"{file} cannot be read: {fault}") from fault
        with self._transaction() as connection:
            self._upto = 0
            self._ahead(cursor_of(connection), last)
            for table, columns in names.items():
                connection.exec_driver_sql(f"DELETE FROM {table}")
                connection.exec_driver_sql(
                    f"INSERT INTO {table} ({columns}) SELECT {columns} FROM made_{table}"
                )
                connection.exec_driver_sql(f"DROP TABLE made_{table}")
            self._renew(connection)
            self._index.rebuild(connection)
            return sum(self._derive_since(connection, after, derive))

    def ranges(self, connection: Connection, before: int) -> list[tuple[int, int]]:
        """Whole partitions where most of their runs are old, else stretches."""
        cursor = cursor_of(connection)
        found: list[tuple[int, int]] = []
        start = 0
        for end in partitions.bounds(cursor):
            cursor.execute(
                "SELECT count(*), count(CASE WHEN last_seen >= ? THEN 1 END), max(id) FROM runs"
                " WHERE id >= ? AND id < ?",
                (before, start, end),
            )
            ((runs, young, last),) = cursor.fetchall()
            if runs and young * 2 < runs:
                found.append((start, end))
            elif runs:
                found += [(each, min(each + 2_000, end)) for each in range(start, last + 1, 2_000)]
            start = end
        return found

    def drop_runs(self, connection: Connection, start: int, end: int, gone: Sequence[int]) -> None:
        """Whole partitions at once where that is possible without waiting for readers."""
        cursor = cursor_of(connection)
        if end in partitions.bounds(cursor) and (start == 0 or start in partitions.bounds(cursor)):
            try:
                with connection.begin_nested():
                    connection.exec_driver_sql(
                        "SET LOCAL lock_timeout = '1s'"
                    )  # readers must not queue behind us
                    self._unsay(cursor, gone)
                    cursor.execute(f"DELETE FROM runs WHERE id IN {among()}", (listed(gone),))
                    for table, column in BY_RUN:
                        if table not in PARTITIONED:
                            cursor.execute(
                                f"DELETE FROM {table} WHERE {column} IN {among()}", (listed(gone),)
                            )
                    partitions.settle(cursor, end)
                return
            except errors.LockNotAvailable:
                pass  # a reader holds a table for long: row by row then, which waits for nobody
        super().drop_runs(connection, start, end, gone)

    def check(self) -> list[str]:
        """What is wrong with the store; nothing when it is sound."""
        problems: list[str] = []
        with self._connect() as connection:
            found = connection.exec_driver_sql(
                "SELECT c.relname FROM pg_class c JOIN pg_index i ON i.indexrelid = c.oid"
                " JOIN pg_namespace n ON n.oid = c.relnamespace"
                " WHERE n.nspname = current_schema() AND NOT i.indisvalid"
            )
            problems += [f"index {row[0]} is not valid: REINDEX it" for row in found]
            for table in FOLDED:  # a page that cannot be read says so here
                connection.exec_driver_sql(f"SELECT count(t.*) FROM {table.name} AS t")
        return problems

    def backup(self, file: Path) -> None:
        """Copy the store into one file by `pg_dump`, whole and consistent, while it is in use."""
        program = shutil.which("pg_dump") or next(
            (str(each) for each in sorted(Path("/usr/lib/postgresql").glob("*/bin/pg_dump"), reverse=True)),
            None,
        )
        if program is None:
            raise ConfigError(
                "a backup of Postgres is made by pg_dump, which is not here: install postgresql-client, or copy the"
                " log with: headwater store copy sqlite:///backup.db"
            )
        address = self._writer.url
        said = {
            "PGHOST": address.host,
            "PGPORT": address.port,
            "PGUSER": address.username,
            "PGPASSWORD": address.password,
            "PGDATABASE": address.database,
            **{variable: self._given.get(name) for name, variable in _FOR_PROGRAMS.items()},
        }
        environment = {
            **os.environ,
            **{name: str(value) for name, value in said.items() if value is not None},
        }
        command = [program, "--format=custom", "--no-owner", f"--file={file}"]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        if done.returncode:
            raise StoreError(f"{file} cannot be written: {scrub(done.stderr.strip())}")


_FOR_PROGRAMS = {
    "sslmode": "PGSSLMODE",
    "sslrootcert": "PGSSLROOTCERT",
    "sslcert": "PGSSLCERT",
    "sslkey": "PGSSLKEY",
    "connect_timeout": "PGCONNECT_TIMEOUT",
}
"""How libpq's own programs are told what a connection of ours is."""


def told(url: str, fault: Exception) -> StoreError:
    """Postgres' fault as ours, without a secret; whether the same may go well later."""
    cause = getattr(fault, "orig", None) or fault
    words = scrub(str(cause).strip().splitlines()[0]) if str(cause).strip() else type(cause).__name__
    shown = f"store {scrub(url)}: {words}"
    if isinstance(cause, _FULL):
        return StoreError(f"{shown}: free some space", retryable=True, cause="full")
    if isinstance(cause, _BUSY):
        return StoreError(f"{shown} (another process holds the write lock)", retryable=True, cause="locked")
    if isinstance(cause, errors.QueryCanceled):
        return StoreError(
            f"{shown}: it took longer than the option `statement_timeout` allows", cause="timeout"
        )
    if isinstance(cause, _GONE) or (isinstance(cause, psycopg.OperationalError) and cause.sqlstate is None):
        return StoreError(
            f"{shown} (the database is not there, or was restarted)", retryable=True, cause="gone"
        )
    if isinstance(cause, _UNHELD):
        return StoreError(shown, cause="value")
    if isinstance(cause, exc.TimeoutError):
        return StoreError(
            f"{shown}: every connection is taken; see `pool_size`", retryable=True, cause="busy"
        )
    return StoreError(shown)
