"""serve.bodies: a request -> its body: of a type we read, unpacked, within the limit."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from typing import Any

import zstandard
from litestar import Request
from litestar.exceptions import ClientException, HTTPException

from headwater.errors import TooLarge


class WrongType(HTTPException):
    """A body that is no JSON."""

    status_code = 415


async def read_body(request: Request[Any, Any, Any], limit: int) -> bytes:
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
    parts: list[bytes] = []
    size = 0
    async for chunk in request.stream():
        size += len(chunk)
        if size > limit:
            raise TooLarge("", f"the body is more than the {limit:,} bytes that a request may have")
        parts.append(chunk)
    body = b"".join(parts)
    try:
        body = _ENCODINGS[encoding](body, limit + 1)
    except (zlib.error, zstandard.ZstdError) as fault:
        raise ClientException(f"the body is not what its Content-Encoding says: {fault}") from None
    if len(body) > limit:
        raise TooLarge("", f"the body unpacks into more than the {limit:,} bytes that a request may have")
    return body


def _inflate(body: bytes, room: int) -> bytes:
    return zlib.decompressobj(wbits=47).decompress(body, room)  # gzip or zlib, whichever it is


def _zstd(body: bytes, room: int) -> bytes:
    with zstandard.ZstdDecompressor().stream_reader(body, read_across_frames=True) as reader:
        return reader.read(room)


_ENCODINGS: dict[str, Callable[[bytes, int], bytes]] = {
    "": lambda body, _: body,
    "identity": lambda body, _: body,
    "gzip": _inflate,
    "x-gzip": _inflate,
    "deflate": _inflate,
    "zstd": _zstd,
}
"""What unpacks a body into at most so many bytes: a small one may unpack into a very large one."""
