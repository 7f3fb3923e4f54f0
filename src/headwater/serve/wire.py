"""serve.wire: bytes on a socket -> requests, with heads of a bounded size and time; a signal -> a stop that loses nothing.

Uvicorn's parser puts no limit on the head of a request and waits for ever for the rest of one. Here a head has
so many bytes and so many seconds, or the connection is told why and closed; others are not kept waiting either way.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from types import FrameType
from typing import Any

import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol


def bounded(max_header_bytes: int, seconds: float) -> type[HttpToolsProtocol]:
    """The protocol, with these limits for the head of each request."""

    class Bounded(HttpToolsProtocol):
        """HTTP/1.1 as uvicorn speaks it, within limits."""

        _head = 0
        _in_head = True
        _deadline: asyncio.TimerHandle | None = None

        def connection_made(self, transport: Any) -> None:
            super().connection_made(transport)
            self._expect()

        def connection_lost(self, exc: Exception | None) -> None:
            self._relax()
            super().connection_lost(exc)

        def data_received(self, data: bytes) -> None:
            if self._in_head:
                self._head += len(data)
                if self._deadline is None:
                    self._expect()
            super().data_received(data)
            if self._in_head and self._head > max_header_bytes:
                self._refuse(431, "Request Header Fields Too Large", f"more than {max_header_bytes} bytes")

        def on_headers_complete(self) -> None:
            if (
                sum(len(name) + len(value) + 4 for name, value in self.headers) + len(self.url)
                > max_header_bytes
            ):
                self._refuse(431, "Request Header Fields Too Large", f"more than {max_header_bytes} bytes")
                return
            self._in_head, self._head = False, 0
            self._relax()
            super().on_headers_complete()

        def on_body(self, body: bytes) -> None:
            if self.cycle is not None:  # else the head was refused
                super().on_body(body)

        def on_message_complete(self) -> None:
            self._in_head = True
            if self.cycle is not None:
                super().on_message_complete()

        def _expect(self) -> None:
            self._deadline = self.loop.call_later(seconds, self._late)

        def _relax(self) -> None:
            if self._deadline is not None:
                self._deadline.cancel()
                self._deadline = None

        def _late(self) -> None:
            self._deadline = None
            if self._in_head and self._head:
                self._refuse(408, "Request Timeout", f"the head did not arrive within {seconds:g} seconds")
            elif self._in_head and self.cycle is None and not self.transport.is_closing():
                self.transport.close()  # nothing was ever sent

        def _refuse(self, status: int, phrase: str, reason: str) -> None:
            if self.transport.is_closing():
                return
            body = f"{phrase}: {reason}".encode()
            head = f"HTTP/1.1 {status} {phrase}\r\ncontent-type: text/plain; charset=utf-8\r\n"
            head += f"content-length: {len(body)}\r\nconnection: close\r\n\r\n"
            self.transport.write(head.encode() + body)
            self.transport.close()

    return Bounded


class Server(uvicorn.Server):
    """Uvicorn's server; when it is told to stop it says so first, then finishes what it has."""

    def __init__(self, config: uvicorn.Config, stopping: Callable[[], None], drain: float) -> None:
        super().__init__(config)
        self._stopping, self._drain = stopping, drain
        self._told = False

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """A signal to stop: not ready any more, and after the draining time no more connections."""
        self._stopping()
        if self._told or self._drain <= 0:  # a second signal does not wait
            super().handle_exit(sig, frame)
            return
        self._told = True
        loop, leave = asyncio.get_running_loop(), super().handle_exit
        loop.call_soon_threadsafe(loop.call_later, self._drain, leave, sig, frame)
