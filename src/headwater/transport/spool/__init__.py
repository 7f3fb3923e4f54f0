"""transport.spool: encoded events -> files of this process's own, from which a drainer delivers them.

`send` returns when the events are in the file: no thread, no socket, no lock that another process holds. A process
that dies loses nothing of what it sent; a fork writes a file of its own. docs/delivery.md tells the whole of it.
"""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from time import sleep
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

from headwater.errors import ConfigError, TransportError
from headwater.transport import open_transport
from headwater.transport._options import number, refuse_closed, whole
from headwater.transport.spool import backlog, detached, drainer, wills
from headwater.transport.spool.identity import clock
from headwater.transport.spool.place import TO, Place, Target, open_place
from headwater.transport.spool.segment import Segment, frames

_log = logging.getLogger("headwater")
_MEASURED = 1 << 20  # bytes written after which it is looked how much waits
_ALIVE = 1_000_000_000  # nanoseconds for which a drainer that was seen is believed in
_TOUCHED = 30 * 1_000_000_000  # nanoseconds after which an emit shows that the writers of wills live

DRAINS = ("process", "inline", "off")
SYNCS = ("never", "interval", "always")


class SpoolTransport:
    """Keeps events in a directory until `to`, a url or a mapping as of another transport, has taken them.

    Args:
        url: `spool:///directory`.
        to: where a drainer delivers.
        drain: `process` starts a drainer that goes on by itself; `inline` delivers at `close`, for at most `budget`
            seconds; `off` leaves it to `headwater spool drain`.
        linger: seconds that a started drainer waits for more when the spool is empty.
        budget: seconds of an inline delivery.
        fsync: `interval` waits for the disk at most once a second, `always` each time, `never` leaves it to the
            system. None of it matters to a process that dies, only to a machine that does.
        max_bytes: how much may wait; then `send` waits `block` seconds for room, then the oldest is dropped to the dead letters.
        max_age: seconds after which what still waits is dropped there too.
        block: seconds that `send` waits for room.
        segment_bytes: size of a file.

    >>> import tempfile
    >>> SpoolTransport(f"spool://{tempfile.mkdtemp()}", to="http://me:secret@localhost:5000", drain="off")
    SpoolTransport(to 'http://localhost:5000')

    """

    def __init__(
        self,
        url: str,
        *,
        to: str | Mapping[str, Any],
        drain: str = "process",
        linger: float | str = 60.0,
        budget: float | str = 0.5,
        fsync: str = "interval",
        max_bytes: int | str = 1 << 30,
        max_age: float | str = 14 * 86400.0,
        block: float | str = 0.005,
        segment_bytes: int | str = 8 << 20,
    ) -> None:
        parts = urlsplit(url)
        if parts.netloc not in ("", "localhost") or not parts.path.strip("/"):
            raise ConfigError("url: names no directory: write spool:///directory?to=http://host:port")
        self._drain, self._fsync = _one_of("drain", drain, DRAINS), _one_of("fsync", fsync, SYNCS)
        self._linger, self._budget = number("linger", linger), number("budget", budget)
        self._max_bytes = whole("max_bytes", max_bytes, least=1)
        self._max_age, self._block = number("max_age", max_age), number("block", block)
        self._segment_bytes = whole("segment_bytes", segment_bytes, least=1)
        target = _opened({TO: to} if isinstance(to, str) else dict(to))
        open_transport(
            drainer.sending(target)
        ).close()  # what is wrong with it is told here, not to a drainer
        self._root, self._target = Path(unquote(parts.path)), Target(target, self._max_bytes, self._max_age)
        self._place = open_place(self._root, self._target)
        self.dropped = 0
        """Segments that this process moved to the dead letters for want of room."""
        self._own: dict[int, _Own] = {}  # by process id
        self._closed = False

    def __repr__(self) -> str:
        return f"SpoolTransport(to {self._place.shown()!r})"

    @property
    def place(self) -> Place:
        """The folder where events wait."""
        return self._place

    def send(self, events: Sequence[bytes]) -> None:
        """Append the events to this process's file, all or none."""
        refuse_closed(self._closed, self)
        if not events:
            return
        own = self._mine()
        detaches = self._drain == "process"
        if detaches:
            self._is_drained(own)
        with own.lock:
            try:
                self._append(own, events)
            except OSError as fault:
                own.segment = None
                raise TransportError(
                    f"cannot write to the spool {self._place.folder}: {fault.strerror or fault}",
                    retryable=True,
                ) from fault
            if own.runs and clock.steady() - own.touched > _TOUCHED:
                own.touched = clock.steady()
                for run in list(own.runs):  # other threads leave wills meanwhile
                    wills.touch(self._place, run)
        if detaches and not self._is_drained(own):  # asked again: one that ended meanwhile did not see these
            self._start_drainer(own)

    def will(self, run_id: str, event: bytes) -> None:
        """Leave an event to be sent should this process die before `settle`, or before the run's end is sent."""
        refuse_closed(self._closed, self)
        try:
            wills.keep(self._place, run_id, event)
        except OSError as fault:
            raise TransportError(
                f"cannot leave a will in {self._place.folder}: {fault.strerror or fault}", retryable=True
            ) from fault
        self._mine().runs.add(run_id)

    def settle(self, run_id: str) -> None:
        """The run has ended: cancel its will."""
        wills.settle(self._place, run_id)
        self._mine().runs.discard(run_id)

    def close(self) -> None:
        """Complete this process's file; where draining is inline, deliver for as long as the budget lasts."""
        if self._closed:
            return
        self._closed = True
        own = self._own.pop(os.getpid(), None)
        if own is not None and own.segment is not None:
            with suppress(OSError):
                if self._fsync != "never":
                    own.segment.sync()
                own.segment.seal()
        if own is not None:
            self.deliver()

    def deliver(self) -> None:
        """Where draining is inline, deliver now, for as long as the budget lasts; for hosts that never close."""
        if self._drain != "inline":
            return
        # a folder that was deleted, or a full disk, is no fault of a host that ends: what waits goes on waiting
        with suppress(OSError), drainer.locked(self._place) as mine:
            if mine:
                inline = drainer.Drainer(self._place, patience=0.0, timeout=max(0.001, self._budget))
                inline.run(budget=self._budget)

    def _append(self, own: _Own, events: Sequence[bytes]) -> None:
        if own.written >= min(_MEASURED, self._max_bytes // 4):
            own.written = 0
            self._make_room()
        data = frames(events)
        while True:
            if own.segment is None:
                own.segment = self._begin()
            if own.segment.append(data):
                break
            own.segment.forget()  # somebody deleted the file: what is in it is nobody's
            own.segment = None
        own.written += len(data)
        now = clock.steady()
        # a drainer at work has the disk write it: then nobody waits for that here
        mine = self._fsync == "interval" and not own.drained
        if self._fsync == "always" or (mine and now - own.synced > 1_000_000_000):
            own.segment.sync()
            own.synced = now
        if own.segment.size >= self._segment_bytes:
            if mine:
                own.segment.sync()
            own.segment.seal()
            own.segment = None

    def _begin(self) -> Segment:
        try:
            return Segment(self._place.folder)
        except FileNotFoundError:  # somebody deleted the whole folder
            with suppress(ConfigError):
                self._place = open_place(self._root, self._target)
            return Segment(self._place.folder)

    def _make_room(self) -> None:
        until = clock.steady() + self._block * 1e9
        while (full := backlog.total_bytes(self._place) > self._max_bytes) and clock.steady() < until:
            sleep(0.001)
        if full:
            dropped = backlog.make_room(self._place, self._max_bytes, self._max_age)
            if dropped and not self.dropped:
                _log.warning(
                    "the spool %s is full (max_bytes=%d): the oldest events go to its dead letters; is the destination up? See"
                    " `headwater spool status`",
                    self._place.folder,
                    self._max_bytes,
                )
            self.dropped += dropped

    def _mine(self) -> _Own:
        """What is this process's own; a forked child begins anew."""
        pid = os.getpid()
        own = self._own.get(pid)
        if own is None:
            own = self._own.setdefault(pid, _Own())
            for other in [each for each in self._own if each != pid]:
                if (theirs := self._own.pop(other, None)) and theirs.segment is not None:
                    theirs.segment.forget()
        return own

    def _is_drained(self, own: _Own) -> bool:
        """Whether a drainer is at work. That is seen from a file which each drainer replaces as it ends."""
        now = clock.steady()
        try:
            told = os.stat(self._place / "drainer.json")
            seen = hash((told.st_ino, told.st_mtime_ns))
        except OSError:
            seen = 0
        if now >= own.believed or seen != own.drainer:
            own.believed, own.drainer = now + _ALIVE, seen
            own.drained = seen != 0 and drainer.drained(self._place)
        return own.drained

    def _start_drainer(self, own: _Own) -> None:
        now = clock.steady()
        starting = now < own.started and own.drainer == own.before
        if not starting and not drainer.rests(self._place):
            own.started, own.before = (
                now + 5 * _ALIVE,
                own.drainer,
            )  # it takes a while until it tells of itself
            try:
                detached.start(self._place, self._linger)
            except TransportError as fault:
                if not own.told:
                    own.told = True
                    _log.warning("%s", fault)


class _Own:
    """What one process has: a lock for its threads, its file, and what it remembers."""

    def __init__(self) -> None:
        self.lock = threading.RLock()  # a signal handler may emit, too
        self.segment: Segment | None = None
        self.runs: set[str] = set()
        self.written = self.synced = self.believed = self.started = self.drainer = self.before = 0
        self.touched = clock.steady()
        self.told = self.drained = False


def _opened(target: dict[str, Any]) -> dict[str, Any]:
    """The url without its query, which are options: what is asked of them must see all."""
    url = target.get(TO)
    if not isinstance(url, str) or not urlsplit(url).scheme:
        raise ConfigError("to: names no url: write spool:///directory?to=http://host:port")
    bare, _, query = url.partition("?")
    given = dict(parse_qsl(query, keep_blank_values=True))
    return {name: value for name, value in {**given, **target, TO: bare}.items() if name != "type"}


def _one_of(name: str, value: str, allowed: tuple[str, ...]) -> str:
    if value not in allowed:
        raise ConfigError(f"{name}: {value!r} is none of {', '.join(allowed)}")
    return value
