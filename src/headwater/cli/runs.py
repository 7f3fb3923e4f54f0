"""cli.runs: headwater runs … -> runs listed, one shown, and the runs that its data came from and went to."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from functools import partial
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.markup import escape
from rich.tree import Tree

from headwater.cli._ask import JsonOption, StoreOption, UrlOption, asking, print_json
from headwater.cli._group import group, pass_on
from headwater.cli._paper import paper
from headwater.cli._table import print_table
from headwater.cli._tree import grow
from headwater.errors import ConfigError

app = group("Look at runs.", invoke_without_command=True, no_args_is_help=False)


def register(parent: typer.Typer) -> None:
    """Add the commands."""
    parent.add_typer(app, name="runs", help=HELP)


HELP = """
List runs, the newest first; `runs graph ID` tells where a run's data came from and went to.

\b
Examples:
  headwater runs --since -24h
  headwater runs --job load_orders --state FAIL --json
  headwater runs graph 0190a0c4-0000-7000-8000-000000000000 --direction up
"""

RunId = Annotated[str, typer.Argument(metavar="ID", help="The id of a run.")]


@app.callback(invoke_without_command=True)
def run_list(
    context: typer.Context,
    job: Annotated[str | None, typer.Option(metavar="NODE", help="Only of this job.")] = None,
    state: Annotated[
        str | None, typer.Option(metavar="STATE", help="START, RUNNING, COMPLETE, FAIL, ABORT or OTHER.")
    ] = None,
    since: Annotated[str | None, typer.Option(metavar="TIME", help="Begun since then: -24h.")] = None,
    until: Annotated[str | None, typer.Option(metavar="TIME", help="Begun until then.")] = None,
    limit: Annotated[int, typer.Option(min=1, max=1000, help="At most so many.")] = 50,
    store: StoreOption = None,
    url: UrlOption = None,
    as_json: JsonOption = False,
) -> None:
    """List runs."""
    if context.invoked_subcommand is not None:
        pass_on(context)
        return
    with asking(store, url) as source:
        found = source.runs(
            job=job, state=state.upper() if state else None, since=since, until=until, limit=limit
        )
    if as_json:
        print_json(found)
        return
    print_table(
        ("started", "state", "took", "run", "job", "error"),
        (
            (
                each["startedAt"] or "",
                each["state"] or "?",
                _took(each["durationMs"]),
                each["id"],
                (each["job"] or "").removeprefix("job:"),
                each["error"].splitlines()[0][:80] if each["error"] else "",
            )
            for each in found
        ),
    )


@app.command("show")
def run_show(
    run: RunId, store: StoreOption = None, url: UrlOption = None, as_json: JsonOption = False
) -> None:
    """Print a run: its state, times, what it read and wrote.

    \b
    Examples:
      headwater runs show 0190a0c4-0000-7000-8000-000000000000
    """
    with asking(store, url) as source:
        model = source.show(_id(run))
    if as_json:
        print_json(model)
        return
    console = paper()
    for key in ("id", "job", "state", "startedAt", "endedAt", "durationMs", "parent", "root", "error"):
        if model.get(key) is not None:
            console.print(f"{key:>10}  {escape(str(model[key]))}")
    for side in ("inputs", "outputs"):
        for each in model[side]:
            more = ", ".join(f"{key} {value}" for key, value in each.items() if key != "dataset")
            console.print(f"{side[:-1]:>10}  {escape(each['dataset'])}{'  ' + escape(more) if more else ''}")


@app.command("graph")
def run_graph(
    run: RunId,
    direction: Annotated[str, typer.Option(metavar="up|down|both", help="Which way.")] = "both",
    depth: Annotated[int, typer.Option(min=0, max=100, help="How many runs away.")] = 20,
    store: StoreOption = None,
    url: UrlOption = None,
    as_json: JsonOption = False,
) -> None:
    """Print the runs that wrote what a run read, and those that read what it wrote.

    \b
    Examples:
      headwater runs graph 0190a0c4-0000-7000-8000-000000000000 --direction up
    """
    if direction not in ("up", "down", "both"):
        raise ConfigError(f"--direction is up, down or both, not {direction!r}")
    with asking(store, url) as source:
        model = source.run_graph(_id(run), direction=direction, depth=depth)
    if as_json:
        print_json(model)
        return
    nodes = {each["id"]: each for each in model["nodes"]}
    into: dict[str, list[str]] = defaultdict(list)
    out_of: dict[str, list[str]] = defaultdict(list)
    for edge in model["edges"]:
        into[edge["to"]].append(edge["from"])
        out_of[edge["from"]].append(edge["to"])

    def next_to(near: dict[str, list[str]], here: str, _: Tree) -> Iterator[tuple[str, str]]:
        for each in near.get(here, ()):
            if not nodes[here]["type"] == nodes[each]["type"] == "DATASET_VERSION":
                yield each, _label(nodes[each])

    console = paper()
    for side, near, words in (("up", into, "got its data from"), ("down", out_of, "gave its data to")):
        if direction in (side, "both"):
            tree = Tree(f"[bold]{_label(nodes[model['start']])}[/bold]  {words}")
            grow(tree, model["start"], partial(next_to, near))
            console.print(tree)
    if model["cut"]:
        Console(stderr=True).print("There are more runs than are shown: lower --depth, or use --json.")


def _label(node: dict[str, Any]) -> str:
    if node["type"] == "RUN":
        state = node["state"] or "?"
        style = "red" if state in ("FAIL", "ABORT") else "cyan"
        job = (node["job"] or "unknown job").removeprefix("job:")
        return f"[{style}]{escape(job)}[/{style}]  {state}  {node['startedAt']}  {node['id'].removeprefix('run:')}"
    failed = f"  [red]{len(node['failedSince'])} failed since[/red]" if node.get("failedSince") else ""
    written = (
        f"  written {node['writtenAt']}" if node.get("writtenAt") else "  nobody is known to have written it"
    )
    return f"[green]{escape(node['namespace'])}/{escape(node['name'])}[/green]{written}{failed}"


def _took(milliseconds: int | None) -> str:
    if milliseconds is None:
        return ""
    seconds = milliseconds / 1000
    return f"{seconds:.1f} s" if seconds < 120 else f"{seconds / 60:.1f} min"


def _id(run: str) -> str:
    from headwater.query.runs import run_id_of

    found = run_id_of(run)
    if found is None:
        raise ConfigError(f"{run!r} is no run id: it is a UUID, as `headwater runs` lists them")
    return found
