"""store.postgres: a `postgresql://user@host/db` url -> a store in that database, for several servers at once."""

from __future__ import annotations

import contextlib
import os
import shutil
import sqlite3
import subprocess
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import psycopg
from psycopg import errors, sql
from sqlalchemy import URL, Connection, Engine, create_engine, delete, exc, make_url

from headwater.errors import ConfigError, StoreError
from headwater.facts.tables import Row
from headwater.naming import scrub
from headwater.store import _partitions as partitions
from headwater.store._driver import Cursor, cursor_of, exclude_writers
from headwater.store._migrate import HEAD, migrate, revision
from headwater.store._schema import FOLDED
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
        "keepalives_idle": 30,  # a database host that vanished is noticed within two minutes
        "keepalives_interval": 10,
        "keepalives_count": 6,
        **{name: value for name, value in ssl.items() if value},
    }
    writing = {
        "lock_timeout": int(float(lock_timeout) * 1000),
        "idle_in_transaction_session_timeout": 300_000,
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
    store = PostgresStore(url, writer, reader, partition_runs=int(partition_runs))
    try:
        store.prepare(migrate_on_open=str(migrate_on_open).lower() not in ("no", "false", "0"))
    except BaseException:  # no connection is left open, whatever it is; it rises again
        store.close()
        raise
    return store


def _engine(address: URL, given: dict[str, Any], settings: dict[str, int], **pool: Any) -> Engine:
    options = " ".join(f"-c {name}={value}" for name, value in settings.items())
    return create_engine(address, connect_args={**given, "options": options}, **pool)


class PostgresStore(SqlStore):
    """A store on Postgres: one writer at a time over all servers, readers each with a moment of their own."""

    _faults = (exc.SQLAlchemyError, psycopg.Error)

    def __init__(
        self, url: str, writer: Engine, reader: Engine, *, partition_runs: int = partitions.SIZE
    ) -> None:
        super().__init__(url, writer, reader)
        self._partition_runs = partition_runs
        self._upto = 0

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
        """Take every folded table from a SQLite store of the same log; readers see the old ones until it is done."""
        source = sqlite3.connect(f"file:{file}?mode=ro", uri=True)
        with contextlib.closing(source) as made, self._transaction() as connection:
            driver = connection.connection.cursor()
            (last,) = made.execute("SELECT coalesce(max(id), 0) FROM runs").fetchone()
            self._upto = 0
            for table in FOLDED:
                connection.execute(delete(table))
            self._ahead(cursor_of(connection), last)
            for table in FOLDED:
                names = [column.name for column in table.columns]
                columns = sql.SQL(", ").join(map(sql.Identifier, names))
                statement = sql.SQL("COPY {} ({}) FROM STDIN").format(sql.Identifier(table.name), columns)
                listed = ", ".join(f'"{name}"' for name in names)
                with driver.copy(statement) as into:
                    for row in made.execute(f"SELECT {listed} FROM {table.name}"):
                        into.write_row(row)
            self._renew(connection)
            self._index.rebuild(connection)
            return sum(self._derive_since(connection, after, derive))

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
        }
        environment = {
            **os.environ,
            **{name: str(value) for name, value in said.items() if value is not None},
        }
        command = [program, "--format=custom", "--no-owner", f"--file={file}"]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        if done.returncode:
            raise StoreError(f"{file} cannot be written: {scrub(done.stderr.strip())}")


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
    if isinstance(cause, exc.TimeoutError):
        return StoreError(
            f"{shown}: every connection is taken; see `pool_size`", retryable=True, cause="busy"
        )
    return StoreError(shown)
