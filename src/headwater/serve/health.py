"""serve.health: GET /health, /ready, /openapi.json -> whether the process lives and can answer, and what it answers."""

from __future__ import annotations

from typing import Any

from litestar import Request, Response, get
from litestar.datastructures import State

import headwater
from headwater.errors import StoreError


@get("/health")
async def get_health() -> dict[str, Any]:
    """The process lives."""
    return {"status": "healthy", "service": "headwater", "version": headwater.__version__}


@get("/openapi.json", include_in_schema=False)
async def get_openapi(request: Request[Any, Any, State]) -> dict[str, Any]:
    """The description of this API."""
    return request.app.openapi_schema.to_schema()


@get("/ready", sync_to_thread=True)
def get_ready(state: State) -> Response[dict[str, Any]]:
    """The store answers, and has room for more."""
    try:
        with state.store.read() as reader:
            reader.last_entry()
        room = state.store.room()
    except StoreError as fault:
        return Response({"status": "unavailable", "reason": str(fault)}, status_code=503)
    if room["state"] == "full" and not state.serving.read_only:
        return Response(
            {"status": "full", "reason": "no space is left for events", "room": room}, status_code=503
        )
    return Response({"status": "ready", "room": room})
