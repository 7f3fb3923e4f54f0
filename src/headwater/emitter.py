"""emitter: events and settings -> a transport, with a count of what was sent and what was not.

    headwater.emit({"eventType": "START", "eventTime": "2026-01-01T00:00:00Z", "run": …, "job": …})

An explicit call raises what goes wrong; where a host must not notice, a guard stands around it. What goes over a
network goes through the spool first: a host waits for its disk, never for a server.
"""

from __future__ import annotations

import atexit
import os
import threading
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from headwater import config
from headwater.event import Event, encode, of
from headwater.transport import KeepsWills, Transport
from headwater.transport._host import open_hosted

Emittable: TypeAlias = Event | Mapping[str, Any] | bytes | str


@dataclass(frozen=True, slots=True)
class Stats:
    """Events that a transport took, and events of calls that raised (a part of those may have arrived)."""

    sent: int = 0
    failed: int = 0


class Emitter:
    """Checks and encodes events and hands them to a transport: an object, a url, a mapping, or what `settings` name.

    >>> from headwater.transport.memory import MemoryTransport
    >>> emitter = Emitter(MemoryTransport())
    >>> emitter.emit({"eventTime": "2026-01-01T00:00:00Z", "job": {"namespace": "shop", "name": "orders"}})
    >>> emitter
    Emitter(MemoryTransport(1 events), sent=1, failed=0)
    """

    def __init__(
        self,
        transport: Transport | str | Mapping[str, Any] | None = None,
        settings: config.Settings | None = None,
    ) -> None:
        self._settings = config.load() if settings is None else settings
        self._transport = None if self._settings.disabled else open_hosted(transport, self._settings)
        self._stats = Stats()
        self._lock, self._pid = threading.Lock(), os.getpid()

    def __repr__(self) -> str:
        stats = self.stats
        return f"Emitter({self._transport or 'disabled'}, sent={stats.sent}, failed={stats.failed})"

    @property
    def stats(self) -> Stats:
        """What was sent and what failed so far."""
        return self._stats

    def emit(self, event: Emittable) -> None:
        """Send one event.

        Raises:
            EventError: it is no valid event.
            TransportError: it could not be handed on.

        """
        self.emit_many([event])

    def emit_many(self, events: Iterable[Emittable]) -> None:
        """Send events in their order; one that is not valid stops all before any is sent."""
        if self._transport is None:
            return
        given = list(events)
        done = False
        try:
            self._transport.send([encode(of(self._placed(event))) for event in given])
            done = True
        finally:
            self._count(len(given) if done else 0, 0 if done else len(given))

    def will(self, run_id: str, event: Emittable) -> None:
        """Leave an event (an ABORT, say) to be sent if this process dies before the run's end is emitted.

        Without effect on a transport that cannot send for the dead.

        Raises:
            EventError: it is no valid event.
            TransportError: it could not be kept.

        """
        if isinstance(self._transport, KeepsWills):
            self._transport.will(run_id, encode(of(self._placed(event))))

    def settle(self, run_id: str) -> None:
        """The run has ended: its will is not sent."""
        if isinstance(self._transport, KeepsWills):
            self._transport.settle(run_id)

    def close(self) -> None:
        """Close the transport."""
        if self._transport is not None:
            self._transport.close()

    def _placed(self, event: Emittable) -> Emittable:
        """A mapping whose job names no namespace is given the settings'; the caller's stays as it was."""
        if isinstance(event, Mapping):
            job = event.get("job")
            if isinstance(job, Mapping) and job.get("namespace") is None:
                return {**event, "job": {**job, "namespace": self._settings.namespace}}
        return event

    def _count(self, sent: int, failed: int) -> None:
        if self._pid != os.getpid():  # after a fork: a thread of the parent may have held the lock
            self._lock, self._pid = threading.Lock(), os.getpid()
        with self._lock:
            self._stats = Stats(self._stats.sent + sent, self._stats.failed + failed)


def emit(event: Emittable) -> None:
    """Send one event with the process's own emitter, made from the settings when first used."""
    default().emit(event)


def emit_many(events: Iterable[Emittable]) -> None:
    """Send events with the process's own emitter."""
    default().emit_many(events)


def default() -> Emitter:
    """The process's own emitter; a forked child makes its own."""
    emitter = _DEFAULTS.get(os.getpid())
    if emitter is None:
        emitter = _DEFAULTS.setdefault(os.getpid(), Emitter())
    return emitter


_DEFAULTS: dict[int, Emitter] = {}  # by process id


@atexit.register
def _close() -> None:
    if emitter := _DEFAULTS.pop(os.getpid(), None):
        emitter.close()
