"""serve.journal: a request -> its correlation id, and one line in the log when it was answered.

What a line tells is the route, never the path or the query that a client wrote: those may hold secrets. Whatever
else is logged goes through the same scrubbing.
"""

from __future__ import annotations

import logging
import re
import sys
import time
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import Any
from uuid import uuid4

import msgspec
from litestar.enums import ScopeType
from litestar.types import ASGIApp, HTTPScope, Message, Receive, Scope, Send

from headwater.naming import scrub

LOGGER = logging.getLogger("headwater.serve")
_ID = re.compile(rb"[\w.:/+=@-]{1,128}").fullmatch
_KEY = re.compile(r"\bhw_[0-9a-f]{12}_[\w-]+")


@dataclass(slots=True)
class Call:
    """One request, as the log and its answer tell of it."""

    id: str
    who: str = ""
    """The name of the key, or the subject of the token."""
    scopes: frozenset[str] = frozenset()


def call_of(scope: Any) -> Call:
    """The call that a request belongs to."""
    found: Call = scope["headwater.call"]
    return found


def keep_journal(app: ASGIApp) -> ASGIApp:
    """The app, with a correlation id in and out and a line in the log for every request."""

    async def told(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != ScopeType.HTTP:
            await app(scope, receive, send)
            return
        given = next((value for name, value in scope["headers"] if name == b"x-correlation-id"), b"")
        call = Call(given.decode() if _ID(given) else str(uuid4()))
        scope["headwater.call"] = call  # type: ignore[typeddict-unknown-key]
        begun, status = time.perf_counter(), 0

        async def answer(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message["headers"] = [*message["headers"], (b"x-correlation-id", call.id.encode())]
            await send(message)

        try:
            await app(scope, receive, answer)
        finally:
            _tell(scope, call, status, time.perf_counter() - begun)

    return told


def _tell(scope: HTTPScope, call: Call, status: int, seconds: float) -> None:
    client = scope.get("client")
    level = logging.ERROR if status >= 500 and status != 503 else logging.INFO
    if not LOGGER.isEnabledFor(level):
        return
    fields = {
        "correlation_id": call.id,
        "method": scope["method"],
        "route": scope.get("path_template") or "unknown",
        "status": status,  # 0: the client left before it was answered
        "ms": round(seconds * 1000, 2),
        "key": call.who or None,
        "client": client[0] if client else None,
    }
    LOGGER.log(level, "request", extra={"fields": fields})


class Lines(logging.Formatter):
    """A log record as one line, in text or JSON, without secrets."""

    def __init__(self, form: str = "text") -> None:
        super().__init__()
        self._json = form == "json"

    def format(self, record: logging.LogRecord) -> str:
        """The line."""
        fields: dict[str, Any] = getattr(record, "fields", {})
        message = hide(record.getMessage())
        trace = hide(self.formatException(record.exc_info)) if record.exc_info else None
        moment = datetime.fromtimestamp(record.created, timezone.utc).isoformat(timespec="milliseconds")
        when = moment.replace("+00:00", "Z")
        if self._json:
            line = {
                "time": when,
                "level": record.levelname.lower(),
                "logger": record.name,
                "message": message,
            }
            line |= fields
            if trace:
                line["trace"] = trace
            return msgspec.json.encode(line).decode()
        told = " ".join(f"{name}={value}" for name, value in fields.items() if value is not None)
        head = f"{when} {record.levelname:7} {record.name}: {message}"
        return "\n".join(part for part in (f"{head} {told}".rstrip(), trace) if part)


def hide(text: str) -> str:
    """A text that may be logged: without keys of ours, and without what looks like another secret."""
    return scrub(_KEY.sub("***", text))


def set_up_logging(form: str, level: str) -> None:
    """Send what is logged to stderr, a line each."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(Lines(form))
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(logging.WARNING)
    logging.getLogger("headwater").setLevel(level)
