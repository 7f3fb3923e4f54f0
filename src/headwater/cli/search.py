"""cli.search: headwater search TEXT -> the datasets and jobs that have it, the closest first, and where."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from headwater.cli._ask import JsonOption, StoreOption, UrlOption, asking, print_json
from headwater.errors import ConfigError, NotFound


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("search", help=HELP)(run)


HELP = """
Find datasets and jobs by words of their names, columns, SQL, descriptions, tags or owners.

\b
Examples:
  headwater search orders
  headwater search orders --type dataset --json
  headwater search 'customer ema' --tag pii --owner team-data
"""


def run(
    text: Annotated[str, typer.Argument(help="Words, or the beginnings of words.")],
    type: Annotated[str | None, typer.Option(metavar="dataset|job", help="Only these.")] = None,
    namespace: Annotated[str | None, typer.Option(metavar="NAME", help="Only in this namespace.")] = None,
    tag: Annotated[str | None, typer.Option(metavar="TAG", help="Only with this tag.")] = None,
    owner: Annotated[str | None, typer.Option(metavar="NAME", help="Only of this owner.")] = None,
    limit: Annotated[int, typer.Option(min=1, max=1000, help="At most so many.")] = 25,
    store: StoreOption = None,
    url: UrlOption = None,
    as_json: JsonOption = False,
) -> None:
    """Ask and print."""
    if type not in (None, "dataset", "job"):
        raise ConfigError(f"--type is dataset or job, not {type!r}")
    with asking(store, url) as source:
        found = source.search(text, type=type, namespace=namespace, tag=tag, owner=owner, limit=limit)
    if as_json:
        print_json(found)
    elif not found:
        raise NotFound(f"nothing has {text!r}")
    else:
        table = Table(box=None, pad_edge=False)
        for title in ("type", "node", "last seen", "found in"):
            table.add_column(title, overflow="fold")
        for row in found:
            where = next((each for each in row["matches"] if each["in"] != "name"), None)
            table.add_row(
                row["type"].lower(),
                escape(f"{row['namespace']}/{row['name']}"),
                row["lastSeen"] or "",
                escape(f"{where['in']}: {' '.join(where['text'].split())}")
                if where and row["match"] == "text"
                else "",
            )
        Console().print(table)
