"""cli.diff: headwater diff T1 T2 [NODE] -> what was added, removed and changed between two times; a gate for pipelines."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from enum import Enum
from typing import Annotated, Any

import typer
from rich.markup import escape

from headwater.cli import _markdown
from headwater.cli._ask import (
    JsonOption,
    MarkdownOption,
    StoreOption,
    UrlOption,
    answer,
    asking,
    one_form,
)
from headwater.cli._paper import paper

_ANY_TIME = {"ignore_unknown_options": True, "help_option_names": ["--help"]}
"""A time may be so long ago, `-24h`: what looks like an option and is none is an argument."""


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("diff", help=HELP, context_settings=_ANY_TIME)(run)


HELP = """
Print what was added (+), removed (-) and changed (~) between two times: nodes, edges, column relations, schemas.

\b
Examples:
  headwater diff -24h now
  headwater diff 2026-01-30 2026-01-31 orders
  headwater diff -7d now --json | jq '.schemas[] | select(.breaking)'
  headwater diff -24h now --fail-on removed --fail-on breaking --markdown > comment.md

T1 and T2 are ISO times, or so long ago: -24h. With NODE, only the graph around it. With --fail-on the command exits 6
where such a difference was found: a gate before a change is merged.
"""


class FailOn(str, Enum):
    """Which differences trip the gate."""

    added = "added"
    removed = "removed"
    changed = "changed"
    breaking = "breaking"
    any = "any"


def run(
    before: Annotated[str, typer.Argument(metavar="T1", help="The earlier time.")],
    after: Annotated[str, typer.Argument(metavar="T2", help="The later time.")],
    node: Annotated[str | None, typer.Argument(metavar="NODE", help="Only around this node.")] = None,
    depth: Annotated[int, typer.Option(min=0, max=1000, help="How many dataset hops around it.")] = 20,
    fail_on: Annotated[
        list[FailOn] | None,
        typer.Option(
            help="Exit 6 where a node, edge or column was added or removed, a schema changed, or one broke; may be repeated."
        ),
    ] = None,
    store: StoreOption = None,
    url: UrlOption = None,
    markdown: MarkdownOption = False,
    as_json: JsonOption = False,
) -> None:
    """Ask, print, and trip the gate."""
    one_form(as_json, markdown)
    with asking(store, url) as source:
        model = source.diff(before, after, node=node, depth=depth)
    found = _tripping(model, [each.value for each in fail_on or ()])
    answer(model, found, _print, _markdown.diff if markdown else None, as_json)


def _print(model: dict[str, Any]) -> None:
    console = paper()
    told = False
    for line in _lines(model):
        told = True
        console.print(line)
    if not told:
        console.print("nothing differs")


def _tripping(model: dict[str, Any], kinds: Collection[str]) -> str | None:
    """What of these kinds was found, in words; None where the gate stays open."""
    schemas = model["schemas"]
    counts = {
        side: sum(len(model[part][side]) for part in ("nodes", "edges", "columns"))
        for side in ("added", "removed")
    }
    counts["added"] += sum(each["change"] == "added" for each in schemas)
    counts["changed"] = sum(each["change"] != "added" for each in schemas)
    counts["breaking"] = sum(each["breaking"] for each in schemas)
    if "any" in kinds:
        kinds = ("added", "removed", "changed")
    words = {
        "added": "added nodes, edges, columns or schemas",
        "removed": "removed nodes, edges or columns",
        "changed": "changed schemas",
        "breaking": "broken schemas",
    }
    found = [f"{said}: {counts[kind]:,}" for kind, said in words.items() if kind in kinds and counts[kind]]
    return ", ".join(found) or None


_STYLE = {"+": "green", "-": "red", "~": "yellow"}


def _lines(model: dict[str, Any]) -> Iterator[str]:
    def line(mark: str, text: str) -> str:
        return f"[{_STYLE[mark]}]{mark} {escape(text)}[/{_STYLE[mark]}]"

    for part, shown in (("nodes", str), ("edges", _edge), ("columns", _column)):
        for mark, side in (("+", "added"), ("-", "removed")):
            yield from (line(mark, shown(each)) for each in model[part][side])
    for each in model["schemas"]:
        if each["change"] == "added":
            yield line("+", f"schema of {each['dataset']}")
            continue
        yield line("~", f"schema of {each['dataset']}{'  BREAKING' if each['breaking'] else ''}")
        for change in each["changes"]:
            yield "    " + escape(_change(change))


def _edge(each: dict[str, str]) -> str:
    return f"{each['from']} -> {each['to']}"


def _column(each: dict[str, Any]) -> str:
    source, target = (
        f"{each[end]['dataset'].removeprefix('dataset:')}.{each[end]['field']}" for end in ("from", "to")
    )
    return f"{source} -> {target}  {each['kind']}"


def _change(each: dict[str, Any]) -> str:
    if each["change"] == "type":
        return f"{each['field']}: {each['before']} -> {each['after']}"
    return f"{each['field']} {each['change']}"
