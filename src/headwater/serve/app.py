"""serve.app: a store and how to serve it -> the app, and the server that runs it."""

from __future__ import annotations

import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from litestar import Litestar, Request
from litestar.concurrency import sync_to_thread
from litestar.datastructures import State
from litestar.exceptions import HTTPException, MethodNotAllowedException
from litestar.openapi.config import OpenAPIConfig

import headwater
from headwater.errors import ConfigError, HeadwaterError, TransportError
from headwater.event import Limits
from headwater.serve import correlator, faults, health, incidents, lineage, metrics, native
from headwater.serve.intake import Intake
from headwater.serve.journal import keep_journal
from headwater.store import Store
from headwater.work import Worker


@dataclass(frozen=True, slots=True)
class Serving:
    """The settings of room `serve`."""

    host: str = "127.0.0.1"
    port: int = 5000
    base_path: str = ""
    read_only: bool = False
    lineage_status: int = 201
    """What a single `POST /api/v1/lineage` answers: 201 as Marquez does, 200 as Correlator."""
    correlator_strict: bool = False
    """Whether the batch paths refuse all that Correlator does: events without producer, a wrong sequence …"""
    max_request_bytes: int = 64 << 20
    work: bool = True
    """Whether this server does what must happen by itself; of several, one at a time does."""

    def __post_init__(self) -> None:
        if self.lineage_status not in (200, 201):
            raise ConfigError(f"serve.lineage_status is {self.lineage_status}, not 200 or 201")
        if self.base_path and not self.base_path.startswith("/"):
            raise ConfigError(f"serve.base_path is {self.base_path!r}: it must start with a slash")


READS = [
    native.get_graph,
    native.get_show,
    native.get_search,
    native.get_status,
    *correlator.HANDLERS,
    *incidents.HANDLERS,
    health.get_health,
    health.get_ping,
    health.get_openapi,
    health.get_ready,
    metrics.get_metrics,
]
WRITES = [lineage.post_event, lineage.post_batch, *correlator.WRITES, *incidents.WRITES]


def create_app(
    store: Store,
    serving: Serving = Serving(),  # noqa: B008 - frozen
    limits: Limits = Limits(),  # noqa: B008 - frozen
    spool: Path | None = None,
) -> Litestar:
    """The app over a store; `/metrics` tells of a spool on this machine, too. Whoever opened the store closes it."""
    tally = metrics.Tally(spool)

    @asynccontextmanager
    async def writing(app: Litestar) -> AsyncIterator[None]:
        intake = None if serving.read_only else Intake(store, limits, count=tally.count)
        app.state.intake = intake
        worker = Worker(store) if serving.work and not serving.read_only else None
        if worker is not None:
            worker.start()
        try:
            yield
        finally:
            if worker is not None:
                await sync_to_thread(worker.close)
            if intake is not None:
                intake.close()

    app = Litestar(
        route_handlers=[*READS, *([] if serving.read_only else WRITES)],
        path=serving.base_path or None,
        lifespan=[writing],
        middleware=[metrics.REQUESTS.middleware],
        state=State({"store": store, "serving": serving, "tally": tally}),
        exception_handlers={
            HeadwaterError: faults.answer_fault,
            MethodNotAllowedException: faults.answer_http,
            HTTPException: faults.answer_http,
        },
        openapi_config=OpenAPIConfig(title="Headwater", version=headwater.__version__, path="/hw/schema"),
        request_max_body_size=None,  # `bodies` counts while it reads, and unpacked bytes at that
        signature_types=[Request],
        debug=False,
    )
    app.asgi_handler = keep_journal(app.asgi_handler)  # outside of routing: an unknown path is told, too
    return app


def run_server(
    store: Store,
    serving: Serving,
    limits: Limits,
    *,
    listening: socket.socket | None = None,
    spool: Path | None = None,
) -> None:
    """Serve until interrupted."""
    import uvicorn

    sock = listening or listen(serving)
    config = uvicorn.Config(
        create_app(store, serving, limits, spool),
        log_level="warning",
        access_log=False,
        lifespan="on",
        timeout_graceful_shutdown=10,
    )
    uvicorn.Server(config).run(sockets=[sock])


def listen(serving: Serving, *, tries: int = 1) -> socket.socket:
    """A socket on the port, or on one of the next `tries`; refused with what to do where it is taken."""
    fault: Any = None
    for port in range(serving.port, serving.port + tries) if serving.port else (0,):
        sock = socket.socket(socket.AF_INET6 if ":" in serving.host else socket.AF_INET)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            sock.bind((serving.host, port))
            sock.listen(1024)
            return sock
        except OSError as refused:
            sock.close()
            fault = refused
    raise TransportError(
        f"cannot listen on {serving.host}:{serving.port}: {fault.strerror}. Choose another with --port",
        retryable=False,
    )
