"""serve.paths: a path as it was sent -> a path whose parts may hold slashes, and those parts as they were meant.

Names of datasets hold `/` and `:`. A client writes them percent-encoded, as one part of the path. The server's
decoded path no longer tells `%2F` from a separator, so routing uses one in which `%2F` and `%25` stay encoded, and
the parts that routing found are decoded afterwards.
"""

from __future__ import annotations

import re
from urllib.parse import unquote

from litestar.exceptions import ClientException
from litestar.types import ASGIApp, Receive, Scope, Send

_KEPT = re.compile(r"%(?=25|2[fF])")


def keep_slashes(scope: Scope) -> None:
    """Let `%2F` of a path's part stay what it is, until routing is done."""
    raw = (scope.get("raw_path") or b"").partition(b"?")[0]  # some servers leave the query in it
    if b"%2" in raw:
        scope["path"] = unquote(_KEPT.sub("%25", raw.decode("latin-1")))


def decode_part(part: str) -> str:
    """A part of a path as it was meant.

    >>> decode_part("s3:%2F%2Flake%25")
    's3://lake%'
    """
    return part.replace("%2F", "/").replace("%2f", "/").replace("%25", "%")


def decode_parts(app: ASGIApp) -> ASGIApp:
    """The middleware that gives handlers the parts as they were meant, and refuses what no name can hold."""

    async def decoding(scope: Scope, receive: Receive, send: Send) -> None:
        scope["path_params"] = parts = {
            name: decode_part(str(part)) for name, part in scope.get("path_params", {}).items()
        }
        if any("\0" in part for part in parts.values()):
            raise ClientException("the path holds a NUL character: no name does")
        if b"%00" in scope.get("query_string", b""):
            raise ClientException("the query holds a NUL character: no name does")
        await app(scope, receive, send)

    return decoding
