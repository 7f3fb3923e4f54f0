"""cli.spool: headwater spool … -> what waits for delivery shown, delivered, given another try or deleted."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Annotated, Any

import msgspec
import typer
from rich.console import Console
from rich.progress import Progress

from headwater import config
from headwater.cli._ask import JsonOption, print_json
from headwater.cli._group import group
from headwater.errors import ConfigError, NotInstalled
from headwater.guard import guard
from headwater.transport.spool import backlog, dead, detached
from headwater.transport.spool.drainer import RESTED, Drainer, State, locked
from headwater.transport.spool.place import Place, places
from headwater.transport.spool.report import in_words, report

app = group("Look after events that wait for delivery.")

MEASURED = 5.0  # seconds between two writings of the metrics

DirOption = Annotated[
    Path | None,
    typer.Option(
        "--dir", metavar="D", help="The spool, or the folder of one destination in it. [the setting `spool`]"
    ),
]


def register(parent: typer.Typer) -> None:
    """Add the commands."""
    parent.add_typer(app, name="spool")


def _places(folder: Path | None) -> list[Place]:
    if folder is None:
        folder = config.load().spool
        if not folder.exists():  # nothing was ever spooled
            return []
    return places(folder.expanduser())


@contextmanager
def _bar(what: str, total: int | None) -> Iterator[Any]:
    with Progress(console=Console(stderr=True), transient=True, disable=not sys.stderr.isatty()) as bar:
        task = bar.add_task(what, total=total)
        yield lambda count: bar.advance(task, count)


@app.command("status")
def run_status(folder: DirOption = None, as_json: JsonOption = False) -> None:
    """What waits, what is dead and whether a drainer is at work, for each destination.

    \b
    Examples:
      headwater spool status
      headwater spool status --dir /var/spool/headwater --json
    """
    found = _places(folder)
    with _bar("counting", sum(backlog.total_bytes(place) for place in found)) as advance:
        model = [report(place, advance) for place in found]
    if as_json:
        print_json(model)
        return
    typer.echo("\n".join(map(in_words, model)) or "nothing was spooled here")


@app.command("show")
def run_show(
    folder: DirOption = None,
    dead_only: Annotated[bool, typer.Option("--dead", help="The dead letters, with their reasons.")] = False,
    limit: Annotated[int | None, typer.Option(min=1, help="At most so many.")] = None,
    as_json: JsonOption = False,
) -> None:
    """The events that wait, one a line, oldest first; nothing is changed.

    \b
    Examples:
      headwater spool show --limit 5
      headwater spool show --dead --json
    """
    rows = islice(_rows(_places(folder), dead_only), limit)
    out = sys.stdout.buffer
    if as_json:
        out.write(b"[" + b",\n".join(map(msgspec.json.encode, rows)) + b"]\n")
    else:
        for row in rows:
            why = f"{row['reason']}: ".encode() if dead_only else b""
            out.write(why + bytes(row["event"]) + b"\n")
    out.flush()


def _rows(found: list[Place], dead_only: bool) -> Iterator[dict[str, Any]]:
    for place in found:
        to = {"destination": place.shown()}
        if dead_only:
            for letter in dead.letters(place):
                yield {**to, "at": letter.at, "reason": letter.reason, "event": msgspec.Raw(letter.event)}
        else:
            for event in backlog.waiting_events(place):
                yield {**to, "event": msgspec.Raw(event)}


@app.command("drain")
def run_drain(
    folder: DirOption = None,
    follow: Annotated[bool, typer.Option("--follow", help="Go on for ever, as a service does.")] = False,
    linger: Annotated[
        float | None, typer.Option(metavar="S", help="Wait so many seconds for more when nothing is left.")
    ] = None,
    metrics: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write the state of the spool there, as Prometheus reads it."),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Deliver what waits. One process drains a destination at a time; a second one leaves it alone.

    \b
    Examples:
      headwater spool drain
      headwater spool drain --dir /var/spool/headwater --follow
      headwater spool drain --follow --metrics /var/lib/node_exporter/headwater.prom
    """
    measure = _measuring(folder, metrics)
    measure()  # a file that cannot be written is told now
    if follow:
        _follow(folder, measure)
    found = _places(folder)
    states: dict[Place, State | None] = {}
    watched = sys.stderr.isatty()  # counting reads all that waits
    total = sum(1 for place in found for _ in backlog.waiting_events(place)) if watched else None
    with _bar("delivering", total) as advance:

        def work(place: Place) -> None:
            patience = 10.0 if linger is None else detached.PATIENCE
            with locked(place, 0.0 if linger is None else 2.0) as mine:
                drainer = Drainer(place, patience=patience, progress=advance) if mine else None
                states[place] = drainer.run(linger=linger or 0.0) if drainer else None

        _each(found, work)
    measure()
    if as_json:
        print_json([_outcome(place, state) for place, state in states.items()])
    elif linger is None:
        _say(states)
    raise typer.Exit(4 if any(state and state.doing == "stopped" for state in states.values()) else 0)


def _measuring(folder: Path | None, file: Path | None) -> Callable[[], None]:
    """What writes the metrics; nothing where none are asked for."""
    if file is None:
        return lambda: None
    try:
        from headwater.transport.spool.metrics import SpoolCollector, write_metrics
    except ModuleNotFoundError as fault:
        raise NotInstalled("--metrics", "metrics") from fault
    collector = SpoolCollector((folder or config.load().spool).expanduser())

    def write() -> None:
        try:
            write_metrics(file, collector)
        except OSError as fault:
            raise ConfigError(f"--metrics: {file} cannot be written: {fault.strerror or fault}") from None

    return write


def _each(found: list[Place], work: Any) -> None:
    """One thread for each destination: one that hangs must not hold up the others."""
    threads = [threading.Thread(target=work, args=(place,), daemon=True) for place in found]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def _outcome(place: Place, state: State | None) -> dict[str, Any]:
    to = {"destination": place.shown(), "folder": str(place.folder)}
    if state is None:
        return {**to, "doing": "another drainer is at work", "delivered": 0, "dead": 0, "fault": None}
    return {
        **to,
        "doing": state.doing,
        "delivered": state.delivered,
        "dead": state.dead,
        "fault": state.fault,
    }


def _say(states: dict[Place, State | None]) -> None:
    for place, state in states.items():
        if state is None:
            typer.echo(f"{place.shown()}: another drainer is at work")
        else:
            typer.echo(f"{place.shown()}: {state.delivered:,} delivered, {state.dead:,} to the dead letters")
            if state.doing == "stopped":
                typer.echo(f"{place.shown()}: stopped, the rest waits: {state.fault}", err=True)
    if not states:
        typer.echo("nothing was spooled here")


def _follow(folder: Path | None, measure: Callable[[], None]) -> None:
    """Drain every destination there is, and each that comes; one that stops by a fault is tried again later."""
    threads: dict[Place, threading.Thread] = {}
    measured = 0.0

    def work(place: Place) -> None:
        while (place / "target").exists():
            with locked(place) as mine:
                state = Drainer(place, patience=float("inf")).run(follow=True) if mine else None
            if state is not None:
                typer.echo(f"{place.shown()}: stopped, tried again in {RESTED:g} s: {state.fault}", err=True)
            time.sleep(RESTED if state else 1.0)

    while True:
        for place in _places(folder):
            if place not in threads or not threads[place].is_alive():
                threads[place] = threading.Thread(target=work, args=(place,), daemon=True)
                threads[place].start()
        if time.monotonic() - measured > MEASURED:
            measured = time.monotonic()
            with guard("writing the metrics"):  # a full disk, say, which must not end the service
                measure()
        time.sleep(1.0)


@app.command("replay")
def run_replay(folder: DirOption = None, as_json: JsonOption = False) -> None:
    """Put the dead letters back among the events that wait, once their cause is mended.

    \b
    Examples:
      headwater spool replay && headwater spool drain
    """
    found = _places(folder)
    with _bar("replaying", len(found)) as advance:
        counts = {place: (dead.replay(place), advance(1))[0] for place in found}
    _counted(counts, "dead letters wait again", as_json)


@app.command("move")
def run_move(
    source: Annotated[Path, typer.Argument(metavar="FROM", help="The folder of a destination.")],
    target: Annotated[Path, typer.Argument(metavar="TO", help="The folder of another.")],
    as_json: JsonOption = False,
) -> None:
    """Let what waits for one destination wait for another: after a key was changed, or a server has moved.

    Each key has a folder of its own, so that nothing is sent with a key that it was not emitted with, unless you say so.

    \b
    Examples:
      headwater spool status                         # which folders there are
      headwater spool move SPOOL/lineage-5000-8c1f SPOOL/lineage-5000-02ab && headwater spool drain
    """
    (old, new) = (_folder(each) for each in (source, target))
    if old == new:
        raise ConfigError("FROM and TO are the same folder")
    with locked(old, 2.0) as mine:
        if not mine:
            raise ConfigError(
                f"{old.folder}: a drainer is at work there: stop it, or wait until it has ended"
            )
        count = backlog.move(old, new)
    _counted({new: count}, "more events wait here", as_json)


def _folder(path: Path) -> Place:
    if not (path / "target").exists():
        raise ConfigError(f"{path} is no folder of a destination: see `headwater spool status --json`")
    return Place(path.absolute())


@app.command("purge")
def run_purge(
    folder: DirOption = None,
    everything: Annotated[bool, typer.Option("--all", help="Delete what waits for delivery, too.")] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Delete the dead letters.

    \b
    Examples:
      headwater spool purge --yes
      headwater spool purge --dir /tmp/spool --all
    """
    found = _places(folder)
    what = "dead letters and events that wait" if everything else "dead letters"
    if not yes:
        typer.confirm(f"Delete all {what} of {len(found)} destinations?", abort=True, err=True)
    counts = {}
    with _bar("purging", len(found)) as advance:
        for place in found:
            counts[place] = dead.purge(place) + (backlog.purge(place) if everything else 0)
            advance(1)
    _counted(counts, f"{what} deleted", as_json)


def _counted(counts: dict[Place, int], what: str, as_json: bool) -> None:
    if as_json:
        print_json([{"destination": place.shown(), "events": count} for place, count in counts.items()])
    else:
        typer.echo(
            "\n".join(f"{place.shown()}: {n:,} {what}" for place, n in counts.items())
            or "nothing was spooled here"
        )
