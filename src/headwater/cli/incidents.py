"""cli.incidents: headwater incidents … -> what is wrong, who is to blame, what is hit, and what people decide about it."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from headwater import config
from headwater.cli._ask import (
    JsonOption,
    StoreOption,
    UrlOption,
    as_wrong_use,
    asking,
    open_configured,
    print_json,
    tell,
)
from headwater.cli._group import group, pass_on
from headwater.cli._table import print_table
from headwater.errors import ConfigError

app = group("See what is wrong, and decide about it.", invoke_without_command=True, no_args_is_help=False)

Number = Annotated[int, typer.Argument(metavar="ID", min=0, help="The incident's id, as `list` shows it.")]
NoteOption = Annotated[str, typer.Option("--note", help="A note for others.")]
_STATUSES = ("active", "open", "acknowledged", "resolved", "muted", "all")
_KINDS = ("test", "run", "schema", "volume", "freshness")


def register(parent: typer.Typer) -> None:
    """Add the commands."""
    parent.add_typer(app, name="incidents", help=HELP)


HELP = """
List what is wrong, the newest failure first; the commands below tell of one incident, and decide about it.

\b
Examples:
  headwater incidents
  headwater incidents --status all --days 30 --json
  headwater incidents show 408434191459434
"""


@app.callback(invoke_without_command=True)
@app.command("list")
def run_list(
    context: typer.Context,
    status: Annotated[str, typer.Option(metavar="STATUS", help=f"One of {', '.join(_STATUSES)}.")] = "active",
    kind: Annotated[
        str | None, typer.Option(metavar="KIND", help="test, run, schema, volume or freshness.")
    ] = None,
    since: Annotated[
        str | None, typer.Option(metavar="TIME", help="Failed since: 2026-01-31, or -24h.")
    ] = None,
    days: Annotated[int, typer.Option(min=1, max=3650, help="How far back what is over is told.")] = 7,
    limit: Annotated[int, typer.Option(min=1, max=1000, help="At most so many.")] = 100,
    store: StoreOption = None,
    url: UrlOption = None,
    as_json: JsonOption = False,
) -> None:
    """The incidents there are, newest failure first.

    \b
    Examples:
      headwater incidents list
      headwater incidents list --status all --days 30 --json
    """
    if context.invoked_subcommand is not None:
        pass_on(context)
        return
    if status not in _STATUSES:
        raise ConfigError(f"--status is {status!r}, not one of {', '.join(_STATUSES)}")
    if kind is not None and kind not in _KINDS:
        raise ConfigError(f"--kind is {kind!r}, not one of {', '.join(_KINDS)}")
    with asking(store, url) as source:
        found = source.incidents(status=status, kind=kind, since=since, days=days, limit=limit)
    if as_json:
        print_json(found)
        return
    rows = []
    for each in found["incidents"]:
        what = f"{each['test']}({each['column']})" if each["column"] else each["test"]
        about = each.get("dataset") or each.get("job") or ""
        orphan = " (nobody writes it)" if each.get("orphan") else ""
        rows.append(
            (each["id"], each["status"], each["lastFailedAt"], f"{each['kind']} {what}", about + orphan)
        )
    print_table(("id", "status", "last failed", "what", "on"), rows)
    typer.echo(f"{len(found['incidents'])} of {found['total']}", err=True)


@app.command("show")
def run_show(
    number: Number, store: StoreOption = None, url: UrlOption = None, as_json: JsonOption = False
) -> None:
    """One incident: who is to blame, who else is suspect, what is hit.

    \b
    Examples:
      headwater incidents show 408434191459434
    """
    with asking(store, url) as source:
        _show(source.incident(number), as_json)


@app.command("ack")
def run_ack(
    number: Number,
    note: NoteOption = "",
    store: StoreOption = None,
    url: UrlOption = None,
    as_json: JsonOption = False,
) -> None:
    """Say that somebody looks after it.

    \b
    Examples:
      headwater incidents ack 408434191459434 --note 'mine'
    """
    _decide(store, url, number, as_json, status="acknowledged", note=note)


@app.command("resolve")
def run_resolve(
    number: Number,
    reason: Annotated[str, typer.Option(help="Why it is over.")] = "manual",
    note: NoteOption = "",
    store: StoreOption = None,
    url: UrlOption = None,
    as_json: JsonOption = False,
) -> None:
    """Say that it is over; a failure after that is a new incident.

    \b
    Examples:
      headwater incidents resolve 408434191459434 --reason fixed
    """
    _decide(store, url, number, as_json, status="resolved", reason=reason, note=note)


@app.command("mute")
def run_mute(
    number: Number,
    reason: Annotated[str, typer.Option(help="Why nobody needs to hear of it.")],
    days: Annotated[int, typer.Option(min=1, max=365, help="For how many days.")] = 30,
    note: NoteOption = "",
    store: StoreOption = None,
    url: UrlOption = None,
    as_json: JsonOption = False,
) -> None:
    """Hear nothing of it for some days; then it is open again.

    \b
    Examples:
      headwater incidents mute 408434191459434 --reason expected --days 7
    """
    _decide(store, url, number, as_json, status="muted", reason=reason, note=note, days=days)


@app.command("reopen")
def run_reopen(
    number: Number,
    note: NoteOption = "",
    store: StoreOption = None,
    url: UrlOption = None,
    as_json: JsonOption = False,
) -> None:
    """Say that it is not over, or not to be muted.

    \b
    Examples:
      headwater incidents reopen 408434191459434
    """
    _decide(store, url, number, as_json, status="open", note=note)


@app.command("note")
def run_note(
    number: Number,
    text: Annotated[str, typer.Argument(help="What others should know.")],
    store: StoreOption = None,
    url: UrlOption = None,
    as_json: JsonOption = False,
) -> None:
    """Leave a note on it.

    \b
    Examples:
      headwater incidents note 408434191459434 'the source was down until noon'
    """
    _decide(store, url, number, as_json, note=text)


@app.command("watch")
def run_watch(
    pattern: Annotated[str, typer.Argument(help="NAMESPACE/NAME of datasets; `*` stands for anything.")],
    measure: Annotated[
        str, typer.Option(metavar="volume|freshness", help="What is held against its history.")
    ],
    off: Annotated[bool, typer.Option("--off", help="Stop watching.")] = False,
    sensitivity: Annotated[float, typer.Option(help="How many robust deviations are too many.")] = 6.0,
    history: Annotated[int, typer.Option(help="How many runs make the history.")] = 20,
    store: StoreOption = None,
    as_json: JsonOption = False,
) -> None:
    """Hold row counts or freshness of datasets against their own history; nothing is watched by itself.

    \b
    Examples:
      headwater incidents watch 'postgres://db:5432/shop.*' --measure volume
      headwater incidents watch 's3://lake/gold/*' --measure freshness --off
    """
    from headwater.facts.commands import Watch
    from headwater.ingest import command
    from headwater.query.incidents import clock

    opened = open_configured(config.load({"store": store}))
    try:
        said = Watch(
            at=clock(),
            pattern=pattern,
            measure=measure,
            live=not off,
            sensitivity=sensitivity,
            history=history,
        )
        with as_wrong_use():
            command(opened, said)
    finally:
        opened.close()
    tell(
        {"pattern": pattern, "measure": measure, "watched": not off},
        f"{'no longer watched' if off else 'watched'}: {measure} of {pattern}",
        as_json,
    )


def _decide(store: str | None, url: str | None, number: int, as_json: bool, **said: Any) -> None:
    with asking(store, url) as source:
        _show(source.decide(number, **said), as_json)


def _show(found: dict[str, Any], as_json: bool) -> None:
    if as_json:
        print_json(found)
        return
    what = f"{found['test']}({found['column']})" if found["column"] else found["test"]
    about = found.get("dataset") or found.get("job")
    typer.echo(f"{found['id']}  {found['status']}  {found['kind']} {what} on {about}")
    if found.get("message"):
        typer.echo(f"  {found['message']}")
    typer.echo(
        f"  since {found['openedAt']}, {found['failures']} failures, the last at {found['lastFailedAt']}"
    )
    blamed = found.get("blamed")
    if blamed:
        typer.echo(f"  blamed   {blamed['job']} run {blamed['runId']} ended {blamed['endedAt']}")
    elif found.get("orphan"):
        typer.echo("  nobody is known to write it: `headwater aliases add` joins names")
    for each in found.get("suspects", [])[:5]:
        typer.echo(f"  suspect  {each['score']:>6}  {each['job']}: {'; '.join(each['reasons'])}")
    for each in found.get("impact", {}).get("datasets", [])[:10]:
        typer.echo(f"  hits     {each['id']} ({each['distance']} steps)")
    for each in found.get("history", []):
        told = " ".join(part for part in (each["status"], each["reason"], each["note"]) if part)
        typer.echo(f"  {each['at']}  {each['by'] or 'somebody'}: {told}")
