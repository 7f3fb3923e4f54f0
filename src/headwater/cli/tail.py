"""cli.tail: headwater tail -> what comes in, as it comes: a line for each event and command."""

from __future__ import annotations

import json
from typing import Annotated, Any

import typer

from headwater.cli._ask import StoreOption, UrlOption, asking
from headwater.errors import ConfigError


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("tail", help=HELP)(run)


HELP = """
Print events and commands as they come in, until interrupted.

\b
Examples:
  headwater tail
  headwater tail --url http://localhost:5000 --state FAIL
  headwater tail --after 0 --limit 20 --json | jq .job

Numbers are those of the raw log: --after 120 goes on after entry 120. Without it, from now on.
"""

_KINDS = ("run", "job", "dataset", "command")
_STATES = ("START", "RUNNING", "COMPLETE", "FAIL", "ABORT", "OTHER")


def run(
    after: Annotated[
        int | None, typer.Option(min=0, metavar="N", help="Go on after this entry of the log.")
    ] = None,
    kind: Annotated[str | None, typer.Option(metavar="KIND", help="run, job, dataset or command.")] = None,
    state: Annotated[
        str | None, typer.Option(metavar="STATE", help="Only events of this type: FAIL.")
    ] = None,
    namespace: Annotated[str | None, typer.Option(metavar="NAME", help="Only about this namespace.")] = None,
    limit: Annotated[int | None, typer.Option(min=1, metavar="N", help="Stop after so many.")] = None,
    store: StoreOption = None,
    url: UrlOption = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON, a line each.")] = False,
) -> None:
    """Follow and print."""
    if kind not in (None, *_KINDS):
        raise ConfigError(f"--kind is one of {', '.join(_KINDS)}, not {kind!r}")
    wanted = state.upper() if state else None
    if wanted not in (None, *_STATES):
        raise ConfigError(f"--state is one of {', '.join(_STATES)}, not {state!r}")
    left = limit
    with asking(store, url) as source:
        for each in source.changes(after, kind=kind, state=wanted, namespace=namespace):
            typer.echo(json.dumps(each, ensure_ascii=False) if as_json else _line(each))
            if left is not None:
                left -= 1
                if left == 0:
                    return


def _line(each: dict[str, Any]) -> str:
    if each["kind"] == "command":
        what = f"{each['command']} {each.get('node') or each.get('run') or ''}"
        return f"{each['number']:>8}  {each['time']}  {'command':9} {what} {each['by']}".rstrip()
    about = (each.get("job") or each.get("dataset") or "").partition(":")[2]
    io = f"  {len(each.get('inputs', ()))} in, {len(each.get('outputs', ()))} out"
    return f"{each['number']:>8}  {each['time']}  {each.get('type', each['kind']):9} {about}{io}"
