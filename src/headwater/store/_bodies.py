"""store._bodies: digests of contents -> their bodies, unpacked, those that were read lately without the database.

Facets, schemas and column sets repeat from run to run: a page of runs needs a few bodies, again and again.
"""

from __future__ import annotations

import threading
from collections.abc import Collection

from headwater.store._driver import Cursor
from headwater.store._packing import unpack

_PART = 500


class Bodies:
    """Unpacked bodies by digest: what was read lately, up to a number of bytes."""

    def __init__(self, room: int = 64 << 20, largest: int = 64 << 10) -> None:
        self._room, self._largest = room, largest
        self._known: dict[bytes, bytes] = {}
        self._size = 0
        self._lock = threading.Lock()

    def load(self, cursor: Cursor, digests: Collection[bytes]) -> dict[bytes, bytes]:
        """The bodies under these digests."""
        found = {digest: body for digest in digests if (body := self._known.get(digest)) is not None}
        missing = [digest for digest in digests if digest not in found]
        for start in range(0, len(missing), _PART):
            part = missing[start : start + _PART]
            marks = ", ".join("?" for _ in part)
            cursor.execute(f"SELECT digest, body FROM contents WHERE digest IN ({marks})", part)
            for digest, packed in cursor.fetchall():
                found[bytes(digest)] = body = unpack(packed)
                self._keep(bytes(digest), body)
        return found

    def _keep(self, digest: bytes, body: bytes) -> None:
        if len(body) > self._largest:
            return
        with self._lock:
            if self._size + len(body) > self._room:
                self._known, self._size = {}, 0  # cheaper than keeping an order; the next calls fill it again
            self._known[digest] = body
            self._size += len(body)


BODIES = Bodies()
"""A digest is its body's in every store, so all of them share."""
