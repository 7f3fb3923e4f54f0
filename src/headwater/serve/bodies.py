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
    unpack = _unpacker(request.headers.get("content-encoding", "identity").strip().lower())
    parts: list[bytes] = []
    size = 0
    async for chunk in request.stream():
        try:
            part = unpack(chunk, limit - size + 1)
        except (zlib.error, zstandard.ZstdError) as fault:
            raise ClientException(f"the body is not what its Content-Encoding says: {fault}") from None
        size += len(part)
        if size > limit:
            raise TooLarge("", f"the body is more than the {limit:,} bytes that a request may have")
        parts.append(part)
    return b"".join(parts)


def _unpacker(encoding: str) -> Callable[[bytes, int], bytes]:
    """What unpacks a chunk into at most so many bytes: a small body may unpack into a very large one."""
    if encoding in ("", "identity"):
        return lambda chunk, _: chunk
    if encoding in ("gzip", "x-gzip", "deflate"):
        inflate = zlib.decompressobj(wbits=47)  # gzip or zlib, whichever it is

        def unpack(chunk: bytes, room: int) -> bytes:
            return inflate.decompress(chunk, room)

        return unpack
    if encoding == "zstd":
        frame = zstandard.ZstdDecompressor().decompressobj()
        return lambda chunk, _: frame.decompress(chunk)
    raise WrongType(f"Content-Encoding is {encoding!r}: send identity, gzip, deflate or zstd")
