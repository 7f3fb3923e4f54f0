"""pipeline.sources.tables: a Parquet, Delta or Iceberg table with events in a column -> lines."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headwater.errors import ConfigError
from headwater.naming import scrub
from headwater.pipeline.sources import Lines

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

_USUAL = ("event", "value", "raw", "payload", "body", "line")


class Events:
    """A table of raw events.

    Args:
        url: `parquet:///dir`, `delta:///dir` or `iceberg://catalog.db.table`.
        column: the one with the events, as text or bytes; else the first of event, value, raw, payload, body, line.

    """

    def __init__(self, url: str, *, column: str = "") -> None:
        self.url, self._column = url, column
        self._format, _, self._where = url.partition("://")
        if not self._where:
            raise ConfigError(f"source {url!r} names no table: write {self._format}://…")

    def load(self, spark: SparkSession, *, streaming: bool) -> DataFrame:
        """The rows there are, or those that come."""
        from pyspark.errors import AnalysisException

        reader = spark.readStream if streaming else spark.read
        reader = reader.format(self._format)
        try:
            if streaming and self._format == "parquet":
                reader = reader.schema(spark.read.parquet(self._where).schema)
            frame = reader.load(self._where)
        except AnalysisException as fault:
            raise ConfigError(f"source {self.url}: {str(fault).splitlines()[0]}") from None
        column = self._column or next((name for name in _USUAL if name in frame.columns), "")
        if column not in frame.columns:
            wanted = f"no column {column!r}" if column else f"none of {', '.join(_USUAL)}"
            raise ConfigError(
                f"source {self.url} has {wanted}; it has {', '.join(frame.columns)}: add ?column=…"
            )
        where = self._position(told=self._format == "parquet" or not streaming)
        return frame.select(*where, frame[column].cast("binary").alias("value"))

    def _position(self, *, told: bool) -> list[Column]:
        """A row's file and its place there; -1, and the table itself, where the format does not tell."""
        from pyspark.sql import functions as F  # noqa: N812

        source, position = F.lit(scrub(self.url)), F.lit(-1).cast("bigint")
        if told and self._format == "iceberg":
            source, position = F.col("_file"), F.col("_pos")
        elif told:
            source = F.col("_metadata.file_path")
            position = F.col("_metadata.row_index") if self._format == "parquet" else position
        return [source.alias("source"), position.alias("position")]

    def lines(self, frame: DataFrame) -> Lines:
        """Rows -> lines; one without an event is refused."""
        from pyspark.sql import functions as F  # noqa: N812

        return Lines(
            frame.select(
                "source",
                "position",
                F.coalesce(F.col("value"), F.lit(b"")).alias("value"),
                F.lit("").alias("kind"),
                F.when(F.col("value").isNull(), "a row without an event").otherwise("").alias("fault"),
            )
        )
