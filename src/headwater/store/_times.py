"""store._times: a span of time -> the events that the log holds of it, and how many runs and things there were by then."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from sqlalchemy import Connection

from headwater.store._driver import cursor_of
from headwater.store._packing import unpack

_HOUR = 3_600_000_000
_SPAN = "FROM log WHERE kind = 'run' AND time >= ? AND time < ?"


class Times:
    """What happened when."""

    def __init__(self, connection: Connection) -> None:
        self._cursor = cursor_of(connection)

    def rows(self, sql: str, *parameters: Any) -> Iterator[Any]:
        """The rows that a statement finds."""
        self._cursor.execute(sql, parameters)
        return iter(self._cursor.fetchall())

    def events(
        self, after: int, before: int, *, newest_first: bool, limit: int, offset: int
    ) -> tuple[list[bytes], int]:
        """Run events of a span, as they were sent, by their time; and how many there are."""
        found = self.page(after, before, newest_first=newest_first, limit=limit, offset=offset)
        return found, self._count(after, before)

    def _count(self, after: int, before: int) -> int:
        """How many run events a span has: whole hours are counted already, however long the log is."""
        first, last = -(-after // _HOUR), before // _HOUR
        if first >= last:
            return int(next(self.rows(f"SELECT count(*) {_SPAN}", after, before))[0])
        hours = (
            "SELECT coalesce(sum(entries), 0) FROM log_hours WHERE kind = 'run' AND hour >= ? AND hour < ?"
        )
        edges = ((after, first * _HOUR), (last * _HOUR, before))
        return int(next(self.rows(hours, first, last))[0]) + sum(
            int(next(self.rows(f"SELECT count(*) {_SPAN}", *edge))[0]) for edge in edges
        )

    def page(self, after: int, before: int, *, newest_first: bool, limit: int, offset: int) -> list[bytes]:
        """Run events of a span, as they were sent, by their time, and at equal times by their content."""
        way = "DESC" if newest_first else "ASC"
        found = self.rows(
            f"SELECT l.body FROM log AS l JOIN (SELECT id, digest, time {_SPAN}"
            f" ORDER BY time {way}, digest {way} LIMIT ? OFFSET ?) AS p ON p.id = l.id"
            f" ORDER BY p.time {way}, p.digest {way}",
            after,
            before,
            limit,
            offset,
        )
        return [unpack(row[0]) for row in found]

    def begun(self, since: int, until: int) -> list[tuple[int, int]]:
        """How many runs began in a span, a quarter of an hour each: (its beginning, how many)."""
        found = self.rows(_COUNTED.format(when="started_at", also=""), *_quarters(since, until))
        return [(since + part * QUARTER, count) for part, count in found]

    def ended(self, since: int, until: int) -> list[tuple[int, str | None, int]]:
        """How many runs ended in a span, and how, a quarter of an hour each: (its beginning, state, how many)."""
        found = self.rows(_COUNTED.format(when="ended_at", also=", state"), *_quarters(since, until))
        return [(since + part * QUARTER, state, count) for part, count, state in found]

    def appeared(self, what: str, until: int) -> list[int]:
        """When jobs, datasets or sources were first seen."""
        return [row[0] for row in self.rows(_APPEARED[what], until)]


QUARTER = _HOUR // 4
"""No zone's hours or days begin elsewhere than at a whole quarter of an hour."""
_COUNTED = (
    f"SELECT ({{when}} - ?) / {QUARTER}, count(*){{also}} FROM runs"
    f" WHERE {{when}} >= ? AND {{when}} < ? GROUP BY 1{{also}}"
)


def _quarters(since: int, until: int) -> tuple[int, int, int]:
    return since, since, until


_APPEARED = {
    "jobs": "SELECT first_seen FROM jobs WHERE first_seen < ?",
    "datasets": "SELECT min(first_seen) FROM datasets WHERE first_seen < ? GROUP BY coalesce(canonical, id)",
    "sources": (
        "SELECT min(first_seen) FROM (SELECT coalesce(source, 'default') AS name, first_seen FROM datasets"
        " UNION ALL SELECT name, first_seen FROM named WHERE kind = 'source') AS every"
        " WHERE first_seen < ? GROUP BY name"
    ),
}
