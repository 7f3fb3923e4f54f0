"""query.blame: an incident -> the run that is to blame, who else is suspect upstream, and what is hit downstream.

Blamed is the last run that wrote the dataset and had ended when the test ran. Upstream and downstream are walked
on edges, never on runs, so the cost is the same for one run a job and for a thousand.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from headwater.facts.flows import When
from headwater.graph import Walk, walk, walk_columns
from headwater.incidents import Candidate, Incident, broken, deviation, rank
from headwater.query.incidents import (
    Found,
    find,
    orphaned,
    owner_kind,
    summary,
    told,
)
from headwater.query.nodes import iso, node_id
from headwater.store import Store

if TYPE_CHECKING:
    from headwater.store import Reader

DEPTH = 10
_MOST_SUSPECTS = 50
_HISTORY = 21


@dataclass(slots=True)
class Around:
    """What lies around an incident."""

    datasets: dict[int, set[int]]
    """The datasets it is about, with all their names; of a failed run, those it wrote."""
    job: int | None
    """The job that failed, where it is about one."""
    at: int
    """What ended later cannot have caused it."""


def around(reader: Reader, incident: Incident, found: Found) -> Around:
    """What an incident is about, and when it began."""
    first, number = incident.first, found.numbers[incident.first.subject]
    at = min(first.since or first.at, first.at)
    if owner_kind(incident) == "dataset":
        return Around(reader.faults().members([number]), None, at)
    touched = reader.writes().touched(first.run)
    if first.kind == "run":
        leaders = set(reader.faults().leaders(touched["out"]).values())
        return Around(reader.faults().members(leaders), number, at)
    leaders = set(reader.faults().leaders(touched["in"] or touched["out"]).values())
    # a test that names no dataset is about the one that its run names, where it is one
    return Around(reader.faults().members(leaders) if len(leaders) == 1 else {}, number, at)


def blame(reader: Reader, incident: Incident, about: Around) -> dict[str, Any] | None:
    """The run that is to blame; None where nobody is known to have written it."""
    first, writes = incident.first, reader.writes()
    if first.kind == "run" or (first.kind in ("volume", "freshness") and first.run):
        return writes.of_run(first.run)
    names = {name for every in about.datasets.values() for name in every}
    if not names:
        return writes.of_run(first.run) if first.run else None
    jobs = writes.writers(names)
    run: str | None = None
    if first.kind == "schema":
        schema = bytes.fromhex(first.root.split()[1])
        run = writes.with_schema(jobs, names, schema, first.at)
    elif first.run and names & writes.touched(first.run)["out"]:
        run = first.run  # it tested what it wrote itself
    if run is None:
        wrote = writes.written(jobs, names, about.at)
        run = wrote[0].run if wrote else None
    return writes.of_run(run) if run is not None else None


def upstream(reader: Reader, incident: Incident, about: Around) -> Walk:
    """What was upstream when it began."""
    failed = incident.first.kind == "run" and about.job is not None
    start: dict[str, Any] = {"jobs": [about.job]} if failed else {"datasets": about.datasets}
    return walk(reader.edges(When(until=about.at)), **start, direction="up", depth=DEPTH, limit=2_000)


def downstream(reader: Reader, about: Around) -> Walk:
    """What is downstream now."""
    alone = about.job is not None and not about.datasets
    start: dict[str, Any] = {"jobs": [about.job]} if alone else {"datasets": about.datasets}
    return walk(reader.edges(), **start, direction="down", depth=DEPTH, limit=5_000)


def suspects(reader: Reader, incident: Incident, about: Around, found: Found) -> list[dict[str, Any]]:
    """The runs upstream, ranked by what speaks against them."""
    met = upstream(reader, incident, about)
    column, path = incident.first.column, None
    if column and about.datasets:
        edges = reader.edges(When(until=about.at))
        along = walk_columns(edges, [(each, column) for each in about.datasets], direction="up", depth=DEPTH)
        sources = {dataset for dataset, _ in along.columns}
        path = {job for job, dataset in met.writes if dataset in sources} if along.relations else None
    made: dict[int, set[int]] = {}
    for job, dataset in met.writes:
        made.setdefault(job, set()).add(dataset)
    if about.job is not None and incident.first.kind == "run":
        met.jobs.pop(about.job, None)  # it is the incident, not its cause
    near = sorted(met.jobs, key=lambda job: (met.jobs[job], job))[:_MOST_SUSPECTS]
    failing = _failing(incident, found, about.at)
    names = reader.faults().named("job", near)
    candidates = [
        each
        for job in near
        if (each := _candidate(reader, job, made.get(job, set()), met.jobs[job], about.at, failing, path))
    ]
    ranked = rank(candidates, about.at)
    return [
        {
            "job": node_id("job", *names[each.candidate.told]),
            "runId": each.candidate.run,
            "endedAt": iso(each.candidate.ended_at),
            "distance": each.candidate.distance,
            "score": each.score,
            "reasons": list(each.reasons),
        }
        for each in ranked
    ]


def _failing(incident: Incident, found: Found, at: int) -> dict[int, int]:
    """Datasets whose tests had failed by then -> how many."""
    counts: dict[int, int] = {}
    for each in found.incidents:
        open_then = each.first.at <= at and (each.passed is None or each.passed.at > at)
        if open_then and each is not incident and owner_kind(each) == "dataset":
            number = found.numbers[each.first.subject]
            counts[number] = counts.get(number, 0) + 1
    return counts


def _candidate(
    reader: Reader,
    job: int,
    datasets: set[int],
    distance: int,
    at: int,
    failing: dict[int, int],
    path: set[int] | None,
) -> Candidate | None:
    writes = reader.writes()
    names = {name for every in reader.faults().members(datasets).values() for name in every}
    wrote = writes.written([job], names, at, limit=_HISTORY) if names else []
    failed = writes.last_failed(job, at)
    on_path = None if path is None else job in path
    tests = sum(failing.get(each, 0) for each in datasets)
    if failed is not None and (not wrote or failed[1] >= wrote[0].ended_at):
        run, ended, error = failed
        return Candidate(run, distance, ended, True, error or "", tests=tests, on_path=on_path, told=job)
    if not wrote:
        return None
    last = wrote[0]
    before = next((each for each in wrote[1:] if each.schema), None)
    changed: list[str] = []
    if last.schema and before is not None and before.schema and before.schema != last.schema:
        fields = writes.fields({last.schema, before.schema})
        changed = broken(fields.get(before.schema, []), fields.get(last.schema, []))
    history = [float(each.rows) for each in wrote[1:] if each.rows is not None]
    rows = (
        (last.rows, deviation(float(last.rows), history))
        if last.rows is not None and len(history) >= 5
        else None
    )
    return Candidate(last.run, distance, last.ended_at, False, "", changed, rows, tests, on_path, told=job)


def impact(reader: Reader, incident: Incident, about: Around) -> dict[str, Any]:
    """What is downstream now, nearest first; of a column, which datasets it reaches."""
    edges, met = reader.edges(), downstream(reader, about)
    reached: dict[int, list[str]] = {}
    if incident.first.column:
        columns = [(each, incident.first.column) for each in about.datasets]
        for dataset, column in walk_columns(edges, columns, direction="down", depth=DEPTH).columns:
            reached.setdefault(dataset, []).append(column)
    hit = {number: hop for number, hop in met.datasets.items() if hop > 0}
    names = reader.nodes("dataset", hit)
    datasets = [
        {
            "id": node_id("dataset", row["namespace"], row["name"]),
            "distance": hit[number],
            "lastSeen": iso(row["last_seen"]),
            **({"columns": sorted(reached.get(number, []))} if incident.first.column else {}),
        }
        for number, row in names.items()
    ]
    jobs = reader.nodes("job", met.jobs)
    return {
        "datasets": sorted(datasets, key=lambda each: (each["distance"], each["id"])),
        "jobs": sorted(node_id("job", row["namespace"], row["name"]) for row in jobs.values()),
        "cut": met.cut,
    }


def show_incident(store: Store, number: int, *, now: int | None = None) -> dict[str, Any]:
    """All that is known of an incident: what failed, who is to blame, who is suspect, what is hit, what was decided."""
    with store.read() as reader:
        incident, found = find(reader, number, now)
        about = around(reader, incident, found)
        blamed = blame(reader, incident, about)
        ranked = suspects(reader, incident, about, found)
        hit = impact(reader, incident, about)
        said = told(reader, incident, found, incident.last)
        orphan = bool(orphaned(reader, found, [incident]))
    model = summary(incident, found.now)
    model["message"] = said["details"].get("message") or model.get("message")
    return {
        **model,
        "orphan": orphan,
        "details": said["details"],
        "producer": said["producer"],
        "blamed": shown_run(blamed),
        "suspects": ranked,
        "impact": hit,
        "runs": [
            {"runId": each.last.run or None, "at": iso(each.last.at), "attempts": len(each.every)}
            for each in incident.failures
        ],
        "history": [
            {
                "at": iso(each.at),
                "by": each.by or None,
                "status": each.status or None,
                "reason": each.reason or None,
                "note": each.note or None,
                "until": iso(each.until),
            }
            for each in incident.verdicts
        ],
    }


def shown_run(run: dict[str, Any] | None) -> dict[str, Any] | None:
    """A run as a model shows it."""
    if run is None:
        return None
    return {
        "job": node_id("job", run["namespace"], run["name"]) if run["job"] else None,
        "runId": run["run_id"],
        "state": (run["state"] or "").partition(" ")[2] or None,
        "startedAt": iso(run["started_at"] or run["first_seen"]),
        "endedAt": iso(run["ended_at"]),
        "error": run["error"],
    }
