"""cli._stream: a server's stream of changes -> each change; it comes back by itself where it was cut off."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from typing import Any

from headwater.cli._ask import fault_of
from headwater.errors import TransportError
from headwater.naming import scrub

_TRIES = 10


def follow(
    url: str, after: int | None, options: dict[str, Any], headers: dict[str, str]
) -> Iterator[dict[str, Any]]:
    """What comes in, as it comes; a server that is gone is asked again, from where it was."""
    import httpx

    given = {name: value for name, value in options.items() if value is not None}
    last, failed = after, 0
    while True:
        asked = {**given, **({"after": last} if last is not None else {})}
        try:
            with httpx.stream(
                "GET", url, params=asked, headers=headers, timeout=httpx.Timeout(10, read=60)
            ) as answer:
                if answer.status_code in (400, 401, 403, 404):
                    answer.read()
                    raise fault_of(answer)
                answer.raise_for_status()
                if not answer.headers.get("content-type", "").startswith("text/event-stream"):
                    raise TransportError(f"{scrub(url)} is no stream of changes", retryable=False)
                for name, number, data in _messages(answer.iter_lines()):
                    failed = 0
                    last = number if number is not None else last
                    if name not in ("hello", "beat"):
                        yield json.loads(data)
        except (httpx.HTTPError, httpx.InvalidURL) as fault:
            failed += 1
            if last is None or failed > _TRIES:
                raise TransportError(f"{scrub(url)} cannot be followed: {fault}", retryable=True) from None
        time.sleep(min(5.0, 0.5 * 2**failed))


def _messages(lines: Iterator[str]) -> Iterator[tuple[str, int | None, str]]:
    """Server-sent events: name, number, data."""
    name, number = "message", None
    data: list[str] = []
    for line in lines:
        field, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if not line:
            if data:
                yield name, number, "\n".join(data)
            name, number, data = "message", None, []
        elif field == "event":
            name = value
        elif field == "id" and value.isdigit():
            number = int(value)
        elif field == "data":
            data.append(value)
