"""pipeline.sources.spool: spool:///directory -> the events that wait in it for delivery, as lines.

They are read, not taken: the drainer delivers them as before. What a later run meets again, by the server's log or here,
counts once.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import unquote, urlsplit

import pyarrow as pa

from headwater.errors import ConfigError
from headwater.pipeline._workers import frame_of
from headwater.pipeline.sources import Lines
from headwater.pipeline.steps import LINES, Line, Step, tuples
from headwater.transport.spool.place import places
from headwater.transport.spool.segment import DAMAGED, EVENT, listed, read

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


class Waiting(NamedTuple):
    """A segment of a spool."""

    path: str
    complete: bool


SEGMENTS = tuples(
    Waiting, pa.schema([("path", pa.string()), ("complete", pa.bool_())]), "path string, complete boolean"
)


def _read(segments: Iterator[Waiting]) -> Iterator[Line]:
    for each in segments:
        for frame in read(Path(each.path), complete=each.complete):
            if frame.kind == EVENT:
                yield Line(each.path, frame.end, frame.payload)
            elif frame.kind == DAMAGED:
                yield Line(each.path, frame.end, frame.payload, "", "a damaged record of the spool")


READ = Step("read", SEGMENTS, LINES, _read)


class Spool:
    """What waits in a spool, for whatever destination.

    Args:
        url: `spool:///directory`, the spool or the folder of one destination; every worker must reach it.

    """

    def __init__(self, url: str) -> None:
        self.url = url
        self._root = Path(unquote(urlsplit(url).path))
        if not self._root.is_dir():
            raise ConfigError(f"source {url}: there is no such directory")

    def load(self, spark: SparkSession, *, streaming: bool) -> DataFrame:
        """The segments there are."""
        if streaming:
            raise ConfigError("a spool is read in a batch: headwater pipeline run")
        found = [
            (str(segment.path), segment.done)
            for place in places(self._root)
            for segment in listed(place.folder)
        ]
        return frame_of(spark, found, SEGMENTS.schema).repartition(max(1, len(found)))

    def lines(self, frame: DataFrame) -> Lines:
        """Segments -> lines."""
        return Lines(frame, (READ,))
