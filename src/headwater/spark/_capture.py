"""spark._capture: records of the probe -> events handed to the emitter, read on one background thread; the captures of this process."""

from __future__ import annotations

import logging
import os
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import msgspec

from headwater.capture.spark import State, interpret
from headwater.capture.spark.extension import Extension
from headwater.capture.spark.telling import abort, lasts
from headwater.emitter import Emitter, Stats
from headwater.guard import guard

_log = logging.getLogger("headwater")
_STACK = 64 << 20  # expressions nest, and reading them recurses
_HELD = 0.4  # seconds: an error seen in Python may yet be told by the listener bus
_SHORT = 0.5  # seconds: a run that lasts longer leaves a will
_ENDING = 2.0  # seconds after spark.stop(): an error on its way out of the program makes it a failure
_BUS = 2_000  # milliseconds that the listener bus has left at the end
_EXIT = 5.0  # seconds that a program waits for its lineage at its end

CAPTURES: dict[str, Capture] = {}
"""By application id."""
INHERITED: list[Any] = []
"""Gateways of the process that this one was forked from."""
_SAID: set[str] = set()
_LOCKS = [threading.RLock()]  # a forked child adds its own: a thread of the parent may have held the other


class Capture:
    """What `install` answers: the running capture of one application. It ends by itself when the application does."""

    def __init__(self, probe: Any, bus: Any, gateway: Any, state: State | None, emitter: Emitter) -> None:
        self._probe, self._bus, self._gateway = probe, bus, gateway
        self._state, self._emitter = state, emitter
        self._got = 0
        """The number of what was taken last."""
        self._held: list[dict[str, Any]] = []
        self._marks: dict[int, threading.Event] = {}
        self._wills: set[str] = set()
        self._running: dict[str, tuple[float, dict[str, Any]]] = {}
        """When runs without a will began, and their START."""
        self._lock, self._pid = threading.Lock(), os.getpid()
        self._close, self._finished = threading.Event(), threading.Event()
        self._end: dict[str, Any] | None = None
        self._until = float("inf")
        self._fatal: dict[str, Any] = {}
        self.located: Callable[[dict[str, Any]], dict[str, Any]] = lambda record: record
        """Adds to a record where the source of its line is kept."""
        if probe is None:
            self._finished.set()

    def extend(self, extensions: Iterable[tuple[str, Callable[[], Extension]]]) -> None:
        """Let extensions look at what happens from here on."""
        for name, make in extensions:
            if self._state is not None:
                self._state.extensions.add(name, make)
        if self._state is not None and self._state.extensions:
            self._reaches(self._probe.extend)

    def start(self, record: dict[str, Any]) -> None:
        """Begin with the application's start, on a thread of its own."""
        before = threading.stack_size(_STACK)
        try:
            threading.Thread(target=self._run, args=(record,), name="headwater-spark", daemon=True).start()
        finally:
            threading.stack_size(before)

    @property
    def stats(self) -> Stats:
        """Events sent and failed so far."""
        return self._emitter.stats

    @property
    def live(self) -> bool:
        """Whether its application runs, in this process."""
        return self._pid == os.getpid() and self._end is None and not self._finished.is_set()

    def flush(self, timeout: float = 30.0) -> bool:
        """Wait until everything that happened so far is told; whether it was in time."""
        number, seen = time.monotonic_ns(), threading.Event()
        if self._pid != os.getpid():  # of a fork: the gateway is the parent's
            return True
        with self._lock:
            if self._finished.is_set():
                return True
            self._marks[number] = seen
        until = time.monotonic() + timeout
        if self._reaches(lambda: self._bus.waitUntilEmpty(int(timeout * 1000))):
            self._reaches(lambda: self._probe.mark(number))
        done = seen.wait(max(0.0, until - time.monotonic()))
        self._marks.pop(number, None)
        return done

    def close(self, timeout: float = 30.0) -> None:
        """Tell what is left, and the application's end where Spark did not; more than once is no fault."""
        if self._pid != os.getpid() or self._finished.is_set():
            return
        self._close.set()
        self._reaches(lambda: self._probe.mark(0))  # wakes the reader
        if not self._finished.wait(timeout):
            warn(f"lineage was not sent within {timeout:.1f} s: what was left is lost")
        _forget(self)

    def refused(self, record: dict[str, Any]) -> None:
        """An error seen in Python; held until the listener bus had its say: an execution may tell the same one."""
        with self._lock:
            self._held.append(record)

    def fatal(self, error: str, *, aborted: bool = False) -> None:
        """The driver program ends by an error, or because somebody stopped it."""
        self._fatal = {"error": error, "language": "PYTHON", "aborted": aborted}

    def _run(self, record: dict[str, Any]) -> None:
        sys.setrecursionlimit(max(sys.getrecursionlimit(), 20_000))
        self._handle(record)
        while not self._close.is_set() and time.monotonic() < self._until:
            if not self._read(200):
                self._release()
            self._insure()
        if self._end is None:
            self._reaches(lambda: self._bus.waitUntilEmpty(_BUS))
            self._reaches(
                lambda: self._bus.removeListener(self._probe)
            )  # its queue has no reader from here on
        while self._read(0):
            pass
        self._release(everything=True)
        end = self._end or {"kind": "app_end", "time": int(time.time() * 1000)}
        self._handle({**end, **self._fatal})
        with guard("closing the transport"):
            self._emitter.close()
        with self._lock:
            self._finished.set()
            for seen in self._marks.values():
                seen.set()
        _forget(self)

    def _read(self, wait: int) -> bool:
        """Take what the probe has; whether it had anything."""
        text: str | None = None
        try:
            text = self._taken(wait)
        except _unreachable():
            gone = {
                "kind": "app_end",
                "time": int(time.time() * 1000),
                "error": "the JVM of the driver is gone",
            }
            if self._end is None:
                self._ending(gone)
            self._close.wait(min(_HELD, wait / 1000))
        if text is None:
            return False
        number, *lines = text.split("\n")
        self._got = int(number)
        for line in lines:
            with guard("reading a record"):
                self._take(msgspec.json.decode(line))
        return True

    def _taken(self, wait: int) -> str | None:
        """What the probe has, asked for twice: a process forked off meanwhile shuts this thread's connection for both."""
        found: str | None
        try:
            found = self._probe.take(wait, self._got)
        except _unreachable():
            found = self._probe.take(wait, self._got)  # py4j makes another connection, if there is a JVM
        return found

    def _take(self, record: dict[str, Any]) -> None:
        if record["kind"] == "mark":
            self._release(everything=True)
            if self._end is not None:  # whoever asks wants the end as well; it is told before he hears
                self._until = 0.0
            elif seen := self._marks.pop(record["id"], None):
                seen.set()
        elif record["kind"] == "app_end":
            self._ending(record)
        elif record["kind"] == "lost":
            warn("the queue of Spark's records was full: some were lost, the application's run says how many")
            self._handle(record)
        else:
            self._handle(self.located(record))

    def _ending(self, record: dict[str, Any]) -> None:
        self._end, self._until = record, time.monotonic() + _ENDING

    def _handle(self, record: dict[str, Any]) -> None:
        if record["kind"] == "probe_error":
            _log.warning("the probe met a fault: %s", record["error"])
            return
        with guard("capturing a query"):
            events = interpret(record, self._state) if self._state else []
            if events:
                self._emitter.emit_many(events)
                self._bequeath(events)

    def _bequeath(self, events: list[dict[str, Any]]) -> None:
        """What lasts leaves a will: an ABORT that is sent if this process dies before it has told the end."""
        for event in events:
            run, kind = event["run"]["runId"], event["eventType"]
            if kind == "START" and self._state is not None and lasts(self._state, run):
                self._leave(run, event)
            elif kind == "START":
                self._running[run] = (time.monotonic(), event)
            elif kind in ("COMPLETE", "FAIL", "ABORT"):
                self._running.pop(run, None)
                if run in self._wills:
                    self._wills.discard(run)
                    self._emitter.settle(run)

    def _insure(self) -> None:
        """A query that has run for a while lasts too; for each that ends at once a will would cost as much as its START."""
        now = time.monotonic()
        for run, (since, event) in list(self._running.items()):
            if now - since < _SHORT:
                break
            del self._running[run]
            with guard("leaving a will"):
                self._leave(run, event)

    def _leave(self, run: str, start: dict[str, Any]) -> None:
        self._emitter.will(run, abort(start))
        self._wills.add(run)

    def _release(self, *, everything: bool = False) -> None:
        now = time.time() * 1000
        with self._lock:
            ready = [r for r in self._held if everything or now - r["time"] > _HELD * 1000]
            self._held = [r for r in self._held if r not in ready]
        for record in ready:
            self._handle(record)

    def _reaches(self, call: Callable[[], Any]) -> bool:
        """Ask the JVM; it may be gone."""
        try:
            call()
        except _unreachable():
            return False
        return True


def live() -> list[Capture]:
    """Captures whose application runs."""
    return [capture for capture in list(CAPTURES.values()) if capture.live]


def close_all() -> None:
    """The program ends: a few seconds are left."""
    until = time.monotonic() + _EXIT
    for capture in list(CAPTURES.values()):
        with guard("closing the capture"):
            capture.close(max(0.1, until - time.monotonic()))


def _forget(capture: Capture) -> None:
    for application, known in list(CAPTURES.items()):
        if known is capture:
            CAPTURES.pop(application, None)


def warn(text: str) -> None:
    """Say it once in a process."""
    if text not in _SAID:
        _SAID.add(text)
        _log.warning("%s", text)


def _unreachable() -> tuple[type[Exception], ...]:
    from py4j.protocol import Py4JError  # type: ignore[import-untyped]

    return (Py4JError, OSError)


@contextmanager
def installing() -> Iterator[None]:
    """One at a time."""
    with _LOCKS[-1]:
        yield


def _renew() -> None:
    """In a forked child: the JVM and the threads are the parent's."""
    _LOCKS.append(threading.RLock())
    INHERITED.extend(capture._gateway for capture in CAPTURES.values())
    CAPTURES.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew)
