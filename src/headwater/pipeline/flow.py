"""pipeline.flow: a source, steps and sinks -> tables, in a batch or as a stream, and a report of what was done."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

import msgspec

from headwater.event import Limits
from headwater.naming import scrub
from headwater.pipeline._columns import KEPT
from headwater.pipeline.merge import rows_of
from headwater.pipeline.sinks import InOnePass, Sink, open_sink
from headwater.pipeline.sources import Source, open_source
from headwater.pipeline.steps import TALLY, AnyStep, apply, decode, dedupe, derive, fold, fuse

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery


@dataclass(slots=True)
class Report:
    """What a run, or one batch of a stream, did."""

    batch: str
    sources: list[str]
    sinks: list[str]
    events: int = 0
    """Lines that came in."""
    bad: int = 0
    """Those that went to the quarantine."""
    duplicates: int = 0
    """Those that repeat another of the same batch."""
    rows: dict[str, int] = field(default_factory=dict)
    """Rows of each table that the batch brought, folded or in parts, as its first sink takes them."""
    seconds: dict[str, float] = field(default_factory=dict)
    """How long each step took; steps that were one pass are one."""

    def to_dict(self) -> dict[str, Any]:
        """The report as JSON-ready data."""
        return asdict(self)

    @contextmanager
    def timed(self, step: str) -> Iterator[None]:
        """Count the time of what is done inside."""
        began = time.perf_counter()
        try:
            yield
        finally:
            self.seconds[step] = round(self.seconds.get(step, 0.0) + time.perf_counter() - began, 3)


def steps_for(sinks: Sequence[Sink], limits: Limits = Limits()) -> tuple[AnyStep, ...]:  # noqa: B008 - frozen
    """The usual steps; the events themselves go along where a sink keeps them."""
    log = any(sink.keeps_log for sink in sinks)
    return decode(limits), dedupe(), derive(log=log, limits=limits), fold()


def run(
    spark: SparkSession,
    source: str | Source | Sequence[str | Source],
    sinks: str | Sink | Sequence[str | Sink],
    steps: Sequence[AnyStep] | None = None,
    *,
    limits: Limits = Limits(),  # noqa: B008 - frozen
    batch: str | None = None,
) -> Report:
    """Take everything a source has into every sink.

    Args:
        spark: a session; `pipeline.open_session` makes one.
        source: a url or path, or several.
        sinks: a url, or several.
        steps: DataFrame -> DataFrame functions from lines to parts, instead of the usual ones.
        limits: how large and deep an event may be.
        batch: what makes the batch known to sinks; one that they have is not written again.

    """
    opened = [each if not isinstance(each, str) else open_source(each) for each in _listed(source)]
    into = [each if not isinstance(each, str) else open_sink(each) for each in _listed(sinks)]
    chosen = steps_for(into, limits) if steps is None else tuple(steps)
    report = _report(batch or f"run-{time.time_ns()}-{uuid.uuid4().hex[:6]}", opened, into)
    frames = [(each, each.load(spark, streaming=False)) for each in opened]
    _flow(frames, into, chosen, report)
    return report


def stream(
    spark: SparkSession,
    source: str | Source,
    sinks: str | Sink | Sequence[str | Sink],
    steps: Sequence[AnyStep] | None = None,
    *,
    checkpoint: str,
    every: float | None = None,
    limits: Limits = Limits(),  # noqa: B008 - frozen
    told: Callable[[Report], None] | None = None,
) -> StreamingQuery:
    """Take what a source has, and what comes, batch by batch; from where it was left, after any end.

    Args:
        spark: a session.
        source: a url or path.
        sinks: a url, or several.
        steps: as for `run`.
        checkpoint: a directory that remembers how far the stream is.
        every: seconds between batches, for a stream without end; None takes what there is now, and ends.
        limits: as for `run`.
        told: called with the report of each batch.

    """
    opened = open_source(source) if isinstance(source, str) else source
    into = [each if not isinstance(each, str) else open_sink(each) for each in _listed(sinks)]
    chosen = steps_for(into, limits) if steps is None else tuple(steps)

    def take(frame: DataFrame, number: int) -> None:
        query = frame.sparkSession.sparkContext.getLocalProperty("sql.streaming.queryId")
        report = _report(f"{query}-{number:08d}", [opened], into)
        _flow([(opened, frame)], into, chosen, report)
        if told is not None:
            told(report)

    writer = opened.load(spark, streaming=True).writeStream.foreachBatch(take)
    writer = writer.option("checkpointLocation", checkpoint)
    if every is None:
        return writer.trigger(availableNow=True).start()
    return writer.trigger(processingTime=f"{every} seconds").start()


def _listed(given: Any) -> list[Any]:
    return list(given) if isinstance(given, (list, tuple)) else [given]


def _report(batch: str, sources: Sequence[Source], sinks: Sequence[Sink]) -> Report:
    return Report(batch, [scrub(each.url) for each in sources], [scrub(each.url) for each in sinks])


def _flow(
    frames: Sequence[tuple[Source, DataFrame]],
    sinks: Sequence[Sink],
    steps: Sequence[AnyStep],
    report: Report,
) -> None:
    """Lines -> parts, in one pass and once; then every sink from the same parts."""
    from pyspark import StorageLevel

    spark = frames[0][1].sparkSession
    alone: object = sinks[0] if len(sinks) == 1 else None
    # a sink alone may be written in the job that makes the parts: nothing is kept in between
    with report.timed("list"):
        given = [source.lines(frame) for source, frame in frames]
    saving = None
    if isinstance(alone, InOnePass):
        saving = alone.saving(spark, report.batch, sum(each.size for each in given))
    first, *rest = (saving.steps if saving else ()) or (None,)
    parts: DataFrame | None = None
    names: list[str] = []
    for lines, begin, _ in given:
        every = [*begin, *steps, *((first,) if first else ())]
        names = [_name(each) for each in fuse(every)]
        mine = apply(lines, every)
        parts = mine if parts is None else parts.union(mine)
    assert parts is not None  # there is at least one source
    if saving is not None:
        with report.timed(" -> ".join([*names, *map(_name, fuse(rest))])):
            counts, (report.events, report.bad, report.duplicates) = saving.finish(apply(parts, rest))
        report.rows = {name: counts[name] for name in KEPT if counts.get(name)}
        return
    way = " -> ".join(names)
    parts = parts.persist(StorageLevel.DISK_ONLY)
    try:
        with report.timed(way):
            counts, chunks = _tally(parts, report)
        with report.timed("count repeats"):
            if len(chunks) > 1:  # a task marks its own, and no digest stands twice in a chunk
                distinct = rows_of(parts, "events").select("digest").distinct().count()
                report.duplicates += counts["events"] - distinct
        report.rows = {name: counts[name] for name in KEPT if counts.get(name)}
        for sink in sinks:
            with report.timed(scrub(sink.url)):
                sink.write(parts, report.batch, counts)
    finally:
        parts.unpersist()


def _name(step: AnyStep) -> str:
    return getattr(step, "name", None) or getattr(step, "__name__", None) or str(step)


def _tally(parts: DataFrame, report: Report) -> tuple[dict[str, int], set[str]]:
    """Rows of each table, and the chunks that hold events."""
    from pyspark.sql import functions as F  # noqa: N812

    # a line a part, of which there are few even of many events: to group them in Spark takes two jobs more
    told = F.when(F.col("table") == TALLY, F.col("body")).alias("told")
    counts: dict[str, int] = {}
    chunks: set[str] = set()
    for batch in parts.select("table", "chunk", "rows", told).toArrow().to_batches():
        for table, chunk, rows, body in zip(*(column.to_pylist() for column in batch.columns), strict=True):
            counts[table] = counts.get(table, 0) + rows
            if table == "events":
                chunks.add(chunk)
            if body is not None:
                lines, bad, again = msgspec.json.decode(body)
                report.events += lines
                report.bad += bad
                report.duplicates += again
    return counts, chunks
