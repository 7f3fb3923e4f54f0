"""serve.deciding: what a person says of an incident over HTTP -> a command, and where the incident stands after it."""

from __future__ import annotations

from typing import Any

import msgspec
from litestar import Request
from litestar.exceptions import ClientException, HTTPException

from headwater.facts.commands import SetIncident
from headwater.incidents import Incident, State
from headwater.ingest import command
from headwater.query.incidents import DAY, clock, find
from headwater.serve.auth import who
from headwater.serve.bodies import read_body
from headwater.store import Store

_MOST_BYTES = 1 << 20
MUTE_DAYS = 30


class Unprocessable(HTTPException):
    """A body whose fields make no sense."""

    status_code = 422


class Conflict(HTTPException):
    """A change that is not allowed from where the incident stands."""

    status_code = 409


async def read_object(request: Request[Any, Any, Any]) -> dict[str, Any]:
    """A body that is a JSON object."""
    body = await read_body(request, _MOST_BYTES)
    if not body.strip():
        raise ClientException("Request body cannot be empty")
    try:
        told = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as fault:
        raise ClientException(f"Invalid JSON: {fault}") from None
    if not isinstance(told, dict):
        raise ClientException("Invalid JSON: an object is expected")
    return told


def number_of(text: str) -> int:
    """An incident's id as a path holds it."""
    if not (text.isascii() and text.isdigit() and len(text) < 19):
        raise ClientException("Invalid incident ID: must be a positive integer")
    return int(text)


def words_of(told: dict[str, Any], *names: str) -> dict[str, Any]:
    """The texts of a body, empty where they are missing."""
    found: dict[str, Any] = {}
    for name in names:
        value = told.get(name)
        if value is not None and (not isinstance(value, str) or len(value) > 4_000 or "\0" in value):
            raise Unprocessable(f"{name} must be a text of at most 4,000 characters")
        found[name] = value or ""
    return found


def days_of(told: dict[str, Any], name: str) -> int:
    """For how many days a mute holds."""
    days = told.get(name)
    days = MUTE_DAYS if days is None else days
    if isinstance(days, bool) or not isinstance(days, int) or not 1 <= days <= 365:
        raise Unprocessable(f"{name} must be between 1 and 365")
    return days


def decide(
    store: Store,
    number: int,
    status: str,
    *,
    by: str,
    reason: str = "",
    note: str = "",
    days: int | None = None,
    allowed: dict[str, tuple[str, ...]] | None = None,
) -> tuple[Incident, State]:
    """Say it; refused where `allowed` does not name the new status for the present one."""
    now = clock()
    with store.read() as reader:
        incident, _ = find(reader, number, now)
    current = incident.state(now).status
    if allowed is not None and status not in allowed[current]:
        ends = f": {current} is a terminal state" if not allowed[current] else ""
        raise Conflict(f"cannot transition from {current} to {status}{ends}")
    until = now + days * DAY if status == "muted" and days is not None else None
    said = SetIncident(
        at=now, by=by, incident=incident.id, status=status, reason=reason, note=note, until=until
    )
    command(store, said)
    with store.read() as reader:
        incident, _ = find(reader, number, now)
    return incident, incident.state(now)


__all__ = ["Conflict", "Unprocessable", "days_of", "decide", "number_of", "read_object", "who", "words_of"]
