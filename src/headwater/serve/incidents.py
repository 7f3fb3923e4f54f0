"""serve.incidents: /hw/v1/incidents, /hw/v1/correlation, /hw/v1/watches -> incidents listed, shown, decided on; rules saved."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from litestar import Request, get, patch, post
from litestar.concurrency import sync_to_thread
from litestar.datastructures import State
from litestar.params import PathParameter, QueryParameter

from headwater.errors import ConfigError
from headwater.facts.commands import SetAlias, SetIncident, Watch
from headwater.ingest import command
from headwater.naming import AliasRule
from headwater.query.blame import show_incident
from headwater.query.correlation import correlation
from headwater.query.incidents import clock, count, list_incidents
from headwater.query.nodes import moment
from headwater.serve.deciding import (
    Unprocessable,
    days_of,
    decide,
    number_of,
    read_object,
    who,
    words_of,
)
from headwater.serve.schemas import TakesDecision, TakesNote, TakesPattern, TakesWatch

IncidentId = Annotated[str, PathParameter(description="The number of an incident.")]


@get("/hw/v1/incidents", scope="read", sync_to_thread=True)
def get_list(
    state: State,
    status: Annotated[
        Literal["active", "open", "acknowledged", "resolved", "muted", "all"], QueryParameter()
    ] = "active",
    kind: Annotated[Literal["test", "run", "schema", "volume", "freshness"] | None, QueryParameter()] = None,
    since: Annotated[str | None, QueryParameter(description="Failed since: ISO 8601, or -24h.")] = None,
    days: Annotated[int, QueryParameter(ge=1, le=3650, description="How far back what is over is told.")] = 7,
    limit: Annotated[int, QueryParameter(ge=1, le=1000)] = 100,
    offset: Annotated[int, QueryParameter(ge=0)] = 0,
) -> dict[str, Any]:
    """Incidents in a status, newest failure first."""
    after = moment(since) if since else None
    return list_incidents(
        state.store, status=status, since=after, days=days, kind=kind, limit=limit, offset=offset
    )


@get("/hw/v1/incidents/counts", scope="read", sync_to_thread=True)
def get_counted(state: State) -> dict[str, int]:
    """How many are active, and how many were resolved or muted in 30 days."""
    return count(state.store)


@get("/hw/v1/incidents/{id:str}", scope="read", sync_to_thread=True)
def get_one(state: State, id: IncidentId) -> dict[str, Any]:
    """One incident: who is to blame, who is suspect, what is hit, what was decided."""
    return show_incident(state.store, number_of(id))


@patch("/hw/v1/incidents/{id:str}", scope="admin", operation_class=TakesDecision)
async def patch_one(request: Request[Any, Any, State], state: State, id: IncidentId) -> dict[str, Any]:
    """Decide on it: `{"status": "acknowledged|resolved|muted|open", "reason", "note", "days"}`."""
    number, body = number_of(id), await read_object(request)
    if body.get("status") not in SetIncident.STATUSES:
        raise Unprocessable(f"status must be one of: {', '.join(SetIncident.STATUSES)}")
    words, days = words_of(body, "reason", "note"), days_of(body, "days")
    await sync_to_thread(decide, state.store, number, body["status"], by=who(request), days=days, **words)
    return await sync_to_thread(show_incident, state.store, number)


@post("/hw/v1/incidents/{id:str}/notes", scope="admin", status_code=201, operation_class=TakesNote)
async def post_note(request: Request[Any, Any, State], state: State, id: IncidentId) -> dict[str, Any]:
    """Leave a note: `{"note": "…"}`."""
    number, body = number_of(id), await read_object(request)
    words = words_of(body, "note")
    if not words["note"]:
        raise Unprocessable("note must not be empty")
    await sync_to_thread(decide, state.store, number, "", by=who(request), **words)
    return await sync_to_thread(show_incident, state.store, number)


@get("/hw/v1/correlation", scope="read", sync_to_thread=True)
def get_joined(state: State) -> dict[str, Any]:
    """Datasets that are tested but written by nobody known, and the alias rules that would help."""
    return correlation(state.store)


@post("/hw/v1/correlation/patterns", scope="admin", status_code=201, operation_class=TakesPattern)
async def post_pattern(request: Request[Any, Any, State], state: State) -> dict[str, Any]:
    """Save a suggested pattern as an alias rule: `{"pattern", "canonical"}`; it holds at once, for the past too."""
    body = await read_object(request)
    words = words_of(body, "pattern", "canonical")
    try:
        rule = AliasRule.from_urns(words["pattern"], words["canonical"])
    except ConfigError as fault:
        raise Unprocessable(str(fault)) from None
    said = SetAlias(at=clock(), by=who(request), rule=dict(rule.to_dict()))
    await sync_to_thread(command, state.store, said)
    return await sync_to_thread(correlation, state.store)


@get("/hw/v1/watches", scope="read", sync_to_thread=True)
def get_watches(state: State) -> list[dict[str, Any]]:
    """Datasets whose row counts or freshness are held against their own history."""
    return watches(state.store)


@post("/hw/v1/watches", scope="admin", status_code=201, operation_class=TakesWatch)
async def post_watch(request: Request[Any, Any, State], state: State) -> list[dict[str, Any]]:
    """Watch datasets, or stop: `{"pattern", "measure": "volume|freshness", "live", "sensitivity", "history"}`."""
    body = await read_object(request)
    words = words_of(body, "pattern", "measure")
    said = Watch(at=clock(), by=who(request), **words, live=body.get("live") is not False, **_numbers(body))
    await sync_to_thread(command, state.store, said)
    return await sync_to_thread(watches, state.store)


def _numbers(body: dict[str, Any]) -> dict[str, Any]:
    found = {name: body[name] for name in ("sensitivity", "history") if body.get(name) is not None}
    for name, value in found.items():
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 < value <= 1000:
            raise Unprocessable(f"{name} must be a number of at most 1000")
    if not isinstance(found.get("history", 5), int):
        raise Unprocessable("history must be a whole number of runs")
    return found


def watches(store: Any) -> list[dict[str, Any]]:
    """What is watched."""
    with store.read() as reader:
        return [
            {"pattern": pattern, "measure": measure, **rule}
            for pattern, measure, rule in reader.faults().watches()
        ]


HANDLERS = [get_list, get_counted, get_one, get_joined, get_watches]
WRITES = [patch_one, post_note, post_pattern, post_watch]
