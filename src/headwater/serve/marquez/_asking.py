"""serve.marquez._asking: parameters as clients write them -> values, or an error that says what to write."""

from __future__ import annotations

import re
import time
from collections.abc import Iterable
from typing import Annotated, Any

import msgspec
from litestar.exceptions import ClientException
from litestar.openapi.datastructures import ResponseSpec
from litestar.params import PathParameter, QueryParameter

from headwater.errors import EventError
from headwater.event import micros
from headwater.facts.commands import Command
from headwater.ingest import command
from headwater.store import Store

BASE = "/api/v1"
_MOST = (1 << 31) - 1
LARGEST_PAGE = 1_000
"""How many things one page holds at most; a larger `limit` is taken for this."""
LONGEST_NAME = 1_024

Limit = Annotated[int, QueryParameter(ge=0, le=_MOST, description=f"How many; at most {LARGEST_PAGE:,}.")]
Offset = Annotated[int, QueryParameter(ge=0, le=_MOST, description="How many to leave out first.")]
Depth = Annotated[int, QueryParameter(ge=0, le=_MOST, description="How many hops.")]
NamespaceName = Annotated[str, PathParameter(description="A namespace; `/` and `:` percent-encoded.")]
ThingName = Annotated[str, PathParameter(description="A name; `/` and `:` percent-encoded.")]
RunId = Annotated[str, PathParameter(description="A run's UUID.")]
# of bodies: a text is kept whatever it holds, but no name has a NUL
Text = Annotated[str, msgspec.Meta(max_length=65536)]
Name = Annotated[str, msgspec.Meta(min_length=1, max_length=LONGEST_NAME, pattern="^[^\\x00]+$")]
Short = Annotated[str, msgspec.Meta(min_length=1, max_length=255, pattern="^[^\\x00]+$")]


def responses(*statuses: int) -> dict[int, ResponseSpec]:
    """The errors that a call answers with, for the OpenAPI document."""
    said = {
        400: "A parameter or the body is wrong.",
        404: "There is no such thing.",
        422: "The body is wrong.",
    }
    return {
        status: ResponseSpec(dict[str, Any], generate_examples=False, description=said[status])
        for status in (400, *statuses)
    }


def page(limit: int) -> int:
    """A limit as it is taken."""
    return min(limit, LARGEST_PAGE)


def choice(name: str, value: str | None, known: Iterable[str]) -> str | None:
    """One of some words, in whatever case."""
    if value is None:
        return None
    words = {word.lower(): word for word in known}
    if value.lower() not in words:
        raise ClientException(f"{name} is {value!r}: write one of {', '.join(words.values())}")
    return words[value.lower()]


def stamp(name: str, value: str | None) -> int | None:
    """A time."""
    if value is None:
        return None
    try:
        return micros(value.replace(" ", "+"))  # a `+` that was not encoded arrives as a space
    except (ValueError, OverflowError):
        raise ClientException(f"{name} is {value!r}: write a time like 2026-01-31T12:00:00Z") from None


_DATE = re.compile(r"\d{4}-\d{2}-\d{2}")


def day(name: str, value: str | None) -> int | None:
    """A date, as the time when it begins."""
    if value is not None and not _DATE.fullmatch(value):
        raise ClientException(
            f"{name} is {value!r}: write a date like 2026-01-31",
            extra=[{"key": name, "message": "must be a date like 2026-01-31"}],
        )
    return stamp(name, f"{value}T00:00:00Z") if value is not None else None


def name_of(what: str, value: str, longest: int = LONGEST_NAME) -> str:
    """A name that is written: not blank, not too long for an index, without control characters."""
    size = len(value.encode("utf-8", "surrogatepass"))
    if not value.strip() or size > longest or any(letter < " " for letter in value):
        raise ClientException(f"{what} must have 1 to {longest:,} bytes and no control characters")
    return value


def now() -> int:
    """Microseconds since 1970."""
    return time.time_ns() // 1000


def tell(store: Store, *said: Command) -> None:
    """Take commands."""
    try:
        command(store, *said)
    except EventError as fault:
        raise ClientException(str(fault)) from None
