"""serve.bodies: a request -> its body: in time, of a type we read, unpacked, within the limit."""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import Callable
from typing import Any

import zstandard
from litestar import Request
from litestar.concurrency import sync_to_thread
from litestar.exceptions import ClientException, HTTPException
from litestar.types import ASGIApp, Receive, Scope, Send

from headwater.errors import TooLarge


class WrongType(HTTPException):
    """A body that is no JSON."""

    status_code = 415


class Late(HTTPException):
    """A body that did not arrive in time."""

    status_code = 408


class Crowded(HTTPException):
    """More bytes are on their way in than may be held at once."""

    status_code = 503


class Arriving:
    """The bytes of bodies that are on their way in: many clients that send slowly must not fill the memory."""

    def __init__(self, most: int) -> None:
        self.bytes, self._most = 0, most

    def add(self, size: int) -> None:
        """So many more have come."""
        if self.bytes + size > self._most:
            raise Crowded(
                "the server is receiving more than it can hold: try again", headers={"Retry-After": "1"}
            )
        self.bytes += size


def in_time(seconds: float) -> Callable[[ASGIApp], ASGIApp]:
    """The middleware that gives each body so long to arrive, whoever reads it."""

    def middleware(app: ASGIApp) -> ASGIApp:
        async def timely(scope: Scope, receive: Receive, send: Send) -> None:
            clock = asyncio.get_running_loop().time
            until, arrived = clock() + seconds, scope.get("method") in _BODILESS

            async def awaited() -> Any:
                nonlocal arrived
                if arrived:  # what is waited for now is that the client leaves
                    return await receive()
                try:
                    message = await asyncio.wait_for(receive(), max(0.0, until - clock()))
                except asyncio.TimeoutError:
                    arrived = True
                    raise Late(
                        f"the body did not arrive within {seconds:g} seconds", headers={"Connection": "close"}
                    ) from None
                arrived = not message.get("more_body")
                return message

            await app(scope, awaited, send)

        return timely

    return middleware


_BODILESS = ("GET", "HEAD", "OPTIONS")


async def read_body(request: Request[Any, Any, Any], limit: int, arriving: Arriving | None = None) -> bytes:
    """The body of a request, unpacked; refused as soon as it grows over `limit`, before it is held in memory."""
    kind = request.headers.get("content-type", "").split(";")[0].strip().lower()
    if kind and kind != "application/json" and not kind.endswith(("+json", "/x-ndjson")):
        raise WrongType(f"Content-Type is {kind!r}: send application/json")
    declared = request.headers.get("content-length", "")
    if declared.isdigit() and int(declared) > limit:
        raise TooLarge(
            "", f"a body of {int(declared):,} bytes is more than the {limit:,} that a request may have"
        )
    encoding = request.headers.get("content-encoding", "identity").strip().lower()
    if encoding not in _ENCODINGS:
        raise WrongType(f"Content-Encoding is {encoding!r}: send identity, gzip, deflate or zstd")
    body = await _received(request, limit, arriving or Arriving(limit + 1))
    try:
        unpack = _ENCODINGS[encoding]
        if len(body) < _LARGE:
            body = unpack(body, limit + 1)
        else:  # that takes a while: others are served meanwhile
            body = await sync_to_thread(unpack, body, limit + 1)
    except (zlib.error, zstandard.ZstdError, EOFError) as fault:
        raise ClientException(f"the body is not what its Content-Encoding says: {fault}") from None
    if len(body) > limit:
        raise TooLarge("", f"the body unpacks into more than the {limit:,} bytes that a request may have")
    return body


async def _received(request: Request[Any, Any, Any], limit: int, arriving: Arriving) -> bytes:
    parts: list[bytes] = []
    size = 0
    try:
        async for chunk in request.stream():
            if size + len(chunk) > limit:
                raise TooLarge("", f"the body is more than the {limit:,} bytes that a request may have")
            arriving.add(len(chunk))
            size += len(chunk)
            parts.append(chunk)
    finally:
        arriving.bytes -= size
    return b"".join(parts)


def _inflate(body: bytes, room: int) -> bytes:
    """Gzip or zlib, whichever it is; gzip may have several members, but each costs a copy of what follows it."""
    parts: list[bytes] = []
    for _ in range(_MEMBERS):
        unpack = zlib.decompressobj(wbits=47)
        parts.append(unpack.decompress(body, room))
        room -= len(parts[-1])
        body = unpack.unused_data
        if room <= 0 or (unpack.eof and not body):
            return b"".join(parts)
        if not unpack.eof:
            raise EOFError("it ends too early")
    raise EOFError(f"it has more than {_MEMBERS} members")


def _zstd(body: bytes, room: int) -> bytes:
    """One frame or several; a frame that asks for more memory than a body may have is refused."""
    reader = zstandard.ZstdDecompressor(max_window_size=_WINDOW)
    with reader.stream_reader(body, read_across_frames=True) as unpacked:
        made = unpacked.read(room)
    if body and not made:  # what ends later than its first block is found to be no JSON
        raise EOFError("it ends too early")
    return made


_WINDOW = 1 << 27
_MEMBERS = 16
_LARGE = 1 << 16


_ENCODINGS: dict[str, Callable[[bytes, int], bytes]] = {
    "": lambda body, _: body,
    "identity": lambda body, _: body,
    "gzip": _inflate,
    "x-gzip": _inflate,
    "deflate": _inflate,
    "zstd": _zstd,
}
"""What unpacks a body into at most so many bytes: a small one may unpack into a very large one."""
