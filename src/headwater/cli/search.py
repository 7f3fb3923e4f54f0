"""cli.search: headwater search TEXT -> the datasets and jobs that have it, the closest first, and where."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from headwater.cli._ask import JsonOption, StoreOption, UrlOption, asking, print_json
from headwater.cli._table import print_table
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
    if not found:
        raise NotFound(f"nothing has {text!r}")
    if not as_json:
        print_table(("type", "node", "last seen", "found in"), (_row(each) for each in found))


def _row(found: dict[str, Any]) -> tuple[str, ...]:
    where = next((each for each in found["matches"] if each["in"] != "name"), None)
    text = f"{where['in']}: {' '.join(where['text'].split())}" if where and found["match"] == "text" else ""
    return found["type"].lower(), f"{found['namespace']}/{found['name']}", found["lastSeen"] or "", text
