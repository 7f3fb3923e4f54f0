"""pipeline.reading: a sink and a table's name -> the table, folded and settled."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import TYPE_CHECKING

from headwater.errors import UnknownName
from headwater.pipeline import settle
from headwater.pipeline._columns import KEPT
from headwater.pipeline.measures import measures
from headwater.pipeline.settle import Reader
from headwater.pipeline.sinks import Sink, open_sink

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

SETTLED: dict[str, Callable[[Reader], DataFrame]] = {
    "runs": settle.runs,
    "datasets": settle.datasets,
    "job_versions": settle.job_versions,
    "run_groups": settle.run_groups,
    "facets": settle.facets,
    "measures": measures,
}
"""What follows from whole tables."""
NAMES = tuple(dict.fromkeys([*KEPT, *SETTLED]))
"""Every table that can be read."""


def read(spark: SparkSession, sink: str | Sink, table: str) -> DataFrame:
    """A table of a sink, as a server would show it: merged, with versions and canonical identities.

    Args:
        spark: a session.
        sink: the sink's url, or the directory of a `parquet://` one.
        table: one of `NAMES`.

    """
    if table not in NAMES:
        raise UnknownName("table", table, NAMES)
    opened = sink if not isinstance(sink, str) else open_sink(sink if "://" in sink else f"parquet://{sink}")

    @lru_cache(None)
    def rows(name: str) -> DataFrame:
        return opened.rows(spark, name)

    return SETTLED[table](rows) if table in SETTLED else rows(table)
