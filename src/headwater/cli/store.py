"""cli.store: headwater store … -> a store migrated, checked, replayed, copied or shown what it refused."""

from __future__ import annotations

import sys
from contextlib import closing
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import Progress

from headwater import __version__, config
from headwater.cli._ask import JsonOption, StoreOption, open_configured, open_existing, print_json, tell
from headwater.cli._group import group
from headwater.cli._prune import run_forget, run_prune
from headwater.cli._table import counted
from headwater.errors import ConfigError, StoreError
from headwater.naming import scrub
from headwater.query.status import status
from headwater.store import Store, open_store

app = group("Look after the store.")
app.command("prune")(run_prune)
app.command("forget")(run_forget)


def register(parent: typer.Typer) -> None:
    """Add the commands."""
    parent.add_typer(app, name="store")


def _opened(store: str | None) -> Store:
    return open_existing(config.load({"store": store}))


@app.command("status")
def run_status(store: StoreOption = None, as_json: JsonOption = False) -> None:
    """How much the store holds.

    \b
    Examples:
      headwater store status --json
    """
    opened = _opened(store)
    model = {"store": opened.url, **status(opened)}
    opened.close()
    if as_json:
        print_json(model)
    else:
        typer.echo(
            "\n".join(
                f"{key:>10}  {value:,}" if isinstance(value, int) else f"{key:>10}  {value}"
                for key, value in model.items()
            )
        )


@app.command("migrate")
def run_migrate(store: StoreOption = None, as_json: JsonOption = False) -> None:
    """Bring the store to the format of this version; opening it does so too.

    \b
    Examples:
      headwater store migrate --store sqlite:///lineage.db
    """
    settings = config.load({"store": store})
    options = config.options(settings, "store")
    if not settings.store.startswith("memory:"):  # what keeps others from migrating is no hindrance here
        options["migrate_on_open"] = True
    opened = open_store(settings.store, **options)
    opened.close()
    url = scrub(opened.url)
    tell({"store": url, "version": __version__}, f"{url} is at this version's format", as_json)


@app.command("check")
def run_check(store: StoreOption = None, as_json: JsonOption = False) -> None:
    """Look for damage: the database's own check, and every event of the log read again.

    \b
    Examples:
      headwater store check
    """
    opened = _opened(store)
    problems, events = opened.check(), 0
    from headwater.facts.contents import digest_of

    for number, entry in opened.log():
        events += 1
        if digest_of(entry.raw) != entry.digest:
            problems.append(f"log entry {number} is not what it was: its digest differs")
    opened.close()
    told = "\n".join(problems) or f"sound: {counted(events, 'event')} read"
    tell({"events": events, "problems": problems}, told, as_json)
    raise typer.Exit(1 if problems else 0)


@app.command("replay")
def run_replay(store: StoreOption = None, as_json: JsonOption = False) -> None:
    """Make every table anew from the raw log; the log itself is not touched.

    \b
    Examples:
      headwater store replay
    """
    from headwater.ingest import replay

    opened = _opened(store)
    total = opened.counts()["log"]
    with Progress(console=Console(stderr=True), transient=True, disable=not sys.stderr.isatty()) as bar:
        task = bar.add_task("replaying", total=total)
        done = replay(opened, lambda count: bar.update(task, completed=count))
    opened.close()
    tell({"events": done}, f"{counted(done, 'event')} replayed", as_json)


@app.command("rejects")
def run_rejects(
    limit: Annotated[int, typer.Option(min=1, help="At most so many.")] = 20,
    store: StoreOption = None,
    as_json: JsonOption = False,
) -> None:
    """The events that were refused, newest first, with the reason.

    \b
    Examples:
      headwater store rejects --json | jq '.[0].payload'
    """
    opened = _opened(store)
    found = status(opened, rejects=limit)["rejected"]
    opened.close()
    if as_json:
        print_json(found)
        return
    for each in found:
        where = f"{each['path']}: " if each["path"] else ""
        typer.echo(f"{each['last_seen']}  {each['times']}x  {each['size']:,} bytes  {where}{each['reason']}")
        typer.echo(f"    {each['payload'][:160]}")


@app.command("copy")
def run_copy(
    target: Annotated[str, typer.Argument(metavar="URL", help="The store to copy into.")],
    store: StoreOption = None,
    as_json: JsonOption = False,
) -> None:
    """Copy the raw log into another store, which derives everything from it anew.

    What is there already is passed over, so a copy that was interrupted is finished by the same command; at the end
    every entry is looked for in the new store.

    \b
    Examples:
      headwater store copy sqlite:///new.db --store sqlite:///old.db
      headwater store copy postgresql://lineage@db/lineage --store sqlite:///old.db
    """
    from headwater.ingest import missing, restore

    settings = config.load({"store": store})
    if settings.store == target:
        raise ConfigError("a store cannot be copied into itself")
    with closing(open_existing(settings)) as source, closing(open_store(target)) as into:
        total = source.counts()["log"]
        with Progress(console=Console(stderr=True), transient=True, disable=not sys.stderr.isatty()) as bar:
            task = bar.add_task("copying", total=total)
            new = restore(
                into, (entry for _, entry in source.log()), lambda count: bar.update(task, completed=count)
            )
            task = bar.add_task("checking", total=total)
            lacking = missing(into, source, lambda count: bar.update(task, completed=count))
        if lacking:
            raise StoreError(f"{lacking:,} entries did not arrive in {into.url}: copy again")
        tell(
            {"events": total, "new": new, "to": scrub(into.url)},
            f"{counted(total, 'event')}, {new:,} of them new to {scrub(into.url)}; every one is there",
            as_json,
        )


@app.command("backup")
def run_backup(
    file: Annotated[Path, typer.Argument(help="The file to write.")],
    store: StoreOption = None,
    as_json: JsonOption = False,
) -> None:
    """Copy the store into one file, whole and consistent, while it is in use.

    \b
    Examples:
      headwater store backup lineage-2026-01-31.db
    """
    if file.exists():
        raise ConfigError(f"{file} exists already: choose another name")
    opened = _opened(store)
    try:
        opened.backup(file)
    except OSError as fault:
        raise StoreError(f"{file} cannot be written: {fault.strerror}") from fault
    finally:
        opened.close()
    back = (
        f"pg_restore -d DATABASE {file}"
        if opened.url.startswith("postgresql")
        else f"--store sqlite:///{file}"
    )
    tell(
        {"store": scrub(opened.url), "file": str(file), "bytes": file.stat().st_size, "open": back},
        f"{scrub(opened.url)} is backed up in {file}; open it with {back}",
        as_json,
    )


@app.command("export")
def run_export(
    format: Annotated[str, typer.Option(metavar="jsonl|parquet", help="JSON lines, or Parquet.")] = "jsonl",
    to: Annotated[Path | None, typer.Option(metavar="FILE", help="The file to write; else stdout.")] = None,
    store: StoreOption = None,
    as_json: JsonOption = False,
) -> None:
    """Write the raw log: every event and command, as it came. Parquet has columns to filter by besides.

    \b
    Examples:
      headwater store export | zstd > events.jsonl.zst
      headwater store export --format parquet --to events.parquet
    """
    from headwater.cli._transfer import export

    if as_json and to is None:
        raise ConfigError("what is told with --json would stand among the events: give a file with --to")
    opened = _opened(store)
    try:
        done = export(opened, format, to)
    finally:
        opened.close()
    if to is not None:
        tell({"entries": done, "to": str(to)}, f"{counted(done, 'entry', 'entries')} in {to}", as_json)


@app.command("import")
def run_import(
    files: Annotated[
        list[str] | None, typer.Argument(metavar="FILE…", help="What `store export` wrote; - is stdin.")
    ] = None,
    marquez: Annotated[
        str | None, typer.Option(metavar="URL", help="Take the events of this Marquez server instead.")
    ] = None,
    since: Annotated[
        str | None, typer.Option(metavar="TIME", help="With --marquez: events from then on.")
    ] = None,
    store: StoreOption = None,
    as_json: JsonOption = False,
) -> None:
    """Take back what `export` wrote, JSON lines or Parquet; or the events of a Marquez server.

    What is already there changes nothing: an import that was interrupted is done again.

    \b
    Examples:
      headwater store import events.jsonl.zst --store sqlite:///new.db
      headwater store import --marquez http://marquez:5000 --since -30d
    """
    from headwater.cli._transfer import take, take_marquez
    from headwater.query.nodes import moment

    if bool(files) == bool(marquez):
        raise ConfigError("give files, or --marquez URL")
    if urls := [each for each in files or () if each.startswith(("http://", "https://"))]:
        raise ConfigError(f"{scrub(urls[0])} is no file: a server's events are taken with --marquez URL")
    opened = open_configured(config.load({"store": store}))
    try:
        if marquez:
            outcome = take_marquez(opened, marquez, moment(since) if since else 0)
            refused = f", {len(outcome.rejected):,} refused" if outcome.rejected else ""
            tell(
                {"new": outcome.stored, "duplicates": outcome.duplicates, "rejected": len(outcome.rejected)},
                f"{counted(outcome.stored, 'new event')}, {outcome.duplicates:,} already there{refused}",
                as_json,
            )
            raise typer.Exit(5 if outcome.rejected else 0)
        new = take(opened, files or [])
        tell({"new": new}, f"{counted(new, 'new entry', 'new entries')}", as_json)
    finally:
        opened.close()
