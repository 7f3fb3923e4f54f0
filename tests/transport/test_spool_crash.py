"""The spool's promise: when `send` has returned, the event arrives, once in effect and in its run's order, whoever dies."""

from __future__ import annotations

import json
import os
import random
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from lineage_server import Server
from spool_child import event

from headwater.errors import TransportError
from headwater.store import open_store
from headwater.transport.spool import SpoolTransport, backlog, dead
from headwater.transport.spool.detached import environment
from headwater.transport.spool.drainer import Drainer
from headwater.transport.spool.place import Place, places
from serving import serving

CHILD = str(Path(__file__).with_name("spool_child.py"))
DRAINER = "from headwater.transport.spool.detached import main; main()"

pytestmark = [
    pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here"),
    pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning"),
]


@contextmanager
def process(*arguments: str) -> Iterator[subprocess.Popen[bytes]]:
    started = subprocess.Popen([sys.executable, *arguments], env=environment(os.environ))
    try:
        yield started
    finally:
        if started.poll() is None:
            os.kill(started.pid, signal.SIGKILL)
        started.wait(20)


def acknowledged(path: Path) -> list[tuple[str, int]]:
    """What processes wrote down; the last line may be cut short."""
    text = path.read_text() if path.exists() else ""
    return [(run, int(number)) for run, number in (line.split() for line in text.split("\n")[:-1])]


def size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


def arrived(server: Server) -> list[tuple[str, int]]:
    return [(e["run"]["runId"], int(e["job"]["name"])) for e in server.events]


def first_time(pairs: list[tuple[str, int]]) -> dict[str, list[int]]:
    """By run, in the order in which each event came first."""
    out: dict[str, list[int]] = {}
    for run, number in dict.fromkeys(pairs):
        out.setdefault(run, []).append(number)
    return out


def wait_for(happens: Callable[[], bool], seconds: float = 60) -> bool:
    until = time.monotonic() + seconds
    while not happens() and time.monotonic() < until:
        time.sleep(0.002)
    return happens()


def empty(place: Place) -> bool:
    """But for files of processes that were killed before they wrote a byte."""
    left = [segment for segment in backlog.listed(place.folder) if segment.path.stat().st_size]
    return left == [] and list(dead.letters(place)) == []


def test_kill_9_in_emit_drain_and_rotation(
    tmp_path: Path, server: Server, repeats: Callable[[int], int]
) -> None:
    acks, spool, dice = tmp_path / "acks", tmp_path / "spool", random.Random(1)
    drained = 0
    for number in range(max(4, repeats(200))):
        before = size(acks)
        with process(CHILD, str(spool), server.url, str(acks), str(number)) as writer:
            assert wait_for(lambda b=before: size(acks) > b + 200), "it never wrote"  # type: ignore[misc]
            (place,) = places(spool)
            if number % 2:
                seen = len(server.requests)
                with process("-c", DRAINER, str(place.folder), "0") as drainer:
                    wait_for(lambda s=seen, d=drainer: len(server.requests) > s or d.poll() is not None)  # type: ignore[misc]
                    time.sleep(dice.uniform(0, 0.03))
                    drained += drainer.poll() is None
            time.sleep(dice.uniform(0, 0.02))
            assert writer.poll() is None
            os.kill(writer.pid, signal.SIGKILL)
    with process("-c", DRAINER, str(place.folder), "0") as drainer:
        assert drainer.wait(120) == 0
    known, came = set(acknowledged(acks)), arrived(server)
    assert known <= set(came), f"{len(known - set(came))} of {len(known)} acknowledged events are lost"
    for run, numbers in first_time(came).items():
        assert numbers == sorted(numbers), f"{run} came out of order"
        assert numbers == list(range(len(numbers))), f"{run} has a gap"
    assert empty(place)
    assert drained, "no drainer was ever killed at work"


def test_a_server_that_is_killed_takes_each_event_once(tmp_path: Path, repeats: Callable[[int], int]) -> None:
    url, acks, spool = f"sqlite:///{tmp_path}/x.db", tmp_path / "acks", tmp_path / "spool"
    dice, port = random.Random(2), 0
    for number in range(max(2, repeats(12))):
        with serving(url, *(["--port", str(port)] if port else [])) as server:
            port = int(server.url.rpartition(":")[2])
            to = f"http://127.0.0.1:{port}"
            with process(CHILD, str(spool), to, str(acks), str(number), "400") as writer:
                assert wait_for(lambda: (spool / "x").parent.exists() and bool(places(spool)))
                (place,) = places(spool)
                with process("-c", DRAINER, str(place.folder), "1"):
                    wait_for(lambda w=writer: w.poll() is not None)  # type: ignore[misc]
                    time.sleep(dice.uniform(0, 0.3))
                    server.kill()
    with serving(url, "--port", str(port)):
        assert Drainer(place, patience=60).run().doing == "ended"
    assert empty(place)
    store = open_store(url)
    kept = [entry.raw for _, entry in store.log()]
    store.close()
    assert len(kept) == len(set(kept)) == len(set(acknowledged(acks)))


def test_two_drainers_send_nothing_twice(tmp_path: Path, server: Server) -> None:
    with process(CHILD, str(tmp_path / "spool"), server.url, str(tmp_path / "acks"), "1", "300") as writer:
        assert writer.wait(60) == 0
    (place,) = places(tmp_path / "spool")
    with (
        process("-c", DRAINER, str(place.folder), "0.5") as one,
        process("-c", DRAINER, str(place.folder), "0") as two,
    ):
        assert (one.wait(60), two.wait(60)) == (0, 0)
    assert [number for _, number in arrived(server)] == list(range(300))


def test_the_detached_drainer_outlives_its_host_and_holds_none_of_its_files(
    tmp_path: Path, server: Server
) -> None:
    code = (
        "import sys; from headwater.transport.spool import SpoolTransport; from spool_child import event\n"
        "t = SpoolTransport('spool://' + sys.argv[1], to=sys.argv[2], linger=3)\n"
        "t.send([event('00000000-0000-4000-8000-000000000001', n) for n in range(10)])\n"
        "import os; print(os.getpid(), flush=True); os.kill(os.getpid(), 9)"
    )
    started = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "spool"), server.url],
        capture_output=True,  # returns when nobody holds the pipes any more
        env={
            **os.environ,
            "PYTHONPATH": os.pathsep.join([str(Path(CHILD).parent), os.environ.get("PYTHONPATH", "")]),
        },
        timeout=60,
        check=False,
    )
    assert started.returncode == -signal.SIGKILL, started.stderr
    assert wait_for(lambda: len(server.events) == 10)
    (place,) = places(tmp_path / "spool")
    assert wait_for(lambda: empty(place))
    assert (place / "drainer.log").read_text() == ""


def test_a_child_of_headwater_run_drains_uncaptured(tmp_path: Path) -> None:
    ours = "/x/headwater/cli/_sitecustomize"
    made = environment({"PYTHONPATH": f"{ours}:/mine", "_HEADWATER_RUN": "{}", "HOME": "/h"})
    assert made["PYTHONPATH"].startswith("/mine")
    assert ours not in made["PYTHONPATH"]
    assert "_HEADWATER_RUN" not in made
    assert made["HOME"] == "/h"


@pytest.mark.parametrize("limit", [1, 500, 6000, 30_000])
def test_a_file_that_may_not_grow_loses_nothing_that_was_acknowledged(tmp_path: Path, limit: int) -> None:
    """As a full disk, but for this process alone."""
    run, file = "00000000-0000-4000-8000-000000000001", tmp_path / "out.jsonl"
    transport = SpoolTransport(f"spool://{tmp_path}/spool", to=file.as_uri(), drain="off")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    taken: list[int] = []
    faults: list[bool] = []
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, before[1]))
    try:
        for number in range(40):
            try:
                transport.send([event(run, number, 900)])
                taken.append(number)
            except TransportError as fault:
                faults.append(fault.retryable)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    transport.send([event(run, 40)])
    transport.close()
    Drainer(transport.place).run()
    came = [int(json.loads(line)["job"]["name"]) for line in file.read_text().splitlines()]
    assert came == [*taken, 40]
    assert faults
    assert all(faults)


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / "disk"
    folder.mkdir()
    made = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=512k", "none", str(folder)], capture_output=True, check=False
    )
    if made.returncode:
        pytest.skip("a small disk cannot be mounted here: needs root")
    yield folder
    subprocess.run(["umount", "-l", str(folder)], check=True)


def test_a_full_disk_loses_nothing_that_was_acknowledged(
    small_disk: Path, tmp_path: Path, server: Server
) -> None:
    run = "00000000-0000-4000-8000-000000000001"
    transport = SpoolTransport(
        f"spool://{small_disk}/spool", to=server.url, drain="off", segment_bytes=50_000
    )
    taken: list[int] = []
    told: list[str] = []
    number = 0
    for _ in range(3):
        while True:
            number += 1
            try:
                transport.send([event(run, number, 9000)])
                taken.append(number)
            except TransportError as fault:
                told.append(str(fault))
                break
        assert Drainer(transport.place).run().doing == "ended"  # on a disk that is full
    transport.close()
    Drainer(transport.place).run()
    assert [n for _, n in dict.fromkeys(arrived(server))] == taken
    assert len(taken) > 100
    assert all("No space left" in each for each in told)
