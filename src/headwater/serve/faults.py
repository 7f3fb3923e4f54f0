"""serve.faults: an error -> its status and its body, in the shape of the dialect that was spoken.

Under `/api/v1` errors have Marquez's shape, elsewhere that of RFC 9457 (`application/problem+json`).
"""

from __future__ import annotations

from http import HTTPStatus
from typing import Any

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
from headwater.serve.intake import Busy

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
    more = {"errors": fault.extra} if fault.extra else {}
    return _answer(request, fault.status_code, fault.detail, more, dict(fault.headers or {}))


def _answer(
    request: Request[Any, Any, Any], status: int, message: str, more: dict[str, Any], headers: dict[str, str]
) -> Response[Any]:
    path = request.url.path.removeprefix(request.app.state.serving.base_path)
    if path.startswith("/api/"):
        return Response({"code": status, "message": message, **more}, status_code=status, headers=headers)
    body = {
        "type": "about:blank",
        "title": HTTPStatus(status).phrase,
        "status": status,
        "detail": message,
        **more,
    }
    return Response(body, status_code=status, headers=headers, media_type="application/problem+json")
