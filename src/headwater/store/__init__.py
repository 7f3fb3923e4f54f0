"""store: rows and the raw log <-> a database that keeps them.

To add one: write store/<name>.py with a factory that takes `url` and its options and returns a Store, add one
line to STORES, run the tests; the contract tests enrol it by themselves and the docs test asks for its heading.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from headwater import plugins
from headwater.facts import Row, Tables

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from headwater.store._catalogue import Catalogue as Catalogue
    from headwater.store._edges import Edges as Edges
    from headwater.store._history import Facets as Facets
    from headwater.store._history import Told as Told
    from headwater.store._history import Write as Write
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
class Offset:
    """How far a consumer has read a partition of a topic: the batch holds its records from `start` up to `next`."""

    consumer: str
    topic: str
    partition: int
    start: int
    next: int


@dataclass(frozen=True, slots=True)
class Batch:
    """What one transaction writes: all of it or nothing."""

    entries: Sequence[Entry] = ()
    tables: Tables = field(default_factory=dict)
    rejects: Sequence[Reject] = ()
    mark: str | None = None
    """What makes the batch known: one with a mark that was written before is not written again."""
    offsets: Sequence[Offset] = ()
    """What it was read from: kept with the rows; refused where that was read already."""


@dataclass(frozen=True, slots=True)
class Pruned:
    """How much went, or would go."""

    runs: int = 0
    events: int = 0
    facets: int = 0
    rejects: int = 0
    contents: int = 0


@dataclass(frozen=True, slots=True)
class Forgotten:
    """How much went with a node, or would go."""

    runs: int = 0
    entries: int = 0
    """Entries of the log that named it, and were told anew without it."""


class Store(Protocol):
    """What every store does."""

    url: str

    def unknown(self, digests: Sequence[bytes]) -> set[bytes]:
        """Those of the digests that the log does not hold."""

    def write(self, batch: Batch) -> int:
        """Write a batch in one transaction; how many of its entries were new."""

    def offsets(self, consumer: str, topic: str) -> dict[int, int]:
        """For each partition of a topic the record that a consumer reads next."""

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

    def writing(self) -> AbstractContextManager[Connection]:
        """A transaction for what stands outside the log: keys, leases."""

    def dump(self) -> Tables:
        """Every table with identities in place of numbers, in the shape of `facts.settle`."""

    def counts(self) -> dict[str, int]:
        """How many rows each table has."""

    def check(self) -> list[str]:
        """What is wrong with the store; nothing when it is sound."""

    def prune(
        self,
        before: int,
        kinds: Collection[str],
        derive: Callable[[str, bytes], Iterable[Row]],
        *,
        dry_run: bool = False,
        counted: int = 0,
        progress: Callable[[str, int, int], None] | None = None,
    ) -> Pruned:
        """Let go what is older than `before`, of the kinds runs, events, facets and rejects; the catalogue stays.

        A dry run only counts, and leaves out events older than `counted`: they went with a prune before it.
        """

    def forget(
        self,
        kind: str,
        names: Sequence[str],
        derive: Callable[[str, bytes], Iterable[Row]],
        *,
        by: str = "",
        named: bool = True,
        dry_run: bool = False,
        progress: Callable[[str, int, int], None] | None = None,
    ) -> Forgotten:
        """Take a dataset or job (references, all its names) or run (its id) out of tables and log for good."""

    def room(self) -> dict[str, Any]:
        """How much space it takes and is left: `state` is ok, low (a warning) or full (nothing more is written)."""

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


def missing(url: str) -> Path | None:
    """The file that a url names, where there is none yet; of a database only opening it can tell.

    >>> missing("sqlite:////no/such/file.db")
    PosixPath('/no/such/file.db')
    """
    bare = url.split("?", 1)[0]
    if not bare.startswith("sqlite:"):
        return None
    from headwater.store.sqlite import path_of

    path = path_of(bare)
    return None if path.exists() else path


__all__ = [
    "STORES",
    "Batch",
    "Entry",
    "Forgotten",
    "Offset",
    "Pruned",
    "Reject",
    "Store",
    "missing",
    "open_store",
]
