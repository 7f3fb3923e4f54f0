"""serve.intake: events of many requests -> one transaction, and to each request what became of its own.

One thread writes. While it commits, requests pile up; it then takes all of them at once. So a single client
waits for one commit, and a thousand clients share a few: the rate does not hang on the disk's.
"""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from time import perf_counter

from headwater.errors import EventError, HeadwaterError, StoreError
from headwater.event import Limits
from headwater.guard import guard
from headwater.ingest import Outcome, ingest, reject
from headwater.redact import Redaction
from headwater.store import Batch, Store

_BATCH_EVENTS = 2_000
_BATCH_BYTES = 32 << 20


@dataclass(slots=True)
class _Waiting:
    payloads: list[bytes]
    refused: EventError | None
    """Why the request itself, as a whole, is refused."""
    size: int
    loop: asyncio.AbstractEventLoop
    answer: asyncio.Future[Outcome]


class Busy(HeadwaterError):
    """More is waiting to be written than may wait: try again later."""

    retryable = True


class Intake:
    """The one writer behind the HTTP server."""

    def __init__(
        self,
        store: Store,
        limits: Limits,
        redaction: Redaction = Redaction(),  # noqa: B008 - frozen
        *,
        max_waiting_bytes: int = 256 << 20,
        count: Callable[[Outcome, float], None] = lambda outcome, seconds: None,
    ) -> None:
        self._store, self._limits, self._max, self._count = store, limits, max_waiting_bytes, count
        self._redaction = redaction
        self._waiting: deque[_Waiting] = deque()
        self._bytes = 0
        self._wake = threading.Condition()
        self._closed = False
        self._thread = threading.Thread(target=self._run, name="headwater-intake", daemon=True)
        self._thread.start()

    async def take(self, payloads: list[bytes]) -> Outcome:
        """Write events; when this returns they are in the store."""
        return await self._enqueue(payloads, None)

    async def refuse(self, body: bytes, fault: EventError) -> None:
        """Keep a request that is no event, with the reason."""
        await self._enqueue([body], fault)

    async def _enqueue(self, payloads: list[bytes], refused: EventError | None) -> Outcome:
        loop = asyncio.get_running_loop()
        size = sum(map(len, payloads))
        waiting = _Waiting(payloads, refused, size, loop, loop.create_future())
        with self._wake:
            if self._closed:
                raise Busy("the server is shutting down: try again")
            if self._bytes and self._bytes + size > self._max:
                raise Busy("the server is busy: more events wait to be written than may wait; try again")
            self._waiting.append(waiting)
            self._bytes += size
            self._wake.notify()
        return await waiting.answer

    def waiting(self) -> tuple[int, int]:
        """How many requests wait to be written, and how many bytes they hold."""
        with self._wake:
            return len(self._waiting), self._bytes

    def close(self) -> None:
        """Write what is waiting, then stop."""
        with self._wake:
            self._closed = True
            self._wake.notify()
        self._thread.join()

    def _run(self) -> None:
        while True:
            with self._wake:
                while not self._waiting and not self._closed:
                    self._wake.wait()
                if not self._waiting:
                    return
                taken = self._gather()
            fault: HeadwaterError | None = StoreError("a fault of the server's own: see its log")
            with guard("writing events"):
                try:
                    self._write(taken)
                    fault = None
                except StoreError as told:
                    fault = told
            if fault is not None:  # whatever it is, every request must hear of it
                for each in taken:
                    _settle(each, fault)

    def _gather(self) -> list[_Waiting]:
        """As many of those that wait as make a sensible transaction."""
        taken: list[_Waiting] = []
        events = size = 0
        while self._waiting and (not taken or (events < _BATCH_EVENTS and size < _BATCH_BYTES)):
            each = self._waiting.popleft()
            taken.append(each)
            events, size = events + len(each.payloads), size + each.size
        self._bytes -= size
        return taken

    def _write(self, taken: list[_Waiting]) -> None:
        whole = [each for each in taken if each.refused is None]
        payloads = [payload for each in whole for payload in each.payloads]
        rejects = [reject(each.refused, each.payloads[0], self._redaction) for each in taken if each.refused]
        begun = perf_counter()
        outcome = (
            ingest(self._store, payloads, self._limits, self._redaction) if payloads else Outcome(0, 0, 0)
        )
        if rejects:
            self._store.write(Batch(rejects=rejects))
        whole_requests = [(0, each.refused) for each in taken if each.refused is not None]
        self._count(outcome + Outcome(len(rejects), 0, 0, tuple(whole_requests)), perf_counter() - begun)
        faults = dict(outcome.rejected)
        start = 0
        for each in taken:
            if each.refused is not None:
                _settle(each, Outcome(1, 0, 0, ((0, each.refused),)))
                continue
            count = len(each.payloads)
            own = (
                tuple((at, faults[start + at]) for at in range(count) if start + at in faults)
                if faults
                else ()
            )
            _settle(each, Outcome(count, count - len(own), 0, own))
            start += count


def _settle(waiting: _Waiting, result: Outcome | Exception) -> None:
    def answer() -> None:
        if waiting.answer.done():  # the client has gone
            return
        if isinstance(result, Exception):
            waiting.answer.set_exception(result)
        else:
            waiting.answer.set_result(result)

    with suppress(RuntimeError):  # the loop has ended, and with it whoever waited
        waiting.loop.call_soon_threadsafe(answer)
