"""transport.fanout: encoded events -> several transports, each required or best effort."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from headwater.errors import ConfigError, TransportError
from headwater.transport import KeepsWills, Transport, open_transport
from headwater.transport._options import refuse_closed

_log = logging.getLogger("headwater")
POLICIES = ("required", "best_effort")


@dataclass(slots=True)
class _Target:
    transport: Transport
    required: bool
    said: set[str] = field(default_factory=set)


class FanoutTransport:
    """Sends every event to each of `to`: urls, or tables as of another transport with a `policy`.

    What a `required` target (the default) does not take is an error, told when all others were tried. What a
    `best_effort` target does not take is warned of, once per cause; it is an error only when nobody took the events.

    >>> FanoutTransport(to=["memory:", {"url": "console:", "policy": "best_effort"}])
    FanoutTransport(MemoryTransport(0 events), ConsoleTransport('stdout') best_effort)
    """

    def __init__(
        self,
        url: str = "fanout:",
        *,
        to: list[str | Mapping[str, Any]] | None = None,
        policy: str = "required",
    ) -> None:
        if not isinstance(to, list) or not to:
            raise ConfigError(
                'to: must be a list of urls or tables, as in ["http://a:5000", "file:///b.jsonl"]'
            )
        _required("policy", policy)
        self._targets: list[_Target] = []
        self._closed = False
        for at, each in enumerate(to):
            self._targets.append(_open(at, each, policy))

    def __repr__(self) -> str:
        shown = (f"{each.transport}{'' if each.required else ' best_effort'}" for each in self._targets)
        return f"FanoutTransport({', '.join(shown)})"

    @property
    def targets(self) -> list[Transport]:
        """The transports behind it."""
        return [each.transport for each in self._targets]

    def send(self, events: Sequence[bytes]) -> None:
        """Send to each, whatever the others say."""
        refuse_closed(self._closed, self)
        failed: list[tuple[_Target, TransportError]] = []
        for target in self._targets:
            try:
                target.transport.send(events)
            except TransportError as fault:
                failed.append((target, fault))
        counted = [fault for target, fault in failed if target.required]
        if not counted and len(failed) == len(self._targets):
            counted = [fault for _, fault in failed]
        else:
            for target, why in failed:
                if not target.required:
                    _warn(target, why)
        if counted:
            raise _together(counted, len(events))

    def will(self, run_id: str, event: bytes) -> None:
        """Leave a will with each target that can send for the dead."""
        for target in self._targets:
            if isinstance(target.transport, KeepsWills):
                target.transport.will(run_id, event)

    def settle(self, run_id: str) -> None:
        """The run has ended: none of them is sent."""
        for target in self._targets:
            if isinstance(target.transport, KeepsWills):
                target.transport.settle(run_id)

    def close(self) -> None:
        """Close every target."""
        self._closed = True
        for target in self._targets:
            target.transport.close()


def _open(at: int, given: object, policy: str) -> _Target:
    if isinstance(given, str):
        given = {"url": given}
    if not isinstance(given, Mapping):
        raise ConfigError(f"to[{at}]: {given!r} is neither a url nor a table")
    options = dict(given)
    try:
        required = _required("policy", options.pop("policy", policy))
        return _Target(open_transport(options), required)
    except ConfigError as fault:
        raise ConfigError(f"to[{at}]: {fault}") from None


def _required(name: str, value: object) -> bool:
    if value not in POLICIES:
        raise ConfigError(f"{name}: {value!r} is none of {', '.join(POLICIES)}")
    return value == POLICIES[0]


def _together(faults: list[TransportError], count: int) -> TransportError:
    """One error for all; an event is refused for good only where nobody who failed would take it again."""
    pending: set[int] = set()
    for fault in faults:
        known = fault.pending if fault.pending is not None else set(range(count)) - fault.refused.keys()
        pending |= known if fault.retryable or fault.pending is not None else set()
    refused = {at: why for fault in faults for at, why in fault.refused.items() if at not in pending}
    asked = [fault.retry_after for fault in faults if fault.retry_after is not None]
    return TransportError(
        "; ".join(str(fault) for fault in faults),
        retryable=any(fault.retryable for fault in faults),
        refused=refused,
        pending=pending or None,
        retry_after=max(asked, default=None),
    )


def _warn(target: _Target, fault: TransportError) -> None:
    cause = str(fault).splitlines()[0]
    if cause not in target.said and len(target.said) < 100:
        target.said.add(cause)
        _log.warning("%s, which is best effort, did not take events: %s", target.transport, cause)
