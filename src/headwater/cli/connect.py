"""cli.connect: headwater connect watch, once, explain -> the lineage of Kafka Connect, told or only shown."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from headwater import config
from headwater.cli._ask import JsonOption, print_json
from headwater.cli._group import group
from headwater.errors import NotFound, NotInstalled, TransportError

if TYPE_CHECKING:
    from headwater.capture.connect.lineage import Lineage, Told
    from headwater.connect._watching import Look, Watcher

app = group("Watch Kafka Connect from outside, and tell which columns its connectors move.")

ConfigOption = Annotated[
    Path, typer.Option("--config", metavar="FILE", help="The clusters, as docs/connect.md describes.")
]
TransportOption = Annotated[
    str | None, typer.Option("--transport", metavar="URL", help="Where events go; else as the settings say.")
]


def register(parent: typer.Typer) -> None:
    """Add the commands."""
    parent.add_typer(app, name="connect")


@app.command("watch")
def run_watch(config_file: ConfigOption = Path("connect.toml"), transport: TransportOption = None) -> None:
    """Watch clusters until interrupted; what happens to connectors is told as lineage.

    \b
    Examples:
      headwater connect watch
      headwater connect watch --config prod.toml --transport http://localhost:5000
    """
    from headwater.connect._watching import watch
    from headwater.emitter import Emitter

    settings = config.load()
    emitter = Emitter(transport, settings)
    watchers = _watchers(config_file, settings, emitter.emit_many, transport=transport)
    stop = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stop.set())
    names = ", ".join(each.cluster.name for each in watchers)
    typer.echo(f"watching {names}; stop with Ctrl-C", err=True)
    try:
        watch(watchers, stop)
    finally:
        emitter.close()


@app.command("once")
def run_once(
    config_file: ConfigOption = Path("connect.toml"),
    transport: TransportOption = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only show what would be told, and why not more.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Look once at every cluster: tell what happened since the last look, or only show it.

    Exit code 4 where a cluster did not answer.

    \b
    Examples:
      headwater connect once --dry-run
      headwater connect once --config prod.toml --dry-run --json
    """
    from headwater.emitter import Emitter

    settings = config.load()
    emitter = None if dry_run else Emitter(transport, settings)
    emit = emitter.emit_many if emitter else _drop
    watchers = _watchers(config_file, settings, emit, keep=not dry_run, transport=transport)
    shown: list[dict[str, Any]] = []
    faults: list[TransportError] = []
    for watcher in watchers:
        try:
            look = watcher.look(time.time(), whole=True)
        except TransportError as fault:
            faults.append(fault)
            typer.echo(f"cluster {watcher.cluster.name}: {fault}", err=True)
            continue
        events = watcher.round(time.time()) if emitter else []
        shown.append(
            {"cluster": watcher.cluster.name, "connectors": _connectors(look), "events": len(events)}
        )
        if not as_json:
            typer.echo(f"cluster {watcher.cluster.name}: {len(look.snapshot.connectors)} connectors")
            for line in _lines(look):
                typer.echo(line)
        watcher.close()
    if emitter is not None:
        emitter.close()
    if as_json:
        print_json(shown)
    if faults:
        raise typer.Exit(faults[0].exit_code)


@app.command("explain")
def run_explain(
    connector: Annotated[str, typer.Argument(help="The connector's name.")],
    config_file: ConfigOption = Path("connect.toml"),
    cluster: Annotated[str | None, typer.Option(help="The cluster; else every one is searched.")] = None,
    as_json: JsonOption = False,
) -> None:
    """Show what is known of one connector, column by column, and why not more. Nothing is told.

    Exit code 3 where no cluster has it.

    \b
    Examples:
      headwater connect explain orders-sink
      headwater connect explain orders-sink --cluster prod --json
    """
    settings = config.load()
    for watcher in _watchers(config_file, settings, _drop, keep=False):
        if cluster is not None and watcher.cluster.name != cluster:
            continue
        look = watcher.look(time.time(), whole=True)
        watcher.close()
        if connector in look.snapshot.connectors:
            if as_json:
                print_json(_connectors(look)[connector])
                return
            for line in _lines(look, connector):
                typer.echo(line)
            return
    raise NotFound(f"no cluster has a connector {connector!r}")


def _watchers(
    file: Path, settings: config.Settings, emit: Any, *, keep: bool = True, transport: str | None = None
) -> list[Watcher]:
    from headwater import connect
    from headwater.transport._host import FALLBACK

    try:
        import regex  # noqa: F401 - better now than in the middle of a round

        from headwater.connect import _watching
    except ImportError as fault:
        raise NotInstalled("headwater connect", "connect") from fault
    destination = (transport or settings.transport or FALLBACK) if keep else ""
    return _watching.open_watchers(connect.load(file), settings, emit, keep=keep, destination=destination)


def _drop(events: list[dict[str, Any]]) -> None:
    """Nothing is sent."""


def _connectors(look: Look) -> dict[str, dict[str, Any]]:
    return {
        name: {
            "class": each.kind,
            "type": each.type,
            "state": each.state,
            "tasks": [task.state for task in each.tasks],
            "inputs": [_plain(told) for told in look.lineages[name].inputs],
            "outputs": [_plain(told) for told in look.lineages[name].outputs],
            "unresolved": list(look.lineages[name].why),
        }
        for name, each in sorted(look.snapshot.connectors.items())
    }


def _plain(told: Told) -> dict[str, Any]:
    return {
        "namespace": told.dataset.namespace,
        "name": told.dataset.name,
        "fields": [each.name for each in told.fields],
        "from": [str(each) for each in told.sources],
        "columns": {
            name: [
                {"dataset": str(o.dataset), "field": ".".join(o.path), "ways": list(o.ways)} for o in origins
            ]
            for name, origins in told.columns
        },
    }


def _lines(look: Look, only: str | None = None) -> Iterator[str]:
    for name, each in sorted(look.snapshot.connectors.items()):
        if only is not None and name != only:
            continue
        tasks = ", ".join(task.state for task in each.tasks) or "no tasks"
        yield f"{name}  {each.state} ({tasks})  {each.kind}"
        yield from _edges(look.lineages[name], columns=only is not None)


def _edges(found: Lineage, *, columns: bool) -> Iterator[str]:
    for told in found.outputs:
        for source in told.sources or ("nothing that is known",):
            yield f"  {source} -> {told.dataset}"
        if columns:
            for column, origins in told.columns:
                yield f"    {column} <- " + ", ".join(
                    " ".join([f"{o.dataset.name}: {'.'.join(o.path)}", *o.ways]) for o in origins
                )
    fed = {source for told in found.outputs for source in told.sources}
    for told in found.inputs:
        if told.dataset.identity not in fed:
            yield f"  {told.dataset} -> nothing that is known"
    for reason in found.why:
        yield f"  why: {reason}"
