"""cli._checkup: a server's url and a key -> what works there, and what to do about the rest.

Nothing is stored there: the event that is sent to see whether events are taken goes to `/hw/v1/check`.
"""

from __future__ import annotations

import socket
import ssl
import statistics
import time
from collections.abc import Iterator
from datetime import datetime, timezone
from email.utils import parsedate_to_datetime
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import headwater
from headwater.cli._ask import server_url
from headwater.errors import ConfigError
from headwater.event import PRODUCER
from headwater.naming import scrub


class Finding(NamedTuple):
    """One thing that was looked at."""

    what: str
    state: str
    """ok, missing (only some uses need it), warning (it will break) or broken"""
    detail: str


REACHES = "reaches"
_SECONDS = 10
_ASKED = 5
_SKEW, _ROOM, _DAYS = 5.0, 1 << 30, 21
_TOO_OFTEN = 429


def examine_server(url: str, api_key: str | None) -> Iterator[Finding]:
    """Everything worth a look at a server, one by one; after what makes the rest pointless, nothing."""
    import httpx

    try:
        base = server_url(url)
    except ConfigError as fault:
        yield Finding(REACHES, "broken", str(fault))
        return
    shown = scrub(base)
    if base.startswith("https:"):
        yield _tls(urlsplit(base).hostname or "", urlsplit(base).port or 443)
    headers = {"Authorization": f"Bearer {api_key}"} if api_key else {}
    with httpx.Client(base_url=base, headers=headers, timeout=_SECONDS) as client:
        try:
            alive = list(_alive(client, shown))
            yield from alive
            if any(finding.state == "broken" for finding in alive):
                return
            yield _ready(client)
            yield from _own(client, bool(api_key))
            yield _takes(client)
        except (httpx.HTTPError, httpx.InvalidURL) as fault:
            yield Finding(REACHES, "broken", f"{shown}: {scrub(str(fault)) or type(fault).__name__}")


def _alive(client: Any, shown: str) -> Iterator[Finding]:
    took, skews = [], []
    answer = _asked(client, "GET", "/health")  # opens the connection
    for _ in range(_ASKED):
        begun, clock = time.perf_counter(), time.time()
        again = client.get("/health")
        if again.status_code == _TOO_OFTEN:
            break  # it bounds how often it is asked: what is known by now must do
        answer = again
        took.append(time.perf_counter() - begun)
        if told := answer.headers.get("date"):  # whole seconds, of the middle of the request
            skews.append(parsedate_to_datetime(told).timestamp() + 0.5 - (clock + time.time()) / 2)
    if not answer.is_success:
        yield Finding(REACHES, "broken", f"{shown}: /health answered {answer.status_code}")
        return
    yield Finding(REACHES, "ok", shown)
    told = _json(answer)
    if told.get("service") != "headwater":
        yield Finding("version", "broken", "no Headwater answers there")
        return
    other = told.get("version") != headwater.__version__
    yield Finding(
        "version", "ok", f"{told.get('version')}" + (f"; this is {headwater.__version__}" if other else "")
    )
    if took:
        median = statistics.median(took)
        yield Finding("latency", "ok", f"{median * 1000:.1f} ms (median of {len(took)})")
    if skews:
        skew = statistics.median(skews)
        yield Finding(
            "clock",
            "ok" if abs(skew) < _SKEW else "warning",
            f"{skew:+.1f} s from this machine's"
            + ("" if abs(skew) < _SKEW else ": times of events and of keys will not agree; look at NTP"),
        )


def _ready(client: Any) -> Finding:
    answer = _asked(client, "GET", "/ready")
    told = _json(answer).get("reason") or _json(answer).get("status") or f"answered {answer.status_code}"
    return Finding("ready", "ok" if answer.is_success else "broken", str(told))


def _own(client: Any, has_key: bool) -> Iterator[Finding]:
    answer = _asked(client, "GET", "/hw/v1/server")
    if answer.status_code in (401, 403, 429):
        hint = "" if has_key else "; set HEADWATER_API_KEY"
        yield Finding("auth", "broken", f"{answer.status_code}: {_json(answer).get('detail')}{hint}")
        return
    if not answer.is_success:
        yield Finding("auth", "missing", f"/hw/v1/server answered {answer.status_code}")
        return
    told = _json(answer)
    caller = told["caller"]
    who = f"it takes you for {caller['name']}, who may: {', '.join(caller['scopes'])}"
    yield Finding("auth", "ok", "no key is needed" if told["auth"] == "off" else who)
    store = told["store"]
    if store["free_bytes"] is None:
        yield Finding("room", "ok", f"{store['url']} does not tell how much room it has")
        return
    short = store["free_bytes"] < max(_ROOM, store["bytes"] // 10)
    yield Finding(
        "room",
        "warning" if short else "ok",
        f"{store['bytes'] >> 20:,} MiB are taken, {store['free_bytes'] >> 20:,} MiB are left"
        + (": make room, or set a retention" if short else ""),
    )


def _takes(client: Any) -> Finding:
    """An event in all its parts, looked at but not kept."""
    event = {
        "eventTime": datetime.now(timezone.utc).isoformat(),
        "eventType": "COMPLETE",
        "producer": PRODUCER,
        "run": {"runId": "00000000-0000-4000-8000-000000000000"},
        "job": {"namespace": "headwater-doctor", "name": "test"},
        "outputs": [{"namespace": "headwater-doctor", "name": "test"}],
    }
    answer = _asked(client, "POST", "/hw/v1/check", json=event)
    if answer.is_success:
        return Finding("events", "ok", "a test event would be taken (it was not kept)")
    if answer.status_code in (404, 405):
        return Finding("events", "missing", "the server is read-only")
    forbidden = answer.status_code in (401, 403)
    return Finding(
        "events", "missing" if forbidden else "broken", f"{answer.status_code}: {_json(answer).get('detail')}"
    )


def _tls(host: str, port: int) -> Finding:
    try:
        with (
            socket.create_connection((host, port), timeout=_SECONDS) as plain,
            ssl.create_default_context().wrap_socket(plain, server_hostname=host) as secure,
        ):
            until = ssl.cert_time_to_seconds(str((secure.getpeercert() or {})["notAfter"]))
            version = secure.version()
    except (OSError, ValueError, KeyError) as fault:
        return Finding("TLS", "broken", str(fault))
    days = int((until - time.time()) // 86_400)
    return Finding(
        "TLS",
        "ok" if days >= _DAYS else "warning",
        f"{version}, the certificate lasts {days} more days" + ("" if days >= _DAYS else ": renew it"),
    )


def _asked(client: Any, method: str, path: str, **more: Any) -> Any:
    """An answer; where the server says that it was asked too often, that of a second try, when it says."""
    answer = client.request(method, path, **more)
    after = answer.headers.get("retry-after", "")
    if answer.status_code == _TOO_OFTEN and after.isdecimal() and int(after) <= _SECONDS:
        time.sleep(int(after))
        answer = client.request(method, path, **more)
    return answer


def _json(answer: Any) -> dict[str, Any]:
    try:
        told = answer.json()
    except ValueError:
        return {}
    return told if isinstance(told, dict) else {}
