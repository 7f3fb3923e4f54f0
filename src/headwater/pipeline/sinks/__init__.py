"""pipeline.sinks: parts of tables -> a place that keeps them, each batch once in effect.

To add one: write sinks/<name>.py with a class that takes `url` and its options and is a Sink, add one line to SINKS,
a case to the tests and a heading to docs/pipeline.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from headwater import plugins

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from headwater.pipeline.steps import AnyStep

SINKS: plugins.Table = {
    "parquet": ("headwater.pipeline.sinks.folder:Folder", "pipeline"),
    "jsonl": ("headwater.pipeline.sinks.folder:Folder", "pipeline"),
    "delta": ("headwater.pipeline.sinks.lake:Delta", "pipeline"),
    "iceberg": ("headwater.pipeline.sinks.lake:Iceberg", "pipeline"),
    "postgresql": ("headwater.pipeline.sinks.serving:Serving", "pipeline"),
    "sqlite": ("headwater.pipeline.sinks.serving:Serving", "pipeline"),
    "datahub+rest": ("headwater.pipeline.sinks.datahub:DataHub", "pipeline"),
    "datahub+kafka": ("headwater.pipeline.sinks.datahub:DataHub", "pipeline"),
    "datahub+file": ("headwater.pipeline.sinks.datahub:DataHub", "pipeline"),
    "datahub+s3": ("headwater.pipeline.sinks.datahub:DataHub", "pipeline"),
}


class Sink(Protocol):
    """Where tables go. Rows keep the names that events gave; `pipeline.read` settles what follows from the whole."""

    url: str
    keeps_log: bool
    """Whether it wants the events themselves too."""
    lacks: frozenset[str]
    """The tables that it does not keep as such."""

    def write(self, parts: DataFrame, batch: str, counts: Mapping[str, int]) -> dict[str, int]:
        """Merge a batch; a batch written before, or written half, may come again. How many rows of each table."""

    def rows(self, spark: SparkSession, table: str) -> DataFrame:
        """A table of `facts`, merged, under the names that events gave."""

    def compact(self, spark: SparkSession) -> dict[str, int]:
        """Rewrite what many batches left as if one had; how many rows each table has."""

    def status(self, spark: SparkSession) -> dict[str, Any]:
        """What there is."""


class Saving(Protocol):
    """One try to write a batch: the last steps, and what is done with what they give."""

    steps: tuple[AnyStep, ...]

    def finish(self, written: DataFrame) -> tuple[dict[str, int], list[int]]:
        """Run the pass and make it count; rows of each table, and lines, bad ones, repeats."""


@runtime_checkable
class InOnePass(Protocol):
    """A sink that can be written in the same pass in which parts are made."""

    url: str

    def saving(self, spark: SparkSession, batch: str, size: int = 0) -> Saving:
        """A try to write a batch of so many bytes of events; 0 where that is not known."""


def open_sink(url: str, **options: Any) -> Sink:
    """The sink that a url names."""
    sink: Sink = plugins.build_url("sink", url, SINKS, **options)
    return sink


__all__ = ["SINKS", "InOnePass", "Saving", "Sink", "open_sink"]
