"""pipeline.sources._reading: a file, or a range of its bytes -> lines, each with its position; what is broken, told.

What a file is, its first bytes say: gzip, zstd, UTF-16, an array of events, or lines. A line belongs to the range in
which it begins, so ranges of one file can be read by different workers.
"""

from __future__ import annotations

import codecs
import zlib
from collections.abc import Iterator
from itertools import chain
from typing import IO, Any, NamedTuple, cast
from urllib.parse import quote

import msgspec
import zstandard

from headwater.errors import EventError
from headwater.event import split
from headwater.pipeline.steps import Line

SPLIT = 64 << 20
"""Bytes of a plain file that one task reads; a smaller file may also be one array, or one pretty object."""
_GZIP, _ZSTD = b"\x1f\x8b", b"\x28\xb5\x2f\xfd"
_UTF16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_HEAD, _PIECE = 64 << 10, 1 << 20


class Split(NamedTuple):
    """A range of a file; a file that cannot be cut is read by whoever has its beginning."""

    path: str
    start: int
    size: int
    """Of the whole file."""


def read(each: Split) -> Iterator[Line]:
    """The lines that begin in the range."""
    try:
        with _open(each.path) as stream:
            yield from _read(stream, each)
    except (OSError, ValueError) as fault:  # gone or forbidden since it was listed: told, not lost
        why = getattr(fault, "strerror", None) or fault
        yield _fault(each.path, each.start, b"", f"cannot be read: {why}")


def _open(path: str) -> IO[bytes]:
    """The file; Spark tells its name as it is, not as a url would write it: `%`, `#` and spaces stand for themselves."""
    scheme, colon, rest = path.partition(":")
    if not colon or "/" in scheme or scheme == "file":
        return open(f"/{rest.lstrip('/')}" if scheme == "file" else path, "rb", buffering=_PIECE)
    from pyarrow import fs

    place, slash, name = rest.removeprefix("//").partition("/")
    system, inside = fs.FileSystem.from_uri(
        f"{'s3' if scheme == 's3a' else scheme}://{place}{slash}{quote(name)}"
    )
    return cast("IO[bytes]", system.open_input_file(inside))


def _read(stream: IO[bytes], each: Split) -> Iterator[Line]:
    head = stream.read(_HEAD)
    whole = _whole_file(head, each.size)
    if whole is not None and each.start:
        return  # the task with its beginning reads it
    if whole == "gzip":
        yield from _unpacked(_gunzip(head, stream), each.path)
    elif whole == "zstd":
        yield from _unpacked(_unzstd(head, stream), each.path)
    elif whole == "utf-16":
        yield from _utf16(head + stream.read(), each.path)
    elif whole == "binary":
        reason = "no file of events: it holds NUL bytes and is neither gzip, zstd nor UTF-16"
        yield _fault(each.path, 0, head, reason)
    elif whole == "json":
        yield from _json(head + stream.read(), each.path)
    else:
        yield from _range(stream, each)


def _whole_file(head: bytes, size: int) -> str | None:
    """What cannot be cut into ranges; None for lines."""
    if head.startswith(_GZIP):
        return "gzip"
    if head.startswith(_ZSTD):
        return "zstd"
    if (
        head.startswith(_UTF16) and head.count(0) > len(head) // 4
    ):  # JSON in it is half NUL; a bad line is not
        return "utf-16"
    if b"\0" in head:
        return "binary"
    if size > SPLIT:
        return None
    first = head.removeprefix(codecs.BOM_UTF8).lstrip()
    line, end, _ = first.partition(b"\n")
    if first[:1] == b"[" or (first[:1] == b"{" and end and not _is_json(line)):
        return "json"
    return None


def _is_json(line: bytes) -> bool:
    try:
        msgspec.json.decode(line, type=msgspec.Raw)
    except (msgspec.DecodeError, RecursionError):
        return False
    return True


def _range(stream: IO[bytes], each: Split) -> Iterator[Line]:
    stop = each.start + SPLIT
    position = each.start
    if position:  # the line that began before belongs to the range before
        stream.seek(position - 1)
        position += len(stream.readline()) - 1
    else:
        stream.seek(0)
    while position < stop:
        line = stream.readline()
        if not line:
            return
        yield from _line(each.path, position, line)
        position += len(line)


def _line(path: str, position: int, line: bytes) -> Iterator[Line]:
    if position == 0:
        line = line.removeprefix(codecs.BOM_UTF8)
    if value := line.strip():
        yield Line(path, position, value)


def _unpacked(pieces: Iterator[bytes | Line], path: str) -> Iterator[Line]:
    """What was packed is lines, an array or one object, as a plain file is."""
    begun: list[bytes | Line] = []
    size, kind = 0, ""
    for piece in pieces:
        begun.append(piece)
        if isinstance(piece, Line):  # it breaks off: what there is of it are lines, at best
            break
        size += len(piece)
        if not kind and size >= _HEAD:
            kind = _whole_file(_joined(begun)[:_HEAD], size) or "lines"
        if kind == "lines" or size > SPLIT:
            break
    else:
        body = _joined(begun)
        kind = kind or _whole_file(body, size) or "lines"
        if kind in ("json", "utf-16"):
            yield from (_json if kind == "json" else _utf16)(body, path)
            return
    yield from _lines(chain(begun, pieces), path)


def _joined(pieces: list[bytes | Line]) -> bytes:
    return b"".join(each for each in pieces if isinstance(each, bytes))


def _json(body: bytes, path: str) -> Iterator[Line]:
    body = body.removeprefix(codecs.BOM_UTF8)
    try:
        found = split(body)
    except EventError:  # no array after all: then line by line, so that what is good in it is kept
        yield from _a_line_each(body, path)
        return
    if len(found) > 1 and not body.lstrip().startswith(b"["):
        yield from _a_line_each(body, path)
        return
    for position, value in enumerate(found):
        yield Line(path, position, value.strip())


def _utf16(body: bytes, path: str) -> Iterator[Line]:
    try:
        told = body.decode("utf-16").encode()
    except UnicodeError as fault:
        yield _fault(path, 0, body, f"broken UTF-16: {fault}")
        return
    yield from (_json if _whole_file(told[:_HEAD], len(told)) == "json" else _a_line_each)(told, path)


def _a_line_each(body: bytes, path: str) -> Iterator[Line]:
    yield from _lines(iter([body]), path)


def _lines(pieces: Iterator[bytes | Line], path: str) -> Iterator[Line]:
    """Pieces of an unpacked file -> its lines; a fault ends it, with the line that was begun."""
    position, held = 0, b""
    for piece in pieces:
        if isinstance(piece, Line):
            yield Line(path, position, held, "", piece.fault)
            return
        *lines, held = (held + piece).split(b"\n")
        for line in lines:
            yield from _line(path, position, line)
            position += len(line) + 1
    yield from _line(path, position, held)


def _gunzip(head: bytes, stream: IO[bytes]) -> Iterator[bytes | Line]:
    unpack = zlib.decompressobj(31)
    piece = head
    while piece:
        before = unpack.copy()
        try:
            given = [unpack.decompress(piece)]
            while unpack.eof and (rest := unpack.unused_data.lstrip(b"\0")):  # another member follows
                unpack = zlib.decompressobj(31)
                given.append(unpack.decompress(rest))
        except zlib.error as fault:
            yield from _until_broken(before, piece)
            yield _fault("", 0, b"", f"broken gzip: {fault}; what came before it was read")
            return
        yield from given
        piece = stream.read(_PIECE)
    if not unpack.eof:
        yield _fault("", 0, b"", "the gzip file ends before its end; what came before was read")


def _until_broken(unpack: Any, piece: bytes) -> Iterator[bytes]:
    """What a piece gives before it breaks: a fault in it took all of it."""
    for start in range(0, len(piece), 64):
        try:
            yield unpack.decompress(piece[start : start + 64])
        except zlib.error:
            return
        if unpack.eof:
            unpack, rest = zlib.decompressobj(31), unpack.unused_data
            try:
                yield unpack.decompress(rest)
            except zlib.error:
                return


def _unzstd(head: bytes, stream: IO[bytes]) -> Iterator[bytes | Line]:
    unpack: Any = zstandard.ZstdDecompressor().decompressobj()
    piece = head
    while piece:
        try:
            yield unpack.decompress(piece)
            while unpack.eof and (rest := unpack.unused_data):
                unpack = zstandard.ZstdDecompressor().decompressobj()
                yield unpack.decompress(rest)
        except zstandard.ZstdError as fault:
            yield _fault("", 0, b"", f"broken zstd: {fault}; what came before it was read")
            return
        piece = stream.read(_PIECE)
    if not unpack.eof:
        yield _fault("", 0, b"", "the zstd file ends before its end; what came before was read")


def _fault(path: str, position: int, value: bytes, reason: str) -> Line:
    return Line(path, position, value, "", reason)
