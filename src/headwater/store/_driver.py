"""store._driver: a list of values -> one parameter, and the database's own cursor behind a connection.

What every batch does goes to the driver's cursor: between it and us the toolkit costs more than the database.
What is rare, or shaped by a question, is written with the toolkit.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Protocol, cast

import msgspec
from sqlalchemy import Connection


class Cursor(Protocol):
    """What we use of a database's cursor."""

    rowcount: int

    def execute(self, sql: str, parameters: Sequence[Any] = (), /) -> Any:
        """Run a statement."""

    def executemany(self, sql: str, parameters: Sequence[Sequence[Any]], /) -> Any:
        """Run a statement once for each row of parameters."""

    def fetchall(self) -> list[Any]:
        """The rows that were found."""


def cursor_of(connection: Connection) -> Cursor:
    """The driver's cursor, inside the connection's transaction."""
    return cast("Cursor", connection.connection.cursor())


def listed(values: Iterable[Any]) -> str:
    """Numbers or texts as the one parameter that `among` takes: one statement for lists of any length."""
    return msgspec.json.encode(list(values)).decode()


def among() -> str:
    """The right side of `IN` for a list passed with `listed`."""
    return "(SELECT value FROM json_each(?))"
