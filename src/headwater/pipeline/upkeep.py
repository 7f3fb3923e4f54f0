"""pipeline.upkeep: a sink -> compacted, exported, or described."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from headwater.errors import ConfigError
from headwater.naming import scrub
from headwater.pipeline.reading import NAMES, read
from headwater.pipeline.sinks import Sink, open_sink

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def compact(spark: SparkSession, sink: str | Sink) -> dict[str, int]:
    """Rewrite a sink's partial rows as folded ones; how many rows each table then has."""
    return _opened(sink).compact(spark)


def status(spark: SparkSession, sink: str | Sink) -> dict[str, Any]:
    """What a sink holds."""
    opened = _opened(sink)
    return {"sink": scrub(opened.url), **opened.status(spark)}


_FORMATS = {"parquet": {"compression": "zstd"}, "json": {}, "csv": {"header": "true"}}


def export(
    spark: SparkSession,
    sink: str | Sink,
    folder: str,
    *,
    form: str = "parquet",
    tables: tuple[str, ...] = (),
) -> dict[str, int]:
    """Write tables as a server would show them, folded and settled, for other tools; how many rows of each.

    Args:
        spark: a session.
        sink: where the tables are.
        folder: where they go, a folder for each.
        form: `parquet`, `json` (lines) or `csv`; in the last two, bytes are base64.
        tables: which of them; else all that the sink has.

    """
    from pyspark.sql import functions as F  # noqa: N812

    if form not in _FORMATS:
        raise ConfigError(f"the format is {form!r}, not one of {', '.join(_FORMATS)}")
    opened = _opened(sink)
    done: dict[str, int] = {}
    for name in tables or [each for each in NAMES if each not in opened.lacks]:
        frame = read(spark, opened, name)
        if form != "parquet":
            frame = frame.select(
                *(F.base64(c).alias(c) if t == "binary" else F.col(f"`{c}`") for c, t in frame.dtypes)
            )
        target = f"{folder.rstrip('/')}/{name}"
        frame.write.mode("overwrite").format(form).options(**_FORMATS[form]).save(target)
        done[name] = (
            spark.read.format(form).options(**_FORMATS[form]).schema(frame.schema).load(target).count()
        )
    return done


def _opened(sink: str | Sink) -> Sink:
    if not isinstance(sink, str):
        return sink
    return open_sink(sink if "://" in sink else f"parquet://{sink}")
