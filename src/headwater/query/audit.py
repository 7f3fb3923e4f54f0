"""query.audit: the commands in the log, and what was done to keys, hooks and deliveries -> who did what, newest first."""

from __future__ import annotations

from collections.abc import Iterator
from heapq import merge
from itertools import islice
from typing import Any

import msgspec
from sqlalchemy import Connection, select

from headwater.query.nodes import iso
from headwater.store import Store
from headwater.store._packing import unpack
from headwater.store._schema import key_audit, log

MAX_LIMIT = 1000
_PART = 200


def audit(
    store: Store, *, since: int | None = None, by: str | None = None, limit: int = 100
) -> list[dict[str, Any]]:
    """What people and programs did by hand since a time: at, by, what, and the command as it was given."""
    with store.read() as reader:
        found = merge(
            _commands(reader.connection, since), _outside(reader.connection, since), key=_time, reverse=True
        )
        wanted = (each for each in found if by is None or each["by"] == by)
        return [{**each, "at": iso(each["at"])} for each in islice(wanted, min(limit, MAX_LIMIT))]


def _time(row: dict[str, Any]) -> int:
    at: int = row["at"]
    return at


def _commands(connection: Connection, since: int | None) -> Iterator[dict[str, Any]]:
    """By the time they came in: what a command itself calls its time may lie anywhere."""
    query = select(log.c.id, log.c.received_at, log.c.body).where(log.c.kind == "command")
    if since is not None:
        query = query.where(log.c.received_at >= since)
    last: int | None = None
    while True:
        part = query if last is None else query.where(log.c.id < last)
        rows = connection.execute(part.order_by(log.c.id.desc()).limit(_PART)).all()
        for number, received, body in rows:
            said = msgspec.json.decode(unpack(body))
            what, who, at = said.pop("command"), said.pop("by", ""), said.pop("at")
            yield {"at": received, "by": who, "what": what, "said_at": iso(at), "detail": said}
            last = number
        if len(rows) < _PART:
            return


def _outside(connection: Connection, since: int | None) -> Iterator[dict[str, Any]]:
    """What stands outside the log: keys, and messages that were tried again or forgotten."""
    query = select(key_audit).order_by(key_audit.c.at.desc(), key_audit.c.id.desc())
    if since is not None:
        query = query.where(key_audit.c.at >= since)
    for row in connection.execute(query).mappings():
        detail = (
            {"key": row["key_id"], "name": row["name"], "scopes": row["detail"].split()}
            if row["what"].startswith("key_")
            else {"name": row["name"], "which": row["detail"]}
        )
        yield {
            "at": row["at"],
            "by": row["by"],
            "what": row["what"],
            "said_at": iso(row["at"]),
            "detail": detail,
        }
