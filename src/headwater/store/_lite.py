"""store._lite: SQLite, in a file or in memory -> what it does in its own way of what a store does."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, Engine, exc

from headwater.errors import StoreError
from headwater.facts.tables import Row
from headwater.naming import scrub
from headwater.store._driver import cursor_of
from headwater.store._schema import FOLDED
from headwater.store._search import Index
from headwater.store._space import Thresholds
from headwater.store._sql import SqlStore

_FOR_THE_JOURNAL = 4
"""What share of the reserve must be free on the disk itself: what is written goes through a journal first."""


class LiteStore(SqlStore):
    """A store on SQLite."""

    _faults = (exc.SQLAlchemyError, sqlite3.Error)
    _look_at_room_every = (
        0.05  # asked for each event that comes alone, it is a tenth of what writing it costs
    )

    def __init__(
        self,
        url: str,
        writer: Engine,
        reader: Engine,
        *,
        shared: bool = False,
        path: Path | None = None,
        thresholds: Thresholds = Thresholds(),  # noqa: B008 - frozen
    ) -> None:
        super().__init__(url, writer, reader, shared=shared)
        self._path, self._thresholds = path, thresholds

    def room(self) -> dict[str, Any]:
        """How much space it takes and is left on its disk."""
        if self._path is None:
            return self._thresholds.judge(0, None, None)
        parts = [self._path.with_name(self._path.name + more) for more in ("", "-wal", "-shm")]
        used = sum(part.stat().st_size for part in parts if part.exists())
        disk = shutil.disk_usage(self._path.parent)
        told = self._thresholds.judge(used, disk.total, disk.free)
        if told["state"] == "ok" or disk.free < told["reserve_bytes"] // _FOR_THE_JOURNAL:
            return told
        # the file does not shrink when things go, but what they leave is written to again
        return self._thresholds.judge(used, disk.total, disk.free + self._left_behind())

    def _left_behind(self) -> int:
        """The bytes of the file that hold nothing."""
        with self._connect() as connection:
            pages, size = (
                connection.exec_driver_sql(f"PRAGMA {name}").scalar_one()
                for name in ("freelist_count", "page_size")
            )
        return int(pages) * int(size)

    def _exclude(self, connection: Connection) -> None:
        """`BEGIN IMMEDIATE` has done so."""

    def _told(self, fault: Exception) -> StoreError:
        return told(self.url, fault)

    def adopt(self, file: Path, after: int, derive: Callable[[str, bytes], Iterable[Row]]) -> int:
        """Take every folded table from another store of the same log; readers see the old ones until it is done."""
        with self._lock:
            self._kept.release()
            return self._adopt(file, after, derive)

    def _adopt(self, file: Path, after: int, derive: Callable[[str, bytes], Iterable[Row]]) -> int:
        with self._writer.connect() as connection:
            try:
                # a database cannot be attached inside a transaction
                cursor_of(connection).execute("ATTACH DATABASE ? AS made", (str(file),))
                with connection.begin():
                    self._refresh(connection)
                    for table in FOLDED:
                        names = ", ".join(f'"{column.name}"' for column in table.columns)
                        connection.exec_driver_sql(f"DELETE FROM main.{table.name}")
                        connection.exec_driver_sql(
                            f"INSERT INTO main.{table.name} ({names}) SELECT {names} FROM made.{table.name}"
                        )
                    self._renew(connection)
                    self._index.rebuild(connection)
                    done = sum(self._derive_since(connection, after, derive))
            except BaseException as fault:  # as in `_transaction`: whatever it is rises again
                self._ids.drop()
                self._generation = None
                self._index = Index()
                if isinstance(fault, self._faults):
                    raise self._told(fault) from fault
                raise
            finally:
                connection.invalidate()  # the attached file goes with the connection
            self._ids.keep()
        return done

    def check(self) -> list[str]:
        """What is wrong with the store; nothing when it is sound."""
        with self._connect() as connection:
            found = [row[0] for row in connection.exec_driver_sql("PRAGMA integrity_check")]
        return [] if found == ["ok"] else found

    def backup(self, file: Path) -> None:
        """Copy the store into one file, whole and consistent, while it is in use."""
        with self._lock:
            self._kept.release()
            raw = self._writer.raw_connection()  # no transaction: SQLite makes its own for this
            try:
                raw.cursor().execute("VACUUM INTO ?", (str(file),))
            except sqlite3.Error as fault:
                raise StoreError(f"{file} cannot be written: {fault}") from fault
            finally:
                raw.close()


def told(url: str, fault: Exception) -> StoreError:
    """SQLite's fault as ours, without a secret; whether the same may go well later."""
    cause = str(getattr(fault, "orig", None) or fault)
    if "locked" in cause:
        held = "another process holds the write lock"
        return StoreError(f"store {scrub(url)}: {cause} ({held})", retryable=True, cause="locked")
    if "disk is full" in cause:
        return StoreError(f"store {scrub(url)}: {cause}: free some space", retryable=True, cause="full")
    if "disk I/O error" in cause:  # a quota, a disk that went away: whoever sent it keeps it
        return StoreError(f"store {scrub(url)}: {cause}: look at its disk", retryable=True, cause="io")
    return StoreError(f"store {scrub(url)}: {cause}")
