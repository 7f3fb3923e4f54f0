"""cli._prune: an age, or a node -> what is older, or what it is, goes from the store; shown before it does."""

from __future__ import annotations

import sys
import time
from dataclasses import asdict
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import Progress

from headwater import config
from headwater.cli._ask import JsonOption, StoreOption, open_configured, print_json
from headwater.errors import ConfigError

_KINDS = ("runs", "events", "facets", "rejects")


def run_prune(
    older_than: Annotated[
        str | None, typer.Option("--older-than", metavar="AGE", help="What is older goes: 90d, 12h, 4w.")
    ] = None,
    kind: Annotated[
        list[str] | None,
        typer.Option("--kind", help="Only this: runs, events, facets or rejects; repeatable."),
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only tell what would go.")] = False,
    store: StoreOption = None,
    as_json: JsonOption = False,
) -> None:
    """Let old runs, events, superseded facets and refused events go; the catalogue stays.

    Without --older-than, each kind has the age that the settings `[retention]` give it.

    \b
    Examples:
      headwater store prune --older-than 90d --dry-run
      headwater store prune --older-than 30d --kind rejects
    """
    from headwater.ingest import Retention, age, rows_of

    settings = config.load({"store": store})
    if unknown := [each for each in kind or () if each not in _KINDS]:
        raise ConfigError(f"--kind is {unknown[0]!r}, not one of {', '.join(_KINDS)}")
    now, wanted = time.time_ns() // 1000, set(kind or _KINDS)
    if older_than is None:
        due = Retention(**config.options(settings, "retention")).due(now)
    else:
        span = age(older_than, "--older-than")
        if span is None:
            raise ConfigError("--older-than is empty: write an age, as in 90d")
        due = {now - span: set(_KINDS)}
    total = dict.fromkeys((*_KINDS, "contents"), 0)
    opened = open_configured(settings)
    try:
        with Progress(console=Console(stderr=True), transient=True, disable=not sys.stderr.isatty()) as bar:
            tasks = {name: bar.add_task(name, total=None) for name in _KINDS}
            for before, kinds in due.items():
                if kinds & wanted:
                    done = opened.prune(
                        before,
                        kinds & wanted,
                        rows_of,
                        dry_run=dry_run,
                        progress=lambda phase, at, of: bar.update(tasks[phase], completed=at, total=of),
                    )
                    total = {name: count + asdict(done)[name] for name, count in total.items()}
    finally:
        opened.close()
    if as_json:
        print_json({"dry_run": dry_run, **total})
        return
    told = ", ".join(f"{count:,} {name}" for name, count in total.items() if count)
    typer.echo(f"{'would go' if dry_run else 'gone'}: {told or 'nothing'}")
