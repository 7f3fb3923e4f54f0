"""serve.health: GET /health, /ready -> whether the process lives, and whether it can answer."""

from __future__ import annotations

from typing import Any

from litestar import Response, get
from litestar.datastructures import State

import headwater
from headwater.errors import StoreError


@get("/health")
async def get_health() -> dict[str, Any]:
    """The process lives."""
    return {"status": "healthy", "service": "headwater", "version": headwater.__version__}


@get("/ready", sync_to_thread=True)
def get_ready(state: State) -> Response[dict[str, Any]]:
    """The store answers."""
    try:
        with state.store.read() as reader:
            reader.span()
    except StoreError as fault:
        return Response({"status": "unavailable", "reason": str(fault)}, status_code=503)
    return Response({"status": "ready"})
