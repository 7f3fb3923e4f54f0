"""pipeline._workers: a function over Arrow batches -> the same in Spark's Python workers, without what they do before each task.

Before each task a worker has every finder of modules look again at what it finds modules in. For the archives on its path,
Spark's own jar among them, Python then reads their whole directories, in Python: 0.1 to 0.2 seconds of a core for a task
that may take a tenth of that. A worker that no longer has these finders makes them anew when it imports something, from
directories that are remembered; so nothing is lost by letting them go.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import TYPE_CHECKING
from zipimport import zipimporter

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame

    Over = Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]


def over_arrow(frame: DataFrame, function: Over, schema: str) -> DataFrame:
    """A function over the batches of each partition."""
    return frame.mapInArrow(partial(_run, function), schema)


def _run(function: Over, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for path, finder in list(sys.path_importer_cache.items()):
        if isinstance(finder, zipimporter):
            del sys.path_importer_cache[path]
    return function(batches)
