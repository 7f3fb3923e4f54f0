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
from headwater.cli._ask import JsonOption, StoreOption, open_existing, print_json, whoami
from headwater.errors import ConfigError

_KINDS = ("runs", "events", "facets", "rejects")
_ALL_EVENTS = {"events", "facets"}
"""With these every raw event of before goes; with `runs` only those of runs that go."""


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
    opened = open_existing(settings)
    try:
        with Progress(console=Console(stderr=True), transient=True, disable=not sys.stderr.isatty()) as bar:
            tasks = {name: bar.add_task(name, total=None) for name in _KINDS}
            counted = 0
            for before, kinds in _latest_events_first(due, wanted):
                done = opened.prune(
                    before,
                    kinds,
                    rows_of,
                    dry_run=dry_run,
                    counted=counted,
                    progress=lambda phase, at, of: bar.update(tasks[phase], completed=at, total=of),
                )
                total = {name: count + asdict(done)[name] for name, count in total.items()}
                counted = max(counted, before if kinds & _ALL_EVENTS else 0)
    finally:
        opened.close()
    if as_json:
        print_json({"dry_run": dry_run, **total})
        return
    told = ", ".join(f"{count:,} {name}" for name, count in total.items() if count)
    typer.echo(f"{'would go' if dry_run else 'gone'}: {told or 'nothing'}")


def _latest_events_first(due: dict[int, set[str]], wanted: set[str]) -> list[tuple[int, set[str]]]:
    """The prunes of several ages, so that an event which two of them take is counted with the first."""
    chosen = [(before, kinds & wanted) for before, kinds in due.items() if kinds & wanted]
    return sorted(chosen, key=lambda each: (not each[1] & _ALL_EVENTS, -each[0]))


def run_forget(
    node: Annotated[
        str, typer.Argument(metavar="NODE", help="A dataset or job as `headwater show` takes it, or run:ID.")
    ],
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only tell what would go.")] = False,
    by: Annotated[str, typer.Option("--by", help="Who does so, for the audit trail.  [default: you]")] = "",
    unnamed: Annotated[
        bool, typer.Option("--unnamed", help="Keep only a digest of its name in the audit trail.")
    ] = False,
    store: StoreOption = None,
    as_json: JsonOption = False,
) -> None:
    """Take a dataset, job or run out of the store for good: tables, log and all that mentions it.

    An event that names it later makes it anew. Other things that the same events told stay.

    \b
    Examples:
      headwater store forget run:3f5e83fa-3480-44ff-99c5-ff943904e5e8
      headwater store forget postgres://db:5432/shop.public.customers --dry-run
    """
    from headwater.event import run_uuid
    from headwater.facts import ref
    from headwater.ingest import rows_of
    from headwater.query.nodes import resolve

    opened = open_existing(config.load({"store": store}))
    try:
        if node.startswith("run:"):
            kind, names = "run", [run_uuid(node.removeprefix("run:"))]
        else:
            with opened.read() as reader:
                found = resolve(reader, node)
                kind = found.kind
                if kind == "dataset":
                    names = [ref(*each[1:]) for each in reader.names_of(found.number)]
                else:
                    row = reader.nodes("job", [found.number])[found.number]
                    names = [ref(row["namespace"], row["name"])]
        with Progress(console=Console(stderr=True), transient=True, disable=not sys.stderr.isatty()) as bar:
            task = bar.add_task("reading the log", total=None)
            done = opened.forget(
                kind,
                names,
                rows_of,
                by=by or whoami(),
                named=not unnamed,
                dry_run=dry_run,
                progress=lambda phase, at, of: bar.update(task, completed=at, total=of),
            )
    finally:
        opened.close()
    shown = [name.replace("\n", "/") for name in names]
    if as_json:
        print_json({"dry_run": dry_run, "kind": kind, "names": shown, **asdict(done)})
        return
    told = f"{kind} {', '.join(shown)}: {done.runs:,} runs, {done.entries:,} entries of the log told anew without it"
    typer.echo(f"{'would go' if dry_run else 'gone'}: {told}")
