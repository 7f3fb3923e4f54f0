"""serve.health: GET /ping, /health, /ready, /openapi.json -> whether the process lives and can answer, and what it answers."""

from __future__ import annotations

import time
from typing import Any

from litestar import Request, Response, get
from litestar.datastructures import State

import headwater
from headwater.errors import StoreError

_BEGUN = time.monotonic()


@get("/ping", scope="public", media_type="text/plain")
async def get_ping() -> str:
    """The process lives."""
    return "pong"


@get("/health", scope="public", sync_to_thread=True)
def get_health(state: State) -> Response[dict[str, Any]]:
    """The process lives, for how long, and whether what it needs answers; 503 where the store does not."""
    begun = time.monotonic()
    check: dict[str, Any] = {"status": "healthy"}
    try:
        with state.store.read() as reader:
            reader.span()
    except StoreError as fault:
        check = {"status": "unhealthy", "error": str(fault)}
    check["latency_ms"] = round((time.monotonic() - begun) * 1000)
    postgres = state.store.url.startswith("postgres")
    model = {
        "status": check["status"],
        "service": "headwater",
        "serviceName": "headwater",
        "version": headwater.__version__,
        "uptime": _lasted(time.monotonic() - _BEGUN),
        "checks": {
            "store": check,
            "postgres": check if postgres else {"status": "disabled"},
            "kafka": {"status": "disabled"},
        },
    }
    return Response(model, status_code=200 if check["status"] == "healthy" else 503)


def _lasted(seconds: float) -> str:
    """A duration as Go writes it.

    >>> _lasted(15792)
    '4h23m12s'
    """
    hours, rest = divmod(int(seconds), 3600)
    minutes, left = divmod(rest, 60)
    return f"{f'{hours}h' if hours else ''}{f'{minutes}m' if hours or minutes else ''}{left}s"


@get("/openapi.json", scope="public", include_in_schema=False)
async def get_openapi(request: Request[Any, Any, State]) -> dict[str, Any]:
    """The description of this API."""
    return request.app.openapi_schema.to_schema()


@get("/ready", scope="public", sync_to_thread=True)
def get_ready(request: Request[Any, Any, State], state: State) -> Response[Any]:
    """The store answers: in a word where plain text is asked for, as probes of Correlator do."""
    plain = request.headers.get("accept", "").startswith("text/plain")
    try:
        with state.store.read() as reader:
            reader.span()
    except StoreError as fault:
        if plain:
            return Response("storage unavailable", status_code=503, media_type="text/plain")
        return Response({"status": "unavailable", "reason": str(fault)}, status_code=503)
    return Response("ready", media_type="text/plain") if plain else Response({"status": "ready"})
