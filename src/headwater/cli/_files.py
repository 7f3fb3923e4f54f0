"""cli._files: files of events (JSON, JSON lines, gzip, zstd, UTF-16, - for stdin) -> encoded events, one after another."""

from __future__ import annotations

import codecs
import gzip
import io
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import IO, Any, cast

import msgspec
import zstandard

from headwater.errors import ConfigError, EventError
from headwater.event import split

_GZIP, _ZSTD = b"\x1f\x8b", b"\x28\xb5\x2f\xfd"
_UTF16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
"""What PowerShell's `>` begins a file with."""
_PIECE = 4096  # of a packed file: little of it may become much


def read_events(name: str) -> Iterator[bytes]:
    """The events of a file. Lines are read one by one; an array or a single pretty object as a whole."""
    try:
        with _open(name) as stream:
            yield from _events(stream, name)
    except (OSError, EOFError, UnicodeError, zstandard.ZstdError) as fault:
        raise ConfigError(f"{name}: cannot be read: {getattr(fault, 'strerror', None) or fault}") from fault


@contextmanager
def _open(name: str) -> Iterator[IO[bytes]]:
    """The file unpacked, by what it is rather than by what it is called."""
    with ExitStack() as opened:
        raw = sys.stdin.buffer if name == "-" else opened.enter_context(Path(name).open("rb"))
        stream = raw if isinstance(raw, io.BufferedReader) else io.BufferedReader(cast("io.RawIOBase", raw))
        head = stream.peek(4)[:4]
        if head.startswith(_GZIP):
            stream = io.BufferedReader(opened.enter_context(gzip.open(stream)))
        elif head.startswith(_ZSTD):
            stream = io.BufferedReader(_Zstd(stream), 1 << 20)
        if stream.peek(2).startswith(_UTF16):
            stream = io.BufferedReader(io.BytesIO(stream.read().decode("utf-16").encode()))
        if stream.peek(3).startswith(codecs.BOM_UTF8):
            stream.read(3)
        yield stream


class _Zstd(io.RawIOBase):
    """What zstd packed, frame after frame; zstandard's own reader takes a file that was cut off for one that has ended."""

    def __init__(self, packed: IO[bytes]) -> None:
        self._packed, self._left = packed, b""
        self._frame = zstandard.ZstdDecompressor().decompressobj()

    def readable(self) -> bool:
        return True

    def readinto(self, room: Any) -> int:
        while not self._left:
            piece = self._frame.unused_data if self._frame.eof else b""
            piece = piece or self._packed.read(_PIECE)
            if not piece:
                if self._frame.eof:
                    return 0
                raise EOFError("it ends before its end")
            if self._frame.eof:
                self._frame = zstandard.ZstdDecompressor().decompressobj()
            self._left = self._frame.decompress(piece)
        taken = self._left[: len(room)]
        room[: len(taken)] = taken
        self._left = self._left[len(taken) :]
        return len(taken)


def _events(stream: IO[bytes], name: str) -> Iterator[bytes]:
    first = b""
    for first in stream:
        if first.strip():
            break
    if not first.strip():
        return
    if first.lstrip()[:1] == b"[" or not _whole(first):
        try:
            yield from split(first + stream.read())
        except EventError as fault:
            raise EventError("", f"{name}: {fault}") from None
        return
    yield first
    for line in stream:
        if line.strip():
            yield line


def _whole(line: bytes) -> bool:
    try:
        msgspec.json.decode(line, type=msgspec.Raw)
    except (msgspec.DecodeError, RecursionError):
        return False
    return True
