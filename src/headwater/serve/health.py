"""serve.health: GET /ping, /health, /ready, /openapi.json -> whether the process lives and can answer, and what it answers."""

from __future__ import annotations

import asyncio
import time
from typing import Any

from litestar import Request, Response, get
from litestar.concurrency import sync_to_thread
from litestar.datastructures import State

import headwater
from headwater.errors import StoreError
from headwater.store import Store

_SECONDS = 5.0  # a store that takes longer to answer is not ready
_FRESH = 2.0  # probes of many balancers are answered by one look

_BEGUN = time.monotonic()


class Probe:
    """Whether the store can be read and written, by doing so; one look at a time, and a look counts for a while."""

    def __init__(self, store: Store, *, read_only: bool) -> None:
        self._store, self._read_only = store, read_only
        self._look: asyncio.Task[str | None] | None = None
        self._looked = float("-inf")
        self.stopping = False

    async def fault(self) -> str | None:
        """What is wrong; None when nothing is."""
        if self.stopping:
            return "the server is shutting down"
        if self._look is None or (self._look.done() and time.monotonic() - self._looked > _FRESH):
            self._looked = time.monotonic()
            self._look = asyncio.create_task(sync_to_thread(self._try))
        try:
            return await asyncio.wait_for(asyncio.shield(self._look), _SECONDS)
        except asyncio.TimeoutError:
            return f"the store did not answer within {_SECONDS:g} seconds"

    def _try(self) -> str | None:
        try:
            with self._store.read() as reader:
                reader.span()
            if not self._read_only:
                mark(self._store)
        except StoreError as fault:
            return str(fault)
        return None


def mark(store: Store) -> None:
    """Write something that does no harm: a disk that is full, or a file that may not be written, is found by that."""
    from sqlalchemy import delete, insert

    from headwater.store._schema import meta

    with store.writing() as connection:
        connection.execute(delete(meta).where(meta.c.key == "probed at"))
        connection.execute(insert(meta).values(key="probed at", value=str(time.time_ns())))


@get("/ping", scope="public", media_type="text/plain")
async def get_ping() -> str:
    """The process lives."""
    return "pong"


@get("/health", scope="public", sync_to_thread=True)
def get_health(request: Request[Any, Any, State], state: State) -> Response[Any]:
    """How long the process lives, and whether what it needs answers; 503 where the store does not.

    A browser is led to the page that tells more: at this address Correlator's UI shows tested datasets without a writer.
    """
    if request.headers.get("accept", "").startswith("text/html"):
        return Response(
            b"", status_code=302, headers={"Location": f"{state.serving.base_path}/admin?tab=names"}
        )
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


@get("/openapi.json", include_in_schema=False, scope="public")
async def get_openapi(request: Request[Any, Any, State]) -> dict[str, Any]:
    """The description of this API."""
    return request.app.openapi_schema.to_schema()


@get("/ready", scope="public")
async def get_ready(request: Request[Any, Any, State], state: State) -> Response[Any]:
    """The store can be read and written and has room for more, and the server is not about to stop.

    In a word where plain text is asked for, as probes of Correlator do.
    """
    plain = request.headers.get("accept", "").startswith("text/plain")
    fault, told = await state.probe.fault(), "unavailable"
    room = await sync_to_thread(state.store.room) if fault is None else None
    if room is not None and room["state"] == "full" and not state.serving.read_only:
        fault, told = "no space is left for events", "full"
    if plain:
        word, code = ("ready", 200) if fault is None else ("storage unavailable", 503)
        return Response(word, status_code=code, media_type="text/plain")
    if fault is not None:
        more = {} if room is None else {"room": room}
        return Response({"status": told, "reason": fault, **more}, status_code=503)
    return Response({"status": "ready", "room": room})
