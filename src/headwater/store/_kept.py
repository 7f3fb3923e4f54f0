"""store._kept: an engine -> its one connection for writing, kept from transaction to transaction.

To take a connection from the pool and give it back costs as much as writing a small batch, and on Postgres a question
whether it still lives. So it is kept, and replaced when a transaction fails, or when it died while nobody used it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from sqlalchemy import Connection, Engine, RootTransaction, exc


class Kept:
    """The connection of a writer; whoever uses it holds the writer's lock."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._connection: Connection | None = None

    @contextmanager
    def begin(self, first: Callable[[Connection], None]) -> Iterator[Connection]:
        """A transaction in which `first` has been done: what asks the database for something."""
        connection, transaction = self._begun(first)
        try:
            with transaction:
                yield connection
        except BaseException:  # whatever is wrong with it, the next transaction begins on another
            self.release()
            raise

    def _begun(self, first: Callable[[Connection], None]) -> tuple[Connection, RootTransaction]:
        fresh = self._connection is None
        connection = self._connection = self._connection or self._engine.connect()
        try:
            transaction = connection.begin()
            first(connection)
        except BaseException as fault:  # it rises again, but for one that began on a dead connection
            self.release()
            if not fresh and isinstance(fault, exc.DBAPIError) and fault.connection_invalidated:
                return self._begun(first)  # the database was restarted: nothing had been said to it yet
            raise
        return connection, transaction

    def release(self) -> None:
        """Give it back to the pool, which looks at it before it is used again."""
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()
