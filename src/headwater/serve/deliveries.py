"""serve.deliveries: /hw/v1/deliveries -> how far what is delivered to other catalogues is behind, and what they refused: tried again, forgotten."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from litestar import Request, delete, get, post
from litestar.concurrency import sync_to_thread
from litestar.datastructures import State
from litestar.params import PathParameter, QueryParameter

from headwater.deliver.datahub.following import NAME, lag
from headwater.deliver.datahub.settings import Delivery
from headwater.errors import NotFound
from headwater.naming import scrub
from headwater.query.incidents import clock
from headwater.query.nodes import iso
from headwater.serve.auth import who
from headwater.store import Store, _audit, _delivery, _leases
from headwater.work import LEASE

_MOST = 2**63 - 1
DeliveryName = Annotated[str, PathParameter(description=f"The name of a delivery: {NAME}.")]
Number = Annotated[int, PathParameter(description="The number of a letter.")]


@get("/hw/v1/deliveries", scope="read", sync_to_thread=True)
def get_deliveries(state: State) -> list[dict[str, Any]]:
    """What is delivered to other catalogues: how far it is behind the log, what was taken, what was refused.

    One that another server of this store does is told, too; `to` is null then.
    """
    found = _model(state.store, state.datahub)
    return [found] if found else []


def _model(store: Store, datahub: Delivery | None) -> dict[str, Any] | None:
    here = datahub is not None and datahub.to is not None
    now = clock()
    with store.read() as reader:
        begun = _delivery.position(reader.connection, NAME)
        if not here and not begun:
            return None
        states = _delivery.states(reader.connection, NAME)
        sent, sent_at = _delivery.sent(reader.connection, NAME)
        fault = _delivery.fault(reader.connection, NAME)
        worker = _leases.holder_of(reader.connection, LEASE, now)
    behind = lag(store)
    return {
        "name": NAME,
        "to": scrub(str(datahub.to)) if here and datahub else None,
        "every": datahub.every if here and datahub else None,
        "worked": worker is not None,
        "lag": {"entries": behind["entries"], "seconds": round(behind["seconds"], 3)},
        "open": states["open"],
        "sent": sent,
        "sentAt": iso(sent_at),
        "refused": states["dead"],
        "waiting": states["waiting"],
        "fault": {"reason": fault[0], "since": iso(fault[1])} if fault else None,
    }


# Several methods of one path go to a thread by themselves: the framework would wrap each handler twice.


@get("/hw/v1/deliveries/{name:str}/letters", scope="admin", operation_id="GetLetters")
async def get_letters(
    state: State,
    name: DeliveryName,
    before: Annotated[
        int | None, QueryParameter(ge=1, le=_MOST, description="`next` of the page before.")
    ] = None,
    limit: Annotated[int, QueryParameter(ge=1, le=200)] = 50,
) -> dict[str, Any]:
    """What was refused, with the reason, the newest first."""
    _known(name)
    return await sync_to_thread(_letters, state.store, before, limit)


def _letters(store: Store, before: int | None, limit: int) -> dict[str, Any]:
    with store.read() as reader:
        found = _delivery.letters(reader.connection, NAME, before=before, limit=limit + 1)
    shown = found[:limit]
    return {
        "letters": [_line(each) for each in shown],
        "next": shown[-1].id if len(found) > limit else None,
    }


@get("/hw/v1/deliveries/{name:str}/letters/{number:int}", scope="admin", operation_id="GetLetter")
async def get_letter(state: State, name: DeliveryName, number: Number) -> dict[str, Any]:
    """One of them, with the proposal or event itself."""
    _known(name)
    found = await sync_to_thread(_letter, state.store, _sane(number))
    return {**_line(found), "body": _json(found.body)}


def _letter(store: Store, number: int) -> _delivery.Letter:
    with store.read() as reader:
        found = _delivery.letter(reader.connection, NAME, number)
    if found is None:
        raise _missing(number)
    return found


@post("/hw/v1/deliveries/{name:str}/retry", scope="admin", status_code=200)
async def post_retry(
    request: Request[Any, Any, State],
    state: State,
    name: DeliveryName,
    letter: Annotated[
        int | None, QueryParameter(ge=1, le=_MOST, description="Only this one; else all.")
    ] = None,
) -> dict[str, int]:
    """Have what was refused sent again, in the next round."""
    _known(name)
    return {"again": await sync_to_thread(_retry, state.store, letter, who(request))}


def _retry(store: Store, number: int | None, by: str) -> int:
    with store.writing() as connection:
        if number is not None and _delivery.letter(connection, NAME, number) is None:
            raise _missing(number)
        again = _delivery.again(connection, NAME, clock(), number)
        if again:
            _audit.note(connection, clock(), by, "delivery_retry", NAME, _which(number, again))
        return again


@delete("/hw/v1/deliveries/{name:str}/letters", scope="admin", status_code=200, operation_id="DeleteLetters")
async def delete_letters(
    request: Request[Any, Any, State], state: State, name: DeliveryName
) -> dict[str, int]:
    """Forget all that was refused. The events that it was made of stay in the log."""
    _known(name)
    return {"forgotten": await sync_to_thread(_forget, state.store, None, who(request))}


@delete(
    "/hw/v1/deliveries/{name:str}/letters/{number:int}",
    scope="admin",
    status_code=200,
    operation_id="DeleteLetter",
)
async def delete_letter(
    request: Request[Any, Any, State], state: State, name: DeliveryName, number: Number
) -> dict[str, int]:
    """Forget one of them."""
    _known(name)
    return {"forgotten": await sync_to_thread(_forget, state.store, _sane(number), who(request))}


def _forget(store: Store, number: int | None, by: str) -> int:
    with store.writing() as connection:
        gone = _delivery.forget(connection, NAME, number)
        if number is not None and not gone:
            raise _missing(number)
        if gone:
            _audit.note(connection, clock(), by, "delivery_forget", NAME, _which(number, gone))
        return gone


def _which(number: int | None, count: int) -> str:
    return f"letter {number}" if number is not None else f"{count} letters"


def _known(name: str) -> None:
    if name != NAME:
        raise NotFound(f"no delivery is called {name!r}; there is {NAME!r}")


def _sane(number: int) -> int:
    """No database has a row beyond these."""
    if not 0 < number <= _MOST:
        raise _missing(number)
    return number


def _missing(number: int) -> NotFound:
    return NotFound(f"no letter has the number {str(number)[:40]}: it was taken meanwhile, or forgotten")


class _Job(msgspec.Struct):
    namespace: str = ""
    name: str = ""


class _About(msgspec.Struct):
    """What a letter tells of itself, whether it is a proposal, a group or an event."""

    entityUrn: str = ""  # noqa: N815 - DataHub's own name
    aspectName: str = ""  # noqa: N815 - DataHub's own name
    group: str = ""
    job: _Job = msgspec.field(default_factory=_Job)


_about = msgspec.json.Decoder(_About).decode


def _line(letter: _delivery.Letter) -> dict[str, Any]:
    return {
        "id": letter.id,
        "what": letter.what,
        "about": _subject(letter.body),
        "state": letter.state,
        "reason": letter.why,
        "at": iso(letter.at),
        "bytes": len(letter.body),
    }


def _subject(body: bytes) -> str:
    try:
        told = _about(body)
    except msgspec.DecodeError:
        return ""
    named = "/".join(filter(None, (told.job.namespace, told.job.name)))
    return " ".join(filter(None, (told.aspectName, told.entityUrn))) or told.group.replace("\n", " ") or named


def _json(body: bytes) -> Any:
    try:
        return msgspec.json.decode(body)
    except msgspec.DecodeError:
        return body.decode("utf-8", "replace")


READS = [get_deliveries, get_letters, get_letter]
WRITES = [post_retry, delete_letters, delete_letter]
