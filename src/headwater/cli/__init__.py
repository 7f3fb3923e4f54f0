"""cli: a command line -> a model -> text, or JSON with --json; data on stdout, progress on stderr.

One file per command. To add one: write cli/<name>.py with a function `register(app)`, add its name to COMMANDS,
run `make docs`; the surface and docs tests ask for the rest.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from importlib import import_module
from typing import Any

import typer

from headwater.cli._group import Group, group
from headwater.errors import HeadwaterError

COMMANDS = (
    "serve",
    "run",
    "ingest",
    "search",
    "show",
    "graph",
    "impact",
    "diff",
    "runs",
    "tail",
    "spool",
    "pipeline",
    "datahub",
    "dlt",
    "connect",
    "airflow",
    "store",
    "incidents",
    "hooks",
    "work",
    "aliases",
    "keys",
    "audit",
    "config",
    "doctor",
    "demo",
)
"""In the order in which help lists them."""


class _Top(Group):
    def list_commands(self, ctx: Any) -> list[str]:
        return [name for name in COMMANDS if name in self.commands]  # typer would put groups behind the rest


def build_app(commands: Iterable[str] = COMMANDS) -> typer.Typer:
    """The command line, whole or with some of its commands."""
    app = group(
        "Where data comes from and what breaks when it changes: lineage of Spark, Kafka Connect, dlt and Airflow.",
        cls=_Top,
        name="headwater",
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
    )
    app.callback()(_top)
    for name in commands:
        import_module(f"headwater.cli.{name}").register(app)
    return app


def _version(wanted: bool) -> None:
    if wanted:
        import headwater

        typer.echo(f"headwater {headwater.__version__}")
        raise typer.Exit


def _top(
    version: bool = typer.Option(
        False, "--version", callback=_version, is_eager=True, help="Print the version."
    ),
) -> None:
    pass


def main() -> None:
    """Run the command line; an error of ours becomes its message and its exit code."""
    # to import all of them takes longer than most take to answer
    asked = [word for word in sys.argv[1:2] if word in COMMANDS]
    try:
        said = build_app(asked or COMMANDS)(standalone_mode=False)
        code = said if isinstance(said, int) else 0  # what a command raised typer.Exit with
    except HeadwaterError as fault:
        typer.echo(f"headwater: {fault}", err=True)
        code = fault.exit_code
    except (KeyboardInterrupt, typer.Abort):
        code = 130
    except BrokenPipeError:
        code = 0  # whoever read us has seen enough
    except SystemExit as left:
        if not isinstance(left.__context__, BrokenPipeError):
            raise
        code = 0  # which click makes a fault of
    except OSError as fault:  # a folder in place of a file to write, no right to, no room left
        where = f"{fault.filename}: " if fault.filename else ""
        typer.echo(f"headwater: {where}{fault.strerror or fault}", err=True)
        code = 1
    except typer.Exit as done:
        code = done.exit_code
    except Exception as fault:  # typer offers no class for click's errors: all others rise again
        if not hasattr(fault, "exit_code") or not hasattr(fault, "show"):
            raise
        fault.show()  # click's own: wrong use, told with the command's usage
        code = 2
    _say_the_rest()
    sys.exit(code)


def _say_the_rest() -> None:
    """Write what waits to be written; where nobody reads it any more, that is no fault either."""
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        os.dup2(
            os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno()
        )  # the interpreter flushes once more as it ends
