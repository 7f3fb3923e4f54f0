"""cli._table: titles and rows -> a table with one line for each, whole words that can be searched and copied."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rich.table import Table
from rich.text import Text

from headwater.cli._paper import paper


def counted(number: int, what: str, several: str | None = None) -> str:
    """A number of things.

    >>> counted(1, "dataset"), counted(2_000, "event"), counted(0, "entry", "entries")
    ('1 dataset', '2,000 events', '0 entries')
    """
    return f"{number:,} {what if number == 1 else several or what + 's'}"


def print_table(titles: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Print a table; what stands in it is text, whatever brackets it has."""
    table = Table(box=None, pad_edge=False)
    for title in titles:
        table.add_column(title, no_wrap=True)
    for row in rows:
        table.add_row(*(Text(each) for each in row))
    paper().print(table)
