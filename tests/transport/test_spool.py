"""The spool in one process: its format, its order, its bounds, its wills, and what it makes of a receiver's answers."""

from __future__ import annotations

import json
import os
import random
import re
import shutil
import stat
import subprocess
import sys
import tempfile
import threading
import time
from base64 import b64decode
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from lineage_server import Answer, Request, Server, running
from spool_child import event

from headwater.errors import ConfigError, TransportError
from headwater.transport import KeepsWills, open_transport
from headwater.transport.spool import SpoolTransport, backlog, dead, detached, identity, syncing, wills
from headwater.transport.spool.backlog import Backlog
from headwater.transport.spool.drainer import Drainer, State, drained, locked, rests, state
from headwater.transport.spool.identity import Writer, clock, gone, me
from headwater.transport.spool.place import places
from headwater.transport.spool.report import in_words, report
from headwater.transport.spool.segment import DAMAGED, EVENT, frame, listed, read

RUN, OTHER = "00000000-0000-4000-8000-000000000001", "00000000-0000-4000-8000-000000000002"
ELSEWHERE = Writer("elsewhere/0", "b", "pid:[1]", 7, "1")


def spool(tmp_path: Path, to: str = "http://localhost:1", **options: Any) -> SpoolTransport:
    return SpoolTransport(f"spool://{tmp_path}/spool", to=to, **{"drain": "off", **options})


def ended(run: str, kind: str = "COMPLETE") -> bytes:
    told = json.loads(event(run, 99))
    return json.dumps({**told, "eventType": kind}).encode()


def numbers(server: Server) -> list[int]:
    return [int(e["job"]["name"]) for e in server.events]


def waiting(transport: SpoolTransport) -> list[bytes]:
    return list(backlog.waiting_events(transport.place))


def drain(transport: SpoolTransport, **options: Any) -> State:
    waited: list[float] = []
    return Drainer(transport.place, **{"wait": _quick(waited), "patience": 3600, **options}).run()


def _quick(waited: list[float]) -> Callable[[float], None]:
    """Nobody waits: the clock is moved on instead."""

    def wait(seconds: float) -> None:
        waited.append(seconds)
        _JUMP[0] += int(seconds * 1e9)

    return wait


_JUMP = [0]


@pytest.fixture(autouse=True)
def _steady(monkeypatch: pytest.MonkeyPatch) -> None:
    _JUMP[0] = 0
    monkeypatch.setattr(clock, "steady", lambda: time.monotonic_ns() + _JUMP[0])


# --- the format


@given(payloads=st.lists(st.binary(max_size=60), max_size=6), cut=st.integers(0, 600))
def test_a_file_cut_anywhere_gives_its_whole_records_and_no_other(payloads: list[bytes], cut: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path, whole, ends = Path(folder) / "s", b"", []
        for payload in payloads:
            whole += frame(EVENT, 1, payload)
            ends.append(len(whole))
        path.write_bytes(whole[:cut])
        left = [payload for payload, end in zip(payloads, ends, strict=True) if end <= cut]
        assert [each.payload for each in read(path)] == left
        complete = list(read(path, complete=True))
        assert [each.payload for each in complete if each.kind == EVENT] == left
        torn = len(whole[:cut]) - (ends[len(left) - 1] if left else 0)
        assert [each.end for each in complete if each.kind == DAMAGED] == ([len(whole[:cut])] if torn else [])


@given(
    payloads=st.lists(st.binary(min_size=1, max_size=400), min_size=2, max_size=8),
    at=st.integers(0, 3000),
    flip=st.integers(1, 255),
)
def test_a_byte_that_changed_costs_its_own_record_alone(payloads: list[bytes], at: int, flip: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path, parts = Path(folder) / "s", [frame(EVENT, n, payload) for n, payload in enumerate(payloads)]
        whole = bytearray(b"".join(parts))
        at %= len(whole)
        whole[at] ^= flip
        path.write_bytes(whole)
        hit = next(n for n in range(len(parts)) if at < len(b"".join(parts[: n + 1])))
        found = [each.payload for each in read(path, complete=True) if each.kind == EVENT]
        assert found == [payload for n, payload in enumerate(payloads) if n != hit]


def test_what_is_damaged_in_the_middle_is_kept_to_be_looked_at(tmp_path: Path) -> None:
    out = tmp_path / "out.jsonl"
    transport = spool(tmp_path, out.as_uri())
    transport.send([event(RUN, n) for n in range(3)])
    transport.close()
    (segment,) = listed(transport.place.folder)
    segment.path.write_bytes(segment.path.read_bytes().replace(b'"name": "1"', b'"name": "?"'))
    assert drain(transport).doing == "ended"
    assert [json.loads(line)["job"]["name"] for line in out.read_text().splitlines()] == ["0", "2"]
    for replayed in (0, 0):  # it cannot be sent, so it stays
        (letter,) = dead.letters(transport.place)
        assert letter.damaged
        assert letter.reason.startswith("damaged in ")
        assert b'"name": "?"' in b64decode(json.loads(letter.event)["damaged"])
        assert report(transport.place)["dead"]["events"] == 1
        assert dead.replay(transport.place) == replayed


# --- order


@contextmanager
def jumping(dice: random.Random) -> Iterator[Callable[[], None]]:
    """What makes the wall clock jump, by years, hours or not at all."""
    real, here = clock.wall, [0]
    clock.wall = lambda: real() + here[0]  # type: ignore[method-assign]

    def jump() -> None:
        here[0] = dice.choice((0, 0, 3600, -3600, 400 * 86400, -900 * 86400))

    try:
        yield jump
    finally:
        clock.wall = real  # type: ignore[method-assign]


@given(
    seed=st.integers(0, 2**32),
    writers=st.integers(1, 4),
    segment_bytes=st.sampled_from([1, 700, 100_000]),
    jumps=st.booleans(),
)
def test_events_come_out_as_they_were_sent_whoever_sent_them(
    seed: int, writers: int, segment_bytes: int, jumps: bool
) -> None:
    """Whatever the wall clock does meanwhile."""
    dice = random.Random(seed)
    with tempfile.TemporaryDirectory() as folder, jumping(random.Random(seed)) as jump:
        out = Path(folder) / "out.jsonl"
        make = lambda: spool(Path(folder), out.as_uri(), segment_bytes=segment_bytes, fsync="never")  # noqa: E731
        open_ones = [make() for _ in range(writers)]
        place, sent = open_ones[0].place, 0
        for _ in range(dice.randrange(1, 40)):
            count = dice.randrange(1, 4)
            dice.choice(open_ones).send([event(RUN, sent + i, dice.choice((0, 300))) for i in range(count)])
            sent += count
            if dice.random() < 0.1:
                at = dice.randrange(writers)
                open_ones[at].close()
                open_ones[at] = make()
            if dice.random() < 0.1:
                Drainer(place).run()
            if jumps:
                jump()
                assert backlog.make_room(place, 1 << 30, 1800, old_only=True) == 0  # nothing is old for it
        for each in open_ones:
            each.close()
        Drainer(place).run()
        came = [int(json.loads(line)["job"]["name"]) for line in out.read_text().splitlines()]
        assert came == list(range(sent))
        assert listed(place.folder) == []


def test_a_clock_that_jumps_changes_neither_order_nor_age(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out, real = tmp_path / "out.jsonl", time.time
    for number, jump in enumerate((0, 400 * 86400, -900 * 86400, 5)):
        monkeypatch.setattr(clock, "wall", lambda j=jump: real() + j)
        transport = spool(tmp_path, out.as_uri(), max_age=3600)
        transport.will(RUN, ended(RUN, "ABORT"))
        transport.send([event(RUN, number)])
        transport.close()
        assert backlog.make_room(transport.place, 1 << 30, 3600) == 0
    assert drain(transport).delivered == 4
    assert [json.loads(line)["job"]["name"] for line in out.read_text().splitlines()] == list("0123")
    assert list(dead.letters(transport.place)) == []
    assert report(transport.place)["wills"] == 1  # this process lives, whatever the clocks say


def test_a_round_has_nothing_that_came_after_something_it_lacks(tmp_path: Path) -> None:
    """An event of another process, appended while the directory is read, waits for the next round."""
    transport, later = spool(tmp_path), spool(tmp_path)
    transport.send([event(RUN, 0)])
    view = Backlog(transport.place)
    before = view._listed

    def list_and_then_some() -> Any:
        transport.send([event(RUN, 1)])
        later.send([event(RUN, 2)])
        return before()

    view._listed = list_and_then_some  # type: ignore[method-assign]
    assert [batch.events for batch in view.batches(10, 10**6)] == [[event(RUN, 0)]]


# --- who writes


def test_who_is_gone_and_of_whom_it_cannot_be_known() -> None:
    here = me()

    def change(**fields: Any) -> bool | None:
        return gone(msgspec.structs.replace(here, **fields))

    child = subprocess.Popen([sys.executable, "-c", ""])
    child.wait()
    assert gone(here) is False
    assert change(pid=child.pid) is True
    assert change(start="1") is True  # another process has the number now
    assert change(boot="another") is True
    assert change(host="elsewhere/0") is None
    assert change(space="pid:[1]") is None


def test_a_process_that_nobody_waited_for_is_gone() -> None:
    child = subprocess.Popen([sys.executable, "-c", "print(1)"], stdout=subprocess.PIPE)
    with child:
        assert child.stdout
        child.stdout.read()
        until = time.monotonic() + 20
        while identity._start(child.pid) is not None and time.monotonic() < until:
            time.sleep(0.01)
        assert identity._start(child.pid) is None


def test_files_are_for_their_owner_alone(tmp_path: Path) -> None:
    old = os.umask(0)
    try:
        transport = spool(tmp_path, "http://me:pa55@localhost:1?api_key=s3cret")
        transport.send([event(RUN, 0)])
        transport.will(RUN, ended(RUN))
        with locked(transport.place):
            pass
    finally:
        os.umask(old)
    for path in [transport.place.folder, *transport.place.folder.rglob("*")]:
        assert stat.S_IMODE(path.stat().st_mode) & 0o077 == 0, path
    told = f"{transport!r} {report(transport.place)} {transport.place.name}"
    assert "s3cret" not in told
    assert "pa55" not in told
    assert b"s3cret" in (transport.place / "target").read_bytes()


def test_a_destination_and_who_we_are_there_have_a_folder_of_their_own(tmp_path: Path) -> None:
    def place(to: Any) -> Any:
        return spool(tmp_path, to).place

    one, other = place("http://a:1?api_key=x"), place("http://b:1")
    assert place("http://a:1?api_key=x&timeout=9&verify=no") == one  # how it is reached makes no difference
    assert place({"url": "http://a:1", "api_key": "x"}) == one
    oauth = {"type": "oauth", "token_url": "https://id", "client_id": "a", "client_secret": "1"}
    apart = [
        one,
        other,
        place("http://a:1"),
        place("http://a:1?api_key=y"),
        place("http://a:1?endpoint=z"),
        place("http://me:1@a:1"),
        place("http://me:2@a:1"),
        place({"url": "http://a:1", "auth": oauth}),
        place({"url": "http://a:1", "auth": {**oauth, "client_secret": "2"}}),
    ]
    assert len({each.folder for each in apart}) == len(apart) == len(places(tmp_path / "spool"))
    assert one.target().to["api_key"] == "x"


def test_the_name_of_a_folder_tells_nothing_of_its_key(tmp_path: Path) -> None:
    """In another spool the same key gives another name: whoever sees one cannot try keys until it comes out."""
    one, other = (spool(tmp_path / name, "http://a:1?api_key=x").place.name for name in "ab")
    assert one != other
    assert stat.S_IMODE((tmp_path / "a" / "spool" / "salt").stat().st_mode) == 0o600
    children = [
        subprocess.Popen(
            [sys.executable, "-c", f"from headwater.transport.spool import SpoolTransport as S; print(S('spool://{tmp_path}/c', to='http://a:1', drain='off').place.name)"],
            stdout=subprocess.PIPE,
        )
        for _ in range(4)
    ]  # fmt: skip
    assert len({child.communicate()[0] for child in children}) == 1  # though all of them come first


def test_events_are_never_sent_with_a_key_they_were_not_emitted_with(tmp_path: Path, server: Server) -> None:
    for number, key in enumerate("xyxy"):
        made = spool(tmp_path, f"{server.url}?api_key={key}")
        made.send([event(RUN, number)])
        made.close()
    for place in places(tmp_path / "spool"):
        assert Drainer(place).run().delivered == 2
    keys = {int(each["job"]["name"]): r.headers["X-API-Key"] for r in server.requests for each in r.json}
    assert keys == {0: "x", 1: "y", 2: "x", 3: "y"}


def test_what_waits_can_be_moved_to_another_key(tmp_path: Path, server: Server) -> None:
    old = spool(tmp_path, f"{server.url}?api_key=old", segment_bytes=500)
    old.send([event(RUN, n) for n in range(3)])
    old.send([event(RUN, 3)])
    old.close()
    view = Backlog(old.place)
    batch = next(iter(view.batches(1, 10**6)))
    view.acknowledge(batch)  # the first of a file is delivered, and does not come again
    new = spool(tmp_path, f"{server.url}?api_key=new")
    new.send([event(OTHER, 9)])
    living = spool(tmp_path, f"{server.url}?api_key=old")
    living.send([event(RUN, 4)])
    assert backlog.move(old.place, new.place) == 3
    assert waiting(living) == [event(RUN, 4)]  # its file is still written
    Drainer(new.place).run()
    assert numbers(server) == [9, 1, 2, 3]
    assert {request.headers["X-API-Key"] for request in server.requests} == {"new"}
    assert backlog.move(old.place, new.place) == 0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"drain": "perhaps"}, "drain: 'perhaps' is none of process, inline, off"),
        ({"fsync": "yes"}, "fsync: 'yes' is none of never, interval, always"),
        ({"max_bytes": "much"}, "max_bytes: 'much' is no number"),
        ({"max_age": -1}, "max_age: -1 must be at least 0"),
        ({"to": "localhost"}, "to: names no url"),
        ({"to": "htp://x"}, "unknown transport 'htp'"),
        ({"to": "http://x?timeoutt=3"}, "'timeoutt'"),
        ({"to": {"url": "http://x", "timeout": "soon"}}, "timeout: 'soon' is no number"),
        ({"to": {"url": "http://x", "headers": {"a": object()}}}, "cannot be kept for the drainer"),
    ],
)
def test_what_is_wrong_is_told_at_set_up(tmp_path: Path, options: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        spool(tmp_path, **options)


def test_a_directory_that_cannot_be_written_is_told_at_set_up(tmp_path: Path) -> None:
    (tmp_path / "spool").write_text("a file")
    with pytest.raises(ConfigError, match=r"the spool .* cannot be written: .*HEADWATER_SPOOL.*direct=1"):
        spool(tmp_path)
    with pytest.raises(ConfigError, match="names no directory"):
        open_transport("spool://here?to=http://x")
    if os.geteuid():
        (tmp_path / "closed").mkdir(mode=0o500)
        with pytest.raises(ConfigError, match="cannot be written"):
            spool(tmp_path / "closed")


def test_a_file_that_somebody_deleted_is_begun_anew(tmp_path: Path) -> None:
    transport = spool(tmp_path)
    transport.send([event(RUN, 0)])
    assert backlog.purge(transport.place) == 1
    transport.send([event(RUN, 1)])
    assert waiting(transport) == [event(RUN, 1)]
    shutil.rmtree(tmp_path / "spool")
    transport.send([event(RUN, 2)])
    assert waiting(transport) == [event(RUN, 2)]
    shutil.rmtree(tmp_path / "spool")
    seen = Drainer(transport.place).run()
    assert (seen.doing, "is gone" in str(seen.fault)) == ("stopped", True)


# --- bounds


def test_too_much_drops_the_oldest_to_the_dead_letters_and_replay_brings_it_back(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    out = tmp_path / "out.jsonl"
    transport = spool(tmp_path, out.as_uri(), max_bytes=40_000, segment_bytes=5_000, block=0)
    for number in range(100):
        transport.send([event(RUN, number, 800)])
    transport.close()
    kept = [int(json.loads(e)["job"]["name"]) for e in waiting(transport)]
    buried = [int(json.loads(letter.event)["job"]["name"]) for letter in dead.letters(transport.place)]
    lost = dead.lost(transport.place)
    assert kept == list(range(100 - len(kept), 100))
    assert buried == list(range(lost, 100 - len(kept)))
    assert backlog.total_bytes(transport.place) <= 50_000
    assert sum(1 for r in caplog.records if "is full" in r.getMessage()) == 1
    assert transport.dropped
    assert report(transport.place)["dead"] == {"events": len(buried), "lost": lost}
    assert dead.replay(transport.place) == len(buried)
    Drainer(transport.place).run()
    came = [int(json.loads(line)["job"]["name"]) for line in out.read_text().splitlines()]
    assert came == list(range(lost, 100))


def test_thousands_of_files_are_dropped_in_one_look_at_the_dead_ones(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(20):
        each = spool(tmp_path, "http://localhost:1")
        each.send([event(RUN, number)])
        each.close()
    looks: list[object] = []
    real = dead._dropped
    monkeypatch.setattr(dead, "_dropped", lambda place: (looks.append(place), real(place))[1])
    assert backlog.make_room(each.place, 2_000, -1.0) == 20
    assert len(looks) == 1
    left = sum(1 for _ in dead.letters(each.place))
    assert 0 < left < 20
    assert dead.lost(each.place) == 20 - left


def test_what_is_too_old_goes_to_the_dead_letters(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    transport = spool(tmp_path, "http://localhost:1", max_age=3600)
    transport.send([event(RUN, 0)])
    transport.close()
    later = time.time() + 7200
    monkeypatch.setattr(clock, "wall", lambda: later)
    _JUMP[0] = int(7200e9)
    assert backlog.make_room(transport.place, 1 << 30, 3600) == 1
    (letter,) = dead.letters(transport.place)
    assert (letter.event, "max_age" in letter.reason) == (event(RUN, 0), True)
    assert dead.purge(transport.place) == 1
    assert list(dead.letters(transport.place)) == []


def test_a_segment_that_is_written_is_never_dropped(tmp_path: Path) -> None:
    transport = spool(tmp_path, max_bytes=1000, block=0)
    for number in range(20):
        transport.send([event(RUN, number, 500)])
    assert len(waiting(transport)) == 20


@pytest.mark.parametrize(("policy", "least"), [("always", 3), ("interval", 1), ("never", 0)])
def test_fsync_by_policy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, policy: str, least: int) -> None:
    calls: list[int] = []
    transport = spool(tmp_path, fsync=policy)
    monkeypatch.setattr(os, "fsync", calls.append)
    for number in range(3):
        transport.send([event(RUN, number)])
    assert len(calls) == least


def test_a_drainer_at_work_waits_for_the_disk_and_the_host_does_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[int] = []
    real = os.fsync
    monkeypatch.setattr(os, "fsync", lambda file: (synced.append(os.fstat(file).st_ino), real(file)))
    transport = spool(tmp_path, "http://localhost:1", drain="process", segment_bytes=900)
    monkeypatch.setattr(detached, "start", lambda *_: None)
    transport.send([event(RUN, 0)])
    assert synced  # nobody is at work yet
    with syncing.syncing(transport.place):
        Drainer(transport.place)._tell("waiting", TransportError("down", retryable=True))
        synced.clear()
        mine = threading.get_ident()
        monkeypatch.setattr(os, "fsync", lambda file: (synced.append(threading.get_ident()), real(file)))
        for number in range(1, 9):  # some of them complete a file
            transport.send([event(RUN, number)])
        assert mine not in synced
    assert synced
    waits = {segment.stem: segment.path.stat().st_size for segment, _, _ in backlog.waiting(transport.place)}
    assert syncing.sync(transport.place, {}) == waits
    synced.clear()
    assert syncing.sync(transport.place, waits) == waits
    assert synced == []  # nothing is waited for twice
    Drainer(transport.place)._tell("stopped", TransportError("no", retryable=False))
    _JUMP[0] += int(2e9)
    transport.send([event(RUN, 9)])
    assert synced == [mine]  # nobody else would do it


# --- wills


def test_it_keeps_wills(tmp_path: Path) -> None:
    assert isinstance(spool(tmp_path), KeepsWills)
    assert not isinstance(open_transport("memory:"), KeepsWills)


def test_wills_left_by_other_threads_meanwhile_are_no_fault(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    transport = spool(tmp_path)
    transport.will(RUN, ended(RUN, "ABORT"))
    monkeypatch.setattr(wills, "touch", lambda *_: transport.will(OTHER, ended(OTHER, "ABORT")))
    _JUMP[0] += int(31e9)
    transport.send([event(RUN, 0)])
    assert len(waiting(transport)) == 1


CHILD = """
import os, sys
from headwater.transport.spool import SpoolTransport
from spool_child import event
from test_spool import RUN, OTHER, ended
t = SpoolTransport("spool://" + sys.argv[1], to=sys.argv[2], drain="off")
t.will(RUN, ended(RUN, "ABORT"))
t.will(OTHER, ended(OTHER, "ABORT"))
t.send([event(RUN, 0), event(OTHER, 1)])
exec(sys.argv[3])
os.kill(os.getpid(), 9)
"""


def die(tmp_path: Path, server: Server, last: str) -> SpoolTransport:
    path = os.pathsep.join([str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")])
    command = [sys.executable, "-c", CHILD, str(tmp_path / "spool"), server.url, last]
    assert subprocess.run(command, env={**os.environ, "PYTHONPATH": path}, check=False).returncode == -9
    return spool(tmp_path, server.url)


def told(server: Server) -> list[tuple[str, str]]:
    return [(e["eventType"], e["run"]["runId"]) for e in server.events]


@pytest.mark.parametrize(
    ("last", "wills_sent"),
    [
        ("", [RUN, OTHER]),
        ("t.settle(RUN)", [OTHER]),
        ("t.send([ended(RUN)]); t.settle(RUN)", [OTHER]),
        ("t.send([ended(RUN, 'FAIL')])", [OTHER]),  # killed before it could settle: the end was told
        ("t.settle(RUN); t.settle(OTHER)", []),
        ("t.will(RUN, ended(RUN, 'ABORT')); t.close()", [RUN, OTHER]),
    ],
)
def test_a_will_is_sent_after_what_its_dead_writer_left_unless_its_run_ended(
    tmp_path: Path, server: Server, last: str, wills_sent: list[str]
) -> None:
    transport = die(tmp_path, server, last)
    assert drain(transport).doing == "ended"
    came = told(server)
    assert came[:2] == [("RUNNING", RUN), ("RUNNING", OTHER)]
    assert sorted(run for kind, run in came if kind == "ABORT") == sorted(wills_sent)
    assert all(kind == "ABORT" for kind, _ in came[len(came) - len(wills_sent) :])
    assert report(transport.place)["wills"] == 0


def test_a_drainer_killed_between_a_will_and_its_deletion_sends_the_same_again(
    tmp_path: Path, server: Server
) -> None:
    transport = die(tmp_path, server, "t.settle(OTHER)")
    kept = {path: (path.read_bytes(), path.stat()) for path in (transport.place / "wills").iterdir()}
    drain(transport)
    for path, (content, was) in kept.items():
        path.write_bytes(content)
        os.utime(path, ns=(was.st_atime_ns, was.st_mtime_ns))
    drain(transport)
    aborts = [e for e in server.events if e["eventType"] == "ABORT"]
    assert aborts[0] == aborts[-1]


def test_a_will_is_dated_by_the_last_sign_of_life(tmp_path: Path, server: Server) -> None:
    transport = die(tmp_path, server, "t.settle(OTHER)")
    (will,) = (transport.place / "wills").iterdir()
    os.utime(will, (4_000_000_000, 4_000_000_000))  # 2096-10-02: later than the event says
    drain(transport)
    (sent,) = [e for e in server.events if e["eventType"] == "ABORT"]
    assert sent["eventTime"].startswith("2096-10-02T07:06:40")


def test_a_living_writers_will_waits(tmp_path: Path, server: Server) -> None:
    transport = spool(tmp_path, server.url)
    transport.will(RUN, ended(RUN, "ABORT"))
    drain(transport)
    assert told(server) == []


def test_a_will_from_another_host_waits_for_its_age(
    tmp_path: Path, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    transport = spool(tmp_path, server.url)
    with monkeypatch.context() as there:
        there.setattr(wills, "me", lambda: ELSEWHERE)
        transport.will(RUN, ended(RUN, "ABORT"))
    drain(transport)
    assert told(server) == []
    real = time.time
    monkeypatch.setattr(clock, "wall", lambda: real() + backlog.FOREIGN + 60)
    drain(transport)
    assert told(server) == [("ABORT", RUN)]


def test_a_will_cut_short_was_never_kept(
    tmp_path: Path, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    transport = die(tmp_path, server, "")
    for path in (transport.place / "wills").iterdir():
        path.write_bytes(path.read_bytes()[:-3])
    real = time.time
    monkeypatch.setattr(clock, "wall", lambda: real() + 100)
    drain(transport)
    assert [kind for kind, _ in told(server)] == ["RUNNING", "RUNNING"]
    assert report(transport.place)["wills"] == 0


# --- a receiver's answers


def filled(tmp_path: Path, server: Server, count: int = 6) -> SpoolTransport:
    transport = spool(tmp_path, server.url)
    transport.send([event(RUN, n) for n in range(count)])
    return transport


def names(transport: SpoolTransport) -> list[int]:
    return [int(json.loads(letter.event)["job"]["name"]) for letter in dead.letters(transport.place)]


@pytest.mark.parametrize("status", [200, 201, 202, 204])
def test_done(tmp_path: Path, server: Server, status: int) -> None:
    server.always = Answer(status)
    transport = filled(tmp_path, server)
    assert drain(transport).delivered == 6
    assert (numbers(server), waiting(transport)) == (list(range(6)), [])
    assert [request.path for request in server.requests] == ["/api/v1/lineage/batch"]


def test_207_keeps_the_retriable_and_buries_the_others_with_their_reason(
    tmp_path: Path, server: Server
) -> None:
    rows = [
        {"index": 1, "reason": "busy", "retriable": True},
        {"index": 2, "reason": "no such job", "retriable": False},
    ]
    server.answers.append(Answer(207, {"failed_events": rows}))
    transport = filled(tmp_path, server)
    seen = drain(transport)
    assert (seen.doing, seen.dead, numbers(server)) == ("ended", 1, [0, 1, 2, 3, 4, 5, 1])
    assert [(letter.reason, letter.event) for letter in dead.letters(transport.place)] == [
        ("no such job", json.dumps(json.loads(event(RUN, 2)), separators=(",", ":")).encode())
    ]


@pytest.mark.parametrize("status", [400, 413, 422])
def test_a_batch_is_split_until_the_bad_event_is_found(tmp_path: Path, server: Server, status: int) -> None:
    server.rule = lambda request: (
        Answer(status, {"detail": "bad"}) if b'"name": "3"' in request.body else None
    )
    transport = filled(tmp_path, server, 9)
    assert drain(transport).doing == "ended"
    assert names(transport) == [3]
    taken = [r.json for r in server.requests if b'"name": "3"' not in r.body]
    came = [int(e["job"]["name"]) for body in taken for e in (body if isinstance(body, list) else [body])]
    assert came == [0, 1, 2, 4, 5, 6, 7, 8]
    server.rule = None
    assert dead.replay(transport.place) == 1
    assert drain(transport).delivered == 1
    assert numbers(server)[-1] == 3


@pytest.mark.parametrize("status", [401, 403, 404])
def test_a_server_that_will_not_have_us_stops_it_and_keeps_everything(
    tmp_path: Path, server: Server, status: int
) -> None:
    server.always = Answer(status)
    transport = filled(tmp_path, server)
    seen = drain(transport)
    assert seen.doing == "stopped"
    assert f"answered {status}" in str(seen.fault)
    assert (len(waiting(transport)), names(transport)) == (6, [])
    assert rests(transport.place)
    assert not drained(transport.place)
    assert f"answered {status}" in in_words(report(transport.place))


def test_429_waits_as_long_as_it_is_asked_to(tmp_path: Path, server: Server) -> None:
    server.answers.append(Answer(429, headers={"Retry-After": "77"}))
    waited: list[float] = []
    transport = filled(tmp_path, server)
    assert drain(transport, wait=_quick(waited)).doing == "ended"
    assert 76 <= sum(waited) <= 78


@pytest.mark.parametrize(("asked", "rest"), [(7200, 7200), (10**9, 86_400)])
def test_a_wait_longer_than_a_drainer_lives_is_remembered(
    tmp_path: Path, server: Server, monkeypatch: pytest.MonkeyPatch, asked: int, rest: int
) -> None:
    server.answers.append(Answer(429, headers={"Retry-After": str(asked)}))
    transport = filled(tmp_path, server)
    assert drain(transport, patience=900.0).doing == "stopped"
    now = clock.wall()
    assert "left alone until 2" in in_words(report(transport.place))
    for later, rests_still in ((61, True), (rest - 9, True), (rest + 1, False), (-90_000, False)):
        monkeypatch.setattr(clock, "wall", lambda later=later: now + later)
        assert rests(transport.place) is rests_still
    monkeypatch.undo()
    assert drain(transport).doing == "ended", "by hand it goes at once"
    assert not rests(transport.place)
    assert "left alone" not in in_words(report(transport.place))


def test_a_failing_server_is_asked_ever_more_rarely_and_with_one_event(
    tmp_path: Path, server: Server
) -> None:
    for status in (500, 502, 503, 504, 500):
        server.answers.append(Answer(status))
    waited: list[float] = []
    transport = filled(tmp_path, server)
    assert drain(transport, wait=_quick(waited)).doing == "ended"
    sizes = [len(r.json) if isinstance(r.json, list) else 1 for r in server.requests]
    assert sizes == [6, 6, 1, 1, 1, 1, 2, 3]
    assert 0.5 * 31 * 0.75 <= sum(waited) <= 0.5 * 31 * 1.25
    assert list(dict.fromkeys(numbers(server))) == list(range(6))


@given(
    runs=st.lists(st.sampled_from("abcd"), min_size=1, max_size=40),
    poisons=st.sets(st.integers(0, 39), max_size=4),
    outage=st.integers(0, 12),
    batches=st.booleans(),
)
def test_an_event_that_the_server_fails_at_does_not_hold_up_the_others(
    runs: list[str], poisons: set[int], outage: int, batches: bool
) -> None:
    """Nothing is lost, no good event is buried or held up by another run's, and each run's come in their order."""
    bad = {f'"name": "{number}"'.encode() for number in poisons if number < len(runs)}

    def rule(request: Request) -> Answer:
        if not batches and request.path.endswith("/batch"):
            return Answer(404)
        failing = len(asked) < outage or any(each in request.body for each in bad)
        asked.append(request)
        if not failing:
            taken.extend(request.json if isinstance(request.json, list) else [request.json])
        return Answer(500 if failing else 201)

    asked: list[Request] = []
    taken: list[Any] = []
    uuids = {letter: f"00000000-0000-4000-8000-00000000000{letter}" for letter in "abcd"}
    with tempfile.TemporaryDirectory() as folder, contextmanager(running)() as server:
        server.rule = rule
        transport = spool(Path(folder), server.url)
        transport.send([event(uuids[letter], number) for number, letter in enumerate(runs)])
        transport.close()
        drain(transport)
        came = [(each["run"]["runId"], int(each["job"]["name"])) for each in taken]
        left = [int(json.loads(each)["job"]["name"]) for each in waiting(transport)]
        buried = names(transport)
    first = list(dict.fromkeys(came))
    for letter, uuid in uuids.items():
        told = [number for run, number in first if run == uuid]
        assert told == sorted(told), f"{letter} came out of order"
    assert {number for _, number in came} | set(buried) | set(left) == set(range(len(runs)))
    assert set(buried) <= poisons
    # what stays behind is one that fails, while nothing of another run is left that could show that the server is well
    assert not left or left[0] in poisons
    assert {runs[number] for number in left if number not in poisons} <= {runs[left[0]] for _ in left}


def test_an_event_set_aside_can_be_replayed_and_says_why(tmp_path: Path, server: Server) -> None:
    server.rule = lambda request: Answer(500, {"detail": "boom"}) if b'"name": "0"' in request.body else None
    transport = spool(tmp_path, server.url)
    transport.send([event(RUN, 0), event(OTHER, 1), event(RUN, 2)])
    transport.close()
    seen = drain(transport)
    assert (seen.doing, seen.delivered, seen.dead) == ("ended", 2, 1)
    (letter,) = dead.letters(transport.place)
    assert re.search(
        r"answered 500 boom \(to this event alone, \d times, while it took another\)", letter.reason
    )
    server.rule = None
    assert dead.replay(transport.place) == 1
    assert drain(transport).delivered == 1
    assert numbers(server)[-1] == 0


def test_an_event_alone_waits_and_is_set_aside_when_another_comes(tmp_path: Path, server: Server) -> None:
    """A server that fails for all cannot be told from it before."""
    server.rule = lambda request: Answer(500) if b'"name": "0"' in request.body else None
    transport = spool(tmp_path, server.url)
    transport.send([event(RUN, 0), event(RUN, 1)])
    waited: list[float] = []

    def wait(seconds: float) -> None:
        waited.append(seconds)
        _JUMP[0] += int(seconds * 1e9)
        if len(waited) == 12:
            transport.send([event(OTHER, 2)])

    assert drain(transport, wait=wait).doing == "ended"
    assert len(waited) >= 12
    assert names(transport) == [0]
    taken = [request.json["job"]["name"] for request in server.requests if b'"name": "0"' not in request.body]
    assert taken == ["2", "1"]


def test_it_gives_up_after_its_patience_and_keeps_everything(tmp_path: Path) -> None:
    transport = spool(tmp_path, "http://127.0.0.1:1")
    transport.send([event(RUN, 0)])
    seen = drain(transport, patience=900)
    assert seen.doing == "stopped"
    assert "no answer" in str(seen.fault)
    assert len(waiting(transport)) == 1


@pytest.mark.parametrize("status", [404, 405, 501])
def test_a_server_without_batches(tmp_path: Path, server: Server, status: int) -> None:
    server.rule = lambda request: Answer(status) if request.path.endswith("/batch") else None
    transport = filled(tmp_path, server)
    assert drain(transport).doing == "ended"
    assert [r.json["job"]["name"] for r in server.requests[1:]] == list("012345")


def test_a_target_that_was_changed_is_taken_up_by_a_drainer_at_work(
    tmp_path: Path, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    def rule(request: Request) -> Answer:
        return Answer(201 if request.headers["X-API-Key"] == "new" else 503)

    server.rule = rule
    transport = spool(tmp_path, f"{server.url}?api_key=old")
    transport.send([event(RUN, 0)])
    real, waited = time.time, [0.0]

    def wait(seconds: float) -> None:
        waited[0] += seconds
        _JUMP[0] += int(seconds * 1e9)
        target = transport.place / "target"
        target.write_bytes(target.read_bytes().replace(b"old", b"new"))

    monkeypatch.setattr(clock, "wall", lambda: real() + waited[0])
    assert drain(transport, wait=wait).doing == "ended"


def test_inline_delivers_at_close_within_its_budget(tmp_path: Path, server: Server) -> None:
    transport = spool(tmp_path, server.url, drain="inline", budget=5)
    transport.send([event(RUN, 0)])
    transport.close()
    assert numbers(server) == [0]
    gone = spool(tmp_path / "gone", server.url, drain="inline")
    gone.send([event(RUN, 0)])
    shutil.rmtree(tmp_path / "gone")
    gone.close()
    nowhere = spool(tmp_path, "http://127.0.0.1:1", drain="inline", budget=0.05)
    nowhere.send([event(RUN, 0)])
    nowhere.close()
    assert len(waiting(nowhere)) == 1


def test_a_place_is_drained_by_one(tmp_path: Path) -> None:
    transport = spool(tmp_path)
    with locked(transport.place) as first, locked(transport.place) as second:
        assert (first, second) == (True, False)
    with locked(transport.place) as again:
        assert again


def test_a_drainer_that_died_is_not_believed_in(tmp_path: Path) -> None:
    out = tmp_path / "out.jsonl"
    transport = spool(tmp_path, out.as_uri())
    assert not drained(transport.place)
    drainer = Drainer(transport.place)
    for doing in ("draining", "waiting"):
        drainer._tell(doing)
        assert drained(transport.place)
        assert f"drainer {doing}" in in_words(report(transport.place))
        told = (transport.place / "drainer.json").read_text()
        (transport.place / "drainer.json").write_text(told.replace(f'"start":"{me().start}"', '"start":"1"'))
        assert not drained(transport.place)
        assert "drainer died" in in_words(report(transport.place))
    drainer.run()
    assert state(transport.place).doing == "ended"  # type: ignore[union-attr]


def test_a_host_where_no_drainer_can_start_is_told_once_and_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(sys, "executable", "")
    transport = spool(tmp_path, drain="process")
    for _ in range(3):
        transport.send([event(RUN, 0)])
        _JUMP[0] += int(10e9)
    assert len(waiting(transport)) == 3
    assert len([r for r in caplog.records if "headwater spool drain" in r.getMessage()]) == 1


def test_a_host_that_cannot_start_a_process_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    transport = spool(tmp_path)
    monkeypatch.setattr(detached, "_START", "exit 3")
    with pytest.raises(TransportError, match="no drainer can be started"):
        detached.start(transport.place, 1)


def test_a_drainer_that_ended_is_followed_by_another_at_once(tmp_path: Path, server: Server) -> None:
    """Though the first was started a moment ago."""
    transport = spool(tmp_path, server.url, drain="process", linger=0.05)
    for count in (1, 2, 3):
        transport.send([event(RUN, count)])
        until = time.monotonic() + 60
        while time.monotonic() < until:
            told = state(transport.place)
            if len(server.events) == count and told is not None and told.doing == "ended":
                break
            time.sleep(0.02)
        assert numbers(server) == [*range(1, count + 1)]
