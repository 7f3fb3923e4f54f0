"""transport.spool.drainer: a place -> its events at their destination, and a file that tells how that goes.

One process drains a place at a time, by a lock. It may be killed at any moment: what it had not acknowledged is sent
again, and a receiver that is idempotent on content takes it once.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from inspect import signature
from pathlib import Path
from time import sleep
from typing import Any
from urllib.parse import urlsplit

import msgspec

from headwater import plugins
from headwater.errors import HeadwaterError, TransportError
from headwater.transport import TRANSPORTS, HoldsBack, Transport, open_transport
from headwater.transport.spool import dead
from headwater.transport.spool.backlog import Backlog, make_room
from headwater.transport.spool.breaker import Breaker
from headwater.transport.spool.identity import Writer, clock, gone, me
from headwater.transport.spool.place import TO, Place, Target, write_whole
from headwater.transport.spool.segment import OWNER_ONLY, Segment, frames
from headwater.transport.spool.syncing import syncing
from headwater.transport.spool.wills import Wills
from headwater.transport.spool.witness import witnesses

try:
    import fcntl
except ImportError:  # pragma: no cover - Windows: there, keep to one drainer
    fcntl = None  # type: ignore[assignment]

MOST, MOST_BYTES = 500, 4 << 20  # of one batch
POLL, GROWTH = (
    (0.02, 0.2),
    1.05,
)  # seconds between looks at a spool that is empty; the longest after some four seconds
HEARTBEAT = 5.0  # seconds after which its state is written again, though nothing changed
AFRESH = 30.0  # seconds after which a heartbeat that stopped means that the drainer did
TRIES = 3  # of an event alone, before it is suspected
RESTED = 60.0  # seconds that one which stopped for a fault is left alone
LONGEST_REST = 86_400.0  # seconds for which a receiver may ask to be left alone


class State(msgspec.Struct, frozen=True):
    """What a drainer does, and how it went."""

    writer: Writer
    doing: str = "draining"
    """draining, waiting (for a receiver that fails), ended (nothing was left) or stopped (by a fault)"""
    delivered: int = 0
    dead: int = 0
    torn: int = 0
    fault: str | None = None
    cause: str | None = None
    """The fault in a word."""
    failing_since: float | None = None
    """Seconds since 1970."""
    rests_until: float | None = None
    """Seconds since 1970: where the receiver asked for more patience than this drainer had."""


class Stopped(Exception):
    """A round ended before its end; the fault says why, None that its time was over."""

    def __init__(self, fault: HeadwaterError | None) -> None:
        super().__init__(str(fault))
        self.fault = fault


class Drainer:
    """Delivers what waits in a place. `patience` is how many seconds of failure it bears before it gives up."""

    def __init__(
        self,
        place: Place,
        *,
        patience: float = 10.0,
        timeout: float | None = None,
        breaker: Breaker | None = None,
        wait: Callable[[float], None] = sleep,
        progress: Callable[[int], None] = lambda events: None,
    ) -> None:
        self.place, self.state = place, State(me())
        self._patience, self._timeout, self._wait, self._progress = patience, timeout, wait, progress
        self._breaker = breaker or Breaker()
        self._backlog, self._wills = Backlog(place), Wills(place)
        self._transport: Transport | None = None
        self._told: tuple[bytes, float] = b"", 0.0
        self._failing: float | None = None
        self._target = Target({})
        self._until: float | None = None
        self._stubborn: tuple[bytes, int] = b"", 0  # what failed alone, and how often

    def run(self, *, follow: bool = False, linger: float = 0.0, budget: float | None = None) -> State:
        """Deliver until nothing is left, and then for `linger` seconds more, or for ever; at most for `budget` seconds."""
        self._until = None if budget is None else clock.steady() + budget * 1e9
        self._tell("draining")
        with syncing(self.place) if budget is None else nullcontext():
            return self._run(follow, linger)

    def _run(self, follow: bool, linger: float) -> State:
        empty, pause = clock.steady(), POLL[0]
        try:
            while True:
                if self.round():
                    empty, pause = clock.steady(), POLL[0]
                elif not follow and clock.steady() - empty >= linger * 1e9:
                    self._hand_on(final=True)
                    self._tell("ended")  # whoever emits from now on starts another; what came before is ours
                    if not self.round():
                        return self.state
                    self._tell("draining")
                else:
                    self._wait(pause)
                    pause = min(POLL[1], pause * GROWTH)
                self._tell()
        except Stopped as why:
            self._tell("stopped" if why.fault else "ended", why.fault)
            return self.state
        except OSError as why:  # a full disk, or a folder that was deleted
            self._tell("stopped", self._broken(why))
            return self.state
        finally:
            self.close()

    def round(self) -> int:
        """Deliver what waits now, then the wills whose time has come; how many events that were.

        Raises:
            Stopped: the destination cannot be reached, or will not have us.

        """
        done = 0
        self._open()
        self._wills.look()
        for batch in self._backlog.batches(MOST, MOST_BYTES):
            self._wills.meet(batch.events)
            buried = self.state.dead
            left = list(range(len(batch.events)))
            try:
                self._deliver(batch.events, left)
            finally:
                reached = left[0] if left else len(batch.events)
                self._backlog.acknowledge(batch, reached)
                self._count(max(0, reached - (self.state.dead - buried)))
            done += reached
            if left:  # by the next look others may have come
                return max(1, done)
        return done + self._execute() + self._hand_on()

    def close(self) -> None:
        """Close the transport."""
        if self._transport is not None:
            self._transport.close()
            self._transport = None

    def _hand_on(self, *, final: bool = False) -> int:
        """Have a transport that holds something back hand on what is due."""
        if not isinstance(self._transport, HoldsBack):
            return 0
        try:
            return self._transport.tick(final=final)
        except TransportError as fault:
            self._bury([dead.Letter(reason, made) for reason, made in fault.letters])
            if fault.retryable and not final:
                self._bear(fault)
            elif fault.cause != "refused":
                raise Stopped(fault) from None
        return 1

    def _execute(self) -> int:
        """Put the wills of the dead among what waits; deleted before that, one might be lost."""
        due = self._wills.due()
        if due:
            segment = Segment(self.place.folder)
            segment.append(frames(event for _, event in due))
            segment.seal()
            for path, _ in due:
                path.unlink(missing_ok=True)
        return len(due)

    def _deliver(self, events: list[bytes], left: list[int]) -> None:
        """Until each event is with the receiver, or among the dead letters; `left` are the places of those that are not.

        It gives back early where one event alone is in the way.
        """
        while left:
            if self._until is not None and clock.steady() > self._until:
                raise Stopped(None)
            part = left[: self._breaker.most(len(left))]
            fault = self._send(events, left, part)
            if fault is None or (len(part) == 1 and self._set_aside(events, left, fault)):
                continue
            self._bear(fault)
            if self._stubborn[1] >= TRIES:
                return

    def _send(self, events: list[bytes], left: list[int], places: list[int]) -> TransportError | None:
        """Send those at these places, and strike them out where that is settled; the fault where it is not of all."""
        part = [events[at] for at in places]
        try:
            self._open().send(part)
        except TransportError as fault:
            again = self._sort_out(part, fault)
            settled = {at for i, at in enumerate(places) if i not in again}
            left[:] = [at for at in left if at not in settled]
            return fault if again else None
        left[:] = [at for at in left if at not in set(places)]
        self._well()
        return None

    def _set_aside(self, events: list[bytes], left: list[int], fault: TransportError) -> bool:
        """Whether the way is free: where the receiver fails at one event alone and takes another, it is the event's fault."""
        if not fault.cause.startswith("http_5"):
            return False
        event, tries = events[left[0]], self._stubborn[1] if self._stubborn[0] == events[left[0]] else 0
        self._stubborn = event, tries + 1
        if tries + 1 < TRIES:
            return False
        others = witnesses(events, left, tries + 1)
        if not others or self._send(events, left, [others[tries % len(others)]]) is not None:
            return False
        again = self._send(events, left, left[:1])
        if again is not None and again.cause.startswith("http_5"):
            why = f"{again} (to this event alone, {tries + 2} times, while it took another)"
            self._bury([dead.Letter(why, event)])
            left.pop(0)
        return again is None or not left or events[left[0]] != event

    def _bury(self, letters: list[dead.Letter]) -> None:
        dead.refuse(self.place, letters)
        self.state = msgspec.structs.replace(self.state, dead=self.state.dead + len(letters))

    def _sort_out(self, part: list[bytes], fault: TransportError) -> set[int]:
        """Bury what will never be taken; where in the part what may yet be stands."""
        if fault.pending is not None:
            again = set(fault.pending)
        else:  # a transport that knows nothing of single events
            again = (
                set()
                if fault.refused and not fault.retryable
                else set(range(len(part))) - fault.refused.keys()
            )
        buried = [
            dead.Letter(reason, part[at]) for at, reason in sorted(fault.refused.items()) if at not in again
        ]
        self._bury(buried + [dead.Letter(reason, made) for reason, made in fault.letters])
        return again

    def _bear(self, fault: TransportError) -> None:
        """Wait after a fault; give up where waiting does not help, or did not for too long."""
        now = clock.steady()
        self._failing = self._failing or now
        wait = self._breaker.failed(fault.retry_after)
        if not fault.retryable or now + wait * 1e9 - self._failing > self._patience * 1e9:
            raise Stopped(fault)
        self._tell("waiting", fault)
        until = now + int(wait * 1e9)
        while (rest := until - clock.steady()) > 0:
            self._wait(min(rest / 1e9, HEARTBEAT))
            self._tell()
        make_room(self.place, self._target.max_bytes, self._target.max_age, old_only=True)

    def _well(self) -> None:
        self._breaker.succeeded()
        self._stubborn = b"", 0
        if self._failing is not None:
            self._failing = None
            self._tell("draining")

    def _open(self) -> Transport:
        """The transport that the target names, opened anew when that was changed."""
        try:
            told = (self.place / "target").read_bytes() if self._transport is None else self._changed()
            if told is not None:
                self.close()
                self._target, self._told = self.place.target(), (told, clock.wall())
                self._transport = open_transport(
                    sending(self._target.to, self._timeout, self.place / "groups")
                )
        except OSError as fault:
            raise Stopped(self._broken(fault)) from None
        except HeadwaterError as fault:
            raise Stopped(fault) from None
        assert self._transport is not None
        return self._transport

    def _changed(self) -> bytes | None:
        if abs(clock.wall() - self._told[1]) < 1.0:
            return None
        told = (self.place / "target").read_bytes()
        self._told = (self._told[0], clock.wall())
        return told if told != self._told[0] else None

    def _count(self, delivered: int) -> None:
        self.state = msgspec.structs.replace(self.state, delivered=self.state.delivered + delivered)
        self._progress(delivered)
        self._tell()

    def _broken(self, fault: OSError) -> TransportError:
        gone = " is gone" if isinstance(fault, FileNotFoundError) else ""
        text = f"{self.place.folder}{gone}: {fault.strerror or fault}"
        return TransportError(text, retryable=False, cause="disk")

    def _tell(self, doing: str | None = None, fault: HeadwaterError | None = None) -> None:
        """Write down what is done: at once where it changes, else now and then."""
        old = self.state
        told: dict[str, Any] = {"fault": None, "cause": None, "failing_since": None, "rests_until": None}
        if doing in ("waiting", "stopped") or (doing is None and old.doing == "waiting"):
            told = {"failing_since": old.failing_since or clock.wall()}
            if fault is not None:
                told |= {"fault": str(fault), "cause": getattr(fault, "cause", "settings")}
            if doing == "stopped" and (asked := getattr(fault, "retry_after", None)) is not None:
                told["rests_until"] = clock.wall() + min(asked, LONGEST_REST)
        self.state = msgspec.structs.replace(old, doing=doing or old.doing, torn=self._backlog.torn, **told)
        if doing is None and abs(clock.wall() - self._written) < HEARTBEAT:
            return
        self._written = clock.wall()
        with suppress(OSError):  # a full disk, or a directory that was deleted: the next round says so
            write_whole(self.place / "drainer.json", msgspec.json.encode(self.state))

    _written = 0.0


def sending(target: dict[str, Any], timeout: float | None = None, keep: Path | None = None) -> dict[str, Any]:
    """The target as the drainer opens it: it does the waiting and asking again itself, and has room to `keep` something."""
    takes = signature(plugins.find("transport", urlsplit(str(target.get(TO))).scheme, TRANSPORTS)).parameters
    out = {**target, "retries": 0} if "retries" in takes else dict(target)
    if keep is not None and "keep" in takes:
        out.setdefault("keep", str(keep))
    return {**out, "timeout": timeout} if timeout is not None and "timeout" in takes else out


@contextmanager
def locked(place: Place, patience: float = 0.0) -> Iterator[bool]:
    """Be the one drainer of a place; False where there is one already."""
    file = os.open(place / "drainer.lock", os.O_RDWR | os.O_CREAT | getattr(os, "O_CLOEXEC", 0), OWNER_ONLY)
    try:
        until = clock.steady() + patience * 1e9
        while not (got := _lock(file)) and clock.steady() < until:
            sleep(0.05)
        yield got
    finally:
        os.close(file)


def _lock(file: int) -> bool:
    if fcntl is None:
        return True
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def state(place: Place) -> State | None:
    """What the last drainer of a place said."""
    try:
        return msgspec.json.decode((place / "drainer.json").read_bytes(), type=State)
    except (OSError, msgspec.DecodeError):
        return None


def drained(place: Place) -> bool:
    """Whether a drainer is at work."""
    told = state(place)
    if told is None or told.doing in ("ended", "stopped"):
        return False
    known = gone(told.writer)
    return _age(place) < AFRESH if known is None else not known


def rests(place: Place) -> bool:
    """Whether the last drainer stopped for a fault a while ago, as long as the receiver asked for: another would meet the same."""
    told = state(place)
    if told is None or told.doing != "stopped":
        return False
    longer = (told.rests_until or 0.0) - clock.wall()
    return _age(place) < RESTED or 0.0 < longer <= LONGEST_REST  # more than that only by a clock set back


def _age(place: Place) -> float:
    try:
        return abs(clock.wall() - (place / "drainer.json").stat().st_mtime)
    except OSError:
        return AFRESH + RESTED
