"""cli._group: the commands below a command -> its help, with every one of them told in full; options before them, handed on.

Click cuts what it lists to one line each; here it is folded instead.
"""

from __future__ import annotations

from typing import Any

import typer
from typer.core import TyperGroup

from headwater.errors import ConfigError

_WHOLE = 1000
"""Letters of a first sentence, at most."""


class Group(TyperGroup):
    """A command with others below it."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """List them, each with its first sentence."""
        listed = ((name, self.get_command(ctx, name)) for name in self.list_commands(ctx))
        rows = [(name, each.get_short_help_str(_WHOLE)) for name, each in listed if each and not each.hidden]
        if rows:
            with formatter.section("Commands"):
                formatter.write_dl(rows)


def group(help: str, *, cls: type[Group] = Group, **more: Any) -> typer.Typer:
    """An empty group, as all of them are: without colours, and telling its help when no command is named.

    >>> app = group("Look after the store.")
    """
    return typer.Typer(
        **{"help": help, "cls": cls, "no_args_is_help": True, "rich_markup_mode": None, **more}
    )


def pass_on(context: typer.Context) -> None:
    """Of a group that lists by itself: where to ask and how to print, said before a command's name, is said to the command."""
    command = str(context.invoked_subcommand)
    below = context.command.get_command(context, command)  # type: ignore[attr-defined]  # it is a group's
    said = {name: value for name, value in context.params.items() if _is_said(context, name)}
    for name in said.keys() - {"store", "url", "as_json"}:
        raise ConfigError(f"--{name} narrows the list: it says nothing to `{context.info_name} {command}`")
    for name in said.keys() - {each.name for each in below.params}:
        raise ConfigError(f"`{context.info_name} {command}` has no --{name}")
    context.default_map = {command: said}


def _is_said(context: typer.Context, name: str) -> bool:
    source = context.get_parameter_source(name)
    return source is not None and source.name == "COMMANDLINE"
