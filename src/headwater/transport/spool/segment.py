"""transport.spool.segment: events <-> frames with length and checksum in files that only grow.

A segment is written by one process alone and read by others meanwhile. Its name tells when it was begun, in which
boot and by whom; `.open` may still grow, `.done` is complete:

    1793000000000-5f3a91c2-00000012345678901234-4711.open

A frame is magic, kind, stamp (the steady clock), length and checksum, then the payload. What a kill -9 cuts short
fails its length or its checksum, and is left out.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from struct import Struct
from typing import NamedTuple
from zlib import crc32

import msgspec

from headwater.transport.spool.identity import UNKNOWN, Writer, clock, me

HEADER, EVENT, WILL, DAMAGED = 0, 1, 2, 255
MAGIC = b"\xf1h"
_HEAD = Struct("<2sBQI")  # magic, kind, stamp, length; the checksum covers these and the payload
_SUM = Struct("<I")
_SIZE = _HEAD.size + _SUM.size
_CHUNK = 256 << 10
_NAME = re.compile(r"(\d{13})-([0-9a-f]{8})-(\d{20})-(\d+)\.(open|done)").fullmatch
OWNER_ONLY = 0o600


class Frame(NamedTuple):
    """One record of a segment, and where in it."""

    kind: int
    stamp: int
    payload: bytes
    end: int


class Listed(NamedTuple):
    """A segment as a directory shows it."""

    stem: str
    path: Path
    wall: int
    """Milliseconds since 1970, by the clock as it was when the segment was begun."""
    boot: str
    stamp: int
    done: bool


def frame(kind: int, stamp: int, payload: bytes) -> bytes:
    """The bytes of one record.

    >>> len(frame(EVENT, 1, b"{}"))
    21
    """
    head = _HEAD.pack(MAGIC, kind, stamp, len(payload))
    return head + _SUM.pack(crc32(payload, crc32(head))) + payload


def frames(events: Iterable[bytes]) -> bytes:
    """Events as they are appended, stamped now."""
    return b"".join(frame(EVENT, clock.steady(), event) for event in events)


class Segment:
    """A segment that this process writes. It makes its file; after a fault it is not used again."""

    def __init__(self, folder: Path) -> None:
        self.size = 0
        while True:  # another container may have the same pid, at the same nanosecond
            stem = f"{int(clock.wall() * 1000):013d}-{short_boot(me())}-{clock.steady():020d}-{os.getpid()}"
            self.path = folder / f"{stem}.open"
            flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_EXCL | getattr(os, "O_CLOEXEC", 0)
            with suppress(FileExistsError):
                self._file = os.open(self.path, flags, OWNER_ONLY)
                break
        self._head = frame(HEADER, clock.steady(), msgspec.json.encode(me()))

    def append(self, data: bytes) -> bool:
        """Add frames; False where the file was deleted meanwhile, so that nobody will read them.

        Raises:
            OSError: not all could be written; what was is taken back, and the segment ends.

        """
        if self._head:
            data, self._head = self._head + data, b""
        try:
            write_all(self._file, data)
        except OSError:
            with suppress(OSError):
                os.ftruncate(self._file, self.size)
            self.seal()  # a reader may have seen the part that is gone: its place is never written again
            raise
        self.size += len(data)
        return os.fstat(self._file).st_nlink > 0

    def sync(self) -> None:
        """Wait until the disk has it."""
        os.fsync(self._file)

    def seal(self) -> None:
        """Complete it: nothing will be added."""
        self.forget()
        with suppress(FileNotFoundError):
            self.path.rename(self.path.with_suffix(".done"))

    def forget(self) -> None:
        """Close the file and leave it as it is: it is complete, or of the process this one was forked from."""
        file, self._file = self._file, -1
        if file >= 0:
            os.close(file)


def write_all(file: int, data: bytes) -> None:
    """Write all of it; a short write is one to go on with."""
    done = 0
    while done < len(data):
        done += os.write(file, memoryview(data)[done:])


def listed(folder: Path) -> list[Listed]:
    """The segments of a directory, in no order."""
    found: dict[str, Listed] = {}
    for name in os.listdir(folder):
        if matched := _NAME(name):
            wall, boot, stamp, _, state = matched.groups()
            stem = name.rpartition(".")[0]
            if stem not in found or state == "done":  # renamed while the directory was read
                found[stem] = Listed(stem, folder / name, int(wall), boot, int(stamp), state == "done")
    return list(found.values())


def short_boot(writer: Writer) -> str:
    """The boot as names of segments tell it.

    >>> short_boot(Writer("h", "5f3a91c2-0000-4000-8000-000000000000", "", 1, ""))
    '5f3a91c2'
    """
    return writer.boot[:8] if writer.boot != UNKNOWN else "0" * 8


def writer_of(path: Path) -> Writer | None:
    """Who writes a segment; None where it got no further than its name."""
    for first in read(path):
        if first.kind == HEADER:
            with suppress(msgspec.DecodeError):
                return msgspec.json.decode(first.payload, type=Writer)
        break
    return None


def read(path: Path, start: int = 0, *, complete: bool = False) -> Iterator[Frame]:
    """The whole frames from `start` on, up to the first that is not.

    In a segment that is `complete` what is no frame comes as DAMAGED, and reading goes on behind it; at the
    file's end it is the torn tail. A file that is gone has no frames. No file is held open between frames.
    """
    window = _Window(path)
    at = start
    while head := window.at(at, _SIZE):
        found = _frame(window, at, head)
        if found is None:
            if not complete:
                return
            bad, at = at, _next(window, at + 1)
            yield Frame(DAMAGED, 0, window.at(bad, at - bad), at)
        else:
            yield found
            at = found.end


def count(path: Path, start: int = 0, end: int | None = None) -> tuple[int, int]:
    """How many events stand whole between two places of a file, and where the last of its frames ends.

    Lengths are believed and payloads not looked at: this is to tell people how much there is.
    """
    window, at, found = _Window(path), start, 0
    size = _size(path) if end is None else end
    while at < size and len(head := window.at(at, _SIZE)) == _SIZE:
        magic, kind, _, length = _HEAD.unpack_from(head)
        if magic != MAGIC or at + _SIZE + length > size:
            break
        found += kind == EVENT
        at += _SIZE + length
    return found, at


def _size(path: Path) -> int:
    for each in (path, path.with_suffix(".done")):
        with suppress(FileNotFoundError):
            return each.stat().st_size
    return 0


def _frame(window: _Window, at: int, head: bytes) -> Frame | None:
    if len(head) < _SIZE:
        return None
    magic, kind, stamp, length = _HEAD.unpack_from(head)
    if magic != MAGIC:
        return None
    payload = window.at(at + _SIZE, length)
    if (
        len(payload) < length
        or crc32(payload, crc32(head[: _HEAD.size])) != _SUM.unpack_from(head, _HEAD.size)[0]
    ):
        return None
    return Frame(kind, stamp, payload, at + _SIZE + length)


def _next(window: _Window, at: int) -> int:
    """Where the next whole frame begins, else the file's end."""
    while chunk := window.at(at, _CHUNK):
        found = chunk.find(MAGIC)
        if found < 0:
            at += max(1, len(chunk) - 1) if len(chunk) == _CHUNK else len(chunk)
        elif _frame(window, at + found, window.at(at + found, _SIZE)):
            return at + found
        else:
            at += found + 1
    return at


class _Window:
    """Reads a file in chunks, and keeps the last."""

    def __init__(self, path: Path) -> None:
        self._path, self._start, self._chunk = path, 0, b""

    def at(self, start: int, length: int) -> bytes:
        """So many bytes, fewer at the end."""
        offset = start - self._start
        if not 0 <= offset <= offset + length <= len(self._chunk):
            self._start, self._chunk, offset = start, self._load(start, max(length, _CHUNK)), 0
        return self._chunk[offset : offset + length]

    def _load(self, start: int, length: int) -> bytes:
        for path in (self._path, self._path.with_suffix(".done")):  # completed, and so renamed, meanwhile
            with suppress(FileNotFoundError), path.open("rb") as file:
                file.seek(start)
                return file.read(length)
        return b""
