"""cli.pipeline: headwater pipeline … -> raw events made into tables on Spark, and a report of what was done."""

from __future__ import annotations

import signal
import sys
import threading
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any

import typer

from headwater import config
from headwater.cli._ask import JsonOption, print_json
from headwater.cli._group import group
from headwater.cli._progress import counting
from headwater.errors import ConfigError, NotInstalled
from headwater.event import Limits

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from headwater.pipeline import Report
    from headwater.pipeline.sinks import Sink
    from headwater.pipeline.sources import Source

app = group("Make tables of raw events on Spark, at any size.")


def register(parent: typer.Typer) -> None:
    """Add the commands."""
    parent.add_typer(app, name="pipeline")


Sources = Annotated[list[str], typer.Option("--source", metavar="URL", help="Where events come from.")]
OneSource = Annotated[str, typer.Option("--source", metavar="URL", help="Where events come from.")]
Sinks = Annotated[
    list[str], typer.Option("--sink", metavar="URL", help="Where tables go; several may be given.")
]
OneSink = Annotated[str, typer.Option("--sink", metavar="URL", help="Where the tables are.")]
Master = Annotated[
    str | None, typer.Option(metavar="URL", help="Spark's master; local[*] where nothing is said.")
]
Conf = Annotated[
    list[str] | None, typer.Option("--conf", metavar="KEY=VALUE", help="A setting of Spark; may be repeated.")
]


@app.command("run")
def run_run(
    source: Sources, sink: Sinks, master: Master = None, conf: Conf = None, as_json: JsonOption = False
) -> None:
    """Take everything a source has into every sink, in one batch.

    \b
    Examples:
      headwater pipeline run --source /data/events --sink parquet:///data/lineage
      headwater pipeline run --source kafka://broker:9092/lineage --sink sqlite:///lineage.db
      headwater pipeline run --source events.jsonl.gz --sink delta:///lake/lineage --master spark://host:7077

    What is refused goes to the table `quarantine` with its reason and position, and the exit code is 5.
    """
    from headwater import pipeline

    limits = Limits(**config.options(config.load(), "ingest"))
    sources, sinks = _opened(source, sink)
    with _session(master, conf) as spark:
        report = pipeline.run(spark, sources, sinks, limits=limits)
    _tell(_Total().add(report), as_json)


@app.command("stream")
def run_stream(
    source: OneSource,
    sink: Sinks,
    checkpoint: Annotated[str, typer.Option(metavar="DIR", help="Remembers how far the stream is.")],
    every: Annotated[
        float | None,
        typer.Option(min=0.1, metavar="SECONDS", help="Go on without end; else take what there is, and end."),
    ] = None,
    master: Master = None,
    conf: Conf = None,
    as_json: JsonOption = False,
) -> None:
    """Take what a source has and what comes, from where the checkpoint says it was left.

    \b
    Examples:
      headwater pipeline stream --source /data/events --sink parquet:///data/lineage --checkpoint /data/_stream
      headwater pipeline stream --source kafka://b:9092/lineage --sink sqlite:///x.db --checkpoint /c --every 10

    After any end, kill -9 too, the same command goes on: every sink then holds what one clean run would have made.
    """
    from headwater import pipeline

    limits = Limits(**config.options(config.load(), "ingest"))
    total = _Total()

    def told(report: Report) -> None:
        total.add(report)
        if every is not None:
            typer.echo(_line(report), err=True)

    (opened,), sinks = _opened([source], sink)
    with _session(master, conf) as spark:
        query = pipeline.stream(
            spark, opened, sinks, checkpoint=checkpoint, every=every, limits=limits, told=told
        )
        stopped = threading.Event()
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, lambda *_: stopped.set())
        while not query.awaitTermination(1):
            if stopped.is_set():
                query.stop()
                break
    _tell(total, as_json)


@app.command("rebuild")
def run_rebuild(
    store: Annotated[
        str | None, typer.Option(metavar="URL", help="The store; else the configured one.")
    ] = None,
    master: Master = None,
    conf: Conf = None,
    as_json: JsonOption = False,
) -> None:
    """Make all tables of a serving store anew from its log, while the server stays up, then swap them in.

    \b
    Examples:
      headwater pipeline rebuild --store sqlite:///lineage.db
    """
    from headwater import pipeline

    settings = config.load({"store": store})
    with _session(master, conf) as spark:
        report = pipeline.rebuild(spark, settings.store)
    _tell(_Total().add(report), as_json)


@app.command("compact")
def run_compact(sink: OneSink, master: Master = None, conf: Conf = None, as_json: JsonOption = False) -> None:
    """Rewrite what many batches left as one; who reads meanwhile goes on.

    \b
    Examples:
      headwater pipeline compact --sink parquet:///data/lineage
    """
    from headwater import pipeline

    with _session(master, conf) as spark:
        rows = pipeline.compact(spark, sink)
    _rows({"sink": sink, "rows": rows}, as_json)


@app.command("export")
def run_export(
    sink: OneSink,
    to: Annotated[str, typer.Option("--to", metavar="DIR", help="A folder for each table is made there.")],
    table: Annotated[list[str] | None, typer.Option(help="Only this table; may be repeated.")] = None,
    form: Annotated[str, typer.Option("--format", help="parquet, json or csv.")] = "parquet",
    master: Master = None,
    conf: Conf = None,
    as_json: JsonOption = False,
) -> None:
    """Write the tables folded and settled, measures of the graph included, for other tools.

    \b
    Examples:
      headwater pipeline export --sink parquet:///data/lineage --to /data/shown
      headwater pipeline export --sink delta:///lake/lineage --to /tmp/m --table measures --format csv
    """
    from headwater import pipeline

    with _session(master, conf) as spark:
        rows = pipeline.export(spark, sink, to, form=form, tables=tuple(table or ()))
    _rows({"to": to, "rows": rows}, as_json)


@app.command("status")
def run_status(sink: OneSink, master: Master = None, conf: Conf = None, as_json: JsonOption = False) -> None:
    """What a sink holds.

    \b
    Examples:
      headwater pipeline status --sink parquet:///data/lineage --json
    """
    from headwater import pipeline

    with _session(master, conf) as spark:
        model = pipeline.status(spark, sink)
    _rows(model, as_json)


def _opened(sources: list[str], sinks: list[str]) -> tuple[list[Source], list[Sink]]:
    """What urls name, looked at before Spark takes its seconds to start: a slip is told at once."""
    from headwater.pipeline.sinks import open_sink
    from headwater.pipeline.sources import open_source

    return [open_source(each) for each in sources], [open_sink(each) for each in sinks]


@contextmanager
def _session(master: str | None, conf: list[str] | None) -> Iterator[SparkSession]:
    """A session that tells its progress, and its own lineage where a transport is configured."""
    try:
        from headwater.pipeline import open_session
    except ModuleNotFoundError as fault:
        if (fault.name or "").split(".")[0] == "headwater":
            raise
        raise NotInstalled("the pipeline", "pipeline") from fault
    settings = {}
    for each in conf or ():
        key, equals, value = each.partition("=")
        if not equals:
            raise ConfigError(f"--conf {each!r}: write KEY=VALUE")
        settings[key] = value
    spark = open_session(master, settings, alone=True)
    capture = None
    if config.load().transport and not config.load().disabled:
        import headwater.spark

        capture = headwater.spark.install(spark)
    try:
        with _progress(spark):
            yield spark
    finally:
        if capture is not None:
            capture.flush(30)
        spark.stop()
        if capture is not None:
            capture.close()


@contextmanager
def _progress(spark: SparkSession) -> Iterator[None]:
    """A bar for the tasks of the stage that runs."""
    if not sys.stderr.isatty():
        yield
        return
    tracker, done = spark.sparkContext.statusTracker(), threading.Event()
    with counting() as bar:
        task = bar.add_task("starting", total=None)

        def watch() -> None:
            while not done.wait(0.3):
                for number in sorted(tracker.getActiveStageIds()):
                    info = tracker.getStageInfo(number)
                    if info is not None:
                        bar.update(
                            task,
                            description=f"stage {number}",
                            total=info.numTasks,
                            completed=info.numCompletedTasks,
                        )
                        break

        watcher = threading.Thread(target=watch, daemon=True)
        watcher.start()
        try:
            yield
        finally:
            done.set()
            watcher.join(2)


def _line(report: Report) -> str:
    return (
        f"batch {report.batch}: {report.events:,} events, {report.bad:,} refused, {report.duplicates:,} repeats,"
        f" {sum(report.seconds.values()):.1f} s"
    )


class _Total:
    """What several batches did; of a stream without end only the last are named."""

    def __init__(self) -> None:
        self.counts = {"events": 0, "bad": 0, "duplicates": 0}
        self.rows: dict[str, int] = {}
        self.seconds: dict[str, float] = {}
        self.batches: deque[str] = deque(maxlen=1_000)
        self.number = 0

    def add(self, report: Report) -> _Total:
        """One more."""
        self.number += 1
        self.batches.append(report.batch)
        for name in self.counts:
            self.counts[name] += getattr(report, name)
        for name, rows in report.rows.items():
            self.rows[name] = self.rows.get(name, 0) + rows
        for name, seconds in report.seconds.items():
            self.seconds[name] = round(self.seconds.get(name, 0.0) + seconds, 3)
        return self


def _tell(made: _Total, as_json: bool) -> None:
    total: dict[str, Any] = {
        **made.counts,
        "rows": made.rows,
        "seconds": made.seconds,
        "batches": list(made.batches),
    }
    if as_json:
        print_json(total)
    else:
        typer.echo(
            f"{total['events']:,} events: {total['bad']:,} refused, {total['duplicates']:,} repeats,"
            f" {made.number:,} batches"
        )
        for name, count in total["rows"].items():
            typer.echo(f"  {name:16} {count:>12,} rows")
        for name, value in total["seconds"].items():
            typer.echo(f"  {value:>9.1f} s  {name}")
        if total["bad"]:
            typer.echo(
                "what was refused stands in the table `quarantine`, with reason and position", err=True
            )
        if not total["events"]:
            typer.echo("the source held no events", err=True)
    raise typer.Exit(5 if total["bad"] else 0)


def _rows(model: dict[str, Any], as_json: bool) -> None:
    if as_json:
        print_json(model)
        return
    for key, value in model.items():
        if isinstance(value, dict):
            for name, count in value.items():
                typer.echo(f"  {name:16} {count:>12,} rows")
        else:
            typer.echo(f"{key}: {value}")
