"""store._room: a store -> the bytes that it takes, and those that its disk has left; None where it does not tell."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import NamedTuple

from sqlalchemy import text

from headwater.errors import StoreError
from headwater.store import Store


class Room(NamedTuple):
    """Bytes that a store takes, and bytes that are left for it where it knows."""

    size: int
    free: int | None


def room(store: Store) -> Room | None:
    """How much there is, and how much more there may be; a database elsewhere tells only of itself."""
    kind, _, rest = store.url.partition(":///")
    if kind == "sqlite" and rest:
        file = Path(rest).expanduser()
        parts = [file, file.with_name(f"{file.name}-wal"), file.with_name(f"{file.name}-shm")]
        try:
            taken = sum(part.stat().st_size for part in parts if part.exists())
            return Room(taken, shutil.disk_usage(file.parent).free)
        except OSError:
            return None
    if not store.url.startswith("postgresql"):
        return None
    try:
        with store.read() as reader:
            found = reader.connection.execute(
                text("SELECT pg_database_size(current_database())")
            ).scalar_one()
            return Room(int(found), None)
    except StoreError:
        return None
