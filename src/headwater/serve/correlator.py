"""serve.correlator: GET, PATCH /api/v1/incidents…, GET /api/v1/health/correlation -> what Correlator's clients expect.

Incidents of datasets that nobody writes are listed too, marked by `has_correlation_issue`.
"""

from __future__ import annotations

from typing import Annotated, Any

from litestar import Request, get, patch
from litestar.concurrency import sync_to_thread
from litestar.datastructures import State
from litestar.exceptions import ClientException, NotFoundException
from litestar.params import PathParameter, QueryParameter

from headwater.errors import ConfigError, NotFound
from headwater.facts.flows import NOW
from headwater.graph import Walk
from headwater.incidents import Attempts, Incident
from headwater.query.blame import DEPTH, Around, around, blame, downstream, upstream
from headwater.query.correlation import correlation, tool, urn
from headwater.query.incidents import (
    DAY,
    Found,
    chosen,
    clock,
    count,
    find,
    gather,
    orphaned,
    owner_kind,
    owner_name,
    told,
)
from headwater.query.nodes import iso, moment
from headwater.serve.deciding import (
    Unprocessable,
    days_of,
    decide,
    number_of,
    read_object,
    who,
    words_of,
)
from headwater.serve.schemas import TakesStatus

_STATUSES = ("active", "resolved", "muted", "all")
_ALLOWED = {
    "open": ("acknowledged", "resolved", "muted"),
    "acknowledged": ("resolved", "muted"),
    "resolved": (),
    "muted": (),
}
_NO_RUN = "00000000-0000-0000-0000-000000000000"
Text = Annotated[str | None, QueryParameter()]

IncidentId = Annotated[str, PathParameter(description="The number of an incident.")]


@get("/api/v1/incidents", scope="read", sync_to_thread=True)
def get_incidents(
    state: State,
    status: Text = None,
    since: Text = None,
    window: Text = None,
    limit: Text = None,
    offset: Text = None,
) -> dict[str, Any]:
    """Incidents, newest first: active ones always, resolved and muted ones of the last `window` days."""
    status = status or "active"
    if status not in _STATUSES:
        raise ClientException(f"Invalid parameter 'status': must be one of: {', '.join(_STATUSES)}")
    days = _within("window", window, 7, 1, 90)
    size, start = _within("limit", limit, 20, 1, 100), _within("offset", offset, 0, 0, 1 << 31)
    try:
        after = moment(since) if since else None
    except ConfigError:
        raise ClientException("Invalid parameter 'since': must be an RFC 3339 time") from None
    now = clock()
    with state.store.read() as reader:
        found = gather(reader, since=NOW if status == "active" else now - days * DAY, now=now)
        every = chosen(found, status=status, since=after, window=now - days * DAY)
        orphans = orphaned(reader, found, every)
        counted: dict[str, int] = {}
        page = [
            _summary(reader, each, found, each.id in orphans, counted) for each in every[start : start + size]
        ]
        alone = {each.first.subject for each in every if each.id in orphans}
    return {
        "incidents": page,
        "total": len(every),
        "limit": size,
        "offset": start,
        "orphan_count": len(alone),
    }


@get("/api/v1/incidents/counts", scope="read", sync_to_thread=True)
def get_counts(state: State) -> dict[str, int]:
    """How many incidents are active; resolved and muted ones of the last 30 days."""
    return count(state.store)


@get("/api/v1/incidents/{id:str}", scope="read", sync_to_thread=True)
def get_incident(state: State, id: IncidentId) -> dict[str, Any]:
    """One incident: its test, its dataset, the run that is to blame, and the lineage around it."""
    number = number_of(id)
    with state.store.read() as reader:
        incident, found = _find(reader, number)
        return _detail(reader, incident, found)


@patch("/api/v1/incidents/{id:str}/status", scope="admin", operation_class=TakesStatus)
async def patch_status(request: Request[Any, Any, State], state: State, id: IncidentId) -> dict[str, Any]:
    """Acknowledge, resolve or mute an incident."""
    number = number_of(id)
    body = await read_object(request)
    status = body.get("status")
    if status not in _ALLOWED["open"]:
        raise Unprocessable("status must be one of: acknowledged, resolved, muted")
    words = words_of(body, "reason", "note")
    if status == "muted" and not words["reason"]:
        raise Unprocessable("reason is required to mute an incident")
    if status == "resolved":
        words["reason"] = words["reason"] or "manual"
    days = days_of(body, "mute_days")
    try:
        incident, now = await sync_to_thread(
            decide, state.store, number, status, by=who(request), days=days, allowed=_ALLOWED, **words
        )
    except NotFound:
        raise NotFoundException("Incident not found") from None
    return {
        "id": str(incident.id),
        "resolution_status": now.status,
        "resolved_by": now.by,
        "resolved_at": iso(now.at),
        "resolution_reason": now.reason or None,
        "mute_expires_at": iso(now.until),
    }


@get("/api/v1/health/correlation", scope="read", sync_to_thread=True)
def get_correlation(state: State) -> dict[str, Any]:
    """How well tests and writers are joined, and which alias rules would join more."""
    return correlation(state.store)


def _within(name: str, text: str | None, default: int, least: int, most: int) -> int:
    if text is None or text == "":
        return default
    if not text.removeprefix("-").isdigit() or not text.isascii() or not least <= int(text[:12]) <= most:
        raise ClientException(f"Invalid parameter '{name}': must be between {least} and {most}")
    return int(text)


def _find(reader: Any, number: int) -> tuple[Incident, Found]:
    try:
        return find(reader, number)
    except NotFound:
        raise NotFoundException("Incident not found") from None


def _about(reader: Any, incident: Incident, about: Around) -> tuple[str, str]:
    """The dataset that an incident is told of: of a failed run, the first that it wrote, else its job."""
    if owner_kind(incident) == "dataset":
        return owner_name(incident)
    names = reader.faults().named("dataset", about.datasets)
    return min(names.values(), default=owner_name(incident))


def _summary(
    reader: Any, incident: Incident, found: Found, orphan: bool, counted: dict[str, int]
) -> dict[str, Any]:
    about = around(reader, incident, found)
    blamed = blame(reader, incident, about)
    said = told(reader, incident, found, incident.last)
    namespace, name = _about(reader, incident, about)
    subject = incident.first.subject
    if subject not in counted:
        counted[subject] = len(_hit(downstream(reader, about)))
    return {
        "id": str(incident.id),
        "test_name": incident.first.test,
        "test_type": _type(incident, said["details"]),
        "test_status": _status(said["details"]),
        "dataset_urn": urn(namespace, name),
        "dataset_name": name,
        "producer": tool(said["producer"] or (blamed or {}).get("producer")),
        "job_name": (blamed or {}).get("name") or "",
        "run_id": (blamed or {}).get("run_id") or incident.last.run or _NO_RUN,
        "job_run_id": (blamed or {}).get("run_id") or "",
        "downstream_count": counted[subject],
        "has_correlation_issue": orphan,
        "executed_at": iso(incident.last.at),
        **_resolution(incident, found.now),
        "retry_context": _retries(incident, found.now, whole=False),
    }


def _detail(reader: Any, incident: Incident, found: Found) -> dict[str, Any]:
    about = around(reader, incident, found)
    blamed = blame(reader, incident, about)
    orphan = bool(orphaned(reader, found, [incident]))
    last, said = incident.last, told(reader, incident, found, incident.last)
    details = said["details"]
    namespace, name = _about(reader, incident, about)
    state = incident.state(found.now)
    return {
        "id": str(incident.id),
        "test": {
            "name": last.test,
            "type": _type(incident, details),
            "status": _status(details),
            "message": str(details.get("message") or details.get("description") or ""),
            "executed_at": iso(last.at),
            "duration_ms": _whole(details.get("durationMs")),
            "producer": tool(said["producer"] or (blamed or {}).get("producer")),
        },
        "dataset": {"urn": urn(namespace, name), "name": name, "namespace": namespace},
        "job": _job(reader, blamed),
        "upstream": _tree(reader, upstream(reader, incident, about), "childUrn"),
        "downstream": _tree(reader, downstream(reader, about), "parentUrn"),
        "correlation_status": "orphan" if orphan else "correlated" if blamed else "unknown",
        **_resolution(incident, found.now),
        **({"resolution_reason": state.reason} if state.reason else {}),
        "retry_context": _retries(incident, found.now, whole=True),
    }


def _whole(value: Any) -> int:
    return int(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else 0


def _type(incident: Incident, details: dict[str, Any]) -> str:
    said = details.get("type") or details.get("assertion") or details.get("expectationType")
    kinds = {"run": "run_failure", "schema": "schema_change", "volume": "row_count"}
    kind = incident.first.kind
    return str(said or incident.first.test) if kind == "test" else kinds.get(kind, kind)


def _status(details: dict[str, Any]) -> str:
    return "error" if str(details.get("status", "")).lower() == "error" else "failed"


def _resolution(incident: Incident, now: int) -> dict[str, Any]:
    state = incident.state(now)
    told: dict[str, Any] = {"resolution_status": state.status}
    if state.status != "open":
        told |= {"resolved_by": state.by, "resolved_at": iso(state.at)}
    if state.status == "muted":
        told["mute_expires_at"] = iso(state.until)
    return told


def _retries(incident: Incident, now: int, *, whole: bool) -> dict[str, Any] | None:
    tries: Attempts = incident.failures[-1]
    if len(tries.every) < 2:
        return None
    model: dict[str, Any] = {
        "total_attempts": len(tries.every),
        "current_attempt": len(tries.every),
        "all_failed": all(each.failed for each in tries.every),
        "root_run_id": tries.last.root,
    }
    if whole:
        model["other_attempts"] = [
            {
                "incident_id": str(tries.id),
                "attempt": position,
                "test_status": "failed" if each.failed else "passed",
                "executed_at": iso(each.at),
                "job_run_id": each.run,
                "resolution_status": incident.state(now).status,
            }
            for position, each in enumerate(tries.every[:-1], 1)
        ]
    return model


def _job(reader: Any, run: dict[str, Any] | None) -> dict[str, Any] | None:
    if run is None:
        return None
    chain: list[dict[str, Any]] = []
    above, seen = run["parent"], {run["run_id"]}
    while above and above not in seen and len(chain) < DEPTH:
        seen.add(above)
        parent = reader.writes().of_run(above)
        chain.append(
            {
                "name": parent["name"] or "",
                "namespace": parent["namespace"] or "",
                "run_id": above,
                "producer": tool(parent["producer"]),
                "status": _state(parent),
                "completed_at": iso(parent["ended_at"]),
            }
        )
        above = parent["parent"]
    return {
        "name": run["name"] or "",
        "namespace": run["namespace"] or "",
        "run_id": run["run_id"],
        "producer": tool(run["producer"]),
        # some tools never end the runs of single models: what holds is how the run above them ended
        "status": chain[0]["status"] if chain and run["ended_at"] is None else _state(run),
        "started_at": iso(run["started_at"] or run["first_seen"]),
        "completed_at": iso(run["ended_at"]),
        **({"parent": chain[0]} if chain else {}),
        "orchestration": chain,
    }


def _state(run: dict[str, Any]) -> str:
    return (run["state"] or "").partition(" ")[2] or "OTHER"


def _hit(met: Walk) -> list[int]:
    return [number for number, hop in met.datasets.items() if hop > 0]


def _tree(reader: Any, met: Walk, link: str) -> list[dict[str, Any]]:
    """The datasets that a walk met, each with one dataset a step nearer to the start."""
    near, far = (met.writes, met.reads) if link == "childUrn" else (met.reads, met.writes)
    jobs: dict[int, list[int]] = {}
    for job, dataset in near:
        jobs.setdefault(job, []).append(dataset)
    nearer: dict[int, int] = {}
    for job, dataset in sorted(far):
        hop = met.datasets.get(dataset, 0)
        for each in sorted(jobs.get(job, ())):
            if met.datasets.get(each) == hop - 1:
                nearer.setdefault(dataset, each)
    hit = _hit(met)
    names = reader.faults().named("dataset", {*hit, *nearer.values()})
    makers = reader.writes().producers(reader.faults().members(hit))
    urns = {number: urn(*name) for number, name in names.items()}
    return [
        {
            "urn": urns[number],
            "name": names[number][1],
            "depth": met.datasets[number],
            link: urns[nearer[number]] if number in nearer else "",
            "producer": tool(makers.get(number)),
        }
        for number in sorted(hit, key=lambda each: (met.datasets[each], urns[each]))
    ]


HANDLERS = [get_incidents, get_counts, get_incident, get_correlation]
WRITES = [patch_status]
