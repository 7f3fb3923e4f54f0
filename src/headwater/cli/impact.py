"""cli.impact: headwater impact NODE -> what breaks downstream of it, the nearest first; a gate for pipelines."""

from __future__ import annotations

from typing import Annotated, Any

import typer
from rich.console import Console
from rich.markup import escape

from headwater.cli import _markdown
from headwater.cli._ask import (
    AtOption,
    JsonOption,
    MarkdownOption,
    StoreOption,
    UrlOption,
    answer,
    asking,
    one_form,
)
from headwater.cli._paper import paper
from headwater.cli._table import counted, print_table


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("impact", help=HELP)(run)


HELP = """
Print what breaks downstream of a dataset, a job or a column: ranked by distance, then those somebody owns, then the
freshest.

\b
Examples:
  headwater impact orders
  headwater impact orders --column total
  headwater impact orders --fail-over 0 || echo 'somebody reads it'
  headwater impact orders --json | jq '.owners'
  headwater impact orders --markdown > comment.md

With --fail-over N the command exits 6 where more than N datasets are hit: a gate before a change is merged.
"""


def run(
    node: Annotated[str, typer.Argument(help="What changes.")],
    column: Annotated[
        str | None, typer.Option(metavar="NAME", help="Only what is made of this column.")
    ] = None,
    depth: Annotated[int, typer.Option(min=0, max=1000, help="How many dataset hops.")] = 1000,
    fail_over: Annotated[
        int | None, typer.Option(min=0, metavar="N", help="Exit 6 where more than N datasets are hit.")
    ] = None,
    at: AtOption = None,
    store: StoreOption = None,
    url: UrlOption = None,
    markdown: MarkdownOption = False,
    as_json: JsonOption = False,
) -> None:
    """Ask, print, and trip the gate."""
    one_form(as_json, markdown)
    with asking(store, url) as source:
        model = source.impact(node, column=column, depth=depth, at=at)
    hit = model["counts"]["datasets"]
    over = f"{counted(hit, 'dataset')} hit, more than {fail_over}" if hit > (fail_over or 0) else None
    found = over if fail_over is not None else None
    answer(model, found, _print, _markdown.impact if markdown else None, as_json)


def _print(model: dict[str, Any]) -> None:
    console = paper()
    counts = model["counts"]
    console.print(
        f"[bold]{escape(model['start'])}[/bold]  {counted(counts['datasets'], 'dataset')}, {counted(counts['jobs'], 'job')} downstream"
    )
    if model["datasets"]:
        titles = ("hops", "dataset", "owners", "last written", "by", "columns")
        print_table(titles, (_row(each) for each in model["datasets"]))
    for each in model["owners"]:
        console.print(f"tell {escape(each['name'])}: {each['nodes']}")
    for each in model["unsure"]:
        console.print(f"[dim]perhaps {escape(each)}: it reads, and tells no columns[/dim]")
    if model["cut"]:
        Console(stderr=True).print("There is more beyond: raise --depth.")


def _row(dataset: dict[str, Any]) -> tuple[str, ...]:
    run = dataset["lastRun"] or {}
    return (
        str(dataset["distance"]),
        f"{dataset['namespace']}/{dataset['name']}",
        ", ".join(owner["name"] for owner in dataset["owners"]),
        dataset["lastWritten"] or "",
        f"{(run.get('job') or '').removeprefix('job:')} {run.get('state') or ''}".strip(),
        ", ".join(column["field"] for column in dataset.get("columns", ())),
    )
