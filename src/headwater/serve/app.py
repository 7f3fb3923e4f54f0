"""serve.app: a store and how to serve it -> the app, and the server that runs it."""

from __future__ import annotations

import gc
import signal
import socket
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from types import FrameType
from typing import Any

from litestar import Litestar, Request, Router
from litestar.concurrency import sync_to_thread
from litestar.config.cors import CORSConfig
from litestar.datastructures import State
from litestar.exceptions import HTTPException, MethodNotAllowedException
from litestar.openapi.config import OpenAPIConfig
from litestar.openapi.spec import Components, SecurityScheme

import headwater
from headwater.deliver.datahub.following import lag
from headwater.deliver.datahub.settings import Delivery
from headwater.errors import HeadwaterError, TransportError
from headwater.event import Limits
from headwater.ingest import Retention
from headwater.redact import Redaction
from headwater.serve import (
    admin,
    correlator,
    deliveries,
    editing,
    faults,
    health,
    incidents,
    lineage,
    logged,
    marquez,
    metrics,
    native,
    paths,
    running,
    ui,
)
from headwater.serve.auth import PUBLIC, Gate, check_keys, check_scopes
from headwater.serve.bodies import Arriving, in_time
from headwater.serve.consume import Consume, Feed
from headwater.serve.intake import Intake
from headwater.serve.journal import keep_journal
from headwater.serve.oidc import Oidc
from headwater.serve.settings import Serving
from headwater.store import Store
from headwater.work import Worker, jobs

_IDLE = 75
"""Seconds that a connection may wait for its next request: longer than proxies keep one (60, most of them), so that it is they who
close it, and no request meets a connection that is just being closed."""
READS = [
    *native.READS,
    *logged.READS,
    *editing.READS,
    running.get_audit,
    running.get_server,
    *correlator.HANDLERS,
    *incidents.HANDLERS,
    health.get_health,
    health.get_ping,
    health.get_openapi,
    health.get_ready,
    metrics.get_metrics,
    *marquez.READS,
    *admin.READS,
    *deliveries.READS,
    *ui.READS,
]
WRITES = [
    lineage.post_event,
    lineage.post_batch,
    lineage.post_datahub,
    running.post_check,
    *marquez.WRITES,
    *correlator.WRITES,
    *incidents.WRITES,
    *editing.WRITES,
    *admin.WRITES,
    *deliveries.WRITES,
]
"""What a read-only server does not have."""


class App(Litestar):
    """The web framework's app, for paths whose parts hold slashes."""

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Answer a request."""
        if scope["type"] == "http":
            paths.keep_slashes(scope)
        await super().__call__(scope, receive, send)


def create_app(
    store: Store,
    serving: Serving = Serving(),  # noqa: B008 - frozen
    limits: Limits = Limits(),  # noqa: B008 - frozen
    spool: Path | None = None,
    *,
    consume: Consume = Consume(),  # noqa: B008 - frozen
    redaction: Redaction = Redaction(),  # noqa: B008 - frozen
    oidc: Oidc = Oidc(),  # noqa: B008 - frozen
    retention: Retention = Retention(),  # noqa: B008 - frozen
    datahub: Delivery | None = None,
) -> Litestar:
    """The app over a store; `/metrics` tells of a spool on this machine, too. Whoever opened the store closes it."""
    delivers = datahub is not None and datahub.to is not None
    tally = metrics.Tally(spool, store.room, (lambda: lag(store)) if delivers else None)
    gate = Gate(store, serving, oidc, count=tally.turn_away)
    arriving = Arriving(4 * serving.max_request_bytes)

    @asynccontextmanager
    async def writing(app: Litestar) -> AsyncIterator[None]:
        intake = None if serving.read_only else Intake(store, limits, redaction, count=tally.count)
        app.state.intake = intake
        fed = consume.brokers and not serving.read_only
        feed = Feed(store, consume, limits, redaction, count=tally.count) if fed else None
        works = serving.work and not serving.read_only
        worker = Worker(store, jobs(retention, datahub)) if works else None
        if worker is not None:
            worker.start()
        tally.watch(intake, lambda: arriving.bytes)
        app.state.following = logged.Following(store)
        try:
            yield
        finally:
            app.state.probe.stopping = True
            if worker is not None:
                await sync_to_thread(worker.close)
            if feed is not None:
                feed.close()
            if intake is not None:
                intake.close()
            gate.close()

    handlers = [*READS, *([] if serving.read_only else WRITES)]
    app = App(
        # one registration: handlers of one path that are registered one by one are wrapped more than once
        route_handlers=[Router("/", route_handlers=handlers)],
        path=serving.base_path or None,
        lifespan=[writing],
        guards=[gate.check],
        middleware=[metrics.REQUESTS.middleware, in_time(serving.request_seconds), paths.decode_parts],
        cors_config=_cors(serving) if serving.cors_origins else None,
        state=State(
            {
                "store": store,
                "serving": serving,
                "tally": tally,
                "limits": limits,
                "retention": retention,
                "datahub": datahub,
                "redaction": redaction,
                "keep_all": Redaction(secrets=False),
                "arriving": arriving,
                "pages": ui.Pages(serving.base_path),
                "probe": health.Probe(store, read_only=serving.read_only),
            }
        ),
        exception_handlers={
            HeadwaterError: faults.answer_fault,
            MethodNotAllowedException: faults.answer_http,
            HTTPException: faults.answer_http,
            Exception: faults.answer_unforeseen,
        },
        openapi_config=_description(serving),
        logging_config=None,  # `journal` has set it up
        request_max_body_size=1 << 20,  # where events are taken `bodies` counts, and unpacked bytes at that
        signature_types=[Request],
        debug=False,
    )
    check_scopes(app)
    app.asgi_handler = keep_journal(app.asgi_handler)  # outside of routing: an unknown path is told, too
    return app


def _cors(serving: Serving) -> CORSConfig:
    return CORSConfig(
        allow_origins=list(serving.cors_origins),
        allow_methods=["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"],
        allow_headers=[
            "Authorization",
            "Content-Type",
            "Content-Encoding",
            "Last-Event-ID",
            "X-API-Key",
            "X-Correlation-ID",
        ],
        expose_headers=["X-Correlation-ID", "Retry-After", "Location"],
    )


def _description(serving: Serving) -> OpenAPIConfig:
    schemes: dict[str, Any] = {
        "bearer": SecurityScheme(type="http", scheme="bearer"),
        "key": SecurityScheme(type="apiKey", name="X-API-Key", security_scheme_in="header"),
    }
    return OpenAPIConfig(
        title="Headwater",
        version=headwater.__version__,
        openapi_router=Router(
            "/hw/schema", route_handlers=[], opt={"scope": PUBLIC}, include_in_schema=False
        ),
        components=Components(security_schemes=schemes),
        security=[{"bearer": []}, {"key": []}] if serving.needs_keys else None,
        use_handler_docstrings=True,
    )


def run_server(
    store: Store,
    serving: Serving,
    limits: Limits,
    *,
    listening: socket.socket | None = None,
    spool: Path | None = None,
    consume: Consume = Consume(),  # noqa: B008 - frozen
    redaction: Redaction = Redaction(),  # noqa: B008 - frozen
    oidc: Oidc = Oidc(),  # noqa: B008 - frozen
    retention: Retention = Retention(),  # noqa: B008 - frozen
    datahub: Delivery | None = None,
    stop: threading.Event | None = None,
) -> None:
    """Serve until interrupted, or until `stop` is set by another thread."""
    import uvicorn

    from headwater.serve.wire import Server, bounded

    check_keys(store, serving, oidc)
    app = create_app(
        store,
        serving,
        limits,
        spool,
        consume=consume,
        redaction=redaction,
        oidc=oidc,
        retention=retention,
        datahub=datahub,
    )
    config = uvicorn.Config(
        app,
        http=bounded(serving.max_header_bytes, serving.request_seconds),
        ws="none",
        log_config=None,
        access_log=False,
        lifespan="on",
        server_header=False,
        proxy_headers=bool(serving.trusted_proxies),
        forwarded_allow_ips=list(serving.trusted_proxies),
        timeout_graceful_shutdown=int(serving.shutdown_seconds),
        timeout_keep_alive=_IDLE,
    )

    def stopping() -> None:
        app.state.probe.stopping = True  # who follows the log hears of it, too

    if threading.current_thread() is threading.main_thread():
        # when it has finished, uvicorn raises the signal once more: whoever opened the store must still close it
        signal.signal(signal.SIGTERM, _leave)
        gc.collect()
        gc.freeze()  # what the server is made of lives as long as it: no search for garbage need pass through it again
        # an answer is made of tens of thousands of objects, all of them alive until it is sent
        gc.set_threshold(10_000, 20, 20)
    server = Server(config, stopping, serving.drain_seconds)
    if stop is not None:
        threading.Thread(target=_when, args=(stop, server.handle_exit), name="stop", daemon=True).start()
    server.run(sockets=[listening or listen(serving)])


def _when(asked: threading.Event, leave: Callable[[int, None], None]) -> None:
    asked.wait()
    leave(signal.SIGTERM, None)


def _leave(number: int, frame: FrameType | None) -> None:
    raise SystemExit(0)


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
