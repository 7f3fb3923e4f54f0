"""One worker at a time, also of several processes, and another one when it is killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from headwater.store import Store, _leases, open_store
from headwater.work import LEASE, Job, Turn, Worker
from serving import serving

SECOND = 1_000_000


@pytest.fixture
def store(store_url: str) -> Iterator[Store]:
    with closing(open_store(store_url)) as made:
        yield made


def take(store: Store, holder: str, now: int, seconds: int = 30) -> bool:
    with store.writing() as connection:
        return _leases.take(connection, "x", holder, now=now, until=now + seconds * SECOND)


def test_a_lease_has_one_holder(store: Store) -> None:
    assert take(store, "a", 0)
    assert not take(store, "b", 29 * SECOND)
    assert take(store, "a", 29 * SECOND), "renewed"
    assert not take(store, "b", 31 * SECOND)
    assert take(store, "b", 59 * SECOND), "run out"
    assert not take(store, "a", 60 * SECOND)
    with store.writing() as connection:
        _leases.release(connection, "x", "a")  # not his any more
    assert not take(store, "a", 60 * SECOND)
    with store.writing() as connection:
        _leases.release(connection, "x", "b")
        assert _leases.holder_of(connection, "x", 0) is None
    assert take(store, "a", 60 * SECOND)


def test_of_many_who_try_at_once_one_gets_it(store_url: str, store: Store) -> None:
    stores = [open_store(store_url) for _ in range(6)]
    start = threading.Barrier(len(stores))
    got: list[int] = []

    def try_it(number: int) -> None:
        start.wait()
        if take(stores[number], f"holder {number}", 0):
            got.append(number)

    threads = [threading.Thread(target=try_it, args=(number,)) for number in range(len(stores))]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    for each in stores:
        each.close()
    assert len(got) == 1


def test_jobs_are_done_when_they_are_due_and_by_the_holder_alone(store: Store) -> None:
    now = [0]
    done: list[str] = []

    def job(name: str) -> Job:
        return 10.0, lambda turn: done.append(name) or 1

    def broken(turn: Turn) -> int:
        raise ValueError("a fault in one job")

    jobs: dict[str, Job] = {"broken": (10.0, broken), "a": job("a")}
    one = Worker(store, jobs, clock=lambda: now[0])
    two = Worker(store, jobs, clock=lambda: now[0])
    assert one.once() == {"a": 1}, "a fault in one does not keep the others"
    assert two.once() is None
    now[0] += 9 * SECOND
    assert one.once() == {}
    now[0] += SECOND
    assert one.once() == {"a": 1}
    now[0] += 31 * SECOND
    assert two.once() == {"a": 1}
    assert one.once() is None
    two.release()
    assert one.once() == {"a": 1}


def test_who_works_too_long_stops_when_another_has_taken_over(store: Store) -> None:
    now = [0]
    other = Worker(store, {}, clock=lambda: now[0])

    def slow(turn: Turn) -> int:
        now[0] += 60 * SECOND
        assert other.take()
        assert not turn.renew()
        return 1

    second: list[int] = []
    one = Worker(
        store, {"slow": (1.0, slow), "after": (1.0, lambda turn: second.append(1) or 1)}, clock=lambda: now[0]
    )
    assert one.once() == {"slow": 1}
    assert second == []


def test_an_idle_worker_does_not_write(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    now, writes = [100 * SECOND], [0]
    begin = store.writing

    def counted():  # type: ignore[no-untyped-def]
        writes[0] += 1
        return begin()

    monkeypatch.setattr(store, "writing", counted)
    one, two = (Worker(store, {}, clock=lambda: now[0]) for _ in range(2))
    for _ in range(10):
        assert one.once() == {}
        assert two.once() is None
        now[0] += SECOND
    assert writes[0] == 1
    now[0] -= 3600 * SECOND  # the clock went back: what was known is asked again
    assert one.once() == {}
    assert writes[0] == 2


CHILD = """
import sys, time
from headwater.store import open_store
from headwater.work import Worker
store = open_store(sys.argv[1])
told = lambda turn: print("did", flush=True) or 1
worker = Worker(store, {"tell": (0.1, told)}, lease_seconds=1.0)
worker.start()
time.sleep(60)
"""


def test_another_process_takes_over_from_one_that_was_killed(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/x.db"
    open_store(url).close()
    children = [
        subprocess.Popen([sys.executable, "-c", CHILD, url], stdout=subprocess.PIPE, text=True)
        for _ in range(2)
    ]
    try:
        first = _who_works(children)
        os.kill(children[first].pid, signal.SIGKILL)
        children[first].wait(10)
        assert children[1 - first].stdout is not None
        assert children[1 - first].stdout.readline() == "did\n", "the other has taken over"
    finally:
        for each in children:
            each.kill()
            each.wait(10)
            assert each.stdout is not None
            each.stdout.close()


def _who_works(children: list[subprocess.Popen[str]]) -> int:
    """The one that says it did something; the other says nothing while the first lives."""
    import select

    streams = [each.stdout for each in children]
    ready, _, _ = select.select(streams, [], [], 60)
    assert ready
    first = streams.index(ready[0])
    quiet, _, _ = select.select([streams[1 - first]], [], [], 2.5)
    assert not quiet, "two work at once"
    return first


@pytest.mark.parametrize("wanted", [True, False])
def test_a_server_works_unless_told_not_to(tmp_path: Path, wanted: bool) -> None:
    url = f"sqlite:///{tmp_path}/x.db"
    with serving(url, environment={"HEADWATER_SERVE__WORK": str(wanted).lower()}) as server:
        with closing(open_store(url)) as store:
            until = time.monotonic() + (20 if wanted else 2)
            while time.monotonic() < until and not (found := _holder(store)):
                time.sleep(0.1)
        assert bool(found) is wanted
        server.process.terminate()
        server.process.wait(20)
    with closing(open_store(url)) as store:
        assert _holder(store) is None, "who goes gives it back"


def _holder(store: Store) -> str | None:
    with store.read() as reader:
        return _leases.holder_of(reader.connection, LEASE, time.time_ns() // 1000)
