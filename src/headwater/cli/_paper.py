"""cli._paper: nothing -> what text is printed on: names stand there as they are, whole, in lines as long as they need."""

from __future__ import annotations

from rich.console import Console

_WIDE = 100_000
"""As wide as the lines are: a terminal that is narrower folds them; a pipe gets whole words that can be searched and copied."""


def paper() -> Console:
    """Stdout, for text with marks of ours; what is somebody else's must be escaped, and `:bank:` in it is no picture of one."""
    return Console(width=_WIDE, highlight=False, emoji=False)
