"""facts.flows: nothing -> the words in which a store answers for edges, and a graph asks for them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

NOW = (1 << 62) - 1
"""Later than any event."""

ColumnKey = tuple[int, str]
"""A dataset's number and the name of a column."""


class Flow(NamedTuple):
    """A job reads or writes a dataset."""

    job: int
    dataset: int


class Relation(NamedTuple):
    """A column of one dataset makes (DIRECT), or decides on (INDIRECT), a column of another."""

    job: int
    source: ColumnKey
    target: ColumnKey
    kind: str
    subtype: str
    masking: bool
    description: str


@dataclass(frozen=True, slots=True)
class When:
    """A moment; or a span: what held as of `since`, and what was seen from then until `until`."""

    until: int = NOW
    since: int | None = None

    @property
    def base(self) -> int:
        """The moment whose job versions hold."""
        return self.until if self.since is None else self.since
