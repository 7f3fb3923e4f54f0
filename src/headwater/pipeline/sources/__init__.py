"""pipeline.sources: a url -> lines of events, in a batch or as a stream.

To add one: write sources/<name>.py with a class that takes `url` and its options and is a Source, add one line to
SOURCES, a case to the tests and a heading to docs/pipeline.md.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from headwater import plugins

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from headwater.pipeline.steps import AnyStep

SOURCES: plugins.Table = {
    "file": ("headwater.pipeline.sources.files:Files", "pipeline"),
    "kafka": ("headwater.pipeline.sources.kafka:Kafka", "pipeline"),
    "parquet": ("headwater.pipeline.sources.tables:Events", "pipeline"),
    "delta": ("headwater.pipeline.sources.tables:Events", "pipeline"),
    "iceberg": ("headwater.pipeline.sources.tables:Events", "pipeline"),
    "postgresql": ("headwater.pipeline.sources.log:Log", "pipeline"),
    "sqlite": ("headwater.pipeline.sources.log:Log", "pipeline"),
    "spool": ("headwater.pipeline.sources.spool:Spool", "pipeline"),
}


class Lines(NamedTuple):
    """What gives the lines of a source."""

    frame: DataFrame
    steps: tuple[AnyStep, ...] = ()
    """What makes lines of what is in the frame."""
    size: int = 0
    """Bytes, where that is known."""


class Source(Protocol):
    """Where events come from."""

    url: str

    def load(self, spark: SparkSession, *, streaming: bool) -> DataFrame:
        """What there is, or what comes: files, messages, rows."""

    def lines(self, frame: DataFrame) -> Lines:
        """What was loaded, or one micro-batch of it -> its lines."""


def open_source(url: str, **options: Any) -> Source:
    """The source that a url, or the path of a file or directory, names."""
    scheme = re.match(r"([a-z][a-z0-9+.-]+):", url)
    if scheme is None or scheme[1] in _FILESYSTEMS:
        from headwater.pipeline.sources.files import Files

        path, _, query = url.rpartition("?") if scheme and _OPTIONS.search(url) else (url, "", "")
        found: Source = plugins.build_url(
            "source", f"file:{'?' + query if query else ''}", SOURCES, **options, path=path
        )
        assert isinstance(found, Files)
        return found
    source: Source = plugins.build_url("source", url, SOURCES, **options)
    return source


_OPTIONS = re.compile(r"\?\w+=[^?]*$")
"""Any other `?` is of a pattern, and stands for a character."""
_FILESYSTEMS = {"file", "s3", "s3a", "hdfs", "gs", "abfs", "abfss", "viewfs"}

__all__ = ["SOURCES", "Lines", "Source", "open_source"]
