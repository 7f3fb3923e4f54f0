"""store.memory: the url `memory:` -> a store that lives as long as its object; for tests and demos."""

from __future__ import annotations

from typing import Any

from sqlalchemy import create_engine, event
from sqlalchemy.pool import StaticPool

from headwater.store._migrate import migrate
from headwater.store._sql import SqlStore


def open_memory(url: str = "memory:") -> SqlStore:
    """A store in memory: SQLite's own, so that it answers as the file does."""
    engine = create_engine(
        "sqlite://", poolclass=StaticPool, connect_args={"check_same_thread": False, "isolation_level": None}
    )

    @event.listens_for(engine, "begin")
    def begin_now(connection: Any) -> None:
        connection.exec_driver_sql("BEGIN")

    migrate(engine, url)
    return SqlStore(url, engine, engine, shared=True)
