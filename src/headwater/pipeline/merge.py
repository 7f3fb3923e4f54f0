"""pipeline.merge: parts -> a DataFrame per table; partial rows -> merged rows, by an aggregation written from the rules."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from headwater.facts.tables import Rule, Table
from headwater.pipeline._columns import PARTIAL, batches_of, columns, ddl
from headwater.pipeline._workers import over_arrow

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame


def rows_of(parts: DataFrame, table: str) -> DataFrame:
    """The partial rows of one table in `parts`, under its columns."""
    from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it

    bodies = parts.where(F.col("table") == table).select("body")
    return over_arrow(bodies, _open, ddl(PARTIAL[table]))


def _open(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        for body in batch.column(0):
            yield from batches_of(body.as_buffer())


def merge(frame: DataFrame, table: Table) -> DataFrame:
    """Rows with one key become one, column by column by the rule that `table` declares."""
    from pyspark.sql import functions as F  # noqa: N812

    keys = [F.col(f"`{name}`") for name in table.key]
    merged: list[Column] = []
    for name, column in table.columns.items():
        value = F.col(f"`{name}`")
        if column.rule is Rule.MIN:
            merged.append(F.min(value).alias(name))
        elif column.rule is Rule.MAX:
            merged.append(F.max(value).alias(name))
        else:
            at = F.col(f"`{name}_at`")
            both = F.struct(at.alias("at"), value.alias("value"))
            merged.append(F.max(F.when(at.isNotNull(), both)).alias(name))
    if not merged:
        return frame.select(*keys).distinct()
    grouped = frame.groupBy(*keys).agg(*merged)
    return grouped.select(*_spread(table))


def _spread(table: Table) -> Iterable[Any]:
    from pyspark.sql import functions as F  # noqa: N812

    for name in columns(table):
        stem = name.removesuffix("_at")
        if name not in table.key and stem in table.columns and table.columns[stem].rule is Rule.LATEST:
            part = "at" if name != stem else "value"
            yield F.col(f"`{stem}`").getField(part).alias(name)
        else:
            yield F.col(f"`{name}`")
