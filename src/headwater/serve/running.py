"""serve.running: what who runs the server asks -> the audit trail, how the server stands, and what would become of an event."""

from __future__ import annotations

import time
from collections import Counter
from typing import Annotated, Any

from litestar import Request, get, post
from litestar.datastructures import State
from litestar.params import QueryParameter

import headwater
from headwater.facts import derive
from headwater.ingest import read_event
from headwater.naming import scrub
from headwater.query.audit import MAX_LIMIT, audit
from headwater.query.nodes import iso, moment
from headwater.serve.auth import who
from headwater.serve.bodies import read_body
from headwater.serve.journal import call_of
from headwater.serve.schemas import TakesEvent


@get("/hw/v1/audit", sync_to_thread=True, scope="admin")
def get_audit(
    state: State,
    since: Annotated[str | None, QueryParameter(description="From this time on: ISO 8601, or -7d.")] = None,
    by: Annotated[str | None, QueryParameter(description="Only what this caller did.")] = None,
    limit: Annotated[int, QueryParameter(ge=1, le=MAX_LIMIT)] = 100,
) -> list[dict[str, Any]]:
    """Who changed what by hand, newest first: tags, descriptions, aliases, deletions, keys."""
    return audit(state.store, since=moment(since) if since else None, by=by, limit=limit)


@get("/hw/v1/server", sync_to_thread=True, scope="read")
def get_server(request: Request[Any, Any, State], state: State) -> dict[str, Any]:
    """How the server stands, and whom it takes you for."""
    room = state.store.room()
    requests, size = state.intake.waiting() if state.intake else (0, 0)
    return {
        "version": headwater.__version__,
        "time": iso(time.time_ns() // 1000),
        "auth": "on" if state.serving.needs_keys else "off",
        "read_only": state.serving.read_only,
        "caller": {"name": who(request), "scopes": sorted(call_of(request.scope).scopes)},
        "store": {
            "url": scrub(state.store.url),
            "bytes": room["used_bytes"],
            "free_bytes": room["free_bytes"],
        },
        "intake": {"requests": requests, "bytes": size},
    }


@post(
    "/hw/v1/check",
    status_code=200,
    scope="ingest",
    operation_class=TakesEvent,
    request_max_body_size=None,
)
async def post_check(request: Request[Any, Any, State], state: State) -> dict[str, Any]:
    """Look at one event as if it were sent, and tell what would be kept of it; nothing is stored."""
    serving = state.serving
    body = await read_body(request, serving.max_request_bytes, state.arriving)
    event = read_event(body, state.limits, state.redaction)
    return {
        "kind": event.kind,
        "type": event.type,
        "time": iso(event.time),
        "bytes": len(event.raw),
        "redacted": event.raw != read_event(body, state.limits, state.keep_all).raw,
        "rows": dict(Counter(table for table, _, _ in derive(event))),
    }
