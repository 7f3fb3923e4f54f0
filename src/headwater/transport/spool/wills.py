"""transport.spool.wills: a run and the event of its bad end -> a file that is sent when its process dies, unless the run ended before.

A will is a file of its own, named for its writer and its run: cancelling it is deleting it. The drainer cancels it
too, when it meets the run's end: a process that dies between telling the end and cancelling has told enough.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress
from datetime import datetime, timezone
from hashlib import blake2b
from pathlib import Path

import msgspec

from headwater.transport.spool.backlog import FOREIGN, NAMELESS
from headwater.transport.spool.identity import Writer, clock, gone, me
from headwater.transport.spool.place import Place, write_whole
from headwater.transport.spool.segment import WILL, frame, read

_ENDS = {"COMPLETE", "ABORT", "FAIL"}


class Will(msgspec.Struct, frozen=True):
    """An event to send when its writer is gone."""

    writer: Writer
    run: str
    event: msgspec.Raw


def keep(place: Place, run: str, event: bytes) -> None:
    """Leave a will for a run of this process, in place of the one it may have."""
    will = Will(me(), run, msgspec.Raw(event))
    write_whole(_path(place, run), frame(WILL, clock.steady(), msgspec.json.encode(will)))


def settle(place: Place, run: str) -> None:
    """The run has ended: there is nothing left to say."""
    _path(place, run).unlink(missing_ok=True)


def touch(place: Place, run: str) -> None:
    """Show those on other hosts that the writer lives."""
    with suppress(FileNotFoundError):
        os.utime(_path(place, run))


class Wills:
    """The wills of a place, as the drainer sees them."""

    def __init__(self, place: Place) -> None:
        self.place = place
        self._seen: dict[Path, Will | None] = {}
        self._due: set[Path] = set()

    def __len__(self) -> int:
        return len(self._seen)

    def look(self) -> None:
        """See which there are and whose writer is gone; to be called before a round reads what they wrote last."""
        paths = [each for each in (self.place / "wills").iterdir() if each.suffix == ".will"]
        self._seen = {path: self._seen.get(path) or _read(path) for path in paths}
        self._due = {path for path, will in self._seen.items() if _over(path, will)}

    def meet(self, events: Sequence[bytes]) -> None:
        """Cancel the wills of runs whose end is among the events."""
        runs = {will.run.encode(): path for path, will in self._seen.items() if will is not None}
        for event in events if runs else ():
            for run, path in runs.items():
                if run in event and _ends(event, run.decode()):
                    self._cancel(path)

    def due(self) -> list[tuple[Path, bytes]]:
        """Those to send now, once every event that their writers left has been delivered."""
        wills = [(path, self._seen[path]) for path in sorted(self._due) if path in self._seen]
        for path, will in wills:
            if will is None:  # cut short as it was written: nobody was told that it is kept
                self._cancel(path)
        return [
            (path, _dated(bytes(will.event), _sign(path)))
            for path, will in wills
            if will is not None and path.exists()
        ]

    def _cancel(self, path: Path) -> None:
        self._seen.pop(path, None)
        path.unlink(missing_ok=True)


def _path(place: Place, run: str) -> Path:
    mine = blake2b(msgspec.json.encode(me()), digest_size=6).hexdigest()
    return place / "wills" / f"{os.getpid()}-{mine}-{blake2b(run.encode(), digest_size=8).hexdigest()}.will"


def _read(path: Path) -> Will | None:
    for found in read(path, complete=True):
        with suppress(msgspec.DecodeError):
            return msgspec.json.decode(found.payload, type=Will)
    return None


def _over(path: Path, will: Will | None) -> bool:
    known = None if will is None else gone(will.writer)
    if known is not None:
        return known
    return clock.wall() - _sign(path) > (NAMELESS if will is None else FOREIGN)


def _sign(path: Path) -> float:
    """When the writer last gave a sign of life."""
    try:
        return path.stat().st_mtime
    except FileNotFoundError:  # settled meanwhile
        return clock.wall()


def _dated(event: bytes, seen: float) -> bytes:
    """The event at the time of the last sign of life, where that is later than its own: the run lasted until then."""
    try:
        told = msgspec.json.decode(event, type=dict[str, msgspec.Raw])
        when = datetime.fromtimestamp(seen, timezone.utc)
        if msgspec.json.decode(told["eventTime"], type=datetime) >= when:
            return event
    except (msgspec.DecodeError, KeyError, TypeError, ValueError):
        return event
    return msgspec.json.encode({**told, "eventTime": when})


class _Run(msgspec.Struct):
    runId: str = ""  # noqa: N815 - the wire's own names


class _Seen(msgspec.Struct):
    eventType: str | None = None  # noqa: N815
    run: _Run | None = None


def _ends(event: bytes, run: str) -> bool:
    try:
        seen = msgspec.json.decode(event, type=_Seen)
    except msgspec.DecodeError:
        return False
    return seen.run is not None and seen.run.runId == run and (seen.eventType or "").upper() in _ENDS
