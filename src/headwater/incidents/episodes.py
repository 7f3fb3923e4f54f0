"""incidents.episodes: how tests ended, and what people decided -> incidents and where each stands.

An incident is an episode of one test: from its first failure to the pass that ended it, or to a person who
resolved it. Attempts under one root run are one outcome, the newest. All of it is a function of the outcomes and
verdicts given, whatever their order, and of the clock where a mute runs out; nothing is kept.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any, NamedTuple

KINDS = ("test", "run", "schema", "volume", "freshness")


class Outcome(NamedTuple):
    """How one test ended once."""

    kind: str
    subject: str
    """The canonical reference of the dataset; of a run or a test without one, its job's."""
    test: str
    column: str
    at: int
    failed: bool
    run: str = ""
    root: str = ""
    """What attempts share: the root run, else the parent's, else the run itself."""
    origin: str = ""
    """The subject by the name that the event gave it: what the id is made of, so that a late alias keeps it."""
    since: int = 0
    """When it was first told of: what was written later cannot have broken it."""
    severity: str = ""
    told: Any = None


class Verdict(NamedTuple):
    """What a person decided."""

    at: int
    status: str
    by: str = ""
    reason: str = ""
    note: str = ""
    until: int | None = None


@dataclass(frozen=True, slots=True)
class Attempts:
    """The outcomes of one test under one root run, oldest first; the newest counts."""

    every: tuple[Outcome, ...]

    @property
    def last(self) -> Outcome:
        """The attempt that counts."""
        return self.every[-1]

    @property
    def id(self) -> int:
        """53 bits, so that every JSON reader keeps them: the same whatever comes later."""
        one = self.every[0]
        body = "\0".join((one.kind, one.origin or one.subject, one.test, one.column, _root(one)))
        return int.from_bytes(blake2b(body.encode(), digest_size=8).digest(), "big") >> 11


@dataclass(frozen=True, slots=True)
class State:
    """Where an incident stands."""

    status: str
    at: int
    by: str = ""
    reason: str = ""
    until: int | None = None


@dataclass(frozen=True, slots=True)
class Incident:
    """One episode of a test."""

    failures: tuple[Attempts, ...]
    passed: Outcome | None = None
    verdicts: tuple[Verdict, ...] = ()

    @property
    def id(self) -> int:
        """That of its first failure."""
        return self.failures[0].id

    @property
    def ids(self) -> tuple[int, ...]:
        """The ids under which it is known: a failure told late may have been its first until then."""
        return tuple(each.id for each in self.failures)

    @property
    def first(self) -> Outcome:
        """The failure that opened it."""
        return self.failures[0].last

    @property
    def last(self) -> Outcome:
        """The newest failure."""
        return self.failures[-1].last

    def state(self, now: int) -> State:
        """Open, acknowledged, resolved, or muted for as long as the mute runs."""
        current = under = State("open", self.first.at)
        for each in self.verdicts:
            if not each.status or (each.status == "resolved" and each.at < self.last.at):
                continue  # a note; or it failed again under the same root, which nobody has resolved yet
            told = State(each.status, each.at, each.by, each.reason, each.until)
            if each.status == "muted" and current.status != "muted":
                under = current
            current = told
        if current.status == "muted" and current.until is not None and current.until <= now:
            current = under
        if self.passed is None or current.status == "resolved":
            return current
        ended = self.passed.at
        if any(each.status == "open" and each.at > ended for each in self.verdicts):
            return current
        return State("resolved", ended, "auto", "auto_pass")

    def happenings(self, now: int) -> list[tuple[str, int, str]]:
        """What became of it, as (what, when, by whom): what others are told."""
        told = [("opened", self.first.at, "")]
        names = {"acknowledged": "acknowledged", "resolved": "resolved", "muted": "muted", "open": "reopened"}
        for each in self.verdicts:
            if each.status:
                told.append((names[each.status], each.at, each.by))
            if each.status == "muted" and each.until is not None and each.until <= now:
                later = any(v.status and each.at < v.at <= each.until for v in self.verdicts)
                over = self.passed is not None and self.passed.at <= each.until
                if not later and not over:
                    told.append(("mute_expired", each.until, ""))
        state = self.state(now)
        if state.by == "auto":
            told.append(("resolved", state.at, "auto"))
        return told


def incidents(outcomes: Iterable[Outcome], verdicts: Mapping[int, Sequence[Verdict]]) -> list[Incident]:
    """The episodes of every test, newest failure first.

    >>> def ended(at, failed): return Outcome("test", "db orders", "not_null", "id", at, failed, run=f"r{at}")
    >>> found = incidents([ended(3, False), ended(1, True), ended(2, True), ended(4, True)], {})
    >>> [(len(each.failures), each.state(9).status) for each in found]
    [(1, 'open'), (2, 'resolved')]
    """
    tests: dict[tuple[str, str, str, str], list[Outcome]] = {}
    for each in outcomes:
        tests.setdefault((each.kind, each.subject, each.test, each.column), []).append(each)
    found = [episode for told in tests.values() for episode in _episodes(attempts(told), verdicts)]
    return sorted(found, key=lambda each: (-each.last.at, each.id))


def attempts(outcomes: Iterable[Outcome]) -> list[Attempts]:
    """The outcomes of one test, those under one root together, in the order in which they ended."""
    runs: dict[tuple[str, str], Outcome] = {}
    for each in outcomes:
        key = (_root(each), each.run or f"at {each.at}")
        have = runs.get(key)
        if have is None or _order(each) > _order(have):
            runs[key] = each  # one run tells of it under two names: its newest word, at equal times the worse
    groups: dict[str, list[Outcome]] = {}
    for (root, _), each in runs.items():
        groups.setdefault(root, []).append(each)
    made = [Attempts(tuple(sorted(group, key=_order))) for group in groups.values()]
    return sorted(made, key=lambda each: _order(each.last))


def _root(outcome: Outcome) -> str:
    return outcome.root or outcome.run or f"at {outcome.at}"


def _order(outcome: Outcome) -> tuple[Any, ...]:
    return outcome.at, outcome.failed, outcome.run, outcome.origin, outcome.root


def _episodes(ended: Iterable[Attempts], verdicts: Mapping[int, Sequence[Verdict]]) -> Iterable[Incident]:
    open_: list[Attempts] = []
    said: list[Verdict] = []

    def close(passed: Outcome | None) -> Incident:
        return Incident(tuple(open_), passed, tuple(sorted(said, key=lambda v: (v.at, v.status, v.by))))

    for each in ended:
        if not each.last.failed:
            if open_:
                yield close(each.last)
            open_, said = [], []
            continue
        if open_ and _resolved(said, each.last.at):
            yield close(None)
            open_, said = [], []
        open_.append(each)
        if verdicts:  # else no id need be worked out
            said.extend(verdicts.get(each.id, ()))
    if open_:
        yield close(None)


def _resolved(said: Iterable[Verdict], before: int) -> bool:
    """Whether a person had resolved it when it failed again: that is a new incident."""
    decided = [each for each in said if each.status and each.at < before]
    return bool(decided) and max(decided, key=lambda v: (v.at, v.status, v.by)).status == "resolved"
