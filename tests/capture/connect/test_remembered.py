"""The id of a run that has ended is given to no other, whoever forgets what; and two watchers that see the same tell the same."""

from __future__ import annotations

import threading
from collections import defaultdict
from pathlib import Path
from typing import Any

import msgspec
import pytest
from cluster import serving
from hypothesis import given
from hypothesis import strategies as st

from headwater.capture.connect import remembered
from headwater.capture.connect.lifecycle import Moment, Policy, step
from headwater.capture.connect.remembered import Fate, State, numbered, recollect, set_apart, strangers
from headwater.capture.connect.snapshots import Connector, Snapshot, Task
from headwater.connect import Auth, Cluster
from headwater.connect._asking import Server
from headwater.connect._keeping import Keeper
from headwater.connect._recalling import Recall
from headwater.connect._watching import Watcher
from headwater.emitter import Emitter
from serving import serving as lineage_server

TERMINAL = {"COMPLETE", "ABORT", "FAIL"}
FATES: dict[str, Fate] = {"COMPLETE": "ended", "ABORT": "ended", "FAIL": "failed"}
S3 = {
    "connector.class": "io.confluent.connect.s3.S3SinkConnector",
    "topics": "orders",
    "s3.bucket.name": "lake",
}


class Backend:
    """What a lineage server would know: the runs that were told, and how each stands."""

    def __init__(self) -> None:
        self.runs: dict[str, list[str]] = defaultdict(list)

    def take(self, moments: list[Moment]) -> None:
        for each in moments:
            self.runs[each.run].append(each.kind)

    def told(self, state: State, connector: Connector) -> tuple[int, Fate]:
        number = 0
        fate: Fate = "ended"
        while words := self.runs.get(numbered(state, connector, number)):
            fate = next((FATES[word] for word in words if word in FATES), "open")
            number += 1
        return number, fate


class Eye:
    """A watcher that may lose all it knows."""

    def __init__(self, policy: Policy, backend: Backend, name: str) -> None:
        self.policy, self.backend, self.name, self.times = policy, backend, name, 0
        self.lose()

    def lose(self) -> None:
        self.times += 1
        self.state = State("prod", epoch=f"{self.name}{self.times}")

    def look(self, snapshot: Snapshot, now: float, *, answers: bool) -> list[Moment]:
        for each in list(strangers(self.state, snapshot)):
            if answers:
                self.state = recollect(self.state, each, *self.backend.told(self.state, each))
            else:
                self.state = set_apart(self.state, each)
        self.state, moments = step(self.state, snapshot, now, self.policy)
        self.backend.take(moments)
        return moments


def connector(name: str, state: str, tasks: str, topics: str = "t") -> Connector:
    words = {"R": "RUNNING", "F": "FAILED"}
    return Connector(name, "sink", {"topics": topics}, state, tasks=tuple(Task(at, words[each], trace="boom") for at, each in enumerate(tasks)))  # fmt: skip


SEEN = st.builds(
    connector,
    st.sampled_from(["a", "b"]),
    st.sampled_from(["RUNNING", "RUNNING", "FAILED", "STOPPED", "PAUSED"]),
    st.sampled_from(["R", "RR", "F"]),
    st.sampled_from(["t", "u"]),
)
ROUNDS = st.lists(
    st.tuples(
        st.lists(SEEN, max_size=2, unique_by=lambda each: each.name),
        st.booleans(),  # the watcher has forgotten everything
        st.booleans(),  # the server that knows the runs answers
    ),
    max_size=30,
)
POLICIES = st.builds(
    Policy,
    lifecycle=st.sampled_from(["headwater", "seed"]),
    grace=st.sampled_from([0.0, 10.0]),
    tasks=st.booleans(),
)


@given(ROUNDS, POLICIES)
def test_whatever_is_forgotten_no_run_begins_twice_and_none_goes_on_after_its_end(
    rounds: Any, policy: Policy
) -> None:
    backend = Backend()
    eye = Eye(policy, backend, "one")
    for at, (seen, forgets, answers) in enumerate(rounds):
        if forgets:
            eye.lose()
        eye.look(Snapshot({each.name: each for each in seen}), at * 10.0, answers=answers)
    for run, words in backend.runs.items():
        assert words[0] == "START", (run, words)
        assert words.count("START") == 1, (run, words)
        assert not TERMINAL & set(words[:-1]), (run, words)


@given(ROUNDS, POLICIES, st.integers(0, 30))
def test_two_watchers_that_share_nothing_but_the_server_tell_the_same_runs(
    rounds: Any, policy: Policy, late: int
) -> None:
    """Whoever is first, and however late the other joins: together they tell the runs that one alone would have told."""
    backend, single = Backend(), Backend()
    policy = msgspec.structs.replace(policy, tasks=False)
    alone = Eye(policy, single, "alone")
    eyes = [Eye(policy, backend, name) for name in ("one", "two")]
    for at, (seen, swapped, _) in enumerate(rounds):
        snapshot = Snapshot({each.name: each for each in seen})
        alone.look(snapshot, at * 10.0, answers=True)
        for which in (1, 0) if swapped else (0, 1):
            if which == 0 or at >= late:
                eyes[which].look(snapshot, at * 10.0, answers=True)
    assert set(backend.runs) == set(single.runs)
    for run, words in backend.runs.items() if late == 0 else ():  # the same end, said by one or by both
        assert {*words} & TERMINAL == {*single.runs[run]} & TERMINAL


@given(ROUNDS, st.sampled_from([0.0, 10.0]))
def test_one_that_joins_late_goes_on_with_the_run_that_another_began(rounds: Any, grace: float) -> None:
    """Where the server answers, a watcher that knows nothing tells no run that the others do not tell."""
    policy, backend = Policy(grace=grace), Backend()
    old = Eye(policy, backend, "old")
    told = set()
    now = 0.0
    for seen, joins, _ in rounds:
        now += 10.0
        snapshot = Snapshot({each.name: each for each in seen})
        told |= {each.run for each in old.look(snapshot, now, answers=True)}
        if joins:
            new = Eye(policy, Backend(), "new")
            new.backend.runs = backend.runs
            for each in strangers(new.state, snapshot):
                new.state = recollect(new.state, each, *backend.told(new.state, each))
            _, moments = step(new.state, snapshot, now, policy)
            begun = {each.run for each in moments if each.kind == "START"}
            waiting = {name for name, known in old.state.connectors.items() if known.doubt or known.absent}
            assert not {each.connector for each in moments if each.run in begun - told} - waiting


def test_what_is_forgotten_for_want_of_room_comes_back_under_another_root(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(remembered, "MAX_REMEMBERED", 3)
    backend = Backend()
    eye = Eye(Policy(grace=0), backend, "one")
    for at, name in enumerate([*"abcdef", *"abcdef"]):
        eye.look(Snapshot({name: connector(name, "RUNNING", "R")}), at * 10.0, answers=False)
        assert len(eye.state.series) <= 4
    assert len(backend.runs) == 12
    assert all(words.count("START") == 1 for words in backend.runs.values())


# --- with real parts


def test_two_watchers_that_share_a_directory_share_its_epoch(tmp_path: Path) -> None:
    found: list[str] = []
    ready = threading.Barrier(8)

    def load() -> None:
        ready.wait()
        found.append(Keeper(tmp_path, "prod").load()[0].epoch)

    threads = [threading.Thread(target=load) for _ in range(8)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert len(set(found)) == 1
    assert found[0]
    assert [each.name for each in tmp_path.iterdir()] == ["prod.json"]
    (tmp_path / "prod.json").unlink()
    assert Keeper(tmp_path, "prod").load()[0].epoch != found[0]


def test_a_real_server_tells_which_runs_there_were(tmp_path: Path) -> None:
    """A watcher that lost its state asks where the events went: it goes on with an open run and never revives an ended one."""
    with serving() as fake, lineage_server(f"sqlite:///{tmp_path}/store.db") as server:
        emitter = Emitter(f"{server.url}?direct=1")

        def fresh() -> tuple[Watcher, list[dict[str, Any]]]:
            events: list[dict[str, Any]] = []

            def emit(some: list[dict[str, Any]]) -> None:
                emitter.emit_many(some)
                events.extend(some)

            cluster = Cluster(name="prod", url=fake.url, bootstrap="b:9092", schemas="none", grace=0.0)
            asked = Server(server.url, Auth(), timeout=10, verify=True, max_bytes=1_000_000)
            return Watcher(cluster, emit, recall=Recall(asked)), events

        def words(events: list[dict[str, Any]]) -> list[tuple[str, str]]:
            return [(each["eventType"], each["run"]["runId"]) for each in events]

        fake.put("s3", S3)
        first, told = fresh()
        first.round(1.0)
        (run,) = {each["run"]["runId"] for each in told}
        second, also = fresh()
        second.round(10.0)
        assert words(also) == [("RUNNING", run)]  # gone on with, not begun again
        fake.put("s3", S3, tasks="F", trace="boom")
        second.round(20.0)
        assert words(also)[1:] == [("FAIL", run)]
        third, more = fresh()
        third.round(30.0)
        assert more == []  # it failed, and that was told
        fake.put("s3", S3)
        third.round(40.0)
        (next_run,) = {each["run"]["runId"] for each in more}
        assert next_run != run
        assert [kind for kind, _ in words(more)] == ["START", "RUNNING"]
        fake.connectors.clear()
        third.round(50.0)
        fake.put("s3", S3)
        fourth, last = fresh()
        fourth.round(60.0)
        assert [kind for kind, _ in words(last)] == ["START", "RUNNING"]
        assert {each["run"]["runId"] for each in last}.isdisjoint({run, next_run})
        for each in (first, second, third, fourth):
            each.close()
        emitter.close()


def test_a_server_that_hangs_is_waited_for_once() -> None:
    import socket
    import time

    listener = socket.create_server(("127.0.0.1", 0))  # it takes connections, and says nothing
    with serving() as fake:
        for at in range(20):
            fake.put(f"c{at}", {**S3, "topics": f"t{at}"})
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        recall = Recall(Server(url, Auth(), timeout=0.5, verify=True, max_bytes=1_000_000))
        events: list[dict[str, Any]] = []
        cluster = Cluster(name="prod", url=fake.url, bootstrap="b:9092", schemas="none")
        watcher = Watcher(cluster, events.extend, recall=recall)
        began = time.monotonic()
        watcher.round(0.0)
        assert time.monotonic() - began < 8, "each of them was waited for"
        watcher.close()
    listener.close()
    assert len(events) == 40


@pytest.mark.parametrize("answer", [b"<html>", b"[]", b'{"namespaces": 3}'])
def test_a_server_that_cannot_tell_is_asked_for_nothing(answer: bytes) -> None:
    with serving() as fake:
        fake.put("s3", S3)
        ids = []
        for _ in range(2):
            events: list[dict[str, Any]] = []
            with serving() as other:
                other.instead = (200, "application/json", answer)
                recall = Recall(Server(other.url, Auth(), timeout=5, verify=True, max_bytes=1_000_000))
                cluster = Cluster(name="prod", url=fake.url, bootstrap="b:9092", schemas="none")
                watcher = Watcher(cluster, events.extend, recall=recall)
                watcher.round(0.0)
                watcher.close()
            ids.append(events[0]["run"]["runId"])
            assert [each["eventType"] for each in events] == ["START", "RUNNING"]
        assert ids[0] != ids[1]
