"""transport.spool.syncing: a place that is drained -> what waits in it is on disk within a second, and no host waits for that.

Whoever opens a file can have the system write it out, so the drainer does it for those who emit. It does so on a thread
of its own: a server that hangs must not hold it up. What is delivered at once is never waited for.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from headwater.guard import guard
from headwater.transport.spool.backlog import waiting
from headwater.transport.spool.place import Place

EVERY = 0.5  # seconds between two looks


@contextmanager
def syncing(place: Place) -> Iterator[None]:
    """Keep a place on disk for as long as this lasts."""
    ended = threading.Event()

    def work() -> None:
        synced: dict[str, int] = {}
        over = False
        while not over:
            over = ended.wait(EVERY)
            with guard("writing the spool to disk"), suppress(FileNotFoundError):  # the place was deleted
                synced = sync(place, synced)

    thread = threading.Thread(target=work, name="headwater-syncing", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def sync(place: Place, synced: dict[str, int]) -> dict[str, int]:
    """Wait until the disk has what waits; `synced` are the sizes of files that it has already, the answer the new ones."""
    known: dict[str, int] = {}
    for segment, waits, _ in waiting(place):
        with suppress(FileNotFoundError):  # delivered, or completed, meanwhile
            size = segment.path.stat().st_size
            if waits and size != synced.get(segment.stem):
                file = os.open(segment.path, os.O_RDONLY | getattr(os, "O_CLOEXEC", 0))
                try:
                    os.fsync(file)
                finally:
                    os.close(file)
            known[segment.stem] = size
    return known
