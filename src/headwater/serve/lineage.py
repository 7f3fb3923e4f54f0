"""serve.lineage: POST /api/v1/lineage and /batch -> events in the store, and an answer that says what became of them."""

from __future__ import annotations

from datetime import datetime, timezone
from typing import Any

from litestar import Request, Response, post
from litestar.datastructures import State
from litestar.openapi.datastructures import ResponseSpec

from headwater.errors import EventError
from headwater.event import split
from headwater.ingest import Outcome
from headwater.serve.bodies import read_body
from headwater.serve.journal import call_of
from headwater.serve.refusals import fault_of, out_of_order
from headwater.serve.schemas import TakesEvent, TakesEvents
from headwater.serve.strict import broken_rule

_BROKEN = "broken JSON: "
_REFUSALS = {
    status: ResponseSpec(dict[str, Any], generate_examples=False, description=text)
    for status, text in (
        (400, "The body is no event."),
        (413, "The body or an event is too large."),
        (415, "The body is no JSON."),
        (422, "A part of the event is wrong; `errors` says which."),
    )
}


@post(
    "/api/v1/lineage",
    status_code=201,
    scope="ingest",
    operation_class=TakesEvent,
    responses=_REFUSALS,
    request_max_body_size=None,
)
async def post_event(request: Request[Any, Any, State], state: State) -> Response[bytes]:
    """Take one event; the answer is empty."""
    await _take(request, state)
    return Response(b"", status_code=state.serving.lineage_status)


@post(
    "/openapi/openlineage/api/v1/lineage",
    status_code=200,
    scope="ingest",
    operation_class=TakesEvent,
    responses=_REFUSALS,
    request_max_body_size=None,
)
async def post_datahub(request: Request[Any, Any, State], state: State) -> Response[bytes]:
    """Take one event where DataHub's own server takes it, so that a producer that is set up for it needs no change."""
    await _take(request, state)
    return Response(b"", status_code=200)


async def _take(request: Request[Any, Any, State], state: State) -> None:
    body = await _body(request, state)
    fault = broken_rule(body)
    if fault is not None:
        await state.intake.refuse(body, fault)
        raise fault
    outcome = await state.intake.take([body])
    if outcome.rejected:
        raise outcome.rejected[0][1]


@post(
    ["/api/v1/lineage/batch", "/api/v1/lineage/events"],
    status_code=200,
    scope="ingest",
    operation_class=TakesEvents,
    responses=_REFUSALS,
    request_max_body_size=None,
)
async def post_batch(request: Request[Any, Any, State], state: State) -> Response[dict[str, Any]]:
    """Take an array of events; each is accepted or refused by itself."""
    body = await _body(request, state)
    try:
        payloads = split(body) if body.lstrip()[:1] == b"[" else None
        if payloads is None:
            raise EventError(
                "",
                "Invalid JSON: the body is no array of events"
                if body.strip()
                else "Request body cannot be empty",
            )
        if not payloads:
            raise EventError("", "Event array cannot be empty")
    except EventError as fault:
        await state.intake.refuse(body, fault)
        if fault.reason.startswith(_BROKEN):  # in the words of Correlator, whose path this is
            raise EventError("", f"Invalid JSON: {fault.reason.removeprefix(_BROKEN)}") from None
        raise
    strict = state.serving.correlator_strict
    if strict and (why := out_of_order(payloads)):
        refused = EventError("eventType", f"Invalid event sequence: {why}")
        await state.intake.refuse(body, refused)
        raise refused
    wrong = {at: told for at, raw in enumerate(payloads) if strict and (told := fault_of(raw, strict=True))}
    for at, told in wrong.items():
        await state.intake.refuse(payloads[at], told)
    kept = [at for at in range(len(payloads)) if at not in wrong]
    taken: Outcome = await state.intake.take([payloads[at] for at in kept])
    for position, told in taken.rejected:
        wrong[kept[position]] = fault_of(payloads[kept[position]], strict=False) or told
    rejected = tuple(sorted(wrong.items(), key=_position))
    outcome = Outcome(len(payloads), taken.stored, taken.duplicates, rejected)
    failed = len(outcome.rejected)
    status = "success" if not failed else "error" if failed == outcome.received else "partial_success"
    answer = {
        "status": status,
        "summary": {
            "received": outcome.received,
            "successful": outcome.received - failed,
            "failed": failed,
            "retriable": 0,
            "non_retriable": failed,
        },
        "failed_events": [
            {"index": index, "reason": str(fault), "retriable": False} for index, fault in outcome.rejected
        ],
        "correlation_id": call_of(request.scope).id,
        "timestamp": datetime.now(timezone.utc).isoformat().replace("+00:00", "Z"),
    }
    return Response(answer, status_code={"success": 200, "partial_success": 207, "error": 422}[status])


def _position(refused: tuple[int, EventError]) -> int:
    return refused[0]


async def _body(request: Request[Any, Any, State], state: State) -> bytes:
    try:
        serving = state.serving
        return await read_body(request, serving.max_request_bytes, state.arriving)
    except EventError as fault:
        await state.intake.refuse(b"", fault)
        raise
