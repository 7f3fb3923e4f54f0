"""store._packing: a body -> its bytes as the store keeps them, and back.

Events are small, and much of one stands in every other: names of facets, addresses of their schemas. A dictionary of such pieces
(`openlineage.zdict`, made by `scripts/dictionary.py`) saves a third to a half of them. A packed body tells which dictionary it needs, or
none: what was kept before there was one is read as before. A dictionary that was ever used must stay; a better one comes beside it.
"""

from __future__ import annotations

import threading
from importlib.resources import files

import zstandard

_COMMON = zstandard.ZstdCompressionDict(files("headwater.store").joinpath("openlineage.zdict").read_bytes())


class _Zstd(threading.local):
    """One of each for a thread: two threads at work in one of them crash the process."""

    def __init__(self) -> None:
        self.compress = zstandard.ZstdCompressor(level=1, dict_data=_COMMON).compress
        self.decompress = zstandard.ZstdDecompressor(dict_data=_COMMON).decompress


_zstd = _Zstd()


def pack(body: bytes) -> bytes:
    """A body as the store keeps it."""
    return _zstd.compress(body)


def unpack(body: bytes) -> bytes:
    """A body as it was."""
    return _zstd.decompress(body)
