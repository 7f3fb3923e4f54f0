"""store._delivery: how far a delivery has read the log, what it puts together, what was refused <-> rows beside the log.

What a run group tells another catalogue is a message that is still being written: it stands in the outbox under its
group, open until it was told, and then for as long as settled messages are kept, so that what comes late is told with
what came before.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from sqlalchemy import ColumnElement, Connection, delete, func, insert, select, update
from sqlalchemy.dialects import postgresql, sqlite

from headwater.store._schema import meta, offsets, outbox

_INSERT: dict[str, Any] = {"postgresql": postgresql.insert, "sqlite": sqlite.insert}
_LOG, _SENT, _SENT_AT = "log", "sent", "sent at"
GROUP = "group"
"""What the outbox calls a group that is being put together."""


class Kept(NamedTuple):
    """A run group as it stands."""

    key: str
    body: bytes
    open: bool
    """Whether it has something that was not told yet."""
    due_at: int


class Letter(NamedTuple):
    """What was refused."""

    id: int
    what: str
    """`proposal`, or `event`: one that could not be converted."""
    state: str
    """`dead`, or `waiting` to be tried again."""
    why: str
    at: int
    body: bytes


def position(connection: Connection, name: str) -> int:
    """The last entry of the log that a delivery has read."""
    return _number(connection, name, _LOG)


def advance(connection: Connection, name: str, entry: int) -> None:
    """Note that a delivery has read the log up to an entry."""
    _put(connection, name, _LOG, entry)


def count_sent(connection: Connection, name: str, proposals: int, now: int) -> None:
    """Note that proposals were taken."""
    if proposals:
        _put(connection, name, _SENT, _number(connection, name, _SENT) + proposals)
        _put(connection, name, _SENT_AT, now)


def sent(connection: Connection, name: str) -> tuple[int, int | None]:
    """How many proposals were taken since the delivery began, and when the last of them was."""
    return _number(connection, name, _SENT), _number(connection, name, _SENT_AT) or None


def _number(connection: Connection, name: str, what: str) -> int:
    query = select(offsets.c.next).where(offsets.c.consumer == name, offsets.c.topic == what)
    return int(connection.execute(query).scalar() or 0)


def _put(connection: Connection, name: str, what: str, number: int) -> None:
    made = _INSERT[connection.dialect.name](offsets)
    row = made.values(consumer=name, topic=what, partition=0, next=number)
    keys = ["consumer", "topic", "partition"]
    connection.execute(row.on_conflict_do_update(index_elements=keys, set_={"next": made.excluded.next}))


def note_fault(connection: Connection, name: str, why: str, now: int) -> None:
    """Note why nothing can be delivered now; an empty text: it can again."""
    connection.execute(delete(meta).where(meta.c.key == f"{name} fault"))
    if why:
        connection.execute(insert(meta).values(key=f"{name} fault", value=f"{now} {why}"))


def fault(connection: Connection, name: str) -> tuple[str, int] | None:
    """Why nothing can be delivered, and since when."""
    found = connection.execute(select(meta.c.value).where(meta.c.key == f"{name} fault")).scalar()
    at, _, why = str(found or "").partition(" ")
    return (why, int(at)) if found else None


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
        insertion = _INSERT[connection.dialect.name](outbox)
        row = {
            "body": each.body,
            "due_at": each.due_at,
            "state": "open" if each.open else "done",
            "made_at": now,
        }
        made = insertion.values(hook=name, key=each.key, event=GROUP, tries=0, fault="", **row)
        connection.execute(made.on_conflict_do_update(index_elements=["hook", "key"], set_=row))


def refuse(connection: Connection, name: str, key: str, what: str, body: bytes, why: str, now: int) -> None:
    """Keep what was refused, with the reason; the same is kept once."""
    insertion = _INSERT[connection.dialect.name](outbox)
    row = {"state": "dead", "fault": why, "made_at": now, "due_at": now}
    made = insertion.values(hook=name, key=key, event=what, body=body, tries=1, **row)
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


def states(connection: Connection, name: str) -> dict[str, int]:
    """How many groups are open, and how many letters are dead or waiting for another try."""
    query = select(outbox.c.state, func.count()).where(outbox.c.hook == name).group_by(outbox.c.state)
    found = {str(row[0]): int(row[1]) for row in connection.execute(query)}
    return {each: found.get(each, 0) for each in ("open", "waiting", "dead")}


def letters(connection: Connection, name: str, *, before: int | None = None, limit: int = 50) -> list[Letter]:
    """What was refused, the newest first; `before` goes on after a page."""
    query = select(outbox).where(*_refused(name))
    if before is not None:
        query = query.where(outbox.c.id < before)
    rows = connection.execute(query.order_by(outbox.c.id.desc()).limit(limit))
    return [Letter(row.id, row.event, row.state, row.fault, row.made_at, row.body) for row in rows]


def letter(connection: Connection, name: str, number: int) -> Letter | None:
    """One of them."""
    row = connection.execute(select(outbox).where(*_refused(name), outbox.c.id == number)).first()
    return None if row is None else Letter(row.id, row.event, row.state, row.fault, row.made_at, row.body)


def again(connection: Connection, name: str, now: int, number: int | None = None) -> int:
    """Have what was refused tried again, all of it or one; how many."""
    wanted = update(outbox).where(*_refused(name), outbox.c.state == "dead", *_only(number))
    return connection.execute(wanted.values(state="waiting", due_at=now, tries=0)).rowcount


def forget(connection: Connection, name: str, number: int | None = None) -> int:
    """Take away what was refused, all of it or one; how many."""
    return connection.execute(delete(outbox).where(*_refused(name), *_only(number))).rowcount


def _refused(name: str) -> tuple[ColumnElement[bool], ...]:
    return outbox.c.hook == name, outbox.c.event != GROUP, outbox.c.state.in_(["dead", "waiting"])


def _only(number: int | None) -> tuple[ColumnElement[bool], ...]:
    return () if number is None else (outbox.c.id == number,)
