"""store._room: a store's url -> the bytes that it takes, and those that its disk has left; None where it does not tell."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import NamedTuple


class Room(NamedTuple):
    """Bytes that a store takes, and bytes that are left for it."""

    size: int
    free: int


def room(url: str) -> Room | None:
    """How much there is, and how much more there may be."""
    rest = url.removeprefix("sqlite:///")
    if rest == url or not rest:
        return None
    file = Path(rest).expanduser()
    parts = [file, file.with_name(f"{file.name}-wal"), file.with_name(f"{file.name}-shm")]
    try:
        return Room(
            sum(part.stat().st_size for part in parts if part.exists()), shutil.disk_usage(file.parent).free
        )
    except OSError:
        return None
