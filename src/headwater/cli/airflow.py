"""cli.airflow: headwater airflow … -> what of Airflow is here, and whether its transport delivers."""

from __future__ import annotations

import json
from typing import Annotated, Any

import typer

from headwater import __version__
from headwater.cli._ask import JsonOption, print_json
from headwater.cli._group import group
from headwater.errors import ConfigError, HeadwaterError, NotInstalled

app = group("Try the transport that Airflow sends its events through.")


def register(parent: typer.Typer) -> None:
    """Add the commands."""
    parent.add_typer(app, name="airflow")


def _version(wanted: bool) -> None:
    if wanted:
        for package, found in {"headwater": __version__, **_door().versions()}.items():
            typer.echo(f"{package} {found}")
        raise typer.Exit


@app.callback()
def run_top(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_version, is_eager=True, help="Print what is installed here."),
    ] = False,
) -> None:
    """Try the transport that Airflow sends its events through."""


@app.command("check")
def run_check(
    transport: Annotated[
        str | None,
        typer.Option(help="A url, or JSON as Airflow takes it; else what Airflow's settings say here."),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Send a test event as Airflow's transport would, and say what happened.

    It is the end of a run of the job "headwater airflow check" in the namespace "headwater".

    \b
    Examples:
      headwater airflow check
      headwater airflow check --transport http://lineage:5000
      headwater airflow check --transport '{"type": "headwater.airflow.Transport", "url": "http://lineage:5000"}'
    """
    door = _door()
    table, origin = (_given(transport), "--transport") if transport else door.configured()
    ours = door.of_ours(table)
    if not ours:
        raise ConfigError(
            f'{origin}: its type is {table.get("type")!r}, not ours: write "type": "{door.TYPE}"'
        )
    results: list[dict[str, Any]] = []
    worst = 0
    for each in ours:
        try:
            results.append({"ok": True, "told": door.check(each)})
        except HeadwaterError as fault:
            results.append({"ok": False, "told": str(fault)})
            worst = max(worst, fault.exit_code)
    if as_json:
        print_json({"from": origin, "results": results})
    else:
        for result in results:
            typer.echo(
                result["told"] if result["ok"] else f"headwater: {result['told']}", err=not result["ok"]
            )
    raise typer.Exit(worst)


def _given(text: str) -> dict[str, Any]:
    if not text.lstrip().startswith("{"):
        return {"type": _door().TYPE, "url": text}
    try:
        table: dict[str, Any] = json.loads(text)
    except ValueError as fault:
        raise ConfigError(f"--transport: is no JSON: {fault}") from None
    return table


def _door() -> Any:
    try:
        from headwater import airflow
    except ModuleNotFoundError as fault:
        raise NotInstalled("headwater airflow", "airflow") from fault
    return airflow
