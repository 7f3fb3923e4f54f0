"""pipeline.measures: merged tables -> for each job and dataset its reach, depth, criticality, cycle and staleness.

The graph is that of now: an edge that a later completed run lacks is gone, and names of one dataset are one node.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from headwater.pipeline import settle
from headwater.pipeline._reach import Order, blocks, depths, order, reached
from headwater.pipeline._workers import over_arrow
from headwater.pipeline.settle import Reader

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

SCHEMA = (
    "kind string, node string, reach_up bigint, reach_down bigint, depth bigint, criticality double,"
    " orphan boolean, `cycle` bigint, last_written bigint, stale bigint"
)
"""reach: datasets upstream and downstream; depth: the longest way from a source, in datasets; criticality: the share
of all other datasets that depend on it; cycle: a number that those of one circle share; stale: microseconds between
the last write and the newest event."""


def held(read: Reader) -> DataFrame:
    """The edges that hold now -> (job, direction, dataset's canonical name, last seen), as the server's graph has them."""
    from pyspark.sql import functions as F  # noqa: N812

    shows = settle.runs(read).where(F.col("io").isNotNull())
    last = shows.groupBy("job").agg(F.max(F.struct("ended_at", "run")).alias("last"))
    last = last.select("job", F.col("last.ended_at").alias("at"), F.col("last.run").alias("run"))
    words = read("declared").groupBy("job").agg(F.max("at").alias("word"))
    base = last.join(words, "job", "full").select(
        "job",
        F.greatest("at", "word").alias("base"),
        F.when(F.col("word").isNull() | (F.col("at") > F.col("word")), F.col("run")).alias("run"),
    )
    named = (
        read("inputs")
        .select("run", F.lit("in").alias("direction"), "dataset")
        .union(read("outputs").select("run", F.lit("out").alias("direction"), "dataset"))
        .join(base.where(F.col("run").isNotNull()).select("job", "run"), "run")
        .select("job", "direction", "dataset", F.lit(True).alias("named"))
    )
    edges = read("edges").join(base.select("job", "base"), "job", "left")
    edges = edges.join(named, ["job", "direction", "dataset"], "left")
    edges = edges.where(F.col("base").isNull() | (F.col("last_seen") >= F.col("base")) | F.col("named"))
    shown = _visible(read("jobs")).select("job")
    moved = settle.canonical(read)
    edges = settle.leaders(edges.join(shown, "job"), moved)
    edges = edges.join(_datasets(read, moved), "canonical", "left_semi")
    return edges.select("job", "direction", "canonical", "last_seen")


def _datasets(read: Reader, moved: dict[str, str]) -> DataFrame:
    """The datasets that are shown: each is one under all of its names, so an event that gives any of them shows it."""
    from pyspark.sql import functions as F  # noqa: N812

    named = settle.leaders(read("datasets"), moved).groupBy("canonical")
    told = named.agg(F.max("last_seen").alias("last_seen"), F.max("shown_at").alias("shown_at"))
    own = read("datasets").select(F.col("dataset").alias("canonical"), "hidden_at")
    return _visible(told.join(own, "canonical", "left")).select("canonical")


def _visible(frame: DataFrame) -> DataFrame:
    from pyspark.sql import functions as F  # noqa: N812

    hidden, zero = F.col("hidden_at"), F.lit(0)
    return frame.where(
        hidden.isNull() | (hidden < F.coalesce("last_seen", zero)) | (hidden < F.coalesce("shown_at", zero))
    )


def measures(read: Reader) -> DataFrame:
    """One row for each job and dataset."""
    from pyspark.sql import functions as F  # noqa: N812

    moved = settle.canonical(read)
    edges = held(read).groupBy("job", "direction", "canonical").agg(F.max("last_seen").alias("at")).toArrow()
    jobs = _visible(read("jobs")).select("job").toArrow().column(0)
    names = _datasets(read, moved).toArrow().column(0)
    newest = read("datasets").agg(F.max("last_seen")).first()
    spark = read("jobs").sparkSession
    found = compute(spark, edges, jobs, names, (newest[0] if newest else 0) or 0)
    return spark.createDataFrame(found, SCHEMA)


def compute(spark: SparkSession, edges: pa.Table, jobs: Any, datasets: Any, newest: int) -> pa.Table:
    """Edges (job, direction, canonical, at) and all nodes -> the measures of every node."""
    names, source, target, marked = _graph(edges, jobs, datasets)
    nodes = len(names)
    down, up = order(nodes, source, target, marked), order(nodes, target, source, marked)
    totals = [_share(spark, graph) for graph in (down, up)]
    own = marked.astype(np.int64)
    reach_down, reach_up = (
        total[graph.component] - own for total, graph in zip(totals, (down, up), strict=True)
    )
    count = max(1, int(marked.sum()) - 1)
    degree = np.bincount(source, minlength=nodes) + np.bincount(target, minlength=nodes)
    circle = down.size[down.component] > 1
    first = np.full(len(down.size), nodes, np.int64)
    np.minimum.at(first, down.component, np.arange(nodes))
    written = np.full(nodes, -1, np.int64)
    outs = np.asarray([each == "out" for each in edges.column("direction").to_pylist()], bool)
    if len(outs):
        np.maximum.at(written, target[outs], edges.column("at").to_numpy()[outs])
    never = written < 0
    return pa.table(
        {
            "kind": pa.array(np.where(marked, "dataset", "job")),
            "node": names,
            "reach_up": reach_up,
            "reach_down": reach_down,
            "depth": depths(up)[up.component],
            "criticality": reach_down / count,
            "orphan": degree == 0,
            "cycle": pa.array(first[down.component], pa.int64(), mask=~circle),
            "last_written": pa.array(written, pa.int64(), mask=never),
            "stale": pa.array(newest - written, pa.int64(), mask=never),
        }
    )


def _graph(edges: pa.Table, jobs: Any, datasets: Any) -> tuple[pa.Array, Any, Any, Any]:
    """Names -> numbers, jobs after datasets; edges run with the data."""
    ends = pa.chunked_array([*_chunks(datasets), *_chunks(edges.column("canonical"))], pa.string())
    mine = ends.unique()
    owners = pa.chunked_array([*_chunks(jobs), *_chunks(edges.column("job"))], pa.string()).unique()
    import pyarrow.compute as pc

    dataset = pc.index_in(edges.column("canonical"), mine).to_numpy().astype(np.int64)
    job = pc.index_in(edges.column("job"), owners).to_numpy().astype(np.int64) + len(mine)
    reads = np.asarray([each == "in" for each in edges.column("direction").to_pylist()], bool)
    source, target = np.where(reads, dataset, job), np.where(reads, job, dataset)
    marked = np.arange(len(mine) + len(owners)) < len(mine)
    return pa.concat_arrays([mine, owners]), source, target, marked


def _chunks(column: Any) -> list[pa.Array]:
    return list(column.chunks) if isinstance(column, pa.ChunkedArray) else [column]


def _share(spark: SparkSession, graph: Order) -> Any:
    """Let the workers count, each its share of the blocks, and add up."""
    count, words = blocks(graph)
    tasks = min(count, spark.sparkContext.defaultParallelism)
    if tasks <= 1:
        return reached(graph, range(count), words)
    sent = spark.sparkContext.broadcast(graph)

    def work(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for number in batch.column(0).to_pylist():
                total = reached(sent.value, range(number, count, tasks), words)
                yield pa.RecordBatch.from_arrays([pa.array([total.tobytes()], pa.binary())], names=["total"])

    rows = over_arrow(spark.range(0, tasks, 1, tasks), work, "total binary").collect()
    sent.destroy()
    return sum(np.frombuffer(bytes(row[0]), np.int64) for row in rows)
