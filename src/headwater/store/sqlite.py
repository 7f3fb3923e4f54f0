"""store.sqlite: a `sqlite:///file.db` url -> a store in that file; the default, needs no service."""

from __future__ import annotations

import sqlite3
import time
from contextlib import closing
from pathlib import Path
from typing import Any

from sqlalchemy import Engine, create_engine, event, exc
from sqlalchemy.pool import QueuePool

from headwater.errors import ConfigError, StoreError
from headwater.store._lite import LiteStore, told
from headwater.store._migrate import HEAD, migrate, revision
from headwater.store._space import Thresholds

_SECONDS = 30  # to wait for another writer
_SYNCHRONOUS = {"full", "normal", "off"}


def open_sqlite(
    url: str,
    *,
    synchronous: str = "full",
    cache_mb: int = 64,
    migrate_on_open: bool = True,
    disk_alarm: str = "10%",
    disk_reserve: str = "64MB",
) -> LiteStore:
    """Open the store in a SQLite file, made where it is missing.

    Args:
        url: `sqlite:///relative.db` or `sqlite:////absolute.db`.
        synchronous: `full` survives a power cut, `normal` only a crash of the process, `off` neither.
        cache_mb: Page cache of the one that writes; each that reads has a quarter of it.
        migrate_on_open: Bring an older store to this version's format, instead of refusing it.
        disk_alarm: Free space below which `/health` and `/metrics` warn: `10%` of the disk, or `5GB`.
        disk_reserve: Free space below which nothing more is written.

    """
    path, thresholds = path_of(url), Thresholds(disk_alarm, disk_reserve)
    if synchronous not in _SYNCHRONOUS:
        raise ConfigError(
            f"store: synchronous is {synchronous!r}, not one of {', '.join(sorted(_SYNCHRONOUS))}"
        )
    if sqlite3.sqlite_version_info < (3, 35):
        raise StoreError(f"SQLite {sqlite3.sqlite_version} is too old: 3.35 or newer is needed")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as fault:
        raise StoreError(f"store {url}: {path.parent} cannot be made: {fault.strerror}") from fault
    _refuse_strange(path, url)
    writer = _engine(path, "IMMEDIATE", synchronous, int(cache_mb))
    try:
        if str(migrate_on_open).lower() not in ("no", "false", "0"):
            migrate(writer, url)
        elif (have := revision(writer)) != HEAD:
            raise StoreError(
                f"store {url} has format {have or 'none'}, not {HEAD}: run `headwater store migrate`"
            )
    except BaseException as fault:  # no connection is left open, whatever it is; it rises again
        writer.dispose()
        if isinstance(fault, exc.SQLAlchemyError):
            raise told(url, fault) from fault
        raise
    reader = _engine(path, "DEFERRED", synchronous, max(2, int(cache_mb) // 4), read_only=True)
    return LiteStore(url, writer, reader, path=path, thresholds=thresholds)


def _refuse_strange(path: Path, url: str) -> None:
    """Refuse another program's database, to which a slip in a path may lead, before anything in it is changed."""
    if not path.exists():
        return
    try:
        with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as connection:
            names = {
                row[0] for row in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
            }
    except sqlite3.Error:
        return  # what is wrong with it is told when it is opened
    if names and not names >= {"alembic_version", "log", "contents"}:
        raise StoreError(
            f"store {url}: that file is the database of something else, and stays as it is: name a file of the store's own"
        )


def path_of(url: str) -> Path:
    """The file that a url names."""
    rest = url.removeprefix("sqlite://")
    if not rest.startswith("/") or rest == "/":
        raise ConfigError(
            f"store {url!r} names no file: write sqlite:///file.db or sqlite:////absolute/file.db"
        )
    return Path(rest[1:]).expanduser()


def _engine(path: Path, begin: str, synchronous: str, cache_mb: int, *, read_only: bool = False) -> Engine:
    engine = create_engine(
        f"sqlite:///{path}",
        poolclass=QueuePool,
        pool_size=1 if begin == "IMMEDIATE" else 8,
        max_overflow=0 if begin == "IMMEDIATE" else 32,
        pool_use_lifo=True,  # the one that was used last has the warmest cache; and as few as can be have one at all
        connect_args={
            "timeout": _SECONDS,
            "check_same_thread": False,
            "isolation_level": None,
            "cached_statements": 256,
        },
    )

    @event.listens_for(engine, "connect")
    def configure(connection: Any, _: Any) -> None:
        _log_ahead(connection)
        for pragma in (
            f"synchronous = {synchronous}",
            f"cache_size = -{cache_mb * 1024}",
            "temp_store = memory",
            "mmap_size = 268435456",
            f"query_only = {int(read_only)}",
        ):
            connection.execute(f"PRAGMA {pragma}")

    @event.listens_for(engine, "begin")
    def begin_now(connection: Any) -> None:
        connection.exec_driver_sql(f"BEGIN {begin}")

    return engine


def _log_ahead(connection: Any) -> None:
    """Write ahead, so that readers never wait. A new file is changed to it once, and of several who open it at once
    SQLite turns all but one away without waiting, whatever `timeout` says: they come again.
    """
    until = time.monotonic() + _SECONDS
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            return
        except sqlite3.OperationalError as fault:
            if "locked" not in str(fault) or time.monotonic() > until:
                raise
            time.sleep(0.01)
