"""cli.search: headwater search TEXT -> the datasets and jobs whose names hold it."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from headwater.cli._ask import JsonOption, StoreOption, UrlOption, asking, print_json
from headwater.errors import ConfigError, NotFound


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("search", help=HELP)(run)


HELP = """
Find datasets and jobs by a part of their name.

\b
Examples:
  headwater search orders
  headwater search orders --type dataset --json
"""


def run(
    text: Annotated[str, typer.Argument(help="A part of a name or namespace.")],
    type: Annotated[str | None, typer.Option(metavar="dataset|job", help="Only these.")] = None,
    limit: Annotated[int, typer.Option(min=1, max=1000, help="At most so many.")] = 25,
    store: StoreOption = None,
    url: UrlOption = None,
    as_json: JsonOption = False,
) -> None:
    """Ask and print."""
    if type not in (None, "dataset", "job"):
        raise ConfigError(f"--type is dataset or job, not {type!r}")
    with asking(store, url) as source:
        found = source.search(text, type=type, limit=limit)
    if as_json:
        print_json(found)
    elif not found:
        raise NotFound(f"nothing has {text!r} in its name")
    else:
        table = Table(box=None, pad_edge=False)
        for title in ("type", "node", "last seen"):
            table.add_column(title, overflow="fold")
        for row in found:
            table.add_row(row["type"].lower(), f"{row['namespace']}/{row['name']}", row["lastSeen"] or "")
        Console().print(table)
