"""transport._answers: what an OpenLineage server answers -> which events it took, why not the others, and when to ask again."""

from __future__ import annotations

import random
from collections.abc import Collection
from email.utils import parsedate_to_datetime
from time import time
from typing import TYPE_CHECKING, Any

import msgspec

if TYPE_CHECKING:
    import httpx

TRY_AGAIN = frozenset({408, 425, 429, 500, *range(502, 600)})  # 507: a disk is full; 52x: of proxies


class Refusal(msgspec.Struct, frozen=True):
    """Why the server did not take an event, and whether it may take it later."""

    reason: str
    retryable: bool


def failed(answer: httpx.Response, count: int, try_again: Collection[int]) -> dict[int, Refusal] | None:
    """What the server says of single events of an array; None where it says nothing of them."""
    rows = _object(answer).get("failed_events")
    if not isinstance(rows, list) or answer.status_code in try_again:
        return None
    out: dict[int, Refusal] = {}
    for row in rows:
        index = row.get("index") if isinstance(row, dict) else None
        if not isinstance(index, int) or not 0 <= index < count:
            if not answer.is_success:
                return None
            unknown = Refusal("the server did not say which", retryable=True)
            return {at: out.get(at, unknown) for at in range(count)}
        out[index] = Refusal(str(row.get("reason", "no reason given")), row.get("retriable") is True)
    return out


def reason(answer: httpx.Response) -> str:
    """What the server says in words."""
    told = _object(answer)
    words = (told[k] for k in ("detail", "message", "error", "title") if isinstance(told.get(k), str))
    return " ".join((next(words, "") or answer.text or answer.reason_phrase).split())[:300]


def retry_after(asked: str) -> float | None:
    """Seconds, from a number or a date; None where it says neither."""
    if asked.strip().isdigit():
        return float(asked)
    try:
        return max(0.0, parsedate_to_datetime(asked).timestamp() - time())
    except ValueError:
        return None


def backoff(attempt: int) -> float:
    """Seconds to wait before the next attempt."""
    jitter = random.uniform(0.5, 1.5)  # many hosts must not return as one
    return jitter * min(5.0, 0.2 * 2.0**attempt)


def named(event: bytes) -> str:
    """An event in a few words."""
    try:
        seen = msgspec.json.decode(event, type=_Seen)
    except msgspec.DecodeError:
        return f"{len(event)} bytes"
    job = "/".join(str(seen.job.get(k)) for k in ("namespace", "name"))
    return f"{seen.eventType} of {job} at {seen.eventTime}"


def run_of(event: bytes) -> str | None:
    """The run that an event tells of; None where it tells of none."""
    try:
        return str(msgspec.json.decode(event, type=_Seen).run["runId"])
    except (msgspec.DecodeError, KeyError):
        return None


class _Seen(msgspec.Struct):
    eventType: str | None = None  # noqa: N815 - the wire's own names
    eventTime: str | None = None  # noqa: N815
    job: dict[str, Any] = {}
    run: dict[str, Any] = {}


def _object(answer: httpx.Response) -> dict[str, Any]:
    try:
        told = msgspec.json.decode(answer.text)  # as text: words in Latin 1 are no reason to lose the rest
    except (msgspec.DecodeError, RecursionError):
        return {}
    return told if isinstance(told, dict) else {}
