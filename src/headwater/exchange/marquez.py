"""exchange.marquez: a Marquez server's event API -> its events, each at least once, from a time on.

Pages are cut by time, not by number: an event that arrives meanwhile, or late, moves no other out of sight. Events at the
cut come twice, and the store knows them by their content.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from typing import Any

import msgspec

from headwater.errors import TransportError
from headwater.event import micros
from headwater.naming import scrub

_PATH = "/api/v1/events/lineage"


class _Page(msgspec.Struct):
    events: list[msgspec.Raw]
    total: int = msgspec.field(name="totalCount", default=0)


class _Time(msgspec.Struct):
    at: str = msgspec.field(name="eventTime", default="")


_pages = msgspec.json.Decoder(_Page)
_times = msgspec.json.Decoder(_Time)


@dataclass(frozen=True, slots=True)
class Fetched:
    """One page: its events, the time that was reached, and how many the server says there are."""

    events: list[bytes]
    reached: int
    total: int


def read_marquez(url: str, since: int = 0, *, size: int = 100, client: Any = None) -> Iterator[Fetched]:
    """The events of a Marquez server from a time on, page after page, the oldest first.

    A server that does not know the order that is asked for answers the newest first; then it is walked backwards.
    """
    import httpx

    base = url.rstrip("/").removesuffix("/api/v1")
    own = client is None
    client = client or httpx.Client(timeout=60)
    try:
        yield from _walk(client, base, since, size)
    except httpx.HTTPError as fault:
        raise TransportError(f"{scrub(base)} cannot be asked: {fault}", retryable=True) from None
    finally:
        if own:
            client.close()


def _walk(client: Any, base: str, since: int, size: int) -> Iterator[Fetched]:
    first, last, offset = since, _tomorrow(), 0
    begun: int | None = None
    newest_first: bool | None = None
    while True:
        page = _get(client, base, first, last, offset, size)
        events = [bytes(each) for each in page.events]
        if not events:
            return
        stamps = [_stamp(each) for each in events]
        begun = stamps[0] if begun is None else begun
        if newest_first is None and stamps[-1] != begun:
            newest_first = stamps[-1] < begun
        reached = stamps[-1]
        yield Fetched(events, reached, page.total)
        if len(events) < size:
            return
        moved = False
        if newest_first:
            # `before` leaves its own time out: one microsecond later, so that others of that time are met
            moved, last = reached + 1 < last, min(last, reached + 1)
        elif newest_first is False:
            moved, first = reached > first, max(first, reached)
        # a page full of events of one time: only counting leads past them
        offset = 0 if moved else offset + len(events)


def _get(client: Any, base: str, after: int, before: int, offset: int, size: int) -> _Page:
    answer = client.get(
        base + _PATH,
        params={
            "after": _iso(after),
            "before": _iso(before),
            "sortDirection": "asc",
            "limit": size,
            "offset": offset,
        },
    )
    if not answer.is_success:
        raise TransportError(
            f"{scrub(base)} answered {answer.status_code} for its events: {answer.text[:200]}",
            retryable=answer.status_code >= 500,
        )
    try:
        return _pages.decode(answer.content)
    except msgspec.MsgspecError as fault:
        raise TransportError(
            f"{scrub(base)} does not answer as Marquez does: {fault}", retryable=False
        ) from None


def _stamp(raw: bytes) -> int:
    try:
        return micros(_times.decode(raw).at)
    except (msgspec.MsgspecError, ValueError):
        return 0  # what is no event is refused where it is taken in


def _iso(stamp: int) -> str:
    moment = datetime(1970, 1, 1, tzinfo=timezone.utc) + timedelta(microseconds=max(0, stamp))
    return moment.isoformat(timespec="microseconds")


def _tomorrow() -> int:
    return int((datetime.now(timezone.utc) + timedelta(days=1)).timestamp() * 1_000_000)
