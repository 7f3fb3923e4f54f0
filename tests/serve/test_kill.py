"""kill -9 in the middle of ingest: what was accepted is there, and nothing is half there."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable
from pathlib import Path

import httpx
import msgspec
import pytest

from headwater.event import parse
from headwater.facts import derive, fold, settle
from headwater.ingest import replay
from headwater.naming import DEFAULT_RULES, Aliases
from headwater.store import open_store
from serving import serving
from streams import facet, run_id


def event(number: int) -> bytes:
    return msgspec.json.encode(
        {
            "eventTime": f"2026-01-01T00:{number // 60 % 60:02d}:{number % 60:02d}Z",
            "eventType": "COMPLETE" if number % 2 else "START",
            "run": {"runId": run_id(number // 2), "facets": {"custom": facet(number=number)}},
            "job": {"namespace": "etl", "name": f"job {number % 7}"},
            "inputs": [{"namespace": "s3a://lake", "name": f"in {number % 5}"}],
            "outputs": [
                {
                    "namespace": "s3://lake",
                    "name": f"out {number % 3}",
                    "facets": {
                        "symlinks": facet(
                            identifiers=[{"namespace": "hive://m", "name": f"t{number % 3}", "type": "TABLE"}]
                        )
                    },
                }
            ],
        }
    )


@pytest.mark.parametrize("batch", [1, 40], ids=["one-by-one", "batches"])
def test_nothing_accepted_is_lost_and_nothing_is_half_applied(
    tmp_path: Path, repeats: Callable[[int], int], batch: int
) -> None:
    url = f"sqlite:///{tmp_path}/x.db"
    dice = random.Random(batch)
    accepted: set[bytes] = set()
    sent: list[bytes] = []
    number = 0
    for _ in range(max(2, repeats(50) // 2)):
        with serving(url) as server:
            stop = threading.Event()

            def send(start: int, address: str = server.url, stop: threading.Event = stop) -> None:
                at = start
                with httpx.Client(base_url=address, timeout=10) as client:
                    while not stop.is_set():
                        bodies = [event(at + i) for i in range(batch)]
                        sent.extend(bodies)
                        at += batch
                        try:
                            if batch == 1:
                                answer = client.post(
                                    "/api/v1/lineage",
                                    content=bodies[0],
                                    headers={"Content-Type": "application/json"},
                                )
                            else:
                                answer = client.post(
                                    "/api/v1/lineage/batch",
                                    content=b"[" + b",".join(bodies) + b"]",
                                    headers={"Content-Type": "application/json"},
                                )
                        except httpx.TransportError:
                            return  # killed before it answered: accepted or not, we were not told
                        assert answer.is_success
                        accepted.update(parse(body).digest for body in bodies)

            threads = [
                threading.Thread(target=send, args=(number + 100_000 * worker,)) for worker in range(3)
            ]
            for thread in threads:
                thread.start()
            begun, patience = len(accepted), time.monotonic() + 30
            while len(accepted) < begun + 20 and time.monotonic() < patience:
                time.sleep(0.005)  # it listens before it answers; the moment to kill is while it writes
            time.sleep(dice.uniform(0.0, 0.4))
            server.kill()
            stop.set()
            for thread in threads:
                thread.join()
            number += 1_000_000
        store = open_store(url)
        kept = {entry.digest: entry for _, entry in store.log()}
        assert accepted <= kept.keys(), f"{len(accepted - kept.keys())} accepted events are lost"
        assert {entry.raw for entry in kept.values()} <= {parse(body).raw for body in sent}
        whole = settle(
            fold(row for entry in kept.values() for row in derive(parse(entry.raw))), Aliases(DEFAULT_RULES)
        )
        assert store.dump() == whole, "an event is half applied"
        assert store.check() == []
        store.close()
    assert len(accepted) >= 40, "it was never killed while it wrote"
    store = open_store(url)
    before = store.dump()
    replay(store)
    assert store.dump() == before
    store.close()
