"""facts._said: nothing -> what every command has: when it was said, and by whom."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import msgspec

from headwater.errors import EventError


class Said(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="command", kw_only=True):
    """A write that is no event."""

    at: int
    """Microseconds since 1970, UTC."""
    by: str = ""
    """Who said it: with the command in the log, this is the audit trail."""

    @abstractmethod
    def rows(self) -> list[Any]:
        """What it says, as rows."""


def one_of(field: str, value: str, known: Any) -> None:
    """Refuse a word that is none of those known."""
    if value not in known:
        raise EventError(field, f"{value!r} is none of {', '.join(known)}")
