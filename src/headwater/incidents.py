"""incidents: how tests, runs, schemas and counts ended, and what people decided -> incidents, and who is suspect.

An incident is an episode of one test: from its first failure to the pass that ended it, or to a person who
resolved it. Attempts under one root run are one outcome, the newest. All of it is a function of the outcomes and
verdicts given, whatever their order, and of the clock where a mute runs out; nothing is kept.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from statistics import median
from typing import Any, NamedTuple

KINDS = ("test", "run", "schema", "volume", "freshness")
_LONG = 10.0  # robust deviations are told up to here: a constant history makes any change infinite


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
        said.extend(verdicts.get(each.id, ()))
    if open_:
        yield close(None)


def _resolved(said: Iterable[Verdict], before: int) -> bool:
    """Whether a person had resolved it when it failed again: that is a new incident."""
    decided = [each for each in said if each.status and each.at < before]
    return bool(decided) and max(decided, key=lambda v: (v.at, v.status, v.by)).status == "resolved"


# ---- what a history tells ----------------------------------------------------------------------------------


def deviation(value: float, history: Sequence[float]) -> float:
    """How far a value is from what came before it, in robust standard deviations (median and MAD).

    A history that hardly varies would make any change infinite, so a twentieth of the median is the least spread.

    >>> round(deviation(1000, [1000, 1010, 990, 1005, 995]), 1), deviation(10, [1000, 1010, 990, 1005, 995]) > 6
    (0.0, True)
    """
    centre = median(history)
    spread = median(abs(each - centre) for each in history) * 1.4826
    return abs(value - centre) / max(spread, abs(centre) * 0.05, 1.0)


class Written(NamedTuple):
    """A run wrote a dataset."""

    at: int
    run: str
    root: str
    rows: int | None


_LEAST = 5
"""Runs that make a history: of fewer nothing can be said."""


def volume(subject: str, written: Sequence[Written], sensitivity: float, history: int) -> list[Outcome]:
    """Each run's row count, held against those of the runs before it."""
    counted = sorted(each for each in written if each.rows is not None)
    made: list[Outcome] = []
    for position, each in enumerate(counted):
        before = [float(one.rows or 0) for one in counted[max(0, position - history) : position]]
        if len(before) >= _LEAST:
            off = deviation(float(each.rows or 0), before)
            told = {"actual": each.rows, "expected": median(before), "deviation": round(off, 1)}
            made.append(
                Outcome(
                    "volume",
                    subject,
                    "row_count",
                    "",
                    each.at,
                    off > sensitivity,
                    each.run,
                    each.root,
                    told=told,
                )
            )
    return made


def freshness(
    subject: str, written: Sequence[Written], sensitivity: float, history: int, now: int
) -> list[Outcome]:
    """Each gap between two writes, held against the gaps before it; the last one lasts until now."""
    moments = sorted(each for each in written if each.at <= now)
    made: list[Outcome] = []
    for position, each in enumerate(moments):
        gaps = [float(b.at - a.at) for a, b in zip(moments, moments[1 : position + 1], strict=False)][
            -history:
        ]
        if len(gaps) < _LEAST:
            continue
        centre = median(gaps)
        spread = max(median(abs(gap - centre) for gap in gaps) * 1.4826, centre * 0.05)
        due = each.at + int(centre + sensitivity * spread)
        after = moments[position + 1] if position + 1 < len(moments) else None
        told = {"expected": due, "actual": after.at if after else None, "usual_seconds": round(centre / 1e6)}
        if due < (after.at if after else now):
            made.append(
                Outcome(
                    "freshness", subject, "freshness", "", due, True, each.run, f"due {each.run}", told=told
                )
            )
            if after:
                made.append(
                    Outcome("freshness", subject, "freshness", "", after.at, False, after.run, after.run)
                )
    return made


# ---- what a schema breaks ----------------------------------------------------------------------------------


class Schema(NamedTuple):
    """A schema, and when runs wrote with it."""

    digest: str
    first: int
    last: int
    fields: Sequence[Mapping[str, Any]]


def schema_outcomes(subject: str, schemas: Sequence[Schema]) -> list[Outcome]:
    """Column by column: where a new schema takes one away or changes its type, and where one gives it back."""
    known = sorted(schemas, key=lambda each: (each.first, each.digest))
    if len(known) < 2:
        return []
    columns = [_columns(each.fields) for each in known]
    expected: dict[str, str] = dict(columns[0])
    broken: dict[str, list[Outcome]] = {}
    for position, each in enumerate(known[1:], 1):
        for name, kind in expected.items():
            how = breaks(kind, columns[position].get(name))
            was = bool(broken.get(name)) and broken[name][-1].failed
            if bool(how) != was:
                broken.setdefault(name, []).append(_changed(subject, name, each, each.first, how))
        for name, kind in columns[position].items():
            if name not in expected or not breaks(expected[name], kind):
                expected[name] = kind
    current = max(range(len(known)), key=lambda at: (known[at].last, known[at].first))
    for name, told in broken.items():
        if told[-1].failed and not breaks(expected[name], columns[current].get(name)):
            told.append(
                _changed(subject, name, known[current], known[current].last, "")
            )  # an old one is back
    return [each for told in broken.values() for each in told]


def _changed(subject: str, column: str, schema: Schema, at: int, how: str) -> Outcome:
    told = {"message": f"column {column} {how}"} if how else None
    root = f"schema {schema.digest} {at if not how else ''}"
    return Outcome("schema", subject, "schema_change", column, at, bool(how), "", root, told=told)


def breaks(before: str, after: str | None) -> str:
    """Why readers of a column break when its type changes; nothing where they do not.

    >>> breaks("int", "bigint"), breaks("bigint", "int"), breaks("string", None), breaks("VARCHAR(20)", "text")
    ('', 'changed from bigint to int', 'was removed', '')
    """
    if after is None:
        return "was removed"
    old, new = _kind(before), _kind(after)
    if old == new or not old[0] or not new[0] or new[0] in _WIDENS.get(old[0], ()):
        return ""
    if old[0] == new[0] and (not new[1] or (old[1] and _fits(old[1], new[1]))):
        return ""
    return f"changed from {before} to {after}"


_SYNONYMS = {
    "integer": "int", "int4": "int", "long": "bigint", "int8": "bigint", "short": "smallint", "int2": "smallint",
    "byte": "tinyint", "float8": "double", "double precision": "double", "real": "float", "float4": "float",
    "varchar": "string", "text": "string", "char": "string", "character varying": "string", "bool": "boolean",
    "numeric": "decimal", "number": "decimal", "timestamp without time zone": "timestamp",
}  # fmt: skip
_WIDENS = {
    "tinyint": ("smallint", "int", "bigint", "float", "double", "decimal"),
    "smallint": ("int", "bigint", "float", "double", "decimal"),
    "int": ("bigint", "double", "decimal"),
    "bigint": ("decimal",),
    "float": ("double",),
    "date": ("timestamp",),
}


def _kind(text: str) -> tuple[str, tuple[int, ...]]:
    """A type's plain name and its sizes; of a nested one, all of its text."""
    found = re.fullmatch(r"\s*([a-z_][a-z0-9_ ]*?)\s*(?:\(([\d\s,]+)\))?\s*", text.lower())
    if found is None:
        return re.sub(r"\s+", "", text.lower()), ()
    sizes = tuple(int(each) for each in (found[2] or "").split(",") if each.strip())
    return _SYNONYMS.get(found[1], found[1]), sizes


def _fits(old: tuple[int, ...], new: tuple[int, ...]) -> bool:
    return len(old) == len(new) and all(a <= b for a, b in zip(old, new, strict=True))


def _columns(fields: Sequence[Mapping[str, Any]], above: str = "") -> dict[str, str]:
    out: dict[str, str] = {}
    for each in fields:
        name = f"{above}{each['name']}"
        inner = each.get("fields")
        out[name] = "" if inner else str(each.get("type") or "")  # a struct is what its fields are
        if inner:
            out.update(_columns(inner, f"{name}."))
    return out


# ---- who is suspect ----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Candidate:
    """A run upstream of what failed, and what is known of it."""

    run: str
    distance: int
    ended_at: int | None
    failed: bool = False
    error: str = ""
    schema: Sequence[str] = ()
    """What its output's schema broke."""
    rows: tuple[int, float] | None = None
    """Rows it wrote, and how far they are from those before, in robust deviations."""
    tests: int = 0
    """Tests that failed on what it wrote."""
    on_path: bool | None = None
    """Whether it makes the column that failed; None where that is not known."""
    told: Any = None


@dataclass(frozen=True, slots=True)
class Suspect:
    """A candidate with what speaks against it."""

    candidate: Candidate
    score: float
    reasons: tuple[str, ...]


def rank(candidates: Iterable[Candidate], at: int) -> list[Suspect]:
    """Candidates by what speaks against them: what went wrong weighs most, then nearness."""
    made = [_weigh(each, at) for each in candidates]
    return sorted(made, key=lambda each: (-each.score, each.candidate.distance, each.candidate.run))


def _weigh(one: Candidate, at: int) -> Suspect:
    score, reasons = 0.0, []
    if one.failed:
        score += 5
        reasons.append(f"failed: {one.error}" if one.error else "failed")
    if one.schema:
        score += 4
        reasons.append(f"changed the schema: {', '.join(one.schema)}")
    if one.tests:
        score += 3
        reasons.append(f"{one.tests} failed test{'s' if one.tests > 1 else ''} on what it wrote")
    if one.rows is not None and one.rows[1] > 3:
        score += min(one.rows[1], _LONG) * 0.4
        reasons.append(f"wrote {one.rows[0]:,} rows, unlike the runs before it")
    if one.on_path is not None:
        score += 2 if one.on_path else 0
        reasons.append("makes the column" if one.on_path else "does not make the column")
    if one.ended_at is not None:
        hours = max(0.0, (at - one.ended_at) / 3.6e9)
        score += 2 / (1 + hours / 6)
        reasons.append(f"ended {_ago(hours)} before")
    score += 2 / max(1, one.distance)
    reasons.append("wrote it" if one.distance == 1 else f"{one.distance} steps upstream")
    return Suspect(one, round(score, 3), tuple(reasons))


def _ago(hours: float) -> str:
    return (
        f"{hours * 60:.0f} min" if hours < 2 else f"{hours:.0f} h" if hours < 72 else f"{hours / 24:.0f} days"
    )
