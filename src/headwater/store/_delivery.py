"""store._delivery: how far a delivery has read the log, what it puts together, what was refused <-> rows beside the log.

What a run group tells another catalogue is a message that is still being written: it stands in the outbox under its
group, open until it was told, and then for as long as settled messages are kept, so that what comes late is told with
what came before.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from sqlalchemy import Connection, func, select
from sqlalchemy.dialects import postgresql, sqlite

from headwater.store._schema import offsets, outbox

_INSERT: dict[str, Any] = {"postgresql": postgresql.insert, "sqlite": sqlite.insert}
_LOG = "log"
GROUP = "group"
"""What the outbox calls a group that is being put together."""


class Kept(NamedTuple):
    """A run group as it stands."""

    key: str
    body: bytes
    open: bool
    """Whether it has something that was not told yet."""
    due_at: int


def position(connection: Connection, name: str) -> int:
    """The last entry of the log that a delivery has read."""
    query = select(offsets.c.next).where(offsets.c.consumer == name, offsets.c.topic == _LOG)
    return int(connection.execute(query).scalar() or 0)


def advance(connection: Connection, name: str, entry: int) -> None:
    """Note that a delivery has read the log up to an entry."""
    insert = _INSERT[connection.dialect.name](offsets)
    made = insert.values(consumer=name, topic=_LOG, partition=0, next=entry)
    keys = ["consumer", "topic", "partition"]
    connection.execute(made.on_conflict_do_update(index_elements=keys, set_={"next": insert.excluded.next}))


def groups(connection: Connection, name: str, keys: Sequence[str]) -> dict[str, Kept]:
    """Those of the groups that are kept."""
    found: dict[str, Kept] = {}
    for start in range(0, len(keys), 400):
        query = select(outbox.c.key, outbox.c.body, outbox.c.state, outbox.c.due_at).where(
            outbox.c.hook == name, outbox.c.key.in_(list(keys[start : start + 400])), outbox.c.event == GROUP
        )
        for key, body, state, due_at in connection.execute(query):
            found[key] = Kept(key, body, state == "open", due_at)
    return found


def due(connection: Connection, name: str, now: int, limit: int = 100) -> list[Kept]:
    """The open groups whose time has come, the oldest first."""
    query = select(outbox.c.key, outbox.c.body, outbox.c.due_at).where(
        outbox.c.hook == name, outbox.c.event == GROUP, outbox.c.state == "open", outbox.c.due_at <= now
    )
    rows = connection.execute(query.order_by(outbox.c.due_at, outbox.c.id).limit(limit))
    return [Kept(key, body, True, due_at) for key, body, due_at in rows]


def keep(connection: Connection, name: str, kept: Iterable[Kept], now: int) -> None:
    """Write groups as they stand now."""
    for each in kept:
        insert = _INSERT[connection.dialect.name](outbox)
        row = {
            "body": each.body,
            "due_at": each.due_at,
            "state": "open" if each.open else "done",
            "made_at": now,
        }
        made = insert.values(hook=name, key=each.key, event=GROUP, tries=0, fault="", **row)
        connection.execute(made.on_conflict_do_update(index_elements=["hook", "key"], set_=row))


def refuse(connection: Connection, name: str, key: str, what: str, body: bytes, why: str, now: int) -> None:
    """Keep what was refused, with the reason; the same is kept once."""
    insert = _INSERT[connection.dialect.name](outbox)
    row = {"state": "dead", "fault": why, "made_at": now, "due_at": now}
    made = insert.values(hook=name, key=key, event=what, body=body, tries=1, **row)
    connection.execute(made.on_conflict_do_update(index_elements=["hook", "key"], set_=row))


def waiting(connection: Connection, name: str, now: int, limit: int = 200) -> list[tuple[int, bytes]]:
    """What was refused and shall be tried again: number and body."""
    query = select(outbox.c.id, outbox.c.body).where(
        outbox.c.hook == name, outbox.c.event != GROUP, outbox.c.state == "waiting", outbox.c.due_at <= now
    )
    return [(row[0], row[1]) for row in connection.execute(query.order_by(outbox.c.id).limit(limit))]


def counts(connection: Connection, name: str) -> dict[str, int]:
    """How many groups are open, and how many proposals are kept that were refused."""
    query = select(outbox.c.state, func.count()).where(outbox.c.hook == name).group_by(outbox.c.state)
    found = {str(row[0]): int(row[1]) for row in connection.execute(query)}
    return {"open": found.get("open", 0), "refused": found.get("dead", 0) + found.get("waiting", 0)}
