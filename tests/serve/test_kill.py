"""kill -9 in the middle of ingest: what was accepted is there, and nothing is half there."""

from __future__ import annotations

import random
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack, closing
from pathlib import Path

import httpx
import msgspec
import pytest

import services
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
    store_url: str, repeats: Callable[[int], int], batch: int
) -> None:
    url = store_url
    dice = random.Random(batch)
    accepted: set[bytes] = set()
    sent: list[bytes] = []
    number = 0
    for _ in range(max(2, repeats(30) // 2)):
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


def test_postgres_may_be_killed_while_the_server_goes_on(
    tmp_path_factory: pytest.TempPathFactory, repeats: Callable[[int], int], need: Callable[[str, str], None]
) -> None:
    """Every answer of 2xx is kept, the others say 503, and readiness tells the truth all along."""
    if services.postgres_bin() is None:
        need("Postgres", "apt install postgresql")
    accepted: set[bytes] = set()
    sent: list[bytes] = []
    answers: Counter[int] = Counter()
    with tempfile.TemporaryDirectory(prefix="hwpg") as folder, ExitStack() as stack:
        database = services.PostgresServer(Path(folder))
        url = f"postgresql://postgres@127.0.0.1:{database.port}/postgres?connect_timeout=2"
        running = stack.enter_context(ExitStack())
        running.enter_context(database.running())
        server = stack.enter_context(serving(url))
        client = stack.enter_context(httpx.Client(base_url=server.url, timeout=60))
        stop = threading.Event()

        def send(at: int) -> None:
            with httpx.Client(base_url=server.url, timeout=60) as own:
                while not stop.is_set():
                    bodies = [event(at + i) for i in range(10)]
                    at += 10
                    sent.extend(bodies)
                    answer = own.post(
                        "/api/v1/lineage/batch",
                        content=b"[" + b",".join(bodies) + b"]",
                        headers={"Content-Type": "application/json"},
                    )
                    answers[answer.status_code] += 1
                    if answer.is_success:
                        accepted.update(parse(body).digest for body in bodies)
                    else:
                        stop.wait(0.1)

        threads = [threading.Thread(target=send, args=(1_000_000 * worker,)) for worker in range(3)]
        for thread in threads:
            thread.start()
        dice = random.Random(7)
        for _ in range(max(2, repeats(15))):
            begun = len(accepted)
            _until(lambda begun=begun: len(accepted) > begun + 20)  # type: ignore[misc]
            time.sleep(dice.uniform(0, 0.3))
            database.kill()
            _until(lambda: client.get("/ready").status_code == 503)
            assert client.get("/ping").is_success, "the server itself lives"
            running.close()
            running.enter_context(database.running())
            _until(lambda: client.get("/ready").is_success)
        stop.set()
        for thread in threads:
            thread.join()
        assert set(answers) <= {200, 503}, answers
        assert answers[503], "it was never killed while it wrote"
        with closing(open_store(url)) as store:
            kept = {entry.digest: entry for _, entry in store.log()}
            assert store.counts()["log"] == len(kept)
            assert accepted <= kept.keys(), f"{len(accepted - kept.keys())} accepted events are lost"
            assert {entry.raw for entry in kept.values()} <= {parse(body).raw for body in sent}
            whole = settle(
                fold(row for entry in kept.values() for row in derive(parse(entry.raw))),
                Aliases(DEFAULT_RULES),
            )
            assert store.dump() == whole, "an event is half applied"
            assert store.check() == []


def _until(holds: Callable[[], bool]) -> None:
    patience = time.monotonic() + 60
    while not holds():
        assert time.monotonic() < patience, "it never came to be"
        time.sleep(0.02)
