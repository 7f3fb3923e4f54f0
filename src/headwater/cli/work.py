"""cli.work: headwater work -> what must happen by itself, done here: once, or until interrupted."""

from __future__ import annotations

import signal
import threading
from typing import Annotated, Any

import typer

from headwater import config
from headwater.cli._ask import JsonOption, StoreOption, open_configured, tell


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("work", help=HELP)(work)


HELP = """
Do what must happen by itself: tell hooks of incidents, deliver what waits, let go what is no longer kept.

A server does this too, unless the setting `serve.work` is off; of all of them, one at a time does.

\b
Examples:
  headwater work --once
  headwater work --store sqlite:///lineage.db
"""


def work(
    once: Annotated[bool, typer.Option("--once", help="Do all of it once, then end.")] = False,
    store: StoreOption = None,
    as_json: JsonOption = False,
) -> None:
    """Work in the foreground."""
    from headwater.deliver.datahub.settings import delivering
    from headwater.ingest import Retention
    from headwater.work import Worker, jobs

    settings = config.load({"store": store})
    retention = Retention(**config.options(settings, "retention"))
    opened = open_configured(settings)
    try:
        worker = Worker(opened, jobs(retention, delivering(settings)))
        if once:
            done = worker.once(every=True)
            if done is not None:
                worker.release()
            told = "another worker is at it" if done is None else _told(done)
            tell({"held": done is not None, "done": done or {}}, told, as_json)
            return
        ended = threading.Event()
        before = signal.signal(signal.SIGTERM, lambda *_: ended.set())
        worker.start()
        typer.echo(f"working as {worker.holder} (Ctrl-C stops it)", err=True)
        try:
            ended.wait()
        finally:
            signal.signal(signal.SIGTERM, before)
            worker.close()
    finally:
        opened.close()


def _told(done: dict[str, Any]) -> str:
    return ", ".join(f"{name}: {count}" for name, count in done.items())
