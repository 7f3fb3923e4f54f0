"""cli.config: headwater config … -> the settings in force, where each came from, and what is wrong with a file."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from headwater import config, connect, migrating
from headwater.cli._ask import JsonOption, print_json
from headwater.cli._group import group
from headwater.cli._table import print_table
from headwater.config._files import read
from headwater.errors import ConfigError

app = group("See and check settings.")


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
    print_table(
        ("setting", "value", "from")[: 3 if origin else 2],
        (
            (row["name"], "" if row["value"] is None else str(row["value"]), row["origin"])[
                : 3 if origin else 2
            ]
            for row in rows
        ),
    )
    for name in settings.strays:
        typer.echo(f"{name} is set, but is no setting of Headwater", err=True)


@app.command("check")
def run_check(
    file: Annotated[
        Path | None,
        typer.Argument(help="A file of settings, ours or another tool's; else what is in force."),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Whether a file of settings, or all that is in force, can be used; every fault is told.

    Takes headwater.toml and connect.toml; of other tools openlineage.yml, spark-defaults.conf (with spark.openlineage.* and
    spark.datahub.*), a connector's JSON, an .env file, airflow.cfg and marquez.yml. Of these every key is told with what
    becomes of it: honoured, becomes …, no effect, remove, refused. Exits with 2 where something would not work.

    \b
    Examples:
      headwater config check headwater.toml
      headwater config check $SPARK_HOME/conf/spark-defaults.conf
      headwater config check orders-sink.json
      headwater config check .env --json
    """
    if file is not None and not file.exists():
        raise ConfigError(f"{file} does not exist")
    try:
        if file is None:
            report = migrating.Report("", problems=tuple(config.check_rooms(config.load())))
        else:
            report = _watched(file) or migrating.check_file(file)
    except ConfigError as fault:
        report = migrating.Report("", problems=tuple(str(fault).splitlines()))
    if as_json:
        print_json(report.told() if report.kind else {"problems": list(report.problems)})
    else:
        _print(report)
    raise typer.Exit(2 if report.problems else 0)


def _print(report: migrating.Report) -> None:
    """Keys, then what to do; problems last, where they are seen."""
    if report.keys:
        table = Table(box=None, pad_edge=False)
        table.add_column("key", overflow="fold", min_width=24)
        table.add_column("verdict", no_wrap=True)
        table.add_column("", overflow="fold")
        for each in report.keys:
            told = f"{each.to}; {each.why}" if each.to and each.why else each.to or each.why
            table.add_row(each.key, each.verdict, _plain(told), style=_STYLES.get(each.verdict))
        Console(markup=False, highlight=False, emoji=False).print(table)
    for text in (report.settings.rstrip(), "\n".join(report.notes)):
        if text:
            typer.echo(f"\n{text}")
    if report.keys or report.notes:
        typer.echo("")
    typer.echo("\n".join(report.problems) or "nothing wrong")
    for text in report.warnings:
        typer.echo(f"warning: {text}", err=True)


_STYLES = {"refused": "red", "remove": "yellow", "becomes": "yellow"}


def _plain(text: str) -> str:
    """Without the marks of Markdown: the same texts stand in docs/migrating."""
    return re.sub(r"\[([^]]+)\]\([^)]+\)", r"\1", text).replace("`", "")


def _watched(file: Path) -> migrating.Report | None:
    """Of a connect.toml, which the watcher of Kafka Connect reads; None of any other file."""
    if file.suffix != ".toml" or "clusters" not in read(file, []):
        return None
    problems: list[str] = []
    try:
        connect.load(file)
    except ConfigError as fault:
        problems = str(fault).splitlines()
    return migrating.Report("connect.toml", problems=tuple(problems))
