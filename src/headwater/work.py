"""work: a store -> what must happen by itself, done by one worker at a time, however many servers there are.

Each job has an interval. Whoever holds the lease does what is due and renews it between pieces of work; when he is
gone, the lease runs out and another takes it. Jobs can be done twice without harm: what is handed over has a key.
"""

from __future__ import annotations

import logging
import os
import socket
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4

import msgspec

from headwater.deliver import webhook
from headwater.deliver.datahub.following import Follower
from headwater.deliver.datahub.settings import Delivery
from headwater.deliver.webhook import Happening, Options
from headwater.errors import HeadwaterError, TransportError
from headwater.guard import guard
from headwater.ingest import Retention, age, retain
from headwater.query.incidents import DAY, gather, names_of, owner_name, summary
from headwater.query.nodes import iso
from headwater.store import Store, _leases, _outbox

LEASE = "work"
SECOND = 1_000_000
_LOOKBACK = 7 * DAY
_KEPT = 30 * DAY


def clock() -> int:
    """Microseconds since 1970."""
    return time.time_ns() // 1000


_log = logging.getLogger("headwater.work")


@dataclass(slots=True)
class Turn:
    """What a job is given: the store, the time, and how to say that it is still at work."""

    store: Store
    clock: Callable[[], int]
    renew: Callable[[], bool]
    memory: dict[str, Any] = field(default_factory=dict)
    """What jobs remember while this worker lives."""


Job = tuple[float, Callable[[Turn], int]]
"""How many seconds between two times, and what is done; it answers how much was done."""


class Worker:
    """Does the jobs of a store for as long as it holds the lease."""

    def __init__(
        self,
        store: Store,
        jobs: dict[str, Job] | None = None,
        *,
        holder: str | None = None,
        lease_seconds: float = 30.0,
        clock: Callable[[], int] = clock,
    ) -> None:
        self._store, self._jobs = store, JOBS if jobs is None else jobs
        self.holder = holder or f"{socket.gethostname()}:{os.getpid()}:{uuid4().hex[:8]}"
        self._seconds, self._clock = lease_seconds, clock
        self._due: dict[str, int] = {}
        self._until = 0
        self._turn = Turn(store, clock, lambda: not self._stop.is_set() and self.take())
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None

    def take(self) -> bool:
        """Take the lease, or renew it; whether it is ours.

        While more than half of it is left nobody else can have it, and who finds another's does not write: an idle
        store is not written to every second. A clock that went back is not believed.
        """
        now, length = self._clock(), int(self._seconds * SECOND)
        if length // 2 < self._until - now <= length:
            return True
        self._until = 0
        with self._store.read() as reader:
            holder = _leases.holder_of(reader.connection, LEASE, now)
        if holder not in (None, self.holder):
            return False
        with self._store.writing() as connection:
            taken = _leases.take(connection, LEASE, self.holder, now=now, until=now + length)
        self._until = now + length if taken else 0
        return taken

    def once(self, *, every: bool = False) -> dict[str, int] | None:
        """Do what is due (or all of it); how much each job did. None: another worker holds the lease."""
        if not self.take():
            return None
        done: dict[str, int] = {}
        for name, (seconds, job) in self._jobs.items():
            now = self._clock()
            if not every and self._due.get(name, 0) > now:
                continue
            self._due[name] = now + int(seconds * SECOND)
            with guard(f"doing the work {name!r}"):
                done[name] = job(self._turn)
            if not self.take():  # it took so long that another has it now
                break
        return done

    def release(self) -> None:
        """Give the lease back, so that another need not wait for its end."""
        self._until = 0
        with self._store.writing() as connection:
            _leases.release(connection, LEASE, self.holder)

    def start(self) -> None:
        """Work in a thread until `close`."""
        self._thread = threading.Thread(target=self._run, name="headwater-work", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        pause = min([self._seconds / 3, *(seconds for seconds, _ in self._jobs.values())])
        while not self._stop.is_set():
            with guard("working in the background"):
                self.once()
            self._stop.wait(pause)

    def close(self, patience: float = 10.0) -> None:
        """Stop after what is being done, and give the lease back.

        What takes longer than so many seconds ends with the process: it is begun anew when the lease is over.
        """
        self._stop.set()
        if self._thread is None:
            return
        self._thread.join(patience)
        if self._thread.is_alive():
            _log.warning("stopped amid work; whoever has the lease next goes on with it")
            return
        with guard("giving the lease back"):
            self.release()


# ---- webhooks ----------------------------------------------------------------------------------------------


def notify(turn: Turn) -> int:
    """What became of incidents, runs and schemas -> messages in the outbox, once each."""
    with turn.store.read() as reader:
        hooks = _outbox.all_hooks(reader.connection)
        entry = reader.last_entry()
    now = turn.clock()
    # without a new entry only the clock can change anything: a mute runs out, a dataset is late
    if not hooks or (turn.memory.get("entry") == entry and now < turn.memory.get("again", 0)):
        return 0
    floor = max(now - _LOOKBACK, min(hook.since for hook in hooks))
    with turn.store.read() as reader:
        told = list(happenings(reader, floor, now))
    made = 0
    for hook in hooks:
        options = _options(hook)
        mine = [each for each in told if webhook.wanted(each, options, max(floor, hook.since))]
        with turn.store.writing() as connection:
            had = _outbox.known(
                connection, hook.name, {key for each in mine for key in (each.key, *each.also)}
            )
            for each in mine:
                if not had & {each.key, *each.also}:
                    body = webhook.write(each, options)
                    made += _outbox.put(connection, hook.name, each.key, each.event, body, now)
    turn.memory |= {"entry": entry, "again": now + 60 * SECOND}
    return made


def _options(hook: _outbox.Hook) -> Options:
    return msgspec.convert(hook.options, Options)


def happenings(reader: Any, since: int, now: int) -> Iterator[Happening]:
    """What happened since a time, under keys that are the same however often it is asked."""
    found = gather(reader, since=since, now=now)
    names = names_of(reader, found)
    for incident in found.incidents:
        first = incident.first
        called = names.get(first.subject, ())
        subject = "/".join(owner_name(incident))
        model = summary(incident, now)
        severity = incident.last.severity or "error"
        for what, at, by in incident.happenings(now):
            if at < since:
                continue
            event = f"incident.{what}"
            keys = [
                f"{what}:{number}" if what == "opened" else f"{what}:{number}:{at}" for number in incident.ids
            ]
            told = {**model, "at": iso(at), "changedBy": by or model["changedBy"]}
            yield Happening(event, keys[0], tuple(keys[1:]), at, subject, severity, told, called)
            if what == "opened" and first.kind == "schema":
                # by the incident: many datasets may change to one schema, and a header holds no column's name
                changed = [f"schema.changed:{number}" for number in incident.ids]
                also = tuple(changed[1:])
                yield Happening("schema.changed", changed[0], also, at, subject, severity, told, called)
        for each in incident.failures if first.kind == "run" else ():  # every failed run, not only the first
            one = each.last
            told = {**model, "at": iso(one.at), "runId": one.run, "message": one.told["message"]}
            yield Happening("run.failed", f"run.failed:{one.run}", (), one.at, subject, severity, told)


def send(turn: Turn) -> int:
    """Messages that are due -> their receivers; what fails is tried again later, and given up in the end."""
    sent = 0
    with turn.store.read() as reader:
        hooks = {hook.name: hook for hook in _outbox.all_hooks(reader.connection)}
        due = _outbox.due(reader.connection, turn.clock())
    for message in due:
        hook = hooks.get(message.hook)
        if hook is None or not turn.renew():
            continue
        state, fault, asked = "done", "", None
        try:
            _post(hook, message, turn.clock())
            sent += 1
        except TransportError as refused:
            state, fault, asked = (
                ("waiting" if refused.retryable else "dead"),
                str(refused),
                refused.retry_after,
            )
        except HeadwaterError as wrong:
            state, fault = "dead", str(wrong)
        tries = message.tries + 1
        wait = webhook.wait_after(tries, asked) if state == "waiting" else 0
        with turn.store.writing() as connection:
            _outbox.settle(
                connection,
                message.id,
                state="dead" if wait is None else state,
                due_at=turn.clock() + int((wait or 0) * SECOND),
                tries=tries,
                fault=fault,
            )
    return sent


def _post(hook: _outbox.Hook, message: _outbox.Message, now: int) -> None:
    secret = webhook.secret_of(hook.secret)
    headers = webhook.headers_of(message.key, message.event, secret, message.body, now // SECOND)
    webhook.post(hook.url, message.body, headers, private=bool(hook.options.get("private")))


def tidy(turn: Turn) -> int:
    """Messages that were settled long ago are forgotten."""
    with turn.store.writing() as connection:
        return _outbox.forget(connection, turn.clock() - _KEPT)


JOBS: dict[str, Job] = {"notify": (5.0, notify), "send": (2.0, send), "tidy": (3600.0, tidy)}
"""What happens by itself: name -> (seconds between, function). To add one, add a line."""


def jobs(retention: Retention, datahub: Delivery | None = None) -> dict[str, Job]:
    """All of it, with letting go what is no longer kept, and delivering to DataHub, as the settings say."""

    def keep(turn: Turn) -> int:
        def told(kind: str, done: int, of: int) -> None:
            turn.renew()

        gone = retain(turn.store, retention, turn.clock(), told)
        return gone.runs + gone.events + gone.facets + gone.rejects

    out = dict(JOBS)
    every = age(retention.every, "retention.every")
    if every is not None:
        out["retain"] = (every / SECOND, keep)
    if datahub is not None and datahub.to:
        follower = Follower(datahub)  # what is wrong with the settings is told now
        out["datahub"] = (datahub.every, lambda turn: follower.round(turn.store, turn.clock, turn.renew))
    return out
