"""cli._progress: work that is counted -> a bar on stderr, where a person looks; nothing in a file or a pipe."""

from __future__ import annotations

import sys

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    SpinnerColumn,
    TextColumn,
    TimeElapsedColumn,
)


def counting() -> Progress:
    """A bar that tells what is done, how many, and since when; gone when it ends.

    >>> with counting() as bar:
    ...     task = bar.add_task("events", total=None)
    ...     bar.advance(task)
    """
    return Progress(
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        console=Console(stderr=True),
        transient=True,
        disable=not sys.stderr.isatty(),
    )
