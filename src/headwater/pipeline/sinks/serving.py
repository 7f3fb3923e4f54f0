"""pipeline.sinks.serving: parts -> a store, merged by the store's own upserts, a chunk a transaction.

A chunk holds events with all their rows, so the store is whole after each. Everything merges without regard to
repeats; only refusals are counted, so those carry a mark of their batch.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import groupby
from typing import TYPE_CHECKING, Any

from headwater.errors import ConfigError, NotFound
from headwater.facts.fold import Tables
from headwater.facts.tables import TABLES
from headwater.pipeline._columns import KEPT, batches_of, columns, ddl, from_arrow
from headwater.pipeline._workers import frame_of
from headwater.pipeline.steps import TALLY
from headwater.store import Batch, Entry, Reject, Store, missing, open_store

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


class Serving:
    """A store that a server can serve.

    Args:
        url: the store's.
        log: whether the events themselves are kept; without them the store cannot be replayed.
        options: the store's own.

    """

    lacks = frozenset({"events", "quarantine"})

    def __init__(self, url: str, *, log: bool = True, **options: Any) -> None:
        self.url, self._options, self.keeps_log = url, options, log

    def write(self, parts: DataFrame, batch: str, counts: Mapping[str, int]) -> dict[str, int]:
        """Merge every chunk of the batch."""
        from pyspark.sql import functions as F  # noqa: N812

        store = open_store(self.url, **self._options)
        rejects: list[Reject] = []
        try:
            wanted = parts.where((F.col("table") != TALLY) & (F.col("table") != "events"))
            for tables, entries, refused in _chunks(wanted):
                store.write(Batch(entries, tables))
                rejects.extend(refused)
            if rejects:
                store.write(Batch(rejects=rejects, mark=f"pipeline {batch}"))
        finally:
            store.close()
        return {name: rows for name, rows in counts.items() if name in KEPT and rows}

    def rows(self, spark: SparkSession, table: str) -> DataFrame:
        """A table, as the store has it."""
        if table not in TABLES:
            raise ConfigError(f"a serving store keeps no table {table!r}: see `headwater store rejects`")
        store = self._there()
        try:
            found = store.dump()[table]
        finally:
            store.close()
        names = list(columns(TABLES[table]))
        spec = TABLES[table]

        def values(key: tuple[Any, ...], row: Mapping[str, Any]) -> list[Any]:
            said = dict(zip(spec.key, key, strict=True))
            for column, value in row.items():
                if column not in spec.columns:
                    continue  # settled
                pair = value if isinstance(value, tuple) else (None, value)
                said |= {column: pair[1]} | ({f"{column}_at": pair[0]} if isinstance(value, tuple) else {})
            return [said.get(name) for name in names]

        return frame_of(spark, [values(*each) for each in found.items()], ddl(spec))

    def compact(self, spark: SparkSession) -> dict[str, int]:
        """A store is always whole: nothing to do."""
        return self.status(spark)["rows"]  # type: ignore[no-any-return]

    def status(self, spark: SparkSession) -> dict[str, Any]:
        """How many rows each table has."""
        store = self._there()
        try:
            return {"rows": store.counts()}
        finally:
            store.close()

    def _there(self) -> Store:
        """The store, to be looked at: that makes none."""
        if path := missing(self.url):
            raise NotFound(f"there is no store at {path} yet: `headwater pipeline run` makes one")
        return open_store(self.url, **self._options)


def _chunks(parts: DataFrame) -> Iterator[tuple[Tables, list[Entry], list[Reject]]]:
    """Chunk by chunk what the parts hold; those of one chunk follow each other."""
    rows = parts.select("table", "chunk", "body").toLocalIterator(prefetchPartitions=True)
    for _, same in groupby(rows, key=lambda row: row["chunk"]):
        tables: Tables = {}
        entries: list[Entry] = []
        refused: list[Reject] = []
        for row in same:
            name = row["table"]
            found = (pair for part in batches_of(bytes(row["body"])) for pair in from_arrow(name, part))
            if name == "log":
                entries = [Entry(key[0], said["kind"], said["time"], said["raw"]) for key, said in found]
            elif name == "quarantine":
                refused = [Reject(said["path"], said["reason"], said["payload"]) for _, said in found]
            else:
                tables[name] = dict(found)
        yield tables, entries, refused
