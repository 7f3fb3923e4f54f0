"""serve.app: a store and how to serve it -> the app, and the server that runs it."""

from __future__ import annotations

import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from litestar import Litestar, Request
from litestar.datastructures import State
from litestar.exceptions import HTTPException, MethodNotAllowedException
from litestar.openapi.config import OpenAPIConfig

import headwater
from headwater.errors import ConfigError, HeadwaterError, TransportError
from headwater.event import Limits
from headwater.serve import editing, faults, health, lineage, logged, metrics, native
from headwater.serve.intake import Intake
from headwater.store import Store


@dataclass(frozen=True, slots=True)
class Serving:
    """The settings of room `serve`."""

    host: str = "127.0.0.1"
    port: int = 5000
    base_path: str = ""
    read_only: bool = False
    lineage_status: int = 201
    """What a single `POST /api/v1/lineage` answers: 201 as Marquez does, 200 as Correlator."""
    max_request_bytes: int = 64 << 20

    def __post_init__(self) -> None:
        if self.lineage_status not in (200, 201):
            raise ConfigError(f"serve.lineage_status is {self.lineage_status}, not 200 or 201")
        if self.base_path and not self.base_path.startswith("/"):
            raise ConfigError(f"serve.base_path is {self.base_path!r}: it must start with a slash")


READS = [
    *native.READS,
    *logged.READS,
    *editing.READS,
    health.get_health,
    health.get_openapi,
    health.get_ready,
    metrics.get_metrics,
]
WRITES = [lineage.post_event, lineage.post_batch, *editing.WRITES]


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
        app.state.following = logged.Following(store)
        try:
            yield
        finally:
            if intake is not None:
                intake.close()

    return Litestar(
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
    app = create_app(store, serving, limits, spool)
    config = uvicorn.Config(
        app,
        log_level="warning",
        access_log=False,
        lifespan="on",
        timeout_graceful_shutdown=10,
    )
    server = uvicorn.Server(config)
    app.state.leaving = lambda: server.should_exit  # who follows the log must hear of it, or would hold it up
    server.run(sockets=[sock])


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
