"""store._outbox: messages for others, handed over once under their key -> those that are due, until they are delivered.

Webhooks and their messages stand outside the log: a replay must not tell anybody anything again.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any, NamedTuple

import msgspec
from sqlalchemy import Connection, delete, func, insert, select, update
from sqlalchemy.dialects import postgresql, sqlite

from headwater.store._schema import hooks, outbox

_INSERT: dict[str, Any] = {"postgresql": postgresql.insert, "sqlite": sqlite.insert}


class Hook(NamedTuple):
    """A receiver: where, its secret, and what it wants to hear since when."""

    name: str
    url: str
    secret: str
    options: dict[str, Any]
    since: int


class Message(NamedTuple):
    """One message for one hook."""

    id: int
    hook: str
    key: str
    event: str
    body: bytes
    made_at: int
    due_at: int
    tries: int
    state: str
    fault: str


def all_hooks(connection: Connection) -> list[Hook]:
    """Every hook by its name."""
    rows = connection.execute(select(hooks).order_by(hooks.c.name))
    return [Hook(row.name, row.url, row.secret, msgspec.json.decode(row.options), row.since) for row in rows]


def set_hook(connection: Connection, hook: Hook) -> None:
    """Add a hook, or change it: it hears only of what happens from then on."""
    connection.execute(delete(hooks).where(hooks.c.name == hook.name))
    options = msgspec.json.encode(hook.options, order="sorted").decode()
    connection.execute(insert(hooks).values({**hook._asdict(), "options": options}))


def remove_hook(connection: Connection, name: str) -> bool:
    """Take a hook away with what waits for it; whether it was there."""
    connection.execute(delete(outbox).where(outbox.c.hook == name))
    return connection.execute(delete(hooks).where(hooks.c.name == name)).rowcount == 1


def known(connection: Connection, hook: str, keys: Collection[str]) -> set[str]:
    """Those of the keys that were handed over before."""
    found: set[str] = set()
    listed = sorted(keys)
    for start in range(0, len(listed), 400):
        part = listed[start : start + 400]
        query = select(outbox.c.key).where(outbox.c.hook == hook, outbox.c.key.in_(part))
        found.update(connection.execute(query).scalars())
    return found


def put(connection: Connection, hook: str, key: str, event: str, body: bytes, now: int) -> bool:
    """Hand a message over, once: whether its key was new."""
    made = _INSERT[connection.dialect.name](outbox).values(
        hook=hook,
        key=key,
        event=event,
        body=body,
        made_at=now,
        due_at=now,
        tries=0,
        state="waiting",
        fault="",
    )
    done = connection.execute(made.on_conflict_do_nothing(index_elements=["hook", "key"]))
    return bool(done.rowcount == 1)


def due(connection: Connection, now: int, limit: int = 20) -> list[Message]:
    """The messages for hooks whose time has come, the oldest first."""
    query = select(outbox).where(outbox.c.state == "waiting", outbox.c.due_at <= now)
    query = query.where(outbox.c.hook.in_(select(hooks.c.name)))  # other deliveries keep theirs here, too
    rows = connection.execute(query.order_by(outbox.c.due_at, outbox.c.id).limit(limit))
    return [Message(*row) for row in rows]


def settle(connection: Connection, message: int, *, state: str, due_at: int, tries: int, fault: str) -> None:
    """What became of a message: done, dead, or to be tried again at a time."""
    connection.execute(
        update(outbox)
        .where(outbox.c.id == message, outbox.c.state == "waiting")
        .values(state=state, due_at=due_at, tries=tries, fault=fault)
    )


def messages(
    connection: Connection, hook: str | None = None, limit: int = 100, *, hooks_alone: bool = False
) -> list[Message]:
    """The newest messages; other deliveries keep theirs here, too, unless those of hooks alone are wanted."""
    query = select(outbox).order_by(outbox.c.id.desc()).limit(limit)
    if hook is not None:
        query = query.where(outbox.c.hook == hook)
    if hooks_alone:
        query = query.where(outbox.c.hook.in_(select(hooks.c.name)))
    return [Message(*row) for row in connection.execute(query)]


def counts(connection: Connection) -> dict[tuple[str, str], int]:
    """(hook, state) -> how many messages."""
    query = select(outbox.c.hook, outbox.c.state, func.count()).group_by(outbox.c.hook, outbox.c.state)
    return {(hook, state): number for hook, state, number in connection.execute(query)}


def retry(connection: Connection, hook: str, now: int) -> int:
    """Give what was given up another try; how many."""
    again = update(outbox).where(outbox.c.hook == hook, outbox.c.state == "dead")
    return connection.execute(again.values(state="waiting", due_at=now, tries=0)).rowcount


def forget(connection: Connection, before: int, states: Iterable[str] = ("done", "dead")) -> int:
    """Take away what was settled long ago; how many."""
    old = delete(outbox).where(outbox.c.made_at < before, outbox.c.state.in_(list(states)))
    return connection.execute(old).rowcount
