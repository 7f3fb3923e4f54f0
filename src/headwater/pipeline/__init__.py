"""pipeline: raw events at any size -> the tables of the house, on Spark, in a batch or as a stream.

    from headwater import pipeline

    spark = pipeline.open_session()
    pipeline.run(spark, "events/", "parquet:///data/lineage")
    pipeline.read(spark, "parquet:///data/lineage", "datasets").show()

sources   files, Kafka, tables, a store's log -> lines
steps     lines -> decoded -> without repeats -> rows -> folded parts, by `facts`
merge     parts -> tables, by an aggregation written from the merge rules
gather    parts -> shares by key -> folded Arrow tables, without the JVM
sinks     parts -> Parquet, JSON lines, Delta, Iceberg, a serving store; each batch once in effect
settle    merged tables -> versions, canonical identities, run groups
measures  edges -> reach, depth, criticality, orphans, cycles, staleness
flow      a source, steps and sinks -> a report
"""

from __future__ import annotations

from headwater.pipeline.flow import Report, run, stream
from headwater.pipeline.reading import NAMES, read
from headwater.pipeline.rebuild import rebuild
from headwater.pipeline.session import open_session
from headwater.pipeline.steps import STEPS
from headwater.pipeline.upkeep import compact, export, status

__all__ = [
    "NAMES",
    "STEPS",
    "Report",
    "compact",
    "export",
    "open_session",
    "read",
    "rebuild",
    "run",
    "status",
    "stream",
]
