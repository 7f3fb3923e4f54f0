"""deliver.datahub.sinks.file: change proposals -> a file that `datahub ingest` reads: one that is added to, or one per run group."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress
from typing import BinaryIO

import msgspec

from headwater.deliver.datahub.proposing import Proposal
from headwater.deliver.datahub.sinks import fault_of
from headwater.deliver.datahub.sinks._names import encoded, file_name
from headwater.errors import TransportError

try:
    import fcntl
except ImportError:  # Windows has none: there, one process per file
    fcntl = None  # type: ignore[assignment]

_TAIL = 1 << 16


class FileSink:
    """Writes a JSON array with a proposal a line. A path that ends with a slash is a directory: one file per run group."""

    def __init__(self, path: str, *, max_string: int = 16_000_000) -> None:
        self._path, self._most = path, max_string
        self._by_group = path.endswith("/")

    def __repr__(self) -> str:
        return f"FileSink({self._path!r})"

    def emit(self, proposals: Sequence[Proposal], name: str) -> None:
        """Add the proposals to the file, or write the group's file anew."""
        lines, refused = encoded(proposals, self._most)
        try:
            if self._by_group:
                self._replace(os.path.join(self._path, file_name(name)), lines)
            elif lines:
                self._append(lines)
        except OSError as fault:
            why = f"{fault.strerror or fault}"
            pending = set(range(len(proposals))) - refused.keys()
            raise fault_of(self._path, refused, pending, why, cause="disk") from fault
        if refused:
            raise fault_of(self._path, refused, set())

    def close(self) -> None:
        """Nothing is held."""

    def _replace(self, path: str, lines: list[bytes]) -> None:
        os.makedirs(os.path.dirname(path), exist_ok=True)
        spare = f"{path}.{os.getpid()}~"
        with open(spare, "wb") as file:
            file.write(b"[\n" + b",\n".join(lines) + b"\n]\n")
        os.replace(spare, path)

    def _append(self, lines: list[bytes]) -> None:
        folder = os.path.dirname(self._path)
        if folder:
            os.makedirs(folder, exist_ok=True)
        with open(os.open(self._path, os.O_RDWR | os.O_CREAT, 0o666), "r+b") as file:
            if fcntl is not None:
                with suppress(OSError):  # some network file systems know no locks
                    fcntl.flock(file, fcntl.LOCK_EX)
            end, first = _end_of(file, self._path)
            file.seek(end)
            file.write((b"[\n" if first else b",\n") + b",\n".join(lines) + b"\n]\n")
            file.truncate()


def _end_of(file: BinaryIO, path: str) -> tuple[int, bool]:
    """Where the array's last proposal ends, and whether there is none. What a kill cut short is taken away."""
    size = file.seek(0, os.SEEK_END)
    if size == 0:
        return 0, True
    file.seek(0)
    if file.read(1) != b"[":
        raise TransportError(f"{path} holds no array of proposals: write to another file", retryable=False)
    file.seek(max(0, size - _TAIL))
    body = file.read().rstrip()
    whole = body.endswith(b"\n]") or _is_array(file, body)
    kept = body[:-1] if whole else body[: body.rfind(b"\n") + 1]  # else its last line may be a part of one
    while (
        not kept.strip(b" \t\r\n,") and size > _TAIL
    ):  # a single line that is longer than what was looked at
        size -= _TAIL
        file.seek(max(0, size - _TAIL))
        kept = file.read(min(_TAIL, size))
        kept = kept[: kept.rfind(b"\n") + 1]
    start = max(0, size - _TAIL)
    end = start + len(kept.rstrip(b" \t\r\n,"))
    return (0, True) if end <= 1 else (end, False)


def _is_array(file: BinaryIO, body: bytes) -> bool:
    """Whether a file that does not end as ours do is whole all the same."""
    if not body.endswith(b"]"):
        return False
    file.seek(0)
    try:
        msgspec.json.decode(file.read(), type=list[msgspec.Raw])
    except msgspec.DecodeError:
        return False
    return True
