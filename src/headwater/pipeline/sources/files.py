"""pipeline.sources.files: a file, a directory that grows, a pattern -> splits -> lines of JSON, gzip or zstd.

Spark lists the files (and, in a stream, remembers which it has seen); Python workers read their bytes.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from headwater.errors import ConfigError
from headwater.pipeline.sources import Lines
from headwater.pipeline.sources._reading import SPLIT, Split, read
from headwater.pipeline.steps import LINES, Line, Step, tuples

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

SPLITS = tuples(
    Split,
    pa.schema([("path", pa.string()), ("start", pa.int64()), ("size", pa.int64())]),
    "path string, start bigint, size bigint",
)
_FEW_BYTES, _FEW_FILES = 1 << 20, 16
_LISTED = "path string, modificationTime timestamp, length bigint, content binary"


def _read_all(splits: Iterator[Split]) -> Iterator[Line]:
    for each in splits:
        yield from read(each)


READ = Step("read", SPLITS, LINES, _read_all)


class Files:
    """Files of events: JSON lines, an array, one object; plain, gzip or zstd.

    Args:
        url: `file:`, unless `path` says more.
        path: a file, a directory (with what is below it), or a pattern.
        files_per_batch: how many files one micro-batch of a stream takes.

    """

    def __init__(self, url: str = "file:", *, path: str = "", files_per_batch: int = 1000) -> None:
        self.url = path or url
        self._per_batch = int(files_per_batch)
        if not self.url.removeprefix("file:").strip("/"):
            raise ConfigError("the source names no file or directory: --source /data/events")

    def load(self, spark: SparkSession, *, streaming: bool) -> DataFrame:
        """The files there are; their contents are not read by Spark."""
        from pyspark.errors import AnalysisException

        reader = spark.readStream if streaming else spark.read
        reader = reader.format("binaryFile").schema(_LISTED).option("recursiveFileLookup", "true")
        if streaming:
            reader = reader.option("maxFilesPerTrigger", self._per_batch)
        try:
            return reader.load(self.url).select("path", "length")
        except AnalysisException as fault:
            raise ConfigError(f"source {self.url}: {str(fault).splitlines()[0]}") from None

    def lines(self, frame: DataFrame) -> Lines:
        """The files -> ranges of them, spread over tasks."""
        from pyspark.sql import functions as F  # noqa: N812

        lengths = frame.select("length").toArrow().column(0).to_numpy()
        size, ranges = int(lengths.sum()), int(np.maximum(1, -(-lengths // SPLIT)).sum())
        last = F.greatest(F.col("length") - 1, F.lit(0))
        starts = F.explode(F.sequence(F.lit(0).cast("bigint"), last, F.lit(SPLIT).cast("bigint")))
        splits = frame.select("path", starts.alias("start"), F.col("length").alias("size"))
        # a range each where they are large; small files share tasks, a few for each core; and what one task has read
        # before others are begun is left to it
        few = size < _FEW_BYTES and ranges <= _FEW_FILES
        cores = frame.sparkSession.sparkContext.defaultParallelism
        tasks = 1 if few else min(ranges, max(4 * cores, size // SPLIT), 10_000)
        spread = splits.repartition(tasks) if tasks > 1 else splits.coalesce(1)
        return Lines(spread, (READ,), size)
