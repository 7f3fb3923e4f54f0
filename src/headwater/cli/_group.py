"""cli._group: the commands below a command -> its help, with every one of them told in full.

Click cuts what it lists to one line each; here it is folded instead.
"""

from __future__ import annotations

from typing import Any

import typer
from typer.core import TyperGroup

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
