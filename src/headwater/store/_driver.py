"""store._driver: a statement of ours and its values -> the same on SQLite's cursor or on Postgres'.

What every batch does goes to the driver's cursor: between it and us the toolkit costs more than the database.
What is rare, or shaped by a question, is written with the toolkit. Statements are written once, with `?` and
with `among()` for lists; where Postgres wants them otherwise, its cursor (`_wire`) says so.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import Any, Protocol, cast

import msgspec
from sqlalchemy import Connection, LargeBinary, Table, Text

Rows = Sequence[Sequence[Any]]
_WRITERS = 0x68656164  # the advisory lock that one writer at a time holds: "head"


@dataclass(frozen=True, slots=True)
class Bulk:
    """One statement that inserts many rows: `INSERT INTO table (columns) … tail`."""

    table: str
    columns: Mapping[str, Column]
    """Each column and what it holds."""
    tail: str = ""
    values: str = field(init=False)
    """For SQLite: a row a time."""
    arrays: str = field(init=False)
    """For Postgres: an array a column, all rows in one statement."""

    def __post_init__(self) -> None:
        names = ", ".join(f'"{name}"' for name in self.columns)
        marks = ", ".join("?" for _ in self.columns)
        arrays = ", ".join(f"${number}" for number, _ in enumerate(self.columns, 1))
        head = f"INSERT INTO {self.table} ({names})"
        object.__setattr__(self, "values", f"{head} VALUES ({marks}) {self.tail}")
        object.__setattr__(self, "arrays", f"{head} SELECT * FROM unnest({arrays}) {self.tail}")


def bulk(table: Table, names: Iterable[str], tail: str = "") -> Bulk:
    """The statement for these columns of a table."""
    kinds = {name: table.columns[name].type for name in names}
    return Bulk(
        table.name,
        {
            name: Byteas if isinstance(kind, LargeBinary) else Texts if isinstance(kind, Text) else Bigints
            for name, kind in kinds.items()
        },
        tail,
    )


class Cursor(Protocol):
    """What we use of a database's cursor."""

    @property
    def rowcount(self) -> int:
        """How many rows the last statement changed."""

    def execute(self, sql: str, parameters: Sequence[Any] = (), /) -> Any:
        """Run a statement."""

    def executemany(self, sql: str, parameters: Rows, /) -> Any:
        """Run a statement once for each row of parameters."""

    def fetchall(self) -> list[Any]:
        """The rows that were found."""

    def insert(self, statement: Bulk, rows: Rows) -> None:
        """Run a statement for all rows."""

    def together(self) -> AbstractContextManager[Any]:
        """Statements inside are sent without waiting for one another, where that saves time."""

    def pairs(self, table: str, references: Iterable[str]) -> list[Any]:
        """(reference, number) of those of the references that a table of names numbers."""

    def held(self, table: str, column: str, digests: Sequence[bytes]) -> list[bytes]:
        """Those of the digests that stand in a column."""


class Bigints(list[Any]):
    """A column of numbers, or none, for Postgres' `bigint[]`."""


class Texts(list[Any]):
    """A column of texts, or none, for Postgres' `text[]`."""


class Byteas(list[Any]):
    """A column of bytes, or none, for Postgres' `bytea[]`."""


Column = type[Bigints] | type[Texts] | type[Byteas]


class Listed(list[Any]):
    """Numbers or texts as the one parameter that `among` takes."""


sqlite3.register_adapter(Listed, lambda values: msgspec.json.encode(values).decode())


def listed(values: Iterable[Any]) -> Listed:
    """Numbers or texts as the one parameter that `among` takes: one statement for lists of any length."""
    return Listed(values)


AMONG = "(SELECT value FROM json_each(?))"


def among() -> str:
    """The right side of `IN` for a list passed with `listed`."""
    return AMONG


_PART = 5_000
_PAIRS = (
    "SELECT j.value, t.id FROM json_each(?) AS j JOIN {table} AS t"
    " ON t.namespace = substr(j.value, 1, instr(j.value, char(10)) - 1)"
    " AND t.name = substr(j.value, instr(j.value, char(10)) + 1)"
)


class SqliteCursor(sqlite3.Cursor):
    """SQLite's own, and what the databases do differently."""

    def insert(self, statement: Bulk, rows: Rows) -> None:
        """Run a statement for all rows."""
        self.executemany(statement.values, rows)

    def together(self) -> AbstractContextManager[Any]:
        """SQLite answers at once."""
        return nullcontext()

    def pairs(self, table: str, references: Iterable[str]) -> list[Any]:
        """(reference, number) of those of the references that a table of names numbers."""
        return self.execute(_PAIRS.format(table=table), (listed(references),)).fetchall()

    def held(self, table: str, column: str, digests: Sequence[bytes]) -> list[bytes]:
        """Those of the digests that stand in a column."""
        found: list[bytes] = []
        for start in range(0, len(digests), _PART):
            part = digests[start : start + _PART]
            marks = ", ".join("?" for _ in part)
            self.execute(f"SELECT {column} FROM {table} WHERE {column} IN ({marks})", part)
            found.extend(row[0] for row in self.fetchall())
        return found


def cursor_of(connection: Connection) -> Cursor:
    """The driver's cursor, inside the connection's transaction."""
    driver = connection.connection
    if connection.dialect.name == "postgresql":
        from headwater.store._wire import PostgresCursor

        return PostgresCursor(driver.driver_connection)
    return cast("Cursor", driver.cursor(SqliteCursor))


def plan_once(connection: Connection) -> None:
    """On Postgres: a statement that is asked again keeps its plan, until the transaction ends.

    For those that look up rows by their numbers, dozens of times: to plan one anew for each list of numbers costs more than to
    run it, the more so over partitions. Not for what is planned by its values, as a page by its length.
    """
    if connection.dialect.name == "postgresql":
        connection.exec_driver_sql("SET LOCAL plan_cache_mode = force_generic_plan")


def exclude_writers(connection: Connection) -> None:
    """On Postgres: wait for every other writer of this database, and keep them out until the transaction ends."""
    connection.exec_driver_sql("SELECT pg_advisory_xact_lock(%s)", (_WRITERS,))
