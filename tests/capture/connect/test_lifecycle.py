"""Whatever a cluster shows, each run has one START, at most one end, and nothing after it."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.capture.connect.lifecycle import Moment, Policy, open_runs, step
from headwater.capture.connect.remembered import State
from headwater.capture.connect.snapshots import (
    Connector,
    Snapshot,
    Task,
    config_digest,
    from_rest,
    public_digest,
)

TERMINAL = {"COMPLETE", "ABORT", "FAIL"}
STATES = ["UNASSIGNED", "RUNNING", "PAUSED", "FAILED", "RESTARTING", "STOPPED"]


def connector(state: str = "RUNNING", tasks: str = "R", **changes: Any) -> Connector:
    words = {"R": "RUNNING", "F": "FAILED", "P": "PAUSED", "U": "UNASSIGNED"}
    made = tuple(
        Task(at, words[each], "w1:8083", "boom" if each == "F" else "") for at, each in enumerate(tasks)
    )
    return Connector(
        **{"name": "c", "type": "sink", "config": {"topics": "t"}, "state": state, "tasks": made, **changes}
    )


USUAL = Policy()


def play(
    rounds: list[Connector | None],
    policy: Policy = USUAL,
    every: float = 10.0,
    datasets: list[str] | None = None,
    ready: list[bool] | None = None,
) -> list[Moment]:
    state, told = State("prod"), []
    for at, seen in enumerate(rounds):
        snapshot = Snapshot({} if seen is None else {seen.name: seen})
        state, moments = step(
            state,
            snapshot,
            at * every,
            policy,
            {"c": datasets[at]} if datasets else None,
            {"c": ready[at]} if ready else None,
        )
        told += moments
    return told


def kinds(moments: list[Moment]) -> list[str]:
    return [moment.kind if moment.task is None else f"{moment.task}:{moment.kind}" for moment in moments]


UP = connector()
SLOWER = connector(config={"topics": "t", "flush.size": "1"})


@pytest.mark.parametrize(
    ("rounds", "expected"),
    [
        ([UP, UP, UP], ["START", "RUNNING"]),
        ([connector(tasks=""), UP], ["START", "RUNNING"]),
        ([connector(tasks="")] * 3, ["START", "RUNNING"]),  # some have no task at all
        ([connector(tasks=""), connector(tasks="F"), connector(tasks="F")], ["START", "FAIL"]),
        ([connector(tasks="RU"), connector(tasks="RF"), connector(tasks="RF")], ["START", "FAIL"]),
        ([connector("UNASSIGNED", ""), UP], ["START", "RUNNING"]),
        ([UP, connector("PAUSED", "P"), connector("PAUSED", "P"), UP], ["START", "RUNNING", "OTHER", "RUNNING"]),
        ([UP, connector("STOPPED", "R"), connector("STOPPED", "")], ["START", "RUNNING", "ABORT"]),
        ([UP, connector("STOPPED", ""), UP], ["START", "RUNNING", "ABORT", "START", "RUNNING"]),
        ([UP, SLOWER, SLOWER], ["START", "RUNNING", "COMPLETE", "START", "RUNNING"]),
        ([UP, None, None], ["START", "RUNNING", "ABORT"]),
        ([UP, None, UP], ["START", "RUNNING"]),
        ([UP, connector(tasks="F"), UP, connector(tasks="F"), UP], ["START", "RUNNING"]),
        ([UP, connector(tasks="F"), connector(tasks="F")], ["START", "RUNNING", "FAIL"]),
        ([UP] + [connector(tasks="F")] * 9, ["START", "RUNNING", "FAIL"]),
        ([UP] + [connector(tasks="F")] * 2 + [UP, UP], ["START", "RUNNING", "FAIL", "START", "RUNNING"]),
        ([UP] + [connector(tasks="F")] * 2 + [UP, connector(tasks="F"), UP], ["START", "RUNNING", "FAIL"]),
        ([UP] + [connector(tasks="F")] * 2 + [connector("PAUSED", "F")] * 3, ["START", "RUNNING", "FAIL"]),
        ([connector("FAILED", "", trace="no")] * 3, ["START", "FAIL"]),
        ([UP, connector("RESTARTING"), UP], ["START", "RUNNING"]),
        ([UP, connector(tasks="U"), UP], ["START", "RUNNING"]),
        ([UP] + [connector(tasks="U")] * 3 + [UP], ["START", "RUNNING", "OTHER", "RUNNING"]),
        ([UP, replace(UP, worker="other:8083", tasks=(Task(0, "RUNNING", "other:8083"),))], ["START", "RUNNING"]),
        ([UP] + [connector(tasks="F")] * 2 + [replace(SLOWER, tasks=connector(tasks="F").tasks)] * 3,
         ["START", "RUNNING", "FAIL", "START", "FAIL"]),
    ],
)  # fmt: skip
def test_what_happens_is_told(rounds: list[Connector | None], expected: list[str]) -> None:
    assert kinds(play(rounds)) == expected


@pytest.mark.parametrize(
    ("fail_on", "tasks", "fails"),
    [
        ("any", "RRF", True),
        ("majority", "RRF", False),
        ("majority", "RFF", True),
        ("majority", "RF", False),
        ("all", "FFR", False),
        ("all", "FFF", True),
    ],
)
def test_how_many_tasks_must_fail_is_a_policy(fail_on: Any, tasks: str, fails: bool) -> None:
    moments = play([UP] + [connector(tasks=tasks)] * 3, Policy(fail_on=fail_on))
    assert (moments[-1].kind == "FAIL") is fails
    assert not fails or "task" in moments[-1].error


def test_a_new_schema_is_told_within_the_run() -> None:
    moments = play([UP, UP, UP], datasets=["a", "b", "b"])
    assert kinds(moments) == ["START", "RUNNING", "RUNNING"]
    assert len({moment.run for moment in moments}) == 1


def test_a_short_failure_raises_nothing_even_when_rounds_are_quick() -> None:
    """Connect shows a failed task for four seconds while it lowers the number of tasks."""
    assert kinds(play([UP] + [connector(tasks="RF")] * 4 + [UP], every=1.0)) == ["START", "RUNNING"]


def test_a_changed_password_is_a_reconfiguration_that_no_one_outside_can_see() -> None:
    before, after = ({"topics": "t", "connection.password": word} for word in ("one", "two"))
    assert config_digest(before) != config_digest(after)
    assert public_digest(before) == public_digest(after)
    moments = play([connector(config=before), connector(config=after)])
    assert kinds(moments) == ["START", "RUNNING", "COMPLETE", "START", "RUNNING"]
    assert len({moment.run for moment in moments}) == 2


def test_the_first_look_at_a_failed_cluster_needs_no_second() -> None:
    assert kinds(play([connector(tasks="F")], Policy(grace=0))) == ["START", "FAIL"]


# --- tasks


def test_each_task_is_a_run_below_its_connectors() -> None:
    moments = play(
        [connector(tasks="RR"), connector(tasks="RF"), connector(tasks="RF"), connector(tasks="RR"), None, None],
        Policy(tasks=True, fail_on="all"),
    )  # fmt: skip
    assert kinds(moments) == [
        "START", "RUNNING", "0:START", "0:RUNNING", "1:START", "1:RUNNING",
        "1:FAIL", "1:START", "1:RUNNING", "0:ABORT", "1:ABORT", "ABORT",
    ]  # fmt: skip
    own = {moment.run for moment in moments if moment.task is None}
    assert {moment.parent for moment in moments if moment.task is not None} == own
    assert own.isdisjoint(moment.run for moment in moments if moment.task is not None)


def test_a_task_that_its_connector_no_longer_has_is_complete() -> None:
    moments = play([connector(tasks="RR"), connector(tasks="R"), connector(tasks="R")], Policy(tasks=True))
    assert kinds(moments)[6:] == ["1:COMPLETE"]


# --- lifecycle "seed"


@pytest.mark.parametrize("last", [[None, None], [connector("STOPPED", "")], [SLOWER]])
def test_the_seeds_lifecycle_completes_every_clean_stop(last: list[Connector | None]) -> None:
    moments = play([UP, UP, *last], Policy(lifecycle="seed"))
    assert kinds(moments)[:2] == ["START", "COMPLETE"]


def test_the_seeds_lifecycle_starts_when_schemas_and_records_are_there() -> None:
    silent = replace(UP, topics=frozenset())
    busy = replace(UP, topics=frozenset({"t"}))
    policy = Policy(lifecycle="seed")
    assert play([silent, silent], policy, ready=[True, True]) == []
    assert play([busy, busy], policy, ready=[False, False]) == []
    assert kinds(play([silent, busy, busy], policy, ready=[False, False, True])) == ["START"]


def test_the_seeds_lifecycle_tells_of_a_failure_before_the_first_record_too() -> None:
    failed = connector("FAILED", "", trace="boom at connector start", topics=frozenset())
    moments = play([failed] * 3, Policy(lifecycle="seed"))
    assert kinds(moments) == ["START", "FAIL"]
    assert moments[1].error == "boom at connector start"


# --- properties


@st.composite
def seen(draw: st.DrawFn) -> Connector:
    return connector(
        draw(st.sampled_from(STATES)),
        draw(st.text("RFPU", max_size=3)),
        name=draw(st.sampled_from(["a", "b"])),
        config={"topics": draw(st.sampled_from(["t", "u"])), "password": draw(st.sampled_from(["1", "2"]))},
        topics=draw(st.sampled_from([None, frozenset(), frozenset({"t"})])),
        opened=draw(st.sampled_from(["", "", "", "7", "9"])),
    )


ROUND = st.one_of(st.none(), st.lists(seen(), max_size=2, unique_by=lambda each: each.name))
POLICIES = st.builds(
    Policy,
    lifecycle=st.sampled_from(["headwater", "seed"]),
    grace=st.sampled_from([0.0, 10.0, 25.0]),
    fail_on=st.sampled_from(["any", "majority", "all"]),
    tasks=st.booleans(),
)
ROUNDS = st.lists(st.tuples(ROUND, st.floats(0, 30), st.sampled_from(["x", "y"]), st.booleans()), max_size=40)


def run_through(
    rounds: Any, policy: Policy, *, on_disk: bool = False
) -> Iterator[tuple[State, list[Moment]]]:
    state, now = State("prod"), 0.0
    for connectors, wait, digest, ready in rounds:
        now += wait
        if connectors is None:  # nobody answered: the round does not count
            continue
        snapshot = Snapshot({each.name: each for each in connectors})
        state, moments = step(state, snapshot, now, policy, {"a": digest, "b": "x"}, {"a": ready, "b": True})
        if on_disk:
            state = State.decode(state.encode())
        yield state, moments


@given(ROUNDS, POLICIES)
def test_every_run_starts_once_ends_at_most_once_and_is_silent_after(rounds: Any, policy: Policy) -> None:
    told: dict[str, list[str]] = defaultdict(list)
    state, parents = State("prod"), {}
    for state, moments in run_through(rounds, policy):  # noqa: B007 - the last one is looked at
        for moment in moments:
            if moment.task is not None:
                assert moment.parent in told, "a task's run without its connector's"
                assert told[moment.parent][-1] not in TERMINAL, "a task's run outlives its connector's"
                parents[moment.run] = moment.parent
            told[moment.run].append(moment.kind)
    for run, words in told.items():
        assert words[0] == "START", run
        assert words.count("START") == 1
        assert not TERMINAL & set(words[:-1]), "something was told after the end"
    still_open = {run for run, words in told.items() if words[-1] not in TERMINAL and run not in parents}
    assert still_open == {run for _, run in open_runs(state)}


@given(ROUNDS, POLICIES)
def test_a_watcher_that_is_restarted_at_every_round_tells_the_same(rounds: Any, policy: Policy) -> None:
    once = [moments for _, moments in run_through(rounds, policy)]
    again = [moments for _, moments in run_through(rounds, policy, on_disk=True)]
    assert once == again


@given(ROUNDS, POLICIES)
def test_a_failure_needs_a_failed_state(rounds: Any, policy: Policy) -> None:
    for _, moments in run_through(rounds, policy):
        for moment in moments:
            if moment.kind == "FAIL":
                assert moment.seen is not None
                states = [moment.seen.state, *(task.state for task in moment.seen.tasks)]
                assert "FAILED" in states


@given(ROUNDS)
def test_the_seed_knows_three_words(rounds: Any) -> None:
    for _, moments in run_through(rounds, Policy(lifecycle="seed")):
        assert {moment.kind for moment in moments} <= {"START", "COMPLETE", "FAIL"}


# --- what a real cluster showed


def timeline(recorded: Path, file: str, part: str) -> list[tuple[float, Connector]]:
    found = []
    for each in json.loads((recorded / file).read_text())[part]["timeline"]:
        shown = each["seen"]
        if not isinstance(shown, dict) or not shown.get("connector"):
            continue
        state, _, worker = shown["connector"].partition("@")
        tasks = [text.replace("@", ":", 1).split(":", 2) for text in shown["tasks"]]
        listed = tuple(
            Task(int(at), word, where, "boom" if word == "FAILED" else "")
            for at, word, where in tasks
            if int(at) < (shown.get("info_tasks") if shown.get("info_tasks") is not None else 99)
        )
        found.append((float(each["t"]), replace(connector(state), worker=worker, tasks=listed)))
    return found


@pytest.mark.parametrize(
    ("file", "part", "expected"),
    [
        ("rebalance.json", "third worker joins", []),
        ("rebalance.json", "third worker leaves (SIGTERM)", []),
        ("rebalance.json", "worker 2 lost (kill -9)", []),
        ("lifecycle.json", "pause", ["OTHER"]),
        ("lifecycle.json", "restart connector only", []),
        ("lifecycle.json", "restart with tasks", []),
        ("lifecycle.json", "config update by PUT, 3 to 2 tasks", []),
        ("lifecycle.json", "stop", ["ABORT"]),
        ("failures.json", "poison record: task failed while running", ["FAIL"]),
    ],
)
def test_what_a_real_cluster_showed(recorded: Path, file: str, part: str, expected: list[str]) -> None:
    shown = timeline(recorded, file, part)
    assert shown
    state, _ = step(State("prod"), Snapshot({"c": connector(tasks="RRRR")}), -60.0)
    told: list[str] = []
    for round_at in range(0, 120, 2):  # what a watcher sees that looks every other second
        last = [each for at, each in shown if at <= round_at] or [shown[0][1]]
        state, moments = step(state, Snapshot({"c": last[-1]}), float(round_at))
        told += kinds(moments)
    assert told == expected


def test_a_recorded_answer_is_read_whole(recorded: Path) -> None:
    answer = json.loads((recorded / "expand.json").read_text())["GET /connectors?expand=info&expand=status"]
    root = json.loads((recorded / "root.json").read_text())["GET /"]
    snapshot = from_rest(answer, answer, {"mirror": frozenset({"a.raw.lines"})}, root)
    assert set(snapshot.connectors) == set(answer)
    assert snapshot.version == "4.3.1"
    assert snapshot.cluster_id
    mirror = snapshot.connectors["mirror"]
    assert (mirror.type, mirror.state, [task.state for task in mirror.tasks]) == (
        "source",
        "RUNNING",
        ["RUNNING", "RUNNING"],
    )
    assert mirror.topics == {"a.raw.lines"}
    assert snapshot.connectors["pg-src"].topics is None


@given(st.recursive(st.one_of(st.none(), st.booleans(), st.integers(), st.text(max_size=5)), lambda inner: st.one_of(
    st.lists(inner, max_size=3), st.dictionaries(st.sampled_from(["info", "status", "config", "tasks", "connector", "state", "id", "task", "c"]), inner, max_size=4)), max_leaves=20))  # fmt: skip
def test_no_answer_however_malformed_raises(answer: Any) -> None:
    from_rest(answer, answer, None, answer)
    from_rest({"c": {"info": answer}}, {"c": {"status": answer}})
    from_rest({"c": {"info": {"config": answer, "tasks": answer}}}, {"c": {"status": {"tasks": answer}}})


def test_a_connector_of_which_the_same_is_answered_is_the_same() -> None:
    def answers(state: str) -> Any:
        info = {"config": {"topics": "t"}, "tasks": [{"task": 0}], "type": "sink"}
        status = {"connector": {"state": state}, "tasks": [{"id": 0, "state": state}]}
        return {"c": {"info": info, "status": status}}

    memo: Any = {}
    first = from_rest(answers("RUNNING"), answers("RUNNING"), None, None, memo).connectors["c"]
    assert from_rest(answers("RUNNING"), answers("RUNNING"), None, None, memo).connectors["c"] is first
    changed = from_rest(answers("RUNNING"), answers("FAILED"), None, None, memo).connectors["c"]
    assert (changed.state, [task.state for task in changed.tasks]) == ("FAILED", ["FAILED"])
    topics = from_rest(answers("FAILED"), answers("FAILED"), {"c": frozenset("x")}, None, memo)
    assert topics.connectors["c"].topics == frozenset("x")
    from_rest({}, {}, None, None, memo)
    assert memo == {}


def test_tasks_that_the_connector_no_longer_has_do_not_count() -> None:
    info = {"c": {"info": {"config": {}, "tasks": [{"task": 0}], "type": "sink"}}}
    status = {
        "c": {
            "status": {
                "connector": {"state": "RUNNING"},
                "tasks": [{"id": 0, "state": "RUNNING"}, {"id": 1, "state": "FAILED"}],
            }
        }
    }
    assert [task.id for task in from_rest(info, status).connectors["c"].tasks] == [0]
