"""The log as it is sent: a stream that is never silent for long, and an export of any size that is never held whole."""

from __future__ import annotations

import asyncio
import gzip
import json
import os
from typing import Any

import pytest
from litestar.concurrency import sync_to_thread

from headwater.ingest import ingest
from headwater.query.events import Filter
from headwater.serve import logged
from headwater.store import open_store


def event(number: int, **more: Any) -> bytes:
    return json.dumps(
        {
            "eventType": "START",
            "eventTime": "2026-05-01T00:00:00Z",
            "run": {"runId": f"00000000-0000-7000-8000-{number:012d}"},
            "job": {"namespace": "live", "name": f"job_{number}"},
            **more,
        },
        separators=(",", ":"),
    ).encode()


def test_a_stream_beats_though_the_log_grows_all_the_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a filter passes over is nothing to a proxy: without a beat it takes the connection for dead."""
    monkeypatch.setattr(logged, "_BEAT", 0.5)
    store = open_store("memory:")

    async def follow() -> list[tuple[str | None, str | None]]:
        following, seen, stop = logged.Following(store), [], False

        async def grow() -> None:
            for number in range(1_000):
                if stop:
                    return
                await sync_to_thread(ingest, store, [event(number)])
                await asyncio.sleep(0.02)

        growing = asyncio.create_task(grow())
        stream = logged._changes(following, store, None, Filter(state="FAIL"), lambda: len(seen) > 3)
        async for each in stream:
            seen.append((each.event, each.id))
        stop = True
        await growing
        return seen

    seen = asyncio.run(asyncio.wait_for(follow(), 30))
    store.close()
    assert [name for name, _ in seen] == ["hello", "beat", "beat", "beat"]
    reached = [int(number or 0) for _, number in seen]
    assert reached == sorted(set(reached)), "each tells how far was read"


def test_an_export_of_large_events_is_made_of_chunks_with_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logged, "_CHUNK", 1_000_000)
    store = open_store("memory:")
    sent = [event(number, producer=f"p:{os.urandom(200_000).hex()}") for number in range(12)]
    ingest(store, sent)

    async def chunks(packing: str | None) -> list[bytes]:
        return [each async for each in logged._exported(store, 0, packing)]

    plain, packed = asyncio.run(chunks(None)), asyncio.run(chunks("gzip"))
    store.close()
    assert max(map(len, plain)) < 1_500_000
    assert b"".join(plain).splitlines() == sent
    assert gzip.decompress(b"".join(packed)) == b"".join(plain)
