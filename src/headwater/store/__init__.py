"""store: rows and the raw log <-> a database that keeps them.

To add one: write store/<name>.py with a factory that takes `url` and its options and returns a Store, add one
line to STORES, run the tests; the contract tests enrol it by themselves and the docs test asks for its heading.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from headwater import plugins
from headwater.facts import Row, Tables

if TYPE_CHECKING:
    from headwater.store._reader import Reader as Reader

STORES: plugins.Table = {
    "memory": ("headwater.store.memory:open_memory", "server"),
    "postgresql": ("headwater.store.postgres:open_postgres", "postgres"),
    "sqlite": ("headwater.store.sqlite:open_sqlite", "server"),
}


@dataclass(frozen=True, slots=True)
class Entry:
    """One event or command for the raw log."""

    digest: bytes
    kind: str
    time: int
    raw: bytes


@dataclass(frozen=True, slots=True)
class Reject:
    """An event that was refused: why, and what it was."""

    path: str
    reason: str
    raw: bytes


@dataclass(frozen=True, slots=True)
class Batch:
    """What one transaction writes: all of it or nothing."""

    entries: Sequence[Entry] = ()
    tables: Tables = field(default_factory=dict)
    rejects: Sequence[Reject] = ()
    mark: str | None = None
    """What makes the batch known: one with a mark that was written before is not written again."""


class Store(Protocol):
    """What every store does."""

    url: str

    def unknown(self, digests: Sequence[bytes]) -> set[bytes]:
        """Those of the digests that the log does not hold."""

    def write(self, batch: Batch) -> int:
        """Write a batch in one transaction; how many of its entries were new."""

    def replay(
        self, derive: Callable[[str, bytes], Iterable[Row]], progress: Callable[[int], None] | None = None
    ) -> int:
        """Make every folded table anew from the log; how many entries it holds."""

    def adopt(self, file: Path, after: int, derive: Callable[[str, bytes], Iterable[Row]]) -> int:
        """Take every folded table from a store in `file` that was made of the log up to entry `after`.

        Entries since are derived and merged in the same transaction; how many they were.
        """

    def log(self, after: int = 0, limit: int | None = None) -> Iterable[tuple[int, Entry]]:
        """The entries of the raw log, oldest first, with their numbers."""

    def rejected(self, limit: int = 100) -> list[dict[str, Any]]:
        """The events that were refused, newest first."""

    def read(self) -> AbstractContextManager[Reader]:
        """One moment of the store, to ask about."""

    def dump(self) -> Tables:
        """Every table with identities in place of numbers, in the shape of `facts.settle`."""

    def counts(self) -> dict[str, int]:
        """How many rows each table has."""

    def check(self) -> list[str]:
        """What is wrong with the store; nothing when it is sound."""

    def backup(self, file: Path) -> None:
        """Copy the store into one file, whole and consistent, while it is in use."""

    def close(self) -> None:
        """Let go of every connection."""


def open_store(url: str, **options: Any) -> Store:
    """The store that a url names, made and migrated where it does not exist yet.

    >>> open_store("memory:").counts()["jobs"]
    0
    """
    store: Store = plugins.build_url("store", url, STORES, **options)
    return store


__all__ = ["STORES", "Batch", "Entry", "Reject", "Store", "open_store"]
