"""pipeline._workers: functions over Arrow batches, rows -> DataFrames that cost Spark's Python workers no more than they must.

Before each task a worker has every finder of modules look again at what it finds modules in. For the archives on its path,
Spark's own jar among them, Python then reads their whole directories, in Python: 0.1 to 0.2 seconds of a core for a task
that may take a tenth of that. A worker that no longer has these finders makes them anew when it imports something, from
directories that are remembered; so nothing is lost by letting them go, but that an archive which is replaced under a running
worker is not read again: Spark itself never does that. And rows that are handed over as a list go through
such workers, while Arrow's go straight to the JVM.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, cast
from zipimport import zipimporter

import pyarrow as pa

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    Over = Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]


def over_arrow(frame: DataFrame, function: Over, schema: str) -> DataFrame:
    """A function over the batches of each partition."""
    return frame.mapInArrow(partial(_run, function), schema)


def frame_of(spark: SparkSession, rows: Iterable[Sequence[Any]], schema: str) -> DataFrame:
    """Rows as a DataFrame."""
    from pyspark.sql.pandas.types import to_arrow_schema
    from pyspark.sql.types import StructType

    fields = to_arrow_schema(cast("StructType", StructType.fromDDL(schema)))
    columns = list(zip(*rows, strict=True)) or [()] * len(fields)
    arrays = [pa.array(column, field.type) for column, field in zip(columns, fields, strict=True)]
    return spark.createDataFrame(pa.Table.from_arrays(arrays, schema=fields), schema)


def _run(function: Over, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for path, finder in list(sys.path_importer_cache.items()):
        if isinstance(finder, zipimporter):
            del sys.path_importer_cache[path]
    return function(batches)
