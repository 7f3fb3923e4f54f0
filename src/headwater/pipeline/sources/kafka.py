"""pipeline.sources.kafka: kafka://brokers/topic -> the topic's messages as lines, by Spark's own connector."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from headwater.errors import ConfigError, NotInstalled
from headwater.pipeline.sources import Lines

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

PACKAGE = "org.apache.spark:spark-sql-kafka-0-10_2.13"


class Kafka:
    """A topic of events.

    Args:
        url: `kafka://broker:9092,other:9092/topic`.
        per_batch: how many messages one micro-batch of a stream takes.
        starting: `earliest` or `latest`, where a stream without a checkpoint begins.
        options: Spark's own options of the source, without their prefix `kafka.`, as `security.protocol`.

    """

    def __init__(
        self, url: str, *, per_batch: int = 100_000, starting: str = "earliest", **options: str
    ) -> None:
        parts = urlsplit(url)
        self.url, self._brokers, self._topic = url, parts.netloc, parts.path.strip("/")
        if not self._brokers or not self._topic:
            raise ConfigError(f"source {url!r} names no broker or no topic: write kafka://broker:9092/topic")
        self._per_batch, self._starting, self._options = int(per_batch), starting, options

    def load(self, spark: SparkSession, *, streaming: bool) -> DataFrame:
        """All messages there are, or those that come."""
        from pyspark.errors import AnalysisException

        reader = spark.readStream if streaming else spark.read
        reader = reader.format("kafka").option("kafka.bootstrap.servers", self._brokers)
        reader = reader.option("subscribe", self._topic).option("startingOffsets", self._starting)
        if streaming:
            reader = reader.option("maxOffsetsPerTrigger", self._per_batch)
        for name, value in self._options.items():
            reader = reader.option(f"kafka.{name}", value)
        try:
            return reader.load()
        except AnalysisException as fault:
            if "Failed to find data source" in str(fault) or "DATA_SOURCE_NOT_FOUND" in str(fault):
                raise _missing() from None
            raise ConfigError(f"source {self.url}: {str(fault).splitlines()[0]}") from None

    def lines(self, frame: DataFrame) -> Lines:
        """Messages -> lines; one without a value (a tombstone) is refused like an empty event."""
        from pyspark.sql import functions as F  # noqa: N812

        source = F.concat_ws(
            "/", F.lit(f"kafka://{self._brokers}"), "topic", F.col("partition").cast("string")
        )
        return Lines(
            frame.select(
                source.alias("source"),
                F.col("offset").alias("position"),
                F.coalesce(F.col("value"), F.lit(b"")).alias("value"),
                F.lit("").alias("kind"),
                F.when(F.col("value").isNull(), "a message without a value").otherwise("").alias("fault"),
            )
        )


def _missing() -> ConfigError:
    fault = NotInstalled("source 'kafka'", "pipeline")
    return ConfigError(
        f"{fault} and Spark's connector: --conf spark.jars.packages={PACKAGE}:<the Spark version>"
    )
