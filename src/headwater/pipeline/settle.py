"""pipeline.settle: merged tables -> what follows from the whole: versions, canonical identities, run groups, facets.

The functions are those of `facts`: `version_of`, `representatives`, `rewrite`. Spark only brings together what each
of them needs, so nothing here grows with the history on one machine but the names that symlinks and rules join.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING

import msgspec
import pyarrow as pa

from headwater.facts import representatives
from headwater.facts.canonical import rewrite
from headwater.facts.versions import COMPLETE, version_of
from headwater.naming import DEFAULT_RULES, Aliases, AliasRule
from headwater.pipeline._workers import frame_of, over_arrow

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

Reader = Callable[[str], "DataFrame"]
"""A table of `facts` by its name, merged."""


def shown(read: Reader) -> DataFrame:
    """Every run that completed and named datasets -> (run, io): the version it shows."""
    from pyspark.sql import functions as F  # noqa: N812

    ended = read("runs").where(F.col("state") == COMPLETE).select("run")
    sides = [
        read(name).groupBy("run").agg(F.collect_list("dataset").alias(name)) for name in ("inputs", "outputs")
    ]
    both = sides[0].join(sides[1], "run", "full").join(ended, "run")
    return over_arrow(both.select("run", "inputs", "outputs"), _versions, "run string, io binary")


def _versions(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        inputs, outputs = (batch.column(i).to_pylist() for i in (1, 2))
        found = [version_of(i or (), o or ()) for i, o in zip(inputs, outputs, strict=True)]
        yield pa.RecordBatch.from_arrays([batch.column(0), pa.array(found, pa.binary())], names=["run", "io"])


def runs(read: Reader) -> DataFrame:
    """The runs with the version each shows."""
    return read("runs").join(shown(read), "run", "left")


def job_versions(read: Reader) -> DataFrame:
    """(job, version) with when runs first and last showed it."""
    from pyspark.sql import functions as F  # noqa: N812

    found = runs(read).where(F.col("io").isNotNull()).groupBy("job", F.col("io").alias("version"))
    return found.agg(F.min("ended_at").alias("first_seen"), F.max("ended_at").alias("last_seen"))


def aliases(read: Reader) -> Aliases:
    """The alias rules that were set, before those that hold everywhere."""
    found = read("aliases").where("rule <> ''").orderBy("match").select("rule").collect()
    return Aliases([*(AliasRule.from_dict(msgspec.json.decode(each[0])) for each in found), *DEFAULT_RULES])


def canonical(read: Reader) -> dict[str, str]:
    """Each name that stands for another dataset -> the one identity of it; any other stands for itself."""
    rules = aliases(read)

    def moved(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            names = [each for each in batch.column(0).to_pylist() if rewrite(each, rules) != each]
            yield pa.RecordBatch.from_arrays([pa.array(names, pa.string())], names=["dataset"])

    names = read("datasets").select("dataset").union(read("column_sources").select("dataset"))
    rewritten = [row[0] for row in over_arrow(names, moved, "dataset string").distinct().collect()]
    links = [tuple(row) for row in read("symlinks").select("dataset", "alias").distinct().collect()]
    chosen = representatives(rewritten, links, rules)
    return {name: one for name, one in chosen.items() if name != one}


def leaders(frame: DataFrame, moved: dict[str, str], column: str = "dataset") -> DataFrame:
    """The frame with a column `canonical`: the identity that stands for the dataset in `column`."""
    from pyspark.sql import functions as F  # noqa: N812

    if not moved:
        return frame.withColumn("canonical", F.col(column))
    pairs = frame_of(frame.sparkSession, moved.items(), f"`{column}` string, leader string")
    joined = frame.join(F.broadcast(pairs) if len(moved) < 100_000 else pairs, column, "left")
    kept = [F.col(f"`{name}`") for name in frame.columns]
    return joined.select(*kept, F.coalesce("leader", column).alias("canonical"))


def datasets(read: Reader) -> DataFrame:
    """The datasets, each with its canonical identity."""
    return leaders(read("datasets"), canonical(read))


def facets(read: Reader) -> DataFrame:
    """Facets of runs, jobs, datasets, inputs and outputs in one table."""
    from pyspark.sql import functions as F  # noqa: N812

    nothing = F.lit(None).cast("string")
    found = None
    for kind in ("run", "job", "dataset", "io"):
        frame = read(f"{kind}_facets")
        part = frame.select(
            F.lit(kind).alias("kind"),
            *(F.col(name) if name in frame.columns else nothing.alias(name) for name in _FACETS),
        )
        found = part if found is None else found.union(part)
    assert found is not None
    return found


_FACETS = ("run", "job", "direction", "dataset", "name", "body", "first_seen", "last_seen")


def run_groups(read: Reader) -> DataFrame:
    """Each run -> the application, or the orchestrator's run, that parents tie it to.

    Upwards from parent to parent; a Spark application ends the way, and so does a parent of another tool.
    """
    from pyspark.sql import functions as F  # noqa: N812

    jobs = read("jobs").select("job", F.upper("integration").alias("tool"), F.upper("kind").alias("what"))
    known = (
        read("runs")
        .select("run", "parent", "job")
        .join(jobs, "job", "left")
        .select("run", "parent", "tool", "what")
    )
    above = known.select(F.col("run").alias("parent"), F.col("tool").alias("their_tool"))
    ends = (F.col("tool") == "SPARK") & (F.col("what") == "APPLICATION")
    other = (
        F.col("tool").isNotNull() & F.col("their_tool").isNotNull() & (F.col("tool") != F.col("their_tool"))
    )
    stays = F.col("parent").isNull() | F.coalesce(ends, F.lit(False)) | F.coalesce(other, F.lit(False))
    step = known.join(above, "parent", "left").select(
        "run", F.when(stays, F.col("run")).otherwise(F.col("parent")).alias("up")
    )
    step = step.localCheckpoint()
    for _ in range(_MOST_DOUBLINGS):  # each round doubles how far every run looks up
        far = step.select(F.col("run").alias("up"), F.col("up").alias("higher"))
        nxt = (
            step.join(far, "up", "left")
            .select("run", F.coalesce("higher", "up").alias("up"))
            .localCheckpoint()
        )
        same = nxt.join(step.withColumnRenamed("up", "before"), "run").where("up <> before").isEmpty()
        step = nxt
        if same:
            break
    return step.select("run", F.col("up").alias("group"))


_MOST_DOUBLINGS = 12
"""4,096 parents above each other: more are a circle."""
