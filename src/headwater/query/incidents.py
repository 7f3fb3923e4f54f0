"""query.incidents: a store and a clock -> the incidents there are, listed, counted, or one found by its id.

Nothing is kept of an incident but what people decided: it is made anew from the merged tables each time, of tests
and jobs that ever failed, each from its last pass on.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any

import msgspec

from headwater.errors import NotFound
from headwater.facts import ref, unref
from headwater.facts.flows import NOW
from headwater.incidents import (
    Incident,
    Outcome,
    Schema,
    Verdict,
    Written,
    freshness,
    incidents,
    schema_outcomes,
    volume,
)
from headwater.query.nodes import iso, node_id
from headwater.store import Store

if TYPE_CHECKING:
    from headwater.store import Reader

DAY = 86_400_000_000
_JOB = "\0job\0"  # before a job's reference: no dataset's name holds a NUL
_TURNS = ("open", "resolved")
_WRITES = 200
"""How many of a watched dataset's newest writes are looked at."""


@dataclass(slots=True)
class Found:
    """Incidents, and what they were made with: the numbers of their subjects."""

    incidents: list[Incident]
    now: int
    numbers: dict[str, int] = field(default_factory=dict)
    """Subject -> number of its dataset or job."""

    def by_id(self) -> dict[int, Incident]:
        """Every incident under every id it is known by."""
        return {number: each for each in self.incidents for number in each.ids}


def clock() -> int:
    """Microseconds since 1970."""
    return time.time_ns() // 1000


def gather(reader: Reader, *, since: int = NOW, now: int | None = None) -> Found:
    """The incidents that are open now, and those that ended after `since`."""
    now = clock() if now is None else now
    found = Found([], now)
    outcomes = [*_tests(reader, found, since), *_runs(reader, found, since), *_schemas(reader, found)]
    outcomes += _watched(reader, found)
    verdicts: dict[int, list[Verdict]] = {}
    for row in reader.faults().verdicts():
        told = Verdict(
            row["at"], row["status"], row["by"], row["reason"] or "", row["note"] or "", row["until"]
        )
        verdicts.setdefault(row["incident"], []).append(told)
    found.incidents = incidents(outcomes, verdicts)
    ends = {
        number: max(((each.at, each.status) for each in said if each.status in _TURNS), default=(0, ""))[1]
        for number, said in verdicts.items()
    }
    reopened = {number for number, status in ends.items() if status == "open"}
    if (
        since != -NOW and reopened and reopened - found.by_id().keys()
    ):  # after the test had passed: look further back
        return gather(reader, since=-NOW, now=now)
    return found


def _tests(reader: Reader, found: Found, since: int) -> Iterator[Outcome]:
    faults = reader.faults()
    rows = [*faults.assertions(since), *faults.checks()]
    leaders = faults.leaders({row.owner for row in rows})
    names = {
        number: ref(*name) for number, name in faults.named("dataset", {*leaders, *leaders.values()}).items()
    }
    for row in rows:
        subject = names[leaders[row.owner]]
        found.numbers[subject] = leaders[row.owner]
        yield _outcome("test", subject, row, origin=names[row.owner])
    told = faults.tests()
    jobs = faults.named("job", {row.owner for row in told})
    for row in told:
        subject = _JOB + ref(*jobs[row.owner])
        found.numbers[subject] = row.owner
        yield _outcome("test", subject, row)


def _outcome(kind: str, subject: str, row: Any, origin: str = "", told: Any = None) -> Outcome:
    return Outcome(
        kind,
        subject,
        row.test,
        row.field,
        row.at,
        row.failed,
        row.run or "",
        row.root or "",
        origin,
        row.since,
        row.severity or "",
        told,
    )


def _runs(reader: Reader, found: Found, since: int) -> Iterator[Outcome]:
    rows = reader.faults().runs(since)
    jobs = reader.faults().named("job", {row.owner for row in rows})
    for row in rows:
        subject = _JOB + ref(*jobs[row.owner])
        found.numbers[subject] = row.owner
        yield _outcome("run", subject, row._replace(test="run"), told={"message": row.error or ""})


def _schemas(reader: Reader, found: Found) -> Iterator[Outcome]:
    rows = reader.writes().schemas()
    names = reader.faults().named("dataset", {row[0] for row in rows})
    fields = reader.writes().fields({row[1] for row in rows})
    told: dict[int, list[Schema]] = {}
    for number, digest, first, last, name in rows:
        schema = Schema(digest.hex(), first, last, fields.get(digest, []), ref(*name))
        told.setdefault(number, []).append(schema)
    for number, schemas in told.items():
        subject = ref(*names[number])
        found.numbers[subject] = number
        yield from schema_outcomes(subject, schemas)


def _watched(reader: Reader, found: Found) -> Iterator[Outcome]:
    watches = reader.faults().watches()
    if not watches:
        return
    writes = reader.writes()
    for number, called in reader.faults().every_dataset():
        paths = [f"{namespace}/{name}" for namespace, name in called]  # by any of them it may be watched
        rules = {
            measure: rule
            for pattern, measure, rule in watches
            if any(fnmatchcase(path, pattern) for path in paths)
        }
        if not rules:
            continue
        names = reader.faults().members([number])[number]
        wrote = writes.written(writes.writers(names), names, found.now, limit=_WRITES)
        origin = {name: ref(*said) for name, said in reader.faults().named("dataset", names).items()}
        history = [
            Written(each.ended_at, each.run, each.root, each.rows, min(origin[name] for name in each.names))
            for each in wrote
            if each.state.endswith(" COMPLETE")
        ]
        subject = ref(*called[0])
        found.numbers[subject] = number
        if rule := rules.get("volume"):
            yield from volume(subject, history, rule["sensitivity"], rule["history"])
        if rule := rules.get("freshness"):
            yield from freshness(subject, history, rule["sensitivity"], rule["history"], found.now)


# ---- models ------------------------------------------------------------------------------------------------

STATUSES = ("active", "open", "acknowledged", "resolved", "muted", "all")
_ACTIVE = ("open", "acknowledged")


def chosen(
    found: Found,
    *,
    status: str = "active",
    since: int | None = None,
    window: int | None = None,
    kind: str | None = None,
    node: tuple[str, int] | None = None,
) -> list[Incident]:
    """Those of the incidents that are in a status; what is over, only if it changed within the window."""
    out: list[Incident] = []
    for each in found.incidents:
        state = each.state(found.now)
        active = state.status in _ACTIVE
        if status not in ("all", state.status) and not (status == "active" and active):
            continue
        if not active and window is not None and max(state.at, each.last.at) < window:
            continue
        if since is not None and each.last.at < since:
            continue
        if kind is not None and each.first.kind != kind:
            continue
        if node is not None and node != (owner_kind(each), found.numbers[each.first.subject]):
            continue
        out.append(each)
    return out


def names_of(reader: Reader, found: Found) -> dict[str, tuple[str, ...]]:
    """The subject of each incident about a dataset -> `namespace/name` of all its names."""
    about = {each.first.subject for each in found.incidents if owner_kind(each) == "dataset"}
    members = reader.faults().members({found.numbers[each] for each in about})
    names = reader.faults().named("dataset", {name for every in members.values() for name in every})
    return {
        each: tuple("/".join(names[name]) for name in sorted(members[found.numbers[each]])) for each in about
    }


def owner_kind(incident: Incident) -> str:
    """Whether it is about a dataset or a job."""
    return "job" if incident.first.subject.startswith(_JOB) else "dataset"


def owner_name(incident: Incident) -> tuple[str, str]:
    """The namespace and name of what it is about."""
    return unref(incident.first.subject.removeprefix(_JOB))


def summary(incident: Incident, now: int) -> dict[str, Any]:
    """An incident as a list shows it."""
    state, first, last = incident.state(now), incident.first, incident.last
    model: dict[str, Any] = {
        "id": str(incident.id),
        "kind": first.kind,
        "status": state.status,
        owner_kind(incident): node_id(owner_kind(incident), *owner_name(incident)),
        "test": first.test,
        "column": first.column or None,
        "severity": last.severity or None,
        "openedAt": iso(first.at),
        "lastFailedAt": iso(last.at),
        "failures": len(incident.failures),
        "attempts": len(incident.failures[-1].every),
        "changedAt": iso(state.at),
        "changedBy": state.by or None,
        "reason": state.reason or None,
        "mutedUntil": iso(state.until) if state.status == "muted" else None,
        "passedAt": iso(incident.passed.at) if incident.passed else None,
    }
    if isinstance(last.told, dict):
        model["message"] = last.told.get("message") or _measured(last)
    return model


def _measured(outcome: Outcome) -> str | None:
    told = outcome.told
    if outcome.kind == "volume":
        return f"{told['actual']:,} rows where about {told['expected']:,.0f} are usual"
    if outcome.kind == "freshness":
        return f"nothing written by {iso(told['expected'])}, though it is written about every {told['usual_seconds']} s"
    return None


def list_incidents(
    store: Store,
    *,
    status: str = "active",
    since: int | None = None,
    days: int = 7,
    kind: str | None = None,
    limit: int = 100,
    offset: int = 0,
    now: int | None = None,
) -> dict[str, Any]:
    """The incidents in a status, newest failure first."""
    now = clock() if now is None else now
    window = now - days * DAY
    with store.read() as reader:
        found = gather(reader, since=NOW if status in ("active", *_ACTIVE) else window, now=now)
        every = chosen(found, status=status, since=since, window=window, kind=kind)
        orphans = orphaned(reader, found, every)
    models = [summary(each, now) | {"orphan": each.id in orphans} for each in every[offset : offset + limit]]
    return {"incidents": models, "total": len(every), "limit": limit, "offset": offset}


def count(store: Store, *, days: int = 30, now: int | None = None) -> dict[str, int]:
    """How many are active, and how many were resolved or muted within the days."""
    now = clock() if now is None else now
    with store.read() as reader:
        found = gather(reader, since=now - days * DAY, now=now)
        return {
            status: len(chosen(found, status=status, window=now - days * DAY))
            for status in ("active", "resolved", "muted")
        }


def find(reader: Reader, number: int, now: int | None = None) -> tuple[Incident, Found]:
    """The incident that is, or was, known by this id; what is open is looked at first."""
    for since in (NOW, -NOW):
        found = gather(reader, since=since, now=now)
        incident = found.by_id().get(number)
        if incident is not None:
            return incident, found
    raise NotFound(
        f"no incident has the id {number}; `headwater incidents list --status all` shows those there are"
    )


def orphaned(reader: Reader, found: Found, every: list[Incident]) -> set[int]:
    """The ids of incidents about datasets that no job is known to write."""
    datasets = {found.numbers[each.first.subject] for each in every if owner_kind(each) == "dataset"}
    members = reader.faults().members(datasets)
    produced = reader.writes().produced({name for names in members.values() for name in names})
    alone = {number for number, names in members.items() if not names & produced}
    return {
        each.id
        for each in every
        if owner_kind(each) == "dataset" and found.numbers[each.first.subject] in alone
    }


def told(reader: Reader, incident: Incident, found: Found, outcome: Outcome) -> dict[str, Any]:
    """What the event itself said of a test, and who said so."""
    names: set[int] = set()
    if owner_kind(incident) == "dataset" and (number := found.numbers[outcome.subject]):
        every = reader.faults().named("dataset", reader.faults().members([number])[number])
        # under another of its names the same run may have told of it otherwise
        names = {name for name, said in every.items() if ref(*said) == outcome.origin} or set(every)
    details, producer = None, None
    if outcome.kind == "test" and outcome.run:
        details, producer = reader.faults().details(outcome.run, names, outcome.test, outcome.column)
    elif outcome.kind == "test":
        details = reader.faults().check_details(names, outcome.at, outcome.test, outcome.column)
    model: dict[str, Any] = msgspec.json.decode(details) if details else {}
    if isinstance(outcome.told, dict):
        model.setdefault("message", outcome.told.get("message") or _measured(outcome))
    return {"details": model, "producer": producer}
