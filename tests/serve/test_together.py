"""Two servers on one store, fed one stream at once, shuffled and repeated: the same tables as one of them makes."""

from __future__ import annotations

import random
import threading
from contextlib import ExitStack, closing
from pathlib import Path

import httpx
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from databases import Postgres
from headwater.cli.demo import recorded
from headwater.event import parse
from headwater.ingest import ingest, replay
from headwater.store import open_store
from serving import serving
from streams import events

_JSON = {"Content-Type": "application/json"}


@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
@settings(
    max_examples=1,
    phases=[Phase.generate],  # a smaller stream is found by the property of the order, without servers
    suppress_health_check=list(HealthCheck),
)
@given(stream=st.lists(events, min_size=100, max_size=150), seed=st.integers(0, 1 << 32))
def test_two_servers_are_as_one(
    kind: str,
    stream: list[bytes],
    seed: int,
    request: pytest.FixtureRequest,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    url = _url(kind, request, tmp_path_factory.mktemp("store"))
    stream = [*stream, *recorded()]
    dice = random.Random(seed)
    faults: list[str] = []
    with ExitStack() as stack:
        servers = [stack.enter_context(serving(url)) for _ in range(2)]
        ready = threading.Barrier(4)

        def send(address: str, own: list[bytes]) -> None:
            ready.wait()
            with httpx.Client(base_url=address, timeout=60) as client:
                for start in range(0, len(own), 7):
                    body = b"[" + b",".join(own[start : start + 7]) + b"]"
                    answer = client.post("/api/v1/lineage/batch", content=body, headers=_JSON)
                    if not answer.is_success:
                        faults.append(answer.text)

        threads = []
        for server in servers:
            for _ in range(2):  # each of four clients sends all of it, in an order of its own
                own = [*stream, *dice.sample(stream, 20)]
                dice.shuffle(own)
                threads.append(threading.Thread(target=send, args=(server.url, own)))
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert faults == []
    with closing(open_store(url)) as store, closing(open_store("memory:")) as alone:
        ingest(alone, stream)
        assert store.dump() == alone.dump()
        digests = [entry.digest for _, entry in store.log()]
        assert sorted(digests) == sorted({parse(each).digest for each in stream})
        assert store.check() == []
        replay(store)
        assert store.dump() == alone.dump()


def _url(kind: str, request: pytest.FixtureRequest, folder: Path) -> str:
    if kind == "sqlite":
        return f"sqlite:///{folder}/store.db"
    server: Postgres = request.getfixturevalue("postgres")
    return server.make()
