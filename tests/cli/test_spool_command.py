"""`headwater spool …` and what `doctor` says of it, as people use them."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from headwater.transport.spool import SpoolTransport, dead
from headwater.transport.spool.drainer import locked
from headwater.transport.spool.place import places
from serving import serving


def headwater(*arguments: str, code: int = 0) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "headwater", *arguments],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == code, done.stderr + done.stdout
    return done.stdout + done.stderr


def event(number: int) -> bytes:
    told = {"eventTime": "2026-01-01T00:00:00Z", "job": {"namespace": "shop", "name": f"job {number}"}}
    return json.dumps(told).encode()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "spool"


def fill(folder: Path, to: str, *numbers: int) -> SpoolTransport:
    transport = SpoolTransport(f"spool://{folder}", to=to, drain="off")
    transport.send([event(n) for n in numbers])
    transport.close()
    return transport


def test_a_spool_is_shown_drained_replayed_and_purged(folder: Path, tmp_path: Path) -> None:
    with serving(f"sqlite:///{tmp_path}/x.db") as server:
        transport = fill(folder, f"{server.url}?api_key=s3cret", 0, 1, 2)
        where = ("--dir", str(folder))
        (model,) = json.loads(headwater("spool", "status", *where, "--json"))
        assert model["waiting"]["events"] == 3
        assert "s3cret" not in json.dumps(model)
        assert headwater("spool", "show", *where, "--limit", "1").strip().encode() == event(0)
        shown = json.loads(headwater("spool", "show", *where, "--json"))
        assert [row["event"]["job"]["name"] for row in shown] == ["job 0", "job 1", "job 2"]
        assert "3 delivered, 0 to the dead letters" in headwater("spool", "drain", *where)
        fill(folder, f"{server.url}?api_key=s3cret", 3)
        transport = SpoolTransport(f"spool://{folder}", to=f"{server.url}?api_key=s3cret", drain="off")
        transport.send([b'{"no": "event"}'])
        transport.close()
        (drained,) = json.loads(headwater("spool", "drain", *where, "--json"))
        assert (drained["delivered"], drained["dead"], drained["doing"]) == (1, 1, "ended")
        assert "eventTime" in headwater("spool", "show", "--dead", *where)
        (letter,) = json.loads(headwater("spool", "show", "--dead", *where, "--json"))
        assert (letter["event"], "eventTime" in letter["reason"]) == ({"no": "event"}, True)
        assert "1 dead letters wait again" in headwater("spool", "replay", *where)
        assert json.loads(headwater("spool", "status", *where, "--json"))[0]["waiting"]["events"] == 1
        headwater("spool", "drain", *where)
        assert "1 dead letters deleted" in headwater("spool", "purge", "--yes", *where)
        assert list(dead.letters(transport.place)) == []
        kept = headwater("search", "job", "--url", server.url, "--json")
        assert [f"job {n}" in kept for n in range(4)] == [True] * 4


def test_a_destination_that_is_down_exits_4_and_keeps_all_and_doctor_says_why(
    folder: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("HEADWATER_SPOOL", str(folder))
    monkeypatch.setenv("HEADWATER_STORE", f"sqlite:///{tmp_path}/x.db")
    assert "nothing was spooled" in headwater("spool", "status")
    assert "nothing was spooled" in headwater("doctor")
    fill(folder, "http://127.0.0.1:1", 0)
    said = headwater("spool", "drain", code=4)
    assert "no answer from http://127.0.0.1:1" in said
    assert "the rest waits" in said
    found = {row["what"]: row for row in json.loads(headwater("doctor", "--json", code=1))}["spool"]
    assert found["state"] == "broken"
    assert re.search(r"1 events wait.*drainer stopped, no answer from http://127.0.0.1:1", found["detail"])
    assert "1 dead letters and events that wait deleted" in headwater("spool", "purge", "--all", "--yes")


def test_no_spool_is_wrong_use(tmp_path: Path) -> None:
    assert "is no spool" in headwater("spool", "status", "--dir", str(tmp_path / "none"), code=2)


@contextmanager
def following(folder: Path) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-m", "headwater", "spool", "drain", "--follow", "--dir", str(folder)]
    started = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    try:
        yield started
    finally:
        started.send_signal(signal.SIGINT)
        assert started.stderr
        started.stderr.read()
        started.stderr.close()
        assert started.wait(30) == 130


def lines(path: Path) -> list[Any]:
    return (
        [json.loads(line)["job"]["name"] for line in path.read_text().splitlines()] if path.exists() else []
    )


def test_a_service_follows_every_destination_that_comes(folder: Path, tmp_path: Path) -> None:
    one, two = tmp_path / "one.jsonl", tmp_path / "two.jsonl"
    fill(folder, one.as_uri(), 0)
    fill(folder, "http://127.0.0.1:1", 0)  # one that hangs or is down holds up nobody
    with following(folder):
        until = time.monotonic() + 60
        while lines(one) != ["job 0"] and time.monotonic() < until:
            time.sleep(0.05)
        fill(folder, one.as_uri(), 1)
        fill(folder, two.as_uri(), 2)
        while (lines(one), lines(two)) != (["job 0", "job 1"], ["job 2"]) and time.monotonic() < until:
            time.sleep(0.05)
        (place,) = (each for each in places(folder) if each.shown() == one.as_uri())
        assert "another drainer is at work" in headwater("spool", "drain", "--dir", str(place.folder))
    assert (lines(one), lines(two)) == (["job 0", "job 1"], ["job 2"])


HOST = """
import os, sys, headwater
for number in range(3):
    headwater.emit({"eventTime": "2026-01-01T00:00:00Z", "job": {"namespace": "shop", "name": f"job {number}"}})
os._exit(0) if sys.argv[1:] else None
"""


@pytest.mark.parametrize("end", ["", "abrupt"])
def test_a_host_emits_to_a_server_that_comes_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, end: str
) -> None:
    """As users have it: nothing set but the server's url."""
    url = f"sqlite:///{tmp_path}/x.db"
    with serving(url) as server:
        address = server.url
        server.kill()
    monkeypatch.setenv("HEADWATER_TRANSPORT", address)
    monkeypatch.setenv("HEADWATER_SPOOL__LINGER", "1")
    done = subprocess.run(
        [sys.executable, "-c", HOST, *end.split()], capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    with serving(url, "--port", address.rpartition(":")[2]) as server:
        until = time.monotonic() + 90
        while httpx.get(f"{server.url}/hw/v1/status").json()["events"] < 3 and time.monotonic() < until:
            time.sleep(0.1)
        seen = headwater("search", "job", "--url", server.url)
        assert [f"job {n}" in seen for n in range(3)] == [True] * 3
    home = Path(os.environ["HOME"])
    (place,) = places(home / ".local" / "state" / "headwater" / "spool")
    assert place.shown() == address


def test_what_waits_is_moved_from_one_folder_to_another_by_name(folder: Path) -> None:
    made = [SpoolTransport(f"spool://{folder}", to=f"http://localhost:1?api_key={key}", drain="off") for key in ("old", "new")]  # fmt: skip
    made[0].send([event(n) for n in range(3)])
    made[0].close()
    old, new = (str(each.place.folder) for each in made)
    with locked(made[0].place):
        assert "a drainer is at work" in headwater("spool", "move", old, new, code=2)
    assert "3 more events wait here" in headwater("spool", "move", old, new)
    told = {each["folder"]: each["waiting"]["events"] for each in json.loads(headwater("spool", "status", "--dir", str(folder), "--json"))}  # fmt: skip
    assert told == {old: 0, new: 3}
    assert "is no folder of a destination" in headwater("spool", "move", old, str(folder), code=2)
    assert "the same folder" in headwater("spool", "move", new, new, code=2)
