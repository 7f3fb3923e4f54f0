"""A disk that fills up, a clock that jumps: what was answered with 2xx is there, once; and health tells the truth."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import httpx
import msgspec
import pytest

from headwater.event import parse
from headwater.ingest import replay
from headwater.store import open_store
from serving import serving
from streams import facet, run_id

_JSON = {"Content-Type": "application/json"}


def event(number: int, weight: int = 0) -> bytes:
    padding = os.urandom(weight // 2).hex()  # what cannot be packed
    return msgspec.json.encode(
        {
            "eventTime": "2026-01-01T00:00:00Z",
            "eventType": "COMPLETE",
            "run": {"runId": run_id(number), "facets": {"custom": facet(number=number, padding=padding)}},
            "job": {"namespace": "etl", "name": f"job {number % 7}"},
            "outputs": [{"namespace": "s3://lake", "name": f"out {number % 3}"}],
        }
    )


@pytest.fixture
def small_disk(tmp_path: Path, need: Callable[[str, str], None]) -> Iterator[Path]:
    """A disk of 24 MB."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=24m", "tmpfs", str(folder)], capture_output=True, check=False
    )
    if mounted.returncode:
        need("leave to mount a small disk", "run the tests as root")
    try:
        yield folder
    finally:
        subprocess.run(["umount", str(folder)], check=True)


def fill(client: httpx.Client, accepted: set[bytes], start: int) -> httpx.Response:
    """Send until it is refused."""
    for number in range(start, start + 2_000):
        body = event(number, 100_000)
        answer = client.post("/api/v1/lineage", content=body, headers=_JSON)
        if not answer.is_success:
            return answer
        accepted.add(parse(body).digest)
    raise AssertionError("a disk of 24 MB holds no 200 MB")


def comes(holds: Callable[[], bool]) -> None:
    """A probe may count for a while."""
    patience = time.monotonic() + 60
    while not holds():
        assert time.monotonic() < patience, "it never came to be"
        time.sleep(0.05)


@pytest.mark.parametrize("reserve", ["4MB", "0"], ids=["refused before it is full", "really full"])
def test_a_full_disk_refuses_loses_nothing_and_recovers(small_disk: Path, reserve: str) -> None:
    url = f"sqlite:///{small_disk}/x.db?disk_reserve={reserve}"
    filler = small_disk / "filler"
    filler.write_bytes(bytes(6 << 20))
    accepted: set[bytes] = set()
    with serving(url) as server, httpx.Client(base_url=server.url, timeout=60) as client:
        assert client.get("/ready").is_success
        answer = fill(client, accepted, 0)
        assert answer.status_code == 507, answer.text
        assert answer.headers["Retry-After"]
        assert len(accepted) > 5
        free = shutil.disk_usage(small_disk).free
        assert reserve == "0" or free > 2 << 20, "some space is kept"
        assert client.get("/hw/v1/status").json()["events"] == len(accepted), "reads go on"
        assert client.get("/health").is_success
        if reserve != "0":
            comes(lambda: client.get("/ready").status_code == 503)
            assert 'headwater_store_room{state="full"} 1.0' in client.get("/metrics").text
        filler.unlink()
        body = event(999_999)
        answer = client.post("/api/v1/lineage", content=body, headers=_JSON)
        assert answer.is_success, answer.text
        accepted.add(parse(body).digest)
        comes(lambda: client.get("/ready").is_success)
    with closing(open_store(url)) as store:
        assert {entry.digest for _, entry in store.log()} == accepted
        assert store.check() == []


_CLOCK = """
import time
from pathlib import Path

_real, _place = time.time_ns, Path({place!r})


def _jumped():
    return _real() + int(_place.read_text())


time.time_ns = _jumped
time.time = lambda: _jumped() / 1e9
"""


def test_a_clock_that_jumps_loses_nothing(store_url: str, tmp_path: Path) -> None:
    """A real server whose wall clock goes back and forth by years while it writes."""
    offset = tmp_path / "offset"
    offset.write_text("0")
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "sitecustomize.py").write_text(_CLOCK.format(place=str(offset)))
    path = os.pathsep.join([str(tmp_path / "site"), *sys.path])
    year = 365 * 86_400 * 1_000_000_000
    accepted: set[bytes] = set()
    faults: list[str] = []
    with serving(store_url, environment={"PYTHONPATH": path}) as server:
        stop = threading.Event()

        def send(at: int) -> None:
            with httpx.Client(base_url=server.url, timeout=60) as client:
                while not stop.is_set():
                    body = event(at)
                    at += 1
                    answer = client.post("/api/v1/lineage", content=body, headers=_JSON)
                    if answer.is_success:
                        accepted.add(parse(body).digest)
                    else:
                        faults.append(answer.text)

        threads = [threading.Thread(target=send, args=(100_000 * each,)) for each in range(2)]
        for thread in threads:
            thread.start()
        with httpx.Client(base_url=server.url, timeout=60) as client:
            for jump in (10 * year, -10 * year, 0, 3_600_000_000_000, -year):
                fresh = tmp_path / "offset.new"
                fresh.write_text(str(jump))
                fresh.replace(offset)
                begun, patience = len(accepted), time.monotonic() + 60
                while len(accepted) < begun + 10 and time.monotonic() < patience:
                    time.sleep(0.01)
                assert len(accepted) >= begun + 10, "it stopped writing"
                assert client.get("/ready").is_success
        stop.set()
        for thread in threads:
            thread.join()
    assert faults == []
    with closing(open_store(store_url)) as store:
        digests = [entry.digest for _, entry in store.log()]
        assert len(digests) == len(set(digests))
        assert set(digests) == accepted
        before = store.dump()
        replay(store)
        assert store.dump() == before
