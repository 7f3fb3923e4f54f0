"""cli.dlt: headwater dlt explain PIPELINE -> what is told of its last run on this machine, and why."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import typer

from headwater import config
from headwater.cli._ask import JsonOption, print_json
from headwater.cli._group import group
from headwater.errors import NotInstalled

app = group("See what is told of a pipeline of dlt, and why.")


def register(parent: typer.Typer) -> None:
    """Add the commands."""
    parent.add_typer(app, name="dlt")


@app.command("explain")
def run_explain(
    pipeline: Annotated[str, typer.Argument(help="The pipeline's name.")],
    pipelines_dir: Annotated[
        Path | None, typer.Option(help="Where dlt keeps its pipelines; else where it does by itself.")
    ] = None,
    naming: Annotated[
        str | None, typer.Option(help="openlineage, or dlt-openlineage for the names of that package.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Print what is told of a pipeline's last run, from the trace that dlt left, and why.

    Nothing is sent. Exit code 3 where no such pipeline has run here.

    \b
    Examples:
      headwater dlt explain github_issues
      headwater dlt explain github_issues --naming dlt-openlineage --json
    """
    try:
        from headwater.dlt import _explaining
    except ImportError as fault:
        raise NotInstalled("headwater dlt", "dlt") from fault
    settings = config.load({"dlt": {"naming": naming}} if naming else {})
    events = _explaining.explain(pipeline, settings, str(pipelines_dir) if pipelines_dir else None)
    if as_json:
        print_json(events)
        return
    for line in _lines(events):
        typer.echo(line)


def _lines(events: list[dict[str, Any]]) -> Iterator[str]:
    last = events[-1]
    said = last["run"]["facets"]["dlt_execution"]
    yield f"{last['job']['namespace']}/{last['job']['name']}  {last['eventType']}  run {last['run']['runId']}"
    yield f"  events: {', '.join(each['eventType'] for each in events)}; loads: {', '.join(said.get('load_ids') or ['none'])}"
    if error := last["run"]["facets"].get("errorMessage"):
        yield f"  failed: {error['message'].splitlines()[0]}"
    if planned := said.get("planned_tables"):
        yield f"  nothing was loaded, so no output is claimed; planned: {', '.join(planned)}"
    for each in last["inputs"]:
        yield f"  reads  {each['namespace']}/{each['name']}"
        if each["namespace"] == "dlt":
            yield "           (named by its resource: nothing tells where its data comes from; see add_input)"
    for each in last["outputs"]:
        yield from _output(each)


def _output(output: dict[str, Any]) -> Iterator[str]:
    facets = output["facets"]
    rows = output.get("outputFacets", {}).get("outputStatistics", {}).get("rowCount")
    change = facets.get("lifecycleStateChange", {}).get("lifecycleStateChange")
    more = ", ".join(text for text in (f"{rows} rows" if rows is not None else "", change or "") if text)
    yield f"  writes {output['namespace']}/{output['name']}{f'  ({more})' if more else ''}"
    for column, field in facets.get("columnLineage", {"fields": {}})["fields"].items():
        sources = ", ".join(f"{each['name']}: {each['field']}" for each in field["inputFields"])
        yield f"           {column} <- {sources}"
    table = facets.get("dlt_table", {})
    if made := table.get("generated_columns"):
        yield f"           made by dlt: {', '.join(made)}"
    if unknown := table.get("columns_of_unknown_source"):
        yield f"           of unknown source: {', '.join(unknown)} ({table.get('why')})"
