"""store._migrate: a database -> the same at the format this version writes, or a refusal that says what to do."""

from __future__ import annotations

import time
from pathlib import Path

from sqlalchemy import Connection, Engine, exc, inspect, text

from headwater.errors import StoreError
from headwater.store._driver import exclude_writers

HEAD = "0006"
"""The format this version writes; the newest file in `migrations/versions`."""
_WAITS = (
    *(0.5 for _ in range(240)),
    None,
)  # seconds between attempts to get past readers: two minutes of them


def revision(engine: Engine) -> str | None:
    """The format that stands in the store; None where it is empty."""
    with engine.connect() as connection:
        return _have(connection)


def _have(connection: Connection) -> str | None:
    if not inspect(connection).has_table("alembic_version"):
        return None
    found = connection.execute(text("SELECT version_num FROM alembic_version")).scalar()
    return str(found) if found is not None else None


def migrate(engine: Engine, shown: str) -> bool:
    """Bring the store to `HEAD`; whether there was anything to do."""
    have = revision(engine)
    if have == HEAD:
        return False
    if have is not None and have > HEAD:
        raise StoreError(
            f"store {shown} has format {have}, this Headwater writes {HEAD}: it was made by a newer one. "
            "Upgrade with: pip install -U headwater"
        )
    # Alembic is loaded only when there is something to migrate: a start should not pay for it.
    from alembic import command
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent / "migrations").replace("%", "%%"))
    for wait in _WAITS:
        try:
            with engine.begin() as connection:
                if (
                    connection.dialect.name == "postgresql"
                ):  # SQLite's writer has locked the file by beginning
                    exclude_writers(connection)
                    # A reader may hold a table for long; while we wait for it, others would wait for us.
                    connection.execute(text("SET LOCAL lock_timeout = '1s'"))
                if _have(connection) == HEAD:
                    return False  # another process has done it meanwhile
                config.attributes["connection"] = connection
                command.upgrade(config, HEAD)
                return True
        except exc.OperationalError as fault:
            if wait is None or "lock timeout" not in str(fault):
                raise
            time.sleep(wait)
    return True
