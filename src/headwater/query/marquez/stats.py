"""query.marquez.stats: a day or a week -> how many events, jobs, datasets and sources there were, hour by hour or day by day."""

from __future__ import annotations

import itertools
from bisect import bisect_left, bisect_right
from datetime import datetime, timedelta, timezone, tzinfo
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from headwater.errors import ConfigError
from headwater.query.nodes import iso
from headwater.store import Store

PERIODS = ("DAY", "WEEK")


def zone(name: str | None) -> tzinfo:
    """A time zone by its name."""
    if not name or name.upper() in ("UTC", "Z", "GMT"):
        return timezone.utc
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise ConfigError(f"timezone is {name!r}: write a name like Europe/Berlin, or UTC") from None


def buckets(period: str, where: tzinfo, now: datetime) -> list[int]:
    """The edges of 24 hours or 7 days, the last of them now running: one more than there are buckets."""
    here = now.astimezone(where)
    if period == "DAY":
        hour = here.replace(minute=0, second=0, microsecond=0).astimezone(timezone.utc)
        edges = [hour + timedelta(hours=step) for step in range(-23, 2)]
    else:
        day = here.replace(hour=0, minute=0, second=0, microsecond=0, tzinfo=None)
        # counted on the calendar: a day may have 23 or 25 hours
        edges = [(day + timedelta(days=step)).replace(tzinfo=where) for step in range(-6, 2)]
    return [int(edge.timestamp()) * 1_000_000 for edge in edges]


def _spans(edges: list[int]) -> list[dict[str, Any]]:
    return [
        {"startInterval": iso(start), "endInterval": iso(end)} for start, end in itertools.pairwise(edges)
    ]


def event_stats(
    store: Store, period: str, timezone_name: str | None, now: datetime | None = None
) -> list[dict[str, Any]]:
    """Runs that began, completed, failed and were aborted, in each bucket."""
    edges = buckets(period, zone(timezone_name), now or datetime.now(timezone.utc))
    with store.read() as reader:
        begun = reader.times().begun(edges[0], edges[-1])
        ended = reader.times().ended(edges[0], edges[-1])
    counts = [{"fail": 0, "start": 0, "complete": 0, "abort": 0} for _ in edges[1:]]
    for at, runs in begun:
        counts[bisect_right(edges, at) - 1]["start"] += runs
    for at, state, runs in ended:
        word = state.split(" ", 1)[1].lower() if state else ""
        if word in counts[0]:
            counts[bisect_right(edges, at) - 1][word] += runs
    return [{**span, **count} for span, count in zip(_spans(edges), counts, strict=True)]


def thing_stats(
    store: Store, what: str, period: str, timezone_name: str | None, now: datetime | None = None
) -> list[dict[str, Any]]:
    """How many jobs, datasets or sources there were at the end of each bucket."""
    edges = buckets(period, zone(timezone_name), now or datetime.now(timezone.utc))
    with store.read() as reader:
        seen = sorted(reader.times().appeared(what, edges[-1]))
    return [
        {**span, "count": bisect_left(seen, end)} for span, end in zip(_spans(edges), edges[1:], strict=True)
    ]
