"""cli.config: headwater config … -> the settings in force, where each came from, and what is wrong with a file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from headwater import config
from headwater.capture.spark._properties import properties
from headwater.capture.spark.agents import listeners
from headwater.capture.spark.settings import read
from headwater.capture.spark.trimming import DatasetNames
from headwater.cli._ask import JsonOption, print_json
from headwater.errors import ConfigError

app = typer.Typer(help="See and check settings.", no_args_is_help=True, rich_markup_mode=None)


def register(parent: typer.Typer) -> None:
    """Add the commands."""
    parent.add_typer(app, name="config")


@app.command("show")
def run_show(
    origin: Annotated[bool, typer.Option("--origin", help="Where each value came from.")] = False,
    as_json: JsonOption = False,
) -> None:
    """The settings in force; secrets are not shown.

    \b
    Examples:
      headwater config show --origin
    """
    settings = config.load()
    rows = config.describe(settings)
    if as_json:
        print_json(rows)
        return
    table = Table(box=None, pad_edge=False)
    for title in ("setting", "value", *(["from"] if origin else [])):
        table.add_column(title, overflow="fold")
    for row in rows:
        table.add_row(
            row["name"],
            "" if row["value"] is None else str(row["value"]),
            *([row["origin"]] if origin else []),
        )
    Console().print(table)
    for name in settings.strays:
        typer.echo(f"{name} is set, but is no setting of Headwater", err=True)


@app.command("check")
def run_check(
    file: Annotated[
        Path | None,
        typer.Argument(
            help="A headwater.toml, openlineage.yml or spark-defaults.conf; else what is in force."
        ),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Whether a file of settings, or all that is in force, can be used; every fault is told.

    \b
    Examples:
      headwater config check headwater.toml
      headwater config check $SPARK_HOME/conf/spark-defaults.conf
    """
    if file is not None and not file.exists():
        raise ConfigError(f"{file} does not exist")
    warnings: list[str] = []
    if file is not None and file.suffix == ".conf":
        problems = _check_spark(file, warnings)
    elif file is not None:
        problems = config.check_file(file)
    else:
        try:
            problems = config.check_rooms(config.load())
        except ConfigError as fault:
            problems = str(fault).splitlines()
    if as_json:
        print_json({"problems": problems, **({"warnings": warnings} if warnings else {})})
    else:
        typer.echo("\n".join(problems) or "nothing wrong")
        for text in warnings:
            typer.echo(f"warning: {text}", err=True)
    raise typer.Exit(2 if problems else 0)


def _check_spark(file: Path, warnings: list[str]) -> list[str]:
    """What is wrong in a spark-defaults.conf; what has no effect, or would tell lineage twice, is a warning."""
    try:
        conf = properties(file.read_text(encoding="utf-8"))
        said = read(conf)
        DatasetNames(said)
        settings = config.load(between=said.layers, environ={}, cwd=file.parent, home=file.parent)
    except (OSError, UnicodeDecodeError) as fault:
        return [f"{file.name}: cannot be read: {fault}"]
    except ConfigError as fault:
        return [f"{file.name}: {line}" for line in str(fault).splitlines()]
    warnings += [f"{key} has no effect on Headwater" for key in said.unsupported]
    warnings += said.warnings
    warnings += [f"{each} captures lineage too: `headwater run --replace-agents`" for each in listeners(conf)]
    return config.check_rooms(settings)
