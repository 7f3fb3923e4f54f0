"""cli.graph: headwater graph NODE -> what is upstream and downstream of it, as a tree."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from functools import partial
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.markup import escape
from rich.tree import Tree

from headwater.cli._ask import AtOption, JsonOption, StoreOption, UrlOption, asking, print_json
from headwater.cli._paper import paper
from headwater.cli._tree import grow
from headwater.errors import ConfigError


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("graph", help=HELP)(run)


HELP = """
Print what is upstream and downstream of a dataset, a job or a column.

\b
Examples:
  headwater graph orders
  headwater graph orders --direction up --depth 2 --columns
  headwater graph datasetField:postgres://db:5432:shop.public.orders:total
  headwater graph orders --at -24h --json
  headwater graph orders --granularity application

NODE is a node id, NAMESPACE/NAME, or any suffix of a name that only one node has. Depth counts dataset hops.
"""

_Column = tuple[str, str]
_Near = dict[_Column, list[tuple[_Column, list[str]]]]
_DIRECTIONS = ("up", "down", "both")
_GRANULARITIES = ("all", "dataset", "job", "application", "run")


def run(
    node: Annotated[str, typer.Argument(help="Where to start.")],
    direction: Annotated[str, typer.Option(metavar="up|down|both", help="Which way.")] = "both",
    depth: Annotated[int, typer.Option(min=0, help="How many dataset hops.")] = 20,
    columns: Annotated[bool, typer.Option("--columns", help="Column lineage too.")] = False,
    granularity: Annotated[
        str, typer.Option(metavar="WHICH", help="all, dataset, job, application or run.")
    ] = "all",
    fan: Annotated[
        int, typer.Option(min=1, max=100_000, help="How many nodes next to one are followed each way.")
    ] = 500,
    at: AtOption = None,
    since: Annotated[
        str | None,
        typer.Option(metavar="TIME", help="All edges that held or were seen from then until --at."),
    ] = None,
    store: StoreOption = None,
    url: UrlOption = None,
    as_json: JsonOption = False,
) -> None:
    """Ask and print."""
    if direction not in _DIRECTIONS:
        raise ConfigError(f"--direction is up, down or both, not {direction!r}")
    if granularity not in _GRANULARITIES:
        raise ConfigError(f"--granularity is one of {', '.join(_GRANULARITIES)}, not {granularity!r}")
    with asking(store, url) as source:
        model = source.graph(
            node,
            direction=direction,
            depth=depth,
            columns=columns,
            granularity=granularity,
            fan=fan,
            at=at,
            since=since,
        )
    if as_json:
        print_json(model)
    else:
        print_graph(model, direction)


def print_graph(model: dict[str, Any], direction: str = "both") -> None:
    """A graph as one or two trees: upstream and downstream of its start."""
    console = paper()
    names = {each["id"]: each for each in model["nodes"]}
    start = model["start"]
    if start not in names and not start.startswith("datasetField:"):
        # folded away, or a dataset among runs: begin at what stands nearest to it
        if not model["nodes"]:
            console.print(f"[bold]{escape(start)}[/bold]  nothing of that kind is near it")
            return
        start = model["nodes"][0]["id"]
    if start.startswith("datasetField:"):
        _print_columns(console, model, start, direction)
        return
    into: dict[str, list[str]] = defaultdict(list)
    out_of: dict[str, list[str]] = defaultdict(list)
    for edge in model["edges"]:
        into[edge["to"]].append(edge["from"])
        out_of[edge["from"]].append(edge["to"])
    told: dict[str, list[str]] = defaultdict(list)
    for each in model["columns"]:
        kinds = ", ".join(each["kinds"])
        source = names[each["from"]["dataset"]]["name"]
        told[each["to"]["dataset"]].append(
            f"{each['to']['field']} ← {source}.{each['from']['field']}  {kinds}"
        )

    def next_to(near: dict[str, list[str]], here: str, tree: Tree) -> Iterator[tuple[str, str]]:
        for line in told.pop(here, ()):
            tree.add(f"[dim]{escape(line)}[/dim]")
        yield from ((each, _label(names[each])) for each in near.get(here, ()))

    for side, near in (("up", into), ("down", out_of)):
        if direction in (side, "both"):
            tree = Tree(
                f"[bold]{_label(names[start])}[/bold]  {'upstream' if side == 'up' else 'downstream'}"
            )
            grow(tree, start, partial(next_to, near))
            console.print(tree)
    if model["cut"]:
        Console(stderr=True).print("There is more beyond: raise --depth, or --fan.")


def _label(node: dict[str, Any]) -> str:
    if node["type"] == "RUN":
        return f"[cyan]run {escape((node['job'] or '').removeprefix('job:'))}[/cyan]  {node['state'] or '?'}  {node['startedAt']}"
    mark = "job " if node["type"] == "JOB" else ""
    style = "cyan" if node["type"] == "JOB" else "green"
    more = "".join(f"  +{count:,} more {side}" for side, count in sorted(node.get("more", {}).items()))
    return f"[{style}]{mark}{escape(node['namespace'])}/{escape(node['name'])}[/{style}]{more}"


def _print_columns(console: Console, model: dict[str, Any], start: str, direction: str) -> None:
    names = {each["id"]: each for each in model["nodes"]}
    into: _Near = defaultdict(list)
    out_of: _Near = defaultdict(list)
    for each in model["columns"]:
        source = (each["from"]["dataset"], each["from"]["field"])
        target = (each["to"]["dataset"], each["to"]["field"])
        into[target].append((source, each["kinds"]))
        out_of[source].append((target, each["kinds"]))
    rest = start.removeprefix("datasetField:")
    dataset = next(each for each in names if rest.startswith(each.removeprefix("dataset:") + ":"))
    first = (dataset, rest.removeprefix(dataset.removeprefix("dataset:") + ":"))

    def next_to(near: _Near, here: _Column, _: Tree) -> Iterator[tuple[_Column, str]]:
        for there, kinds in near.get(here, ()):
            node = names[there[0]]
            name = f"{escape(node['namespace'])}/{escape(node['name'])}.{escape(there[1])}"
            yield there, f"[green]{name}[/green]  [dim]{escape(', '.join(kinds))}[/dim]"

    for side, near in (("up", into), ("down", out_of)):
        if direction in (side, "both"):
            label = f"{names[dataset]['namespace']}/{names[dataset]['name']}.{first[1]}"
            tree = Tree(f"[bold]{escape(label)}[/bold]  {'upstream' if side == 'up' else 'downstream'}")
            grow(tree, first, partial(next_to, near))
            console.print(tree)
