"""cli._transfer: a store and a file, or another server's url -> the raw log out, or events in, with a progress bar."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from rich.console import Console
from rich.progress import Progress

from headwater.cli._ask import server_url
from headwater.cli._files import read_events
from headwater.errors import ConfigError, TransportError
from headwater.ingest import Outcome, ingest, read_entry, restore
from headwater.query.nodes import iso
from headwater.store import Store

FORMATS = ("jsonl", "parquet")


def export(store: Store, format: str, file: Path | None) -> int:
    """Write the raw log to a file, or to stdout; how many entries there were."""
    if format not in FORMATS:
        raise ConfigError(f"--format is one of {', '.join(FORMATS)}, not {format!r}")
    if format == "parquet":
        from headwater.exchange.parquet import write_parquet

        if file is None:
            raise ConfigError("Parquet needs a file: give one with --to")
        with _bar("exporting", store.counts()["log"]) as told:
            return write_parquet(store.log(), file, told)
    done = 0
    out = sys.stdout.buffer if file is None else file.open("wb")
    try:
        for _, entry in store.log():
            out.write(entry.raw + b"\n")
            done += 1
        out.flush()
    finally:
        if file is not None:
            out.close()
    return done


def take(store: Store, files: list[str]) -> int:
    """Take in what `export` wrote, in whatever form; how many entries were new."""
    return restore(store, (read_entry(line.strip()) for name in files for line in _lines(name)))


def _lines(name: str) -> Iterator[bytes]:
    if name != "-":
        from headwater.exchange.parquet import is_parquet, read_parquet

        if is_parquet(name):
            return read_parquet(name)
    return read_events(name)


def take_marquez(store: Store, url: str, since: int) -> Outcome:
    """Take in the events of a Marquez server; what is already there changes nothing, so it can be done again."""
    from headwater.exchange.marquez import read_marquez

    whole = Outcome(0, 0, 0)
    reached = since
    with _bar("importing", None) as told:
        try:
            for page in read_marquez(server_url(url), since):
                whole += ingest(store, page.events)
                reached = page.reached
                told(whole.received)
        except TransportError as fault:
            hint = (
                f"; {whole.stored:,} events were taken, go on with --since {iso(reached)}"
                if whole.received
                else ""
            )
            raise TransportError(f"{fault}{hint}", retryable=fault.retryable) from None
    return whole


@contextmanager
def _bar(what: str, total: int | None) -> Iterator[Callable[[int], None]]:
    with Progress(console=Console(stderr=True), transient=True, disable=not sys.stderr.isatty()) as bar:
        task = bar.add_task(what, total=total)
        yield lambda done: bar.update(task, completed=done)
