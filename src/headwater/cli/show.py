"""cli.show: headwater show NODE -> all that is known of a dataset, a job or a run."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any

import typer

from headwater.cli._ask import AtOption, JsonOption, StoreOption, UrlOption, asking, print_json


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("show", help=HELP)(run)


HELP = """
Show a dataset, a job or a run: schema, runs, inputs and outputs, facets.

\b
Examples:
  headwater show orders
  headwater show job:etl:load_orders --json
  headwater show orders --schemas
  headwater show 0197f3c6-0000-7000-8000-000000000000
"""


def run(
    node: Annotated[
        str, typer.Argument(help="A node id, NAMESPACE/NAME, a unique suffix of a name, or a run id.")
    ],
    schemas: Annotated[
        bool, typer.Option("--schemas", help="The schemas a dataset has had, and what each changed.")
    ] = False,
    at: AtOption = None,
    store: StoreOption = None,
    url: UrlOption = None,
    as_json: JsonOption = False,
) -> None:
    """Ask and print."""
    with asking(store, url) as source:
        model = source.schemas(node) if schemas else source.show(node, at=at)
    if as_json:
        print_json(model)
    else:
        typer.echo("\n".join(_schemas(model) if schemas else _lines(model)))


def _schemas(model: dict[str, Any]) -> Iterator[str]:
    yield f"schemas of {model['node']}, newest first"
    for each in model["versions"]:
        brought = f"  by {each['job'].removeprefix('job:')}, run {each['run']}" if each["job"] else ""
        breaking = "  BREAKING" if each["breaking"] else ""
        yield f"  {each['firstSeen']} to {each['lastSeen']}{brought}{breaking}"
        for change in each["changes"]:
            words = {"type": f"{change.get('before')} -> {change.get('after')}"}.get(
                change["change"], change["change"]
            )
            yield f"    {change['field']}: {words}"
        if not each["changes"]:
            yield from _fields(each["fields"], "    ")


def _lines(model: dict[str, Any]) -> Iterator[str]:
    if model["type"] == "RUN":
        yield f"run {model['id']}  {model['state'] or 'state unknown'}"
    else:
        yield f"{model['type'].lower()} {model['namespace']}/{model['name']}"
    for key in (
        "description",
        "job",
        "parent",
        "startedAt",
        "endedAt",
        "durationMs",
        "error",
        "firstSeen",
        "lastSeen",
    ):
        if model.get(key) is not None:
            yield f"  {key}: {model[key]}"
    if model.get("owners"):
        yield f"  owners: {', '.join(each['name'] for each in model['owners'])}"
    if model.get("tags"):
        yield f"  tags: {', '.join(sorted({each['tag'] for each in model['tags']}))}"
    for key in ("aliases", "producers", "consumers"):
        if model.get(key):
            yield f"  {key}:"
            yield from (f"    {each}" for each in model[key])
    for key in ("inputs", "outputs"):
        if model.get(key):
            yield f"  {key}:"
            yield from (f"    {_io(each)}" for each in model[key])
    if model.get("fields"):
        yield "  columns:"
        yield from _fields(model["fields"], "    ")
    for each in model.get("assertions", ()):
        yield f"  {'passed' if each['success'] else 'FAILED'}: {each['assertion']} {each['column'] or ''} at {each['at']}"
    if model.get("runs"):
        yield "  runs, newest first:"
        for each in model["runs"]:
            error = f"  {each['error'].splitlines()[0][:80]}" if each["error"] else ""
            yield f"    {each['startedAt']}  {each['state'] or '?':9} {each['id']}{error}"
    if model.get("facets"):
        yield f"  facets: {', '.join(model['facets'])} (whole with --json)"


def _io(each: Any) -> str:
    if isinstance(each, str):
        return each
    more = ", ".join(f"{key} {value}" for key, value in each.items() if key != "dataset")
    return f"{each['dataset']}{'  ' + more if more else ''}"


def _fields(fields: list[dict[str, Any]], indent: str) -> Iterator[str]:
    for field in fields:
        yield f"{indent}{field['name']}  {field['type']}".rstrip()
        yield from _fields(field.get("fields", []), indent + "  ")
