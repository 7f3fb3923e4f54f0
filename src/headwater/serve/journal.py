"""serve.journal: a request -> its correlation id, in and out."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

from litestar.enums import ScopeType
from litestar.types import ASGIApp, Message, Receive, Scope, Send

_ID = re.compile(rb"[\w.:/+=@-]{1,128}").fullmatch


@dataclass(slots=True)
class Call:
    """One request, as its answer tells of it."""

    id: str
    who: str = ""
    """The name of the key."""


def call_of(scope: Any) -> Call:
    """The call that a request belongs to."""
    found: Call = scope["headwater.call"]
    return found


def keep_journal(app: ASGIApp) -> ASGIApp:
    """The app, with a correlation id in and out of every request."""

    async def told(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != ScopeType.HTTP:
            await app(scope, receive, send)
            return
        given = next((value for name, value in scope["headers"] if name == b"x-correlation-id"), b"")
        call = Call(given.decode() if _ID(given) else str(uuid4()))
        scope["headwater.call"] = call  # type: ignore[typeddict-unknown-key]

        async def answer(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message["headers"], (b"x-correlation-id", call.id.encode())]
            await send(message)

        await app(scope, receive, answer)

    return told
