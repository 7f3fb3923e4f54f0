"""transport.file: encoded events -> lines appended to a JSONL file that several processes may share."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress
from urllib.parse import unquote, urlsplit

from headwater.errors import ConfigError, TransportError
from headwater.transport._lines import lines
from headwater.transport._options import flag, refuse_closed

try:
    import fcntl
except ImportError:  # Windows has none: there, one process per file
    fcntl = None  # type: ignore[assignment]


class FileTransport:
    """Appends each batch whole, with one write; the file is opened for each, so it may be rotated at will.

    `fsync` waits until the disk has it. Directories that are missing are made.

    >>> FileTransport("file:///var/log/lineage.jsonl")
    FileTransport('/var/log/lineage.jsonl')
    """

    def __init__(self, url: str, *, fsync: bool | str = False) -> None:
        parts = urlsplit(url)
        if parts.netloc not in ("", "localhost"):
            raise ConfigError(
                f"{url!r} names the host {parts.netloc!r}: write file:///path, with three slashes"
            )
        self._path = unquote(parts.path + (f"#{parts.fragment}" if parts.fragment else ""))
        if not self._path or self._path.endswith("/"):
            raise ConfigError(f"{url!r} names no file: write file:///path/events.jsonl")
        self._fsync = flag("fsync", fsync)
        self._closed = False

    def __repr__(self) -> str:
        return f"FileTransport({self._path!r})"

    def send(self, events: Sequence[bytes]) -> None:
        """Append the events, all or none."""
        refuse_closed(self._closed, self)
        if not events:
            return
        try:
            file = self._open()
            try:
                self._append(file, lines(events))
            finally:
                os.close(file)
        except OSError as fault:
            raise TransportError(
                f"cannot write {self._path}: {fault.strerror or fault}", retryable=True
            ) from fault

    def close(self) -> None:
        """Take no more."""
        self._closed = True

    def _open(self) -> int:
        flags = (
            os.O_WRONLY | os.O_APPEND | os.O_CREAT | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
        )
        try:
            return os.open(self._path, flags, 0o666)
        except FileNotFoundError:
            os.makedirs(os.path.dirname(self._path), exist_ok=True)
            return os.open(self._path, flags, 0o666)

    def _append(self, file: int, lines: bytes) -> None:
        # One write with O_APPEND never mingles with others. The lock is for the rare short write (a full
        # disk): its rest, or its removal, must not meet another process's lines. close() releases it.
        if fcntl is not None:
            with suppress(OSError):  # some network file systems know no locks
                fcntl.flock(file, fcntl.LOCK_EX)
        start, done = os.fstat(file).st_size, 0
        try:
            while done < len(lines):
                done += os.write(file, lines[done:])
            if self._fsync:
                os.fsync(file)
        except OSError:
            if (
                done and os.fstat(file).st_size == start + done
            ):  # nobody wrote after us: take the torn line back
                os.ftruncate(file, start)
            raise
