"""serve.faults: an error -> its status and its body, in the shape of the dialect that was spoken.

Under `/api/v1` errors have Marquez's shape, on Correlator's paths its problem body, elsewhere that of RFC 9457
(`application/problem+json`). Each has the correlation id of its request, under which the log tells of it.
"""

from __future__ import annotations

from http import HTTPStatus
from typing import Any, Literal, get_args, get_origin

from litestar import Request, Response
from litestar.exceptions import HTTPException

from headwater.errors import (
    Ambiguous,
    ConfigError,
    EventError,
    HeadwaterError,
    NotFound,
    StoreError,
    TooLarge,
)
from headwater.guard import guard
from headwater.serve.intake import Busy
from headwater.serve.journal import call_of

_CORRELATOR = (
    "/api/v1/lineage/batch",
    "/api/v1/lineage/events",
    "/api/v1/incidents",
    "/api/v1/health/correlation",
)
_PROBLEMS = "https://getcorrelator.io/problems"

STATUS: dict[type[HeadwaterError], int] = {
    TooLarge: 413,
    EventError: 422,
    NotFound: 404,
    Ambiguous: 409,
    ConfigError: 400,
    Busy: 503,
    HeadwaterError: 500,
}
"""The first class that fits, from top to bottom."""


def answer_fault(request: Request[Any, Any, Any], fault: HeadwaterError) -> Response[Any]:
    """One of our own errors."""
    status = next(code for kind, code in STATUS.items() if isinstance(fault, kind))
    if isinstance(fault, StoreError) and fault.retryable:
        status = 507 if fault.cause == "full" else 503
    more: dict[str, Any] = {}
    if isinstance(fault, EventError):
        if not fault.path and status == 422:
            status = 400  # no part of it is wrong: it is no event at all
        elif status == 422:
            more["errors"] = [str(fault)]
    if isinstance(fault, Ambiguous):
        more["candidates"] = fault.candidates
    headers = {503: {"Retry-After": "1"}, 507: {"Retry-After": "60"}}.get(status, {})
    return _answer(request, status, str(fault), more, headers)


def answer_http(request: Request[Any, Any, Any], fault: HTTPException) -> Response[Any]:
    """An error of the web framework: an unknown path, a wrong parameter."""
    wrong = [_with_choices(request, each) for each in fault.extra] if isinstance(fault.extra, list) else []
    more: dict[str, Any] = {"errors": wrong or fault.extra} if fault.extra else {}
    detail = fault.detail
    if fault.status_code == 400 and _marquez(request):  # its errors are sentences
        more = {"errors": [_sentence(each) for each in wrong or [fault.extra or detail]]}
    elif fault.status_code == 400 and wrong:  # what is wrong, in place of the address that was asked
        detail = "; ".join(_sentence(each, ": ") for each in wrong)
    return _answer(request, fault.status_code, detail, more, dict(fault.headers or {}))


def answer_unforeseen(request: Request[Any, Any, Any], fault: Exception) -> Response[Any]:
    """A fault of ours: the log has it, the answer has nothing of it but the id under which the log tells it."""
    guard.caught(f"answering {request.method} {request.scope.get('path_template') or 'a request'}", fault)
    return _answer(request, 500, "a fault of the server's own: its log tells more", {}, {})


def _marquez(request: Request[Any, Any, Any]) -> bool:
    serving = request.app.state.serving
    path: str = request.scope["path"].removeprefix(serving.base_path)
    return path.startswith("/api/") and not _correlator(path, serving.lineage_status)


def _correlator(path: str, lineage_status: int) -> bool:
    """Whether a path is one that Correlator's clients call."""
    return path.startswith(_CORRELATOR) or (path == "/api/v1/lineage" and lineage_status == 200)


def _with_choices(request: Request[Any, Any, Any], told: Any) -> Any:
    """What is wrong with a parameter; where it takes one of a few words, with those."""
    if not isinstance(told, dict) or not str(told.get("message", "")).startswith("Invalid enum value"):
        return told
    known = request.route_handler.parsed_fn_signature.parameters.get(str(told.get("key")))
    words = _words(known.annotation) if known is not None else []
    return {**told, "message": f"{told['message']}: write one of {', '.join(words)}"} if words else told


def _words(annotation: Any) -> list[str]:
    """The words that a type allows."""
    if get_origin(annotation) is Literal:
        return [str(each) for each in get_args(annotation)]
    return [word for part in get_args(annotation) for word in _words(part)]


def _sentence(told: Any, between: str = " ") -> str:
    """`{"key": "limit", "message": "Expected `int` >= 0"}` -> one sentence."""
    if not isinstance(told, dict):
        return str(told)
    return between.join(told[part] for part in ("key", "message") if told.get(part))


def _answer(
    request: Request[Any, Any, Any], status: int, message: str, more: dict[str, Any], headers: dict[str, str]
) -> Response[Any]:
    more["correlation_id"] = call_of(request.scope).id
    serving = request.app.state.serving
    path = request.scope["path"].removeprefix(serving.base_path)
    correlator = _correlator(path, serving.lineage_status)
    if path.startswith("/api/") and not correlator:
        return Response({"code": status, "message": message, **more}, status_code=status, headers=headers)
    body = {
        "type": f"{_PROBLEMS}/{status}" if correlator else "about:blank",
        "title": HTTPStatus(status).phrase,
        "status": status,
        "detail": message,
        "instance": path,
        **more,
    }
    return Response(body, status_code=status, headers=headers, media_type="application/problem+json")
