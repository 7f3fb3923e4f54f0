"""cli.audit: headwater audit -> who changed what by hand: tags, descriptions, aliases, deletions, keys."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from headwater.cli._ask import JsonOption, StoreOption, UrlOption, asking, print_json


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("audit", help=HELP)(run)


HELP = """
Who changed what by hand, newest first: tags, descriptions, aliases, deletions, keys.

\b
Examples:
  headwater audit --since -7d
  headwater audit --by airflow --json
"""


def run(
    since: Annotated[
        str | None, typer.Option("--since", metavar="TIME", help="From this time on: 2026-01-31, or -7d.")
    ] = None,
    by: Annotated[str | None, typer.Option("--by", metavar="WHO", help="Only what this caller did.")] = None,
    limit: Annotated[int, typer.Option("--limit", min=1, max=1000, help="How many at most.")] = 100,
    store: StoreOption = None,
    url: UrlOption = None,
    as_json: JsonOption = False,
) -> None:
    """Ask and tell."""
    with asking(store, url) as source:
        found = source.audit(since=since, by=by, limit=limit)
    if as_json:
        print_json(found)
        return
    for each in found:
        detail = json.dumps(each["detail"], ensure_ascii=False)
        typer.echo(f"{each['at']}  {each['by'] or 'unknown'}  {each['what']}  {detail}")
