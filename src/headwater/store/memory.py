"""store.memory: the url `memory:` -> a store that lives as long as its object; for tests and demos."""

from __future__ import annotations

import sqlite3
from functools import cache
from typing import Any

from sqlalchemy import create_engine, event
from sqlalchemy.pool import StaticPool

from headwater.store._lite import LiteStore
from headwater.store._migrate import migrate


def open_memory(url: str = "memory:") -> LiteStore:
    """A store in memory: SQLite's own, so that it answers as the file does."""
    engine = create_engine(
        "sqlite://", poolclass=StaticPool, connect_args={"check_same_thread": False, "isolation_level": None}
    )

    @event.listens_for(engine, "begin")
    def begin_now(connection: Any) -> None:
        connection.exec_driver_sql("BEGIN")

    raw = engine.raw_connection()
    try:
        _template().backup(raw.driver_connection)  # type: ignore[arg-type]  # SQLite's own connection
    finally:
        raw.close()
    return LiteStore(url, engine, engine, shared=True)


@cache
def _template() -> sqlite3.Connection:
    """An empty store, migrated once a process: tests open thousands."""
    engine = create_engine("sqlite://", poolclass=StaticPool, connect_args={"check_same_thread": False})
    migrate(engine, "memory:")
    connection = engine.raw_connection().driver_connection
    assert isinstance(connection, sqlite3.Connection)
    return connection
