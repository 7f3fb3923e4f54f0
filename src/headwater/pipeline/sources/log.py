"""pipeline.sources.log: a store -> its raw log, events, commands and bases, as lines."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

import pyarrow as pa

from headwater.errors import ConfigError
from headwater.pipeline.sources import Lines
from headwater.pipeline.steps import LINES, Line, Step, tuples
from headwater.store import open_store

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

SIZE = 20_000
"""Entries of the log that one task reads."""


class Stretch(NamedTuple):
    """A stretch of a store's log."""

    store: str
    after: int


STRETCHES = tuples(
    Stretch, pa.schema([("store", pa.string()), ("after", pa.int64())]), "store string, after bigint"
)


def _read(stretches: Iterator[Stretch]) -> Iterator[Line]:
    for each in stretches:
        store = open_store(each.store, migrate_on_open=False)
        try:
            for number, entry in store.log(after=each.after):
                if number > each.after + SIZE:
                    break
                kind = entry.kind if entry.kind in ("command", "base") else ""
                yield Line(each.store, number, entry.raw, kind)
        finally:
            store.close()


READ = Step("read", STRETCHES, LINES, _read)


class Log:
    """The raw log of a store, as far as it goes when it is opened.

    Args:
        url: the store's; every worker must reach it.

    """

    def __init__(self, url: str) -> None:
        self.url = url
        self.last = 0

    def load(self, spark: SparkSession, *, streaming: bool) -> DataFrame:
        """Stretches of the log."""
        if streaming:
            raise ConfigError("a store's log is read in a batch: headwater pipeline run, or rebuild")
        store = open_store(self.url, migrate_on_open=False)
        try:
            with store.read() as reader:
                self.last = reader.last_entry()
        finally:
            store.close()
        tasks = max(1, -(-self.last // SIZE))
        from pyspark.sql import functions as F  # noqa: N812

        return spark.range(0, tasks, 1, tasks).select(
            F.lit(self.url).alias("store"), (F.col("id") * SIZE).alias("after")
        )

    def lines(self, frame: DataFrame) -> Lines:
        """Stretches -> lines."""
        return Lines(frame, (READ,))
