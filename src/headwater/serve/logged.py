"""serve.logged: GET /hw/v1/events, /export, /changes -> the raw log: in pages, as a whole, and as it grows.

Whoever follows the log reads it from the store at their own pace, a few entries at a time: the log is the buffer. So a
slow reader holds nobody up and costs no memory, the writer knows of no reader, and it is the same with several servers.
"""

from __future__ import annotations

import asyncio
import time
import zlib
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Annotated, Any, Literal

import anyio.to_thread
import msgspec
import zstandard
from litestar import Request, Response, get
from litestar.datastructures import State
from litestar.params import HeaderParameter, QueryParameter
from litestar.response import ServerSentEvent, ServerSentEventMessage, Stream

from headwater.errors import ConfigError, StoreError
from headwater.facts.flows import NOW
from headwater.query.events import Filter, event, events, head_of
from headwater.query.nodes import moment
from headwater.store import Store

_EACH = 200
"""How many entries a follower reads at a time."""
_LOOK = 0.25
"""How often the log is looked at for what other processes wrote, in seconds, while somebody follows."""
_BEAT = 15.0
"""After so many seconds in which nothing was sent, something is: else proxies take the connection for dead."""
_TAKEN, _CHUNK = 100, 4 << 20
"""How many entries of an export are taken at a time, and after how many bytes no more of them are."""

Text = Annotated[str | None, QueryParameter(max_length=10_000)]
Time = Annotated[str | None, QueryParameter(description="ISO 8601, or -24h.", max_length=64)]
Number = Annotated[int | None, QueryParameter(ge=0, le=NOW)]


@get("/hw/v1/events", sync_to_thread=True, scope="read", media_type="application/json")
def get_events(
    state: State,
    job: Text = None,
    run: Text = None,
    dataset: Text = None,
    kind: Annotated[Literal["run", "job", "dataset", "command"] | None, QueryParameter()] = None,
    since: Time = None,
    until: Time = None,
    cursor: Annotated[
        str | None, QueryParameter(description="`next` of the page before.", max_length=64)
    ] = None,
    limit: Annotated[int, QueryParameter(ge=1, le=1000)] = 100,
    number: Annotated[
        int | None, QueryParameter(ge=1, le=NOW, description="This entry of the log alone.")
    ] = None,
) -> Response[bytes]:
    """Raw events in the order of their times, a page at a time; `next` leads on."""
    if number is not None:
        return Response(msgspec.json.encode(event(state.store, number)), media_type="application/json")
    found = events(
        state.store,
        job=job,
        run=run,
        dataset=dataset,
        kind=kind,
        since=moment(since) if since else None,
        until=moment(until) if until else None,
        cursor=cursor,
        limit=limit,
    )
    return Response(msgspec.json.encode(found), media_type="application/json")


@get("/hw/v1/export", scope="read", media_type="application/x-ndjson")
async def get_export(
    request: Request[Any, Any, State],
    state: State,
    after: Annotated[int, QueryParameter(description="Entries after this number.", ge=0, le=NOW)] = 0,
    accept_encoding: Annotated[str | None, HeaderParameter(name="Accept-Encoding")] = None,
) -> Stream:
    """The raw log as JSON lines, as it came; packed where `Accept-Encoding` has zstd or gzip."""
    wanted = (accept_encoding or "").lower()
    packing = next((each for each in ("zstd", "gzip") if each in wanted), None)
    headers = {"Vary": "Accept-Encoding", **({"Content-Encoding": packing} if packing else {})}
    return Stream(_exported(state.store, after, packing), media_type="application/x-ndjson", headers=headers)


async def _exported(store: Store, after: int, packing: str | None) -> AsyncIterator[bytes]:
    """Chunks of the log; each is read and packed in a thread, so that the loop goes on."""
    pack, finish = _packer(packing)

    def chunk(after: int) -> tuple[int, bytes]:
        parts, size = [], 0
        for number, entry in store.log(after, _TAKEN):
            after = number
            parts += [entry.raw, b"\n"]
            size += len(entry.raw)
            if size >= _CHUNK:  # one event may have megabytes
                break
        return after, pack(b"".join(parts))

    while True:
        last, packed = await anyio.to_thread.run_sync(chunk, after)
        if packed:
            yield packed
        if last == after:
            break
        after = last
    if rest := finish():
        yield rest


def _packer(packing: str | None) -> tuple[Callable[[bytes], bytes], Callable[[], bytes]]:
    if packing == "zstd":
        zstd = zstandard.ZstdCompressor().compressobj()
        return zstd.compress, zstd.flush
    if packing == "gzip":
        gzip = zlib.compressobj(6, zlib.DEFLATED, 31)
        return gzip.compress, gzip.flush
    return (lambda chunk: chunk), lambda: b""


class Following:
    """Tells everybody who follows that the log has grown; looks only while somebody does."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._last = 0
        self._grown = asyncio.Event()
        self._followers = 0
        self._looking: asyncio.Task[None] | None = None

    @asynccontextmanager
    async def follow(self) -> AsyncIterator[None]:
        """Be one of those who are told."""
        self._followers += 1
        if self._looking is None:
            self._looking = asyncio.create_task(self._look())
        try:
            yield
        finally:
            self._followers -= 1
            if not self._followers and self._looking is not None:
                self._looking.cancel()
                self._looking = None

    async def _look(self) -> None:
        while True:
            try:
                last = await anyio.to_thread.run_sync(self._newest)
            except StoreError:  # it may come back; those who follow meet it themselves when they read
                last = self._last
            if last != self._last:
                self._last = last
                self._grown.set()
                self._grown = asyncio.Event()
            await asyncio.sleep(_LOOK)

    def _newest(self) -> int:
        with self._store.read() as reader:
            return reader.last_entry()

    async def newest(self) -> int:
        """The number of the newest entry."""
        return await anyio.to_thread.run_sync(self._newest)

    async def wait(self, seconds: float) -> bool:
        """Until the log has grown, or so long; whether it has."""
        try:
            await asyncio.wait_for(self._grown.wait(), seconds)
        except asyncio.TimeoutError:
            return False
        return True


@get("/hw/v1/changes", scope="read", media_type="text/event-stream")
async def get_changes(
    state: State,
    last_event_id: Annotated[
        str | None,
        HeaderParameter(
            name="Last-Event-ID", description="The number of the last entry that was seen.", max_length=64
        ),
    ] = None,
    after: Annotated[
        int | None,
        QueryParameter(description="Entries after this number; left out: from now on.", ge=0, le=NOW),
    ] = None,
    kind: Annotated[Literal["run", "job", "dataset", "command"] | None, QueryParameter()] = None,
    namespace: Annotated[str | None, QueryParameter(max_length=1_000)] = None,
    state_: Annotated[
        Literal["START", "RUNNING", "COMPLETE", "FAIL", "ABORT", "OTHER"] | None, QueryParameter(name="state")
    ] = None,
    job: Annotated[str | None, QueryParameter(description="The id of a job.", max_length=10_000)] = None,
) -> ServerSentEvent:
    """What comes in, as it comes, by server-sent events; a client that was away goes on where it was."""
    begin = _number(last_event_id) if last_event_id is not None else after
    wanted = Filter(kind=kind, namespace=namespace, state=state_, job=job)
    return ServerSentEvent(
        _changes(state.following, state.store, begin, wanted, lambda: bool(state.probe.stopping))
    )


def _number(text: str) -> int:
    if not text.isascii() or not text.isdigit() or int(text) > NOW:
        raise ConfigError(f"Last-Event-ID is {text!r}, not the number of an entry")
    return int(text)


async def _changes(
    following: Following, store: Store, begin: int | None, wanted: Filter, leaving: Callable[[], bool]
) -> AsyncIterator[ServerSentEventMessage]:
    async with following.follow():
        newest = await following.newest()
        # a number beyond the log is that of another one, of before a backup was put back: whoever waited for it would miss all
        last = newest if begin is None else min(begin, newest)
        yield ServerSentEventMessage(event="hello", id=str(last), data=str(last), retry=1_000)
        sent = time.monotonic()
        while not leaving():
            found, reached = await anyio.to_thread.run_sync(_read, store, last, wanted)
            for each in found:
                yield ServerSentEventMessage(
                    event=each["kind"], id=str(each["number"]), data=msgspec.json.encode(each).decode()
                )
                sent = time.monotonic()
            more, last = reached != last, reached
            if time.monotonic() - sent >= _BEAT:
                # with the number that was reached: filters may have passed much over
                yield ServerSentEventMessage(event="beat", id=str(last), data=str(last))
                sent = time.monotonic()
            if not more:
                await following.wait(1.0)


def _read(store: Store, last: int, wanted: Filter) -> tuple[list[dict[str, Any]], int]:
    """The next entries after a number, of those that are wanted, and how far was read."""
    found = []
    for number, entry in store.log(last, _EACH):
        last = number
        told = head_of(entry, number)
        if wanted.takes(told):
            found.append(told)
    return found, last


READS = [get_events, get_export, get_changes]
