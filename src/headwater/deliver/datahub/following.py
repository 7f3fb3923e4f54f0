"""deliver.datahub.following: a store's log -> its run groups told to DataHub as they are due; how far that came stands in the store.

What a stretch of the log added to groups, and that it was read, is written in one transaction; only then is anything
told. A worker that dies is followed by another that goes on from there, and what is told twice is told the same.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from hashlib import blake2b
from typing import TYPE_CHECKING

import msgspec

from headwater.deliver.datahub.converting import Converter
from headwater.deliver.datahub.folding import Group
from headwater.deliver.datahub.groups import Policy
from headwater.deliver.datahub.settings import Delivery
from headwater.deliver.datahub.told import Told
from headwater.deliver.datahub.transport import DataHubTransport
from headwater.deliver.datahub.wire import is_proposal
from headwater.errors import ConfigError, EventError, TransportError
from headwater.event import parse
from headwater.guard import guard
from headwater.store import Store, _delivery, _outbox
from headwater.store._delivery import Kept

if TYPE_CHECKING:
    from sqlalchemy import Connection

NAME = "deliver.datahub"
"""What the store calls this delivery."""
STRETCH = 1000
"""Entries of the log that are read at once."""
SECOND = 1_000_000
BEHIND = 60 * SECOND
"""How long a group waits at which DataHub failed by 500."""
_EVENTS = frozenset({"run", "job", "dataset"})


class _State(msgspec.Struct):
    """A run group, as it is kept."""

    told: Told | None
    members: list[Told]
    complete: bool = False
    streaming: bool = False
    changed: int = 0
    emitted: int = 0


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(_State).decode


class Counts(msgspec.Struct):
    """What one worker did since it began."""

    delivered: int = 0
    refused: int = 0


class Follower:
    """Delivers what a store takes in, for as long as one worker lives."""

    def __init__(self, delivery: Delivery) -> None:
        assert delivery.to is not None
        given = {name: value for name, value in delivery.transport.items() if name != "options"}
        if given.get("filename"):
            raise ConfigError(
                "deliver.datahub.filename: names one object, and a server tells many run groups"
            )
        self.by = str(given.get("coalesce", "application"))
        self._converter = Converter(delivery.options, self.by)
        most = {"max_string": delivery.options.max_string}
        self._to = {**given, "url": delivery.to, "coalesce": "none", "options": most}
        DataHubTransport(**self._to).close()  # what is wrong with it is told now
        self._transport: DataHubTransport | None = None
        self._policy = Policy(
            periodic=bool(given.get("periodic", False)),
            idle=float(given.get("idle", 900.0)),
            heartbeat=float(given.get("heartbeat", 300.0)),
            streaming=bool(given.get("streaming_job", False)),
            end=delivery.options.compat is None,
        )
        self.counts = Counts()
        self._rest_until = 0
        self._fault: str | None = None
        """What the store was told last of why nothing can be delivered; None: nothing yet."""

    def round(self, store: Store, clock: Callable[[], int], renew: Callable[[], bool]) -> int:
        """Read what is new, and tell what is due; how many proposals that were.

        Raises:
            TransportError: DataHub does not take them now; what was read is kept, and told in a later round.

        """
        while self._read(store, clock()) == STRETCH and renew():
            pass
        if clock() < self._rest_until:
            return 0
        before = self.counts.delivered
        try:
            self._again(store, clock())
            while renew() and self._tell(store, clock(), renew):
                pass
            self._note(store, "", clock())
        except TransportError as fault:
            self._note(store, str(fault), clock())
            raise
        finally:
            self.close()  # nobody tells a job that it is over
        return self.counts.delivered - before

    def _note(self, store: Store, why: str, now: int) -> None:
        """Keep why nothing can be delivered, for those who look; written only when it changed."""
        if why == self._fault:
            return
        with store.writing() as connection:
            _delivery.note_fault(connection, NAME, why, now)
        self._fault = why

    def close(self) -> None:
        """Let go of connections; the next round makes others."""
        if self._transport is not None:
            self._transport.close()
            self._transport = None

    def _read(self, store: Store, now: int) -> int:
        """A stretch of the log to its groups; how many entries that were."""
        with store.read() as reader:
            position = _delivery.position(reader.connection, NAME)
        entries = list(store.log(after=position, limit=STRETCH))
        if not entries:
            return 0
        tolds, refused = self._converted(entry.raw for _, entry in entries if entry.kind in _EVENTS)
        with store.writing() as connection:
            self._keep(connection, tolds, now)
            for why, raw in refused:
                _delivery.refuse(connection, NAME, _digest(raw), "event", raw, why, now)
            _delivery.advance(connection, NAME, entries[-1][0])
        self.counts.refused += len(refused)
        return len(entries)

    def _converted(self, payloads: Iterable[bytes]) -> tuple[list[Told], list[tuple[str, bytes]]]:
        """What events tell; and those that cannot be converted, with why."""
        tolds: list[Told] = []
        refused: list[tuple[str, bytes]] = []
        for raw in payloads:
            with guard("converting an event for DataHub") as trial:
                try:
                    tolds.append(self._converter.read(parse(raw)))
                except EventError as fault:
                    refused.append((str(fault), raw))
            if trial.fault is not None:
                refused.append((f"it could not be converted: {type(trial.fault).__name__}", raw))
        return tolds, refused

    def _keep(self, connection: Connection, tolds: list[Told], now: int) -> None:
        """Put what events tell to their groups."""
        keys = sorted({self._key(each) for each in tolds})
        known = _delivery.groups(connection, NAME, keys)
        states = {key: self._state(known[key].body if key in known else None) for key in keys}
        for told in tolds:
            states[self._key(told)].add(told, now, alone=self.by == "none")
        kept = [state.kept(key, self._policy) for key, state in states.items()]
        _delivery.keep(connection, NAME, kept, now)

    def _tell(self, store: Store, now: int, renew: Callable[[], bool]) -> int:
        """Groups that are due; how many were told."""
        with store.read() as reader:
            due = _delivery.due(reader.connection, NAME, now)
        for each in due:
            state = self._state(each.body)
            payloads, unmade = self._payloads(each.key, state)
            try:
                refused = self._send(payloads, each.key.partition("\n")[2]) + unmade
            except TransportError as fault:
                self._rest_until = now + int(max(fault.retry_after or 0.0, 5.0) * SECOND)
                if fault.cause == "http_500":  # perhaps at this group alone: those behind it go first
                    with store.writing() as connection:
                        _delivery.keep(connection, NAME, [each._replace(due_at=now + BEHIND)], now)
                raise
            state.emitted = now
            taken = len(payloads) - len(refused) + len(unmade)
            with store.writing() as connection:
                # what came for it meanwhile was read by nobody else: this worker holds the lease
                _delivery.keep(connection, NAME, [state.kept(each.key, self._policy, clean=True)], now)
                for why, body in refused:
                    _delivery.refuse(connection, NAME, _digest(body), "proposal", body, why, now)
                _delivery.count_sent(connection, NAME, taken, now)
            self.counts.delivered += taken
            self.counts.refused += len(refused)
            if not renew():
                return 0
        return len(due)

    def _again(self, store: Store, now: int) -> None:
        """What was refused, and somebody asked to be tried again (`headwater hooks retry deliver.datahub`)."""
        with store.read() as reader:
            waiting = _delivery.waiting(reader.connection, NAME, now)
        for number, body in waiting:
            tolds: list[Told] = []
            if is_proposal(body):
                refused = self._send([body])
            else:  # an event that could not be converted; its group tells what it tells now
                tolds, refused = self._converted([body])
            with store.writing() as connection:
                self._keep(connection, tolds, now)
                state, fault = ("dead", refused[0][0]) if refused else ("done", "")
                _outbox.settle(connection, number, state=state, due_at=now, tries=1, fault=fault)
                _delivery.count_sent(connection, NAME, 0 if refused or tolds else 1, now)

    def _send(self, payloads: list[bytes], group: str = "") -> list[tuple[str, bytes]]:
        """Send proposals, of a group where they tell all of it; those that are refused, with why."""
        if not payloads:
            return []
        if self._transport is None:  # it takes proposals as they are, and knows how to reach DataHub
            self._transport = DataHubTransport(**self._to)
        try:
            self._transport.send(payloads, group=group)
        except TransportError as fault:
            if fault.pending:
                raise
            return [*fault.letters, *((why, payloads[at]) for at, why in fault.refused.items())]
        return []

    def _payloads(self, key: str, state: _Live) -> tuple[list[bytes], list[tuple[str, bytes]]]:
        """The proposals of a group; where none can be made of it, why."""
        why = ""
        with guard("telling a run group to DataHub") as trial:
            try:
                told = state.group.result()
                made = self._converter.propose(told) if told is not None else []
                return [msgspec.json.encode(each) for each in made], []
            except EventError as fault:
                why = str(fault)
        if trial.fault is not None:
            why = f"it could not be told: {type(trial.fault).__name__}"
        return [], [(why, msgspec.json.encode({"group": key}))]

    def _key(self, told: Told) -> str:
        alone = f"\n{told.stamp[3].hex()}" if self.by == "none" else ""
        return f"{told.kind}\n{told.group}{alone}"

    def _state(self, body: bytes | None) -> _Live:
        if body is None:
            return _Live(self._converter.group(), _State(None, []))
        state = _decode(body)
        group = self._converter.group(state.told)
        for each in state.members:
            group.add(each)
        return _Live(group, state)


class _Live:
    """A run group in the hand."""

    def __init__(self, group: Group, state: _State) -> None:
        self.group, self._state = group, state
        self.emitted = state.emitted

    def add(self, told: Told, now: int, *, alone: bool) -> None:
        self.group.add(told)
        self._state.complete |= told.complete or told.kind != "run" or alone
        self._state.streaming |= told.streaming
        self._state.changed = now
        self.emitted = self.emitted or now

    def kept(self, key: str, policy: Policy, *, clean: bool = False) -> Kept:
        """As it is written down, with the time at which it is to be told."""
        state = self._state
        state.told, state.members, state.emitted = (
            self.group.told,
            list(self.group.members.values()),
            self.emitted,
        )
        due = policy.at(
            state.changed, state.emitted, complete=state.complete, streaming=state.streaming, second=SECOND
        )
        return Kept(key, _encode(state), not clean, int(due))


def _digest(body: bytes) -> str:
    return blake2b(body, digest_size=12).hexdigest()


def lag(store: Store) -> dict[str, float]:
    """How far the delivery is behind the log, and what it holds."""
    with store.read() as reader:
        position = _delivery.position(reader.connection, NAME)
        entries = max(0, reader.last_entry() - position)
        held = _delivery.counts(reader.connection, NAME)
    waits = 0.0
    for _, entry in store.log(after=position, limit=1) if entries else ():
        waits = max(0.0, time.time() - entry.time / SECOND)
    return {"entries": entries, "seconds": waits, **held}
