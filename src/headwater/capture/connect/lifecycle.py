"""capture.connect.lifecycle: what was known of a cluster, a snapshot of it, the time -> what is known now, and what happened.

    state, moments = step(state, snapshot, now)

A connector's run begins when it is first seen and lasts until it is reconfigured (COMPLETE), stopped or deleted (ABORT), or
fails (FAIL); a pause or a worker lost does not end it. What only flickers is waited out: a failure, a recovery and a
disappearance count when two rounds in a row saw them and `grace` seconds lie between. A cluster that cannot be asked is
not stepped at all, so nothing is concluded from silence.

Two watchers that saw the same tell the same runs: see `remembered`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Literal

import msgspec

from headwater.capture.connect.remembered import (
    Doubt,
    Known,
    Ran,
    Series,
    State,
    forget,
    public,
    run_id,
    series_key,
)
from headwater.capture.connect.snapshots import Connector, Snapshot, Task, seed_settings

Kind = Literal["START", "RUNNING", "FAIL", "COMPLETE", "ABORT", "OTHER"]


class Policy(msgspec.Struct, frozen=True):
    """How a cluster's changes are judged."""

    lifecycle: Literal["headwater", "seed"] = "headwater"
    grace: float = 10.0
    """Seconds that a failure, a recovery or a missing assignment must last."""
    fail_on: Literal["any", "majority", "all"] = "any"
    """How many of its tasks must have failed for a connector to have failed."""
    tasks: bool = False
    """Whether each task is a run of its own below its connector's."""


class Moment(msgspec.Struct, frozen=True):
    """Something that happened to a run; the events are told from these."""

    kind: Kind
    connector: str
    run: str
    seen: Connector | None
    """As it was seen then; None where it is gone."""
    error: str = ""
    reason: str = ""
    task: int | None = None
    """Which task's run it is; None: the connector's own."""
    parent: str = ""
    """Of a task's run: the connector's."""
    job: str = ""
    """Of a connector that carries the transform of the Factor House labs: what that calls it."""


_USUAL = Policy()


def step(
    previous: State,
    snapshot: Snapshot,
    now: float,
    policy: Policy = _USUAL,
    datasets: Mapping[str, str] | None = None,
    ready: Mapping[str, bool] | None = None,
) -> tuple[State, list[Moment]]:
    """What happened between two rounds.

    Args:
        previous: what the last round left, or a State that knows only its cluster.
        snapshot: of this round; a cluster that did not answer has none, and is not stepped.
        now: seconds since 1970.
        policy: how to judge.
        datasets: a digest of each connector's datasets and their schemas; a change of it is told by RUNNING.
        ready: whether all schemas that a connector needs are known; only lifecycle "seed" waits for them.

    >>> c = Connector("orders", "sink", {"topics": "orders"}, "RUNNING", tasks=(Task(0, "RUNNING"),))
    >>> state, moments = step(State("prod"), Snapshot({"orders": c}), 0.0)
    >>> [moment.kind for moment in moments]
    ['START', 'RUNNING']
    >>> [moment.kind for moment in step(state, Snapshot({"orders": c}), 10.0)[1]]
    []
    """
    series = dict(previous.series)
    moments: list[Moment] = []
    kept: dict[str, Known] = {}
    for name in sorted({*previous.connectors, *snapshot.connectors}):
        machine = _Machine(
            previous.cluster,
            name,
            previous.connectors.get(name),
            series,
            now,
            policy,
            moments,
            previous.epoch,
        )
        seen = snapshot.connectors.get(name)
        if seen is None:
            known = machine.missing(sure=snapshot.exact)
        else:
            digest = (datasets or {}).get(name, "-") or "-"
            known = machine.seen(seen, digest, (ready or {}).get(name, True))
        if known is not None:
            kept[name] = known
    return forget(State(previous.cluster, kept, series, previous.at, previous.epoch)), moments


class _Machine:
    """One connector in one round."""

    def __init__(
        self,
        cluster: str,
        name: str,
        known: Known | None,
        series: dict[str, Series],
        now: float,
        policy: Policy,
        moments: list[Moment],
        epoch: str,
    ) -> None:
        self.cluster, self.name, self.series = cluster, name, series
        self.now, self.policy, self.moments = now, policy, moments
        self.known, self.epoch = known, epoch
        self.seed = policy.lifecycle == "seed"

    def missing(self, *, sure: bool) -> Known | None:
        """Its name is gone from a list that was answered, or from a history, which is sure."""
        known = self.known
        assert known is not None
        absent = self._doubt(known.absent)
        if not sure and not self._settled(absent, grace=0.0):
            return self._with(absent=absent)
        self.known = self._with(absent=None)
        self._end("ABORT", None, "deleted")
        return None

    def seen(self, seen: Connector, digest: str, ready: bool) -> Known:
        """It was there; what of it changed?"""
        config = seen.digest
        known = self.known
        if known is None:
            known = self.known = self._met(seen, config)
        elif known.config != config or known.opened != seen.opened:
            self._end("COMPLETE", seen, "reconfigured" if known.config != config else "restarted")
            known = self.known = self._met(seen, config)
        self.known = known = self._with(absent=None, job=seed_settings(seen.config).get("connector.name", ""))
        if seen.state == "STOPPED":
            self._end("ABORT", seen, "stopped")
            return self._with(ended=True, failed=False, doubt=None, idle=None, mood="")
        if error := self._failure(seen):
            if seen.state != "PAUSED":
                return self._failing(seen, error)
            if known.failed:  # failed tasks outlive a pause: nobody has mended anything yet
                return self._with(doubt=None)
        if known.failed:
            recovered = self._doubt(known.doubt)
            if not self._settled(recovered):
                return self._with(doubt=recovered)
        self.known = known = self._with(doubt=None, failed=False, ended=False)
        if known.run is None:
            if self.seed and not (ready and _works(seen) and seen.topics != frozenset()):
                return known
            self._begin(seen)
        if self.seed:
            self._tell_tasks(seen)
            return self._with(told=digest)
        self._live(seen, digest)
        self._tell_tasks(seen)
        return self._current()

    def _met(self, seen: Connector, config: str) -> Known:
        """New, or with new settings; a run of these that another watcher told of is taken up where it stands."""
        known = Known(config, opened=seen.opened)
        key = series_key(seen)
        of = self.series.get(key)
        if of is None or of.fate is None:
            return known
        self.series[key] = msgspec.structs.replace(of, fate=None)
        if of.fate == "ended":
            return known
        last = run_id(self.cluster, self.name, public(seen), of.next - 1, root=of.root)
        run = last if of.fate == "open" else None
        return msgspec.structs.replace(known, run=run, failed=run is None, last=last, adopted=self.epoch)

    # --- its own run

    def _failing(self, seen: Connector, error: str) -> Known:
        known = self._current()
        if known.failed:
            return self._with(doubt=None)
        if known.run is None and not self.seed:  # it failed before anything was seen of it: that is a run too
            self._begin(seen)
        doubt = self._doubt(known.doubt)
        if not self._settled(doubt):
            self._tell_tasks(seen)
            return self._with(doubt=doubt)
        if self._current().run is None:
            self._begin(seen)
        self._end("FAIL", seen, "failed", error)
        return self._with(failed=True, doubt=None, mood="", idle=None)

    def _live(self, seen: Connector, digest: str) -> None:
        """Alive: paused, waiting for a worker, or at work on datasets that may have changed."""
        known = self._current()
        if seen.state == "PAUSED":
            if known.mood != "PAUSED":
                self._say("OTHER", seen, reason="paused")
            self.known = self._with(mood="PAUSED", idle=None)
        elif not known.told and not seen.tasks and not self._settled(idle := self._doubt(known.idle)):
            self.known = self._with(idle=idle)  # its tasks come a moment after it, and may fail as they start
        elif not _works(seen):
            idle = self._doubt(known.idle)
            if self._settled(idle) and known.mood != "UNASSIGNED":
                self._say("OTHER", seen, reason="no worker runs it")
                self.known = self._with(mood="UNASSIGNED", idle=idle)
            else:
                self.known = self._with(idle=idle)
        elif known.told != digest or known.mood:
            reason = "resumed" if known.mood else "datasets known" if not known.told else "datasets changed"
            self._say("RUNNING", seen, reason=reason)
            self.known = self._with(told=digest, mood="", idle=None)
        elif known.idle is not None:
            self.known = self._with(idle=None)

    def _begin(self, seen: Connector) -> None:
        key = series_key(seen)
        of = self.series.pop(key, None) or Series()  # popped, so that the oldest stand first
        self.series[key] = Series(of.next + 1, of.root)
        run = run_id(self.cluster, self.name, public(seen), of.next, root=of.root)
        self.known = self._with(run=run, last=run, told="", mood="", tasks={}, idle=None, adopted="")
        self._say("START", seen)

    def _end(self, kind: Kind, seen: Connector | None, reason: str, error: str = "") -> None:
        known = self._current()
        if known.run is None:
            return
        kind = "COMPLETE" if self.seed and kind == "ABORT" else kind
        for task, ran in sorted(known.tasks.items()):
            if ran.open:
                own = next((each for each in seen.tasks if each.id == task), None) if seen else None
                failed = kind == "FAIL" and own is not None and own.state == "FAILED"
                ending: Kind = kind if failed or kind != "FAIL" else "ABORT"
                self._say_task(ending, seen, task, ran, own.trace if failed and own else "")
        self._say(kind, seen, reason=reason, error=error)
        self.known = self._with(run=None, tasks={}, told="", mood="", doubt=None, idle=None)

    def _failure(self, seen: Connector) -> str:
        """Why it counts as failed, by the policy; empty where it does not."""
        if seen.state == "FAILED":
            return seen.trace or "the connector failed"
        failed = [task for task in seen.tasks if task.state == "FAILED"]
        many = {"any": 1, "majority": len(seen.tasks) // 2 + 1, "all": max(1, len(seen.tasks))}[
            self.policy.fail_on
        ]
        if len(failed) < many:
            return ""
        return "\n\n".join(f"task {task.id}: {task.trace or 'failed'}" for task in failed)

    # --- the runs of its tasks

    def _tell_tasks(self, seen: Connector) -> None:
        if not self.policy.tasks or self._current().run is None:
            return
        runs = dict(self._current().tasks)
        there = {task.id for task in seen.tasks}
        for at, ran in sorted(runs.items()):
            if at not in there and ran.open:
                self._say_task("COMPLETE", seen, at, ran)
                runs[at] = msgspec.structs.replace(ran, open=False, doubt=None)
        for task in seen.tasks:
            before = runs.get(task.id)
            if task.state != "UNASSIGNED" or (
                before is not None and before.open
            ):  # else nobody has begun it yet
                runs[task.id] = self._task(seen, task, before)
        self.known = self._with(tasks=runs)

    def _task(self, seen: Connector, task: Task, ran: Ran | None) -> Ran:
        parent = self._current().run or ""
        failed = task.state == "FAILED"
        if ran is None or (not ran.open and not failed):
            count = 0 if ran is None else ran.count + 1
            root = self._current().adopted
            ran = Ran(run_id(self.cluster, self.name, parent, count, task.id, root), count)
            self._say_task("START", seen, task.id, ran)
            if not failed:
                self._say_task("RUNNING", seen, task.id, ran)
        if not failed:
            return msgspec.structs.replace(ran, doubt=None)
        if not ran.open:
            return ran
        doubt = self._doubt(ran.doubt)
        if self._settled(doubt):
            self._say_task("FAIL", seen, task.id, ran, task.trace)
            return msgspec.structs.replace(ran, open=False, doubt=None)
        return msgspec.structs.replace(ran, doubt=doubt)

    # --- how things are said and remembered

    def _say(self, kind: Kind, seen: Connector | None, *, reason: str = "", error: str = "") -> None:
        known = self._current()
        self.moments.append(Moment(kind, self.name, known.run or "", seen, error, reason, job=known.job))

    def _say_task(self, kind: Kind, seen: Connector | None, task: int, ran: Ran, error: str = "") -> None:
        known = self._current()
        self.moments.append(
            Moment(kind, self.name, ran.id, seen, error, "", task, known.run or "", known.job)
        )

    def _current(self) -> Known:
        assert self.known is not None
        return self.known

    def _with(self, **changes: object) -> Known:
        self.known = msgspec.structs.replace(self._current(), **changes)
        return self.known

    def _doubt(self, doubt: Doubt | None) -> Doubt:
        return Doubt(self.now) if doubt is None else Doubt(min(doubt.since, self.now), doubt.rounds + 1)

    def _settled(self, doubt: Doubt, grace: float | None = None) -> bool:
        wait = self.policy.grace if grace is None else grace
        rounds = 1 if self.policy.grace <= 0 else 2
        return doubt.rounds >= rounds and self.now - doubt.since >= wait


def _works(seen: Connector) -> bool:
    """Whether it is at work: its own state says so, and so do as many tasks as it has."""
    return seen.state in ("RUNNING", "RESTARTING") and all(
        task.state in ("RUNNING", "RESTARTING", "PAUSED", "FAILED") for task in seen.tasks
    )


def open_runs(state: State) -> Iterator[tuple[str, str]]:
    """The connectors that have a run, and its id."""
    for name, known in state.connectors.items():
        if known.run is not None:
            yield name, known.run


def dues(state: State, policy: Policy) -> Iterator[float]:
    """When what is doubted now will have lasted long enough, if it lasts."""
    for known in state.connectors.values():
        doubts = [known.doubt, *(ran.doubt for ran in known.tasks.values())]
        doubts += [known.idle] if known.mood != "UNASSIGNED" else []
        yield from (each.since + policy.grace for each in doubts if each is not None)
