"""Nobody gets in without a key, nothing gets through that should not, and no secret comes out.

The first part walks the app's own table of routes, so a route that is added later is tried, too.
"""

from __future__ import annotations

import gzip
import json
import logging
import os
import re
import socket
import subprocess
import sys
import time
import zlib
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

import httpx
import pytest
import zstandard
from litestar import get, post
from litestar.testing import TestClient

from headwater import keys
from headwater.cli.demo import recorded
from headwater.errors import ConfigError
from headwater.ingest import ingest
from headwater.serve import Serving, create_app
from headwater.serve import app as app_module
from headwater.serve.auth import KNOWN, scope_of
from headwater.store import Store, open_store
from serving import Server, serving

SCOPES = ["ingest", "read", "admin"]
RUN = "3f5e83fa-3480-44ff-99c5-ff943904e5e8"


# --- every route there is


def routes() -> list[tuple[str, str, str]]:
    """(method, path with something in every parameter, scope) of every route, as the app itself has them."""
    store = open_store("memory:")
    app = create_app(store, Serving(auth="on"))
    found = []
    for route in app.routes:
        for handler in getattr(route, "route_handlers", None) or [route.route_handler]:  # type: ignore[union-attr]
            path = re.sub(r"\{[^}]*uuid[^}]*\}", RUN, route.path)
            path = re.sub(r"\{[^}]*:int\}", "1", path)
            path = re.sub(r"\{[^}]*\}", "x", path)
            if route.path == "/hw/v1/changes":
                path += "?after=x"  # refused once past the door: an answer that is allowed does not end
            for method in sorted(getattr(handler, "http_methods", None) or {"GET"}):
                found.append((str(method), path, scope_of(handler)))
    store.close()
    return sorted(set(found))


ROUTES = routes()
GUARDED = [each for each in ROUTES if each[2] != "public"]


@pytest.fixture(scope="module")
def guarded() -> Iterator[tuple[TestClient[Any], dict[str, str], Store]]:
    store = open_store("memory:")
    ingest(store, list(recorded()))
    made = {
        scope: keys.create(store, f"the {scope} one".replace(" ", "-"), [scope], by="test")[1]
        for scope in SCOPES
    }
    with TestClient(
        create_app(store, Serving(auth="on", anonymous_rate_limit=0)), raise_server_exceptions=False
    ) as client:
        yield client, made, store
    store.close()


def test_there_are_routes_of_each_scope() -> None:
    assert {scope for _, _, scope in ROUTES} == KNOWN
    assert len(GUARDED) >= 9


@pytest.mark.parametrize(("method", "path", "scope"), GUARDED, ids=lambda each: str(each))
def test_nothing_is_read_or_written_without_a_key(guarded: Any, method: str, path: str, scope: str) -> None:
    client, _, store = guarded
    before = store.counts()
    for headers in (
        {},
        {"Authorization": "Bearer "},
        {"Authorization": "Basic bWU6cHc="},
        {"X-API-Key": "hw_nonsense"},
    ):
        answer = client.request(method, path, headers=headers, content=b"{}" if method != "GET" else None)
        assert answer.status_code == 401, (headers, answer.text)
        assert answer.headers["WWW-Authenticate"].startswith("Bearer")
        if method != "HEAD":
            assert answer.json()["correlation_id"] == answer.headers["X-Correlation-ID"]
    assert store.counts() == before


@pytest.mark.parametrize(("method", "path", "scope"), GUARDED, ids=lambda each: str(each))
@pytest.mark.parametrize("held", SCOPES)
def test_a_key_opens_what_its_scope_names(
    guarded: Any, method: str, path: str, scope: str, held: str
) -> None:
    client, made, _ = guarded
    for headers in ({"Authorization": f"Bearer {made[held]}"}, {"X-API-Key": made[held]}):
        answer = client.request(method, path, headers=headers)
        allowed = scope in keys.GRANTS[held]
        assert (answer.status_code not in (401, 403)) is allowed, answer.text
        if not allowed:
            assert answer.status_code == 403
            assert scope in answer.text or method == "HEAD"


@pytest.mark.parametrize(("method", "path"), [each[:2] for each in ROUTES if each[2] == "public"])
def test_what_is_public_tells_nothing_of_the_store(guarded: Any, method: str, path: str) -> None:
    client, _, _ = guarded
    answer = client.request(method, path)
    assert answer.status_code < 500
    for name in ("orders", "revenue", "customers", "shop"):
        assert (
            name not in answer.text.replace("postgres", "").replace("load_orders", "")
            or "openapi" in path
            or "schema" in path
        )
    assert answer.status_code != 401


def test_a_handler_without_a_scope_makes_no_app(monkeypatch: pytest.MonkeyPatch) -> None:
    @get("/hw/v1/forgotten")
    async def get_forgotten() -> dict[str, str]:
        return {}

    @get("/hw/v1/mistyped", scope="reed")
    async def get_mistyped() -> dict[str, str]:
        return {}

    for handler, words in ((get_forgotten, "forgotten"), (get_mistyped, "mistyped")):
        store = open_store("memory:")
        monkeypatch.setattr(app_module, "READS", [handler])
        with pytest.raises(ConfigError, match=f"{words}.*has no scope"):
            create_app(store)
        store.close()


@pytest.mark.parametrize(
    ("method", "path", "scope"),
    [each for each in ROUTES if each[0] not in ("GET", "HEAD", "OPTIONS")],
    ids=str,
)
def test_a_read_only_server_has_no_way_to_write(method: str, path: str, scope: str) -> None:
    store = open_store("memory:")
    with TestClient(create_app(store, Serving(read_only=True))) as client:
        before = store.dump()
        answer = client.request(
            method, path, json={"eventTime": "2026-01-01T00:00:00Z", "job": {"namespace": "a", "name": "b"}}
        )
        assert scope == "read" or answer.status_code in (403, 404, 405)  # a question may be POSTed
        assert store.dump() == before
        assert store.counts()["log"] == store.counts()["rejects"] == 0
        assert client.get("/ready").status_code == 200
    store.close()


def test_a_route_that_writes_is_none_of_a_read_only_server_wherever_it_is_listed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    called = []

    @post("/hw/v1/misplaced", scope="admin")
    async def post_misplaced() -> None:
        called.append(True)

    store = open_store("memory:")
    monkeypatch.setattr(app_module, "READS", [post_misplaced])
    for read_only, status in ((True, 405), (False, 201)):
        with TestClient(create_app(store, Serving(read_only=read_only))) as client:
            assert client.post("/hw/v1/misplaced").status_code == status
    assert called == [True]
    store.close()


# --- the life of a key


def test_keys_end_when_they_should(guarded: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    client, _, store = guarded
    monkeypatch.setattr("headwater.serve.auth._REMEMBERED_SECONDS", 0.0)

    def status(key: str) -> tuple[int, str]:
        answer = client.get("/hw/v1/status", headers={"X-API-Key": key})
        return answer.status_code, answer.json().get("detail", "")

    now = time.time_ns() // 1000
    _, short = keys.create(store, "short", ["read"], by="test", expires_at=now + 60_000_000)
    assert status(short)[0] == 200
    with store.writing() as connection:
        connection.exec_driver_sql("UPDATE api_keys SET expires_at = 1 WHERE name = 'short'")
    assert status(short)[0] == 401
    assert "expired" in status(short)[1]

    _, first = keys.create(store, "turning", ["read"], by="test")
    _, second = keys.rotate(store, "turning", by="test", grace=60_000_000)
    assert (status(first)[0], status(second)[0]) == (200, 200)
    _, third = keys.rotate(store, "turning", by="test")
    assert (status(second)[0], status(third)[0]) == (401, 200)
    keys.revoke(store, "turning", by="test")
    assert [status(each)[0] for each in (first, second, third)] == [401, 401, 401]
    assert "revoked" in status(third)[1]

    _, real = keys.create(store, "real", ["read"], by="test")
    for forged in (
        real[:-1],
        real[:-1] + ("A" if real[-1] != "A" else "B"),
        real + "A",
        real.upper(),
        real.replace("hw_", ""),
    ):
        assert status(forged)[0] == 401
    assert status(real)[0] == 200


def test_a_busy_writer_keeps_no_reader_waiting(store_url: str) -> None:
    """That a key was used is kept, but not by those who use it."""
    store = open_store(store_url)
    _, key = keys.create(store, "reader", ["read"], by="test")
    with TestClient(create_app(store, Serving(auth="on"))) as client:
        with store._lock:  # type: ignore[attr-defined]  # as a replay would, for minutes
            assert client.get("/hw/v1/status", headers={"X-API-Key": key}).status_code == 200
            assert keys.listed(store)[0].used_at is None
        until = time.monotonic() + 30
        while keys.listed(store)[0].used_at is None:
            assert time.monotonic() < until
            time.sleep(0.02)
    store.close()


def test_the_store_holds_no_key(guarded: Any) -> None:
    _, made, store = guarded
    with store.read() as reader:
        rows = reader.connection.exec_driver_sql("SELECT * FROM api_keys").fetchall()
        rows += reader.connection.exec_driver_sql("SELECT * FROM key_audit").fetchall()
    held = repr(rows).encode() + b"".join(each for row in rows for each in row if isinstance(each, bytes))
    assert rows
    for key in made.values():
        assert key.encode() not in held
        assert key.split("_", 2)[2].encode() not in held  # the secret itself may hold underscores


def test_who_calls_is_known_and_audited(guarded: Any) -> None:
    client, made, _ = guarded
    told = client.get("/hw/v1/server", headers={"X-API-Key": made["admin"]}).json()
    assert told["caller"] == {"name": "the-admin-one", "scopes": ["admin", "ingest", "read"]}
    trail = client.get("/hw/v1/audit", headers={"X-API-Key": made["admin"]}, params={"by": "test"}).json()
    assert {"key_create"} <= {each["what"] for each in trail}
    assert trail == sorted(trail, key=lambda each: each["at"], reverse=True)


# --- rates


def test_more_than_the_rate_is_told_when_to_come_again() -> None:
    store = open_store("memory:")
    _, slow = keys.create(store, "slow", ["read"], by="test", rate=1)
    _, other = keys.create(store, "other", ["read"], by="test")
    with TestClient(
        create_app(store, Serving(auth="on", rate_limit=1000, rate_burst=3, anonymous_rate_limit=1))
    ) as client:
        answers = [client.get("/hw/v1/status", headers={"X-API-Key": slow}) for _ in range(12)]
        codes = [each.status_code for each in answers]
        assert codes[:3] == [200, 200, 200]
        assert 429 in codes
        late = answers[codes.index(429)]
        assert 1 <= int(late.headers["Retry-After"]) <= 2
        assert late.json()["correlation_id"]
        assert client.get("/hw/v1/status", headers={"X-API-Key": other}).status_code == 200  # his own bucket
        guesses = [
            client.get("/hw/v1/status", headers={"X-API-Key": f"hw_{n:012x}_" + "a" * 43}).status_code
            for n in range(12)
        ]
        assert set(guesses) == {401, 429}
        assert (
            client.get("/hw/v1/status", headers={"X-API-Key": other}).status_code == 200
        )  # guessing locks nobody out
        metrics = client.get("/metrics", headers={"X-API-Key": other}).text
        assert 'headwater_requests_refused_total{reason="rate_limited"}' in metrics
        assert 'headwater_requests_refused_total{reason="unknown"}' in metrics
    store.close()


# --- pages of other sites


def test_a_page_of_another_site_cannot_write_by_a_browser() -> None:
    store = open_store("memory:")
    with TestClient(create_app(store, Serving(cors_origins=("https://ui.example.org",)))) as client:
        event = {"eventTime": "2026-01-01T00:00:00Z", "job": {"namespace": "a", "name": "b"}}

        def post(origin: str) -> httpx.Response:
            return client.post("/api/v1/lineage", json=event, headers={"Origin": origin})

        assert post("https://evil.example.org").status_code == 403
        assert post("null").status_code == 403
        assert store.counts()["log"] == 0
        assert post("https://ui.example.org").status_code == 201
        assert post(str(client.base_url).rstrip("/")).status_code == 201
        asked = {"Origin": "https://ui.example.org", "Access-Control-Request-Method": "POST"}
        allowed = client.options("/api/v1/lineage", headers=asked)
        assert allowed.headers["Access-Control-Allow-Origin"] == "https://ui.example.org"
        follows = {**asked, "Access-Control-Request-Method": "GET"}  # by `fetch`, which can send a key
        follows["Access-Control-Request-Headers"] = "authorization, last-event-id"
        assert client.options("/hw/v1/changes", headers=follows).status_code == 204
        asked["Origin"] = "https://evil.example.org"
        refused = client.options("/api/v1/lineage", headers=asked)
        assert refused.headers.get("Access-Control-Allow-Origin") not in ("*", "https://evil.example.org")
    store.close()


# --- injection


NASTY = [
    "'; DROP TABLE log; --",
    "x' OR '1'='1",
    'x" OR ""="',
    "%' UNION SELECT digest FROM api_keys --",
    "../../../../etc/passwd",
    "..%2f..%2fetc%2fpasswd",
    "%00",
    "\x00",
    "{{7*7}}",
    "${jndi:ldap://x}",
    "%",
    "_",
    "\\",
    "\ud7ff\U0010ffff",
    "-99999999999999d",
    "9" * 400,
]


@pytest.mark.parametrize("text", NASTY, ids=range(len(NASTY)))
def test_what_is_asked_is_data_and_nothing_else(guarded: Any, text: str) -> None:
    client, made, store = guarded
    before, files = store.dump(), set(Path.cwd().iterdir())
    headers = {"X-API-Key": made["admin"]}
    for method, path, scope in ROUTES:
        if method != "GET" or scope == "public":
            continue
        for name in ("node", "q", "at", "since", "namespace", "type", "limit", "by", "depth", "rejects"):
            given = {"node": "gold/revenue_by_day", "q": "a", name: text}
            if "?" in path:
                given["after"] = "x"  # what is given here takes the place of what stands in the path
            answer = client.get(path, params=given, headers=headers)
            assert answer.status_code < 500, (path, name, answer.text)
            assert "api_keys" not in answer.text or "api_keys" in text
            assert "root:" not in answer.text
    assert store.dump() == before
    assert set(Path.cwd().iterdir()) == files


@pytest.mark.parametrize("text", NASTY, ids=range(len(NASTY)))
def test_names_come_out_as_they_went_in(text: str) -> None:
    store = open_store("memory:")
    event = {"eventTime": "2026-01-01T00:00:00Z", "job": {"namespace": text, "name": text}}
    with TestClient(create_app(store)) as client:
        answer = client.post("/api/v1/lineage", json=event)
        if "\0" in text:
            assert answer.status_code == 422
        else:
            assert answer.status_code == 201
            assert (f"{text}\n{text}",) in store.dump()["jobs"]
            assert client.get("/hw/v1/show", params={"node": f"job:{text}:{text}"}).status_code == 200
    store.close()


@pytest.mark.parametrize(
    "path",
    [
        "/../etc/passwd",
        "/..%2f..%2fetc/passwd",
        "/hw/v1/../../etc/passwd",
        "//etc/passwd",
        "/hw/v1/%2e%2e/status",
        "/health/",
        "/%00",
        "/hw/schema/../../x",
    ],
)
def test_paths_lead_nowhere_else(guarded: Any, path: str) -> None:
    client, _, _ = guarded
    answer = client.get(path)
    assert answer.status_code in (200, 400, 401, 404)
    assert "root:" not in answer.text


# --- the wire


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    limits = {
        "HEADWATER_SERVE__REQUEST_SECONDS": "2",
        "HEADWATER_SERVE__MAX_HEADER_BYTES": "16384",
        "HEADWATER_INGEST__MAX_BYTES": "1000000",
        "HEADWATER_SERVE__MAX_REQUEST_BYTES": "4000000",
    }
    with serving(
        f"sqlite:///{tmp_path_factory.mktemp('wire')}/x.db", environment=limits, fresh=True
    ) as started:
        yield started


def say(server: Server, *parts: bytes, pause: float = 0, wait: float = 20) -> bytes:
    """What the server answers to bytes on a socket, until it closes or falls silent."""
    host, port = server.url.removeprefix("http://").split(":")
    with closing(socket.create_connection((host, int(port)), timeout=wait)) as sock:
        heard = b""
        try:
            for part in parts:
                sock.sendall(part)
                time.sleep(pause)
            sock.settimeout(wait)
            while got := sock.recv(65536):
                heard += got
        except (TimeoutError, ConnectionError):
            pass
        return heard


EVENT = b'{"eventTime":"2026-01-01T00:00:00Z","job":{"namespace":"wire","name":"smuggled"}}'
POST = b"POST /api/v1/lineage HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
INNER = POST + b"Content-Length: %d\r\n\r\n" % len(EVENT) + EVENT
CLOSE = b"Connection: close\r\n"


@pytest.mark.parametrize(
    "raw",
    [
        POST + b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + INNER,
        POST + b"Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n" + INNER,
        POST + b"Content-Length: 0\r\nContent-Length: %d\r\n\r\n" % len(INNER) + INNER,
        POST + b"Content-Length: 0, %d\r\n\r\n" % len(INNER) + INNER,
        POST + b"Content-Length: +0\r\n\r\n" + INNER,
        POST + b"Content-Length: -1\r\n\r\n" + INNER,
        POST + b"Content-Length: 0x10\r\n\r\n" + INNER,
        POST + b"Content-Length : 5\r\n\r\n" + INNER,
        POST + b"Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n" + INNER,
        POST + b"Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n" + INNER,
        POST + b"Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n" + INNER,
        POST + b"Transfer-Encoding: chunked\r\n\r\nZZ\r\n" + INNER,
        POST + b"Transfer-Encoding: chunked\r\n\r\n-1\r\n" + INNER,
        POST + b"Transfer-Encoding: chunked\r\n\r\n5\r\nabcdeXX0\r\n\r\n" + INNER,
        POST + b"Transfer-Encoding: chunked\r\n\r\nffffffffffffffffff\r\n" + INNER,
        POST + b"X: a\x00b\r\nContent-Length: 0\r\n\r\n" + INNER,
        POST + b" folded: yes\r\nContent-Length: 0\r\n\r\n" + INNER,
        b"POST /api/v1/lineage HTTP/1.1\nHost: x\nContent-Length: 0\nbroken\n\n" + INNER,
        b"GET /health HTTP/9.9\r\nHost: x\r\n\r\n" + INNER,
        b"GET /he\x80lth HTTP/1.1\r\nHost: x\r\nContent-Length: 5, 5\r\n\r\n" + INNER,
        b"GARBAGE\r\n\r\n" + INNER,
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" * 9,
    ],
    ids=range(22),
)
def test_no_request_hides_in_another(server: Server, raw: bytes) -> None:
    """Where a request ends is never in doubt: it is refused and the connection closed, so what follows is not read."""
    heard = say(server, raw, wait=5)
    assert b"201" not in heard.split(b"\r\n")[0]
    assert heard.count(b"HTTP/1.1 ") <= 1, heard
    assert not heard or re.match(rb"HTTP/1\.1 4\d\d ", heard), heard
    found = httpx.get(f"{server.url}/hw/v1/search", params={"q": "smuggled"})
    assert found.json() == []


def test_requests_in_one_packet_are_answered_in_order(server: Server) -> None:
    heard = say(
        server, b"GET /health HTTP/1.1\r\nHost: x\r\n\r\nGET /ready HTTP/1.1\r\nHost: x\r\n" + CLOSE + b"\r\n"
    )
    assert heard.count(b"HTTP/1.1 200") == 2
    assert heard.index(b"healthy") < heard.index(b'"ready"')


@pytest.mark.parametrize(
    "raw",
    [
        b"GET /health HTTP/1.1\r\nHost: x\r\nX: " + b"a" * 20_000 + b"\r\n\r\n",
        b"GET /health HTTP/1.1\r\nHost: x\r\n" + b"".join(b"X-%d: y\r\n" % n for n in range(3_000)) + b"\r\n",
        b"GET /health?" + b"a" * 20_000 + b" HTTP/1.1\r\nHost: x\r\n\r\n",
        b"GET /health HTTP/1.1\r\nHost: x\r\nX: " + b"a" * 3_000_000,  # and no end
    ],
    ids=["long", "many", "url", "endless"],
)
def test_a_head_has_a_bounded_size(server: Server, raw: bytes) -> None:
    assert (
        b" 431 " in say(server, raw) or raw.count(b"\r\n\r\n") == 0
    )  # the endless one may be cut off while it sends
    assert httpx.get(f"{server.url}/health").status_code == 200


def test_slow_clients_are_told_and_keep_nobody_waiting(server: Server) -> None:
    half_head = b"POST /api/v1/lineage HTTP/1.1\r\nHost: x\r\n"
    half_body = POST + b"Content-Length: 500\r\n\r\n{"
    with ThreadPoolExecutor(40) as pool:
        heads = [pool.submit(say, server, half_head) for _ in range(15)]
        bodies = [pool.submit(say, server, half_body) for _ in range(15)]
        silent = [pool.submit(say, server) for _ in range(5)]
        with httpx.Client(base_url=server.url, timeout=30) as client:
            done = 0
            while not all(each.done() for each in (*heads, *bodies, *silent)):
                event = {
                    "eventTime": "2026-01-01T00:00:00Z",
                    "job": {"namespace": "wire", "name": f"quick {done}"},
                }
                assert client.post("/api/v1/lineage", json=event).status_code == 201
                done += 1
                time.sleep(0.02)
        assert done > 10  # they were served while the others dawdled
        assert all(b" 408 " in each.result() for each in (*heads, *bodies))
        assert [each.result() for each in silent] == [b""] * 5


WITH_BODY = sorted({each[:2] for each in ROUTES if each[0] in ("POST", "PUT", "PATCH")})


def test_every_body_is_waited_for_and_taken_up_to_a_limit(server: Server) -> None:
    """Whatever reads it: the house's own reader, or the framework's."""

    def asked(method: str, path: str, rest: bytes) -> bytes:
        concrete = re.sub(r"\{[^}]*\}", "1", path)
        return say(
            server,
            f"{method} {concrete} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Type: application/json\r\n".encode()
            + rest,
        )

    with ThreadPoolExecutor(20) as pool:
        halves = {each: pool.submit(asked, *each, b"Content-Length: 500\r\n\r\n{") for each in WITH_BODY}
        announced = {
            each: pool.submit(asked, *each, b"Content-Length: 100000000000\r\n\r\n{") for each in WITH_BODY
        }
        waited = [each for each in WITH_BODY if b" 408 " in halves[each].result()[:20]]
        assert [each for each in WITH_BODY if b" 413 " in announced[each].result()[:20]] == waited
    without = {path for _, path in set(WITH_BODY) - set(waited)}
    assert len(waited) >= 15, waited
    assert not any(path.endswith(("/lineage", "/nodes", "/aliases", "/keys")) for path in without), without
    endless = b"Transfer-Encoding: chunked\r\n\r\n" + (b"100000\r\n" + b" " * (1 << 20) + b"\r\n") * 12
    before = peak(server)
    for each in [
        ("PATCH", "/hw/v1/nodes"),
        ("PUT", "/hw/v1/aliases"),
        ("POST", "/hw/v1/keys"),
        ("POST", "/api/v1/lineage"),
    ]:
        heard = asked(*each, endless)
        assert not heard or b" 413 " in heard[:20], (each, heard)  # or cut off while it sends
    assert peak(server) - before < 60_000_000


@pytest.mark.parametrize(
    ("encoding", "body"),
    [
        ("gzip", gzip.compress(b" " * 300_000_000)),
        ("deflate", zlib.compress(b"[" * 300_000_000)),
        ("zstd", zstandard.ZstdCompressor(level=19).compress(b"\0" * 300_000_000)),
        ("gzip", gzip.compress(b"{") * 100_000 + gzip.compress(b" " * 300_000_000)),
    ],
    ids=["gzip", "deflate", "zstd", "members"],
)
def test_a_bomb_is_refused_before_it_unpacks(server: Server, encoding: str, body: bytes) -> None:
    before = peak(server)
    for path in ("/api/v1/lineage", "/api/v1/lineage/batch", "/hw/v1/check"):
        headers = {"Content-Type": "application/json", "Content-Encoding": encoding}
        answer = httpx.post(f"{server.url}{path}", content=body, headers=headers, timeout=60)
        assert answer.status_code in (400, 413), answer.text
    assert peak(server) - before < 100_000_000  # of the 300 that it would be


@pytest.mark.parametrize(
    "body",
    [
        b'{"a":' * 100_000 + b"1" + b"}" * 100_000,
        b"[" * 500_000 + b"]" * 500_000,
        b"[" * 500_000,
        b'{"eventTime":"2026-01-01T00:00:00Z","job":{"namespace":"a","name":"b","facets":{"deep":'
        + b"[" * 5_000
        + b"]" * 5_000
        + b"}}}",
    ],
    ids=["objects", "arrays", "open", "facet"],
)
def test_deep_bodies_are_refused(server: Server, body: bytes) -> None:
    for path in ("/api/v1/lineage", "/api/v1/lineage/batch", "/hw/v1/check"):
        sent = b"[" + body + b"]" if path.endswith("batch") and body[:1] == b"{" else body
        answer = httpx.post(
            f"{server.url}{path}", content=sent, headers={"Content-Type": "application/json"}, timeout=60
        )
        assert answer.status_code in (400, 413, 422), answer.text
    assert httpx.get(f"{server.url}/health").status_code == 200


@pytest.mark.parametrize("encoding", ["gzip", "deflate", "zstd"])
@pytest.mark.parametrize("keep", [0.2, 0.9])
def test_a_packed_body_that_is_cut_off_is_refused(server: Server, encoding: str, keep: float) -> None:
    pack = {"gzip": gzip.compress, "deflate": zlib.compress, "zstd": zstandard.ZstdCompressor().compress}[
        encoding
    ]
    body = pack(
        json.dumps(
            {"eventTime": "2026-01-01T00:00:00Z", "job": {"namespace": "a", "name": "cut" * 500}}
        ).encode()
    )
    headers = {"Content-Type": "application/json", "Content-Encoding": encoding}
    assert httpx.post(f"{server.url}/api/v1/lineage", content=body, headers=headers).status_code == 201
    assert (
        httpx.post(
            f"{server.url}/api/v1/lineage", content=body[: int(len(body) * keep)], headers=headers
        ).status_code
        == 400
    )


def peak(server: Server) -> int:
    """The most memory that the process ever held, in bytes."""
    told = Path(f"/proc/{server.process.pid}/status").read_text()
    return int(re.search(r"VmHWM:\s+(\d+) kB", told)[1]) * 1024  # type: ignore[index]


# --- secrets


SENTINEL = "s3nt1nel"


def test_secrets_are_nowhere_in_what_the_process_writes(tmp_path: Path, store_url: str) -> None:
    """Sentinels in every place where a secret may stand, then a search through all that came out of the process."""
    store = open_store(store_url)
    _, key = keys.create(store, "watched", ["admin"], by="test")
    store.close()
    log = tmp_path / "log"
    environment = {
        "HEADWATER_SERVE__AUTH": "on",
        "HEADWATER_SERVE__LOG_FORMAT": "json",
        "HEADWATER_LOG_LEVEL": "DEBUG",
        "HEADWATER_STORE": store_url,
        "HEADWATER_API_KEY": f"{SENTINEL}-setting",
        "HEADWATER_TRANSPORT": f"http://me:{SENTINEL}-transport@localhost:1",
    }
    answers = []
    with log.open("wb") as out:
        process = subprocess.Popen(
            [sys.executable, "-m", "headwater", "serve", "--port", "0"],
            stdout=out,
            stderr=out,
            env={**os.environ, **environment},
        )
    try:
        until = time.monotonic() + 60
        while not (found := re.search(r"at (http://\S+)", log.read_text())):
            assert process.poll() is None, log.read_text()
            assert time.monotonic() < until
            time.sleep(0.05)
        with httpx.Client(base_url=found[1], timeout=30) as client:
            good = {"Authorization": f"Bearer {key}"}
            bad = {"Authorization": f"Bearer {SENTINEL}-bearer"}
            facets = {
                "environmentVariables": {
                    "environmentVariables": [{"name": "DB_PASSWORD", "value": f"{SENTINEL}-env"}]
                },
                "spark_properties": {
                    "properties": {
                        "spark.hadoop.fs.s3a.secret.key": f"{SENTINEL}-conf",
                        "url": f"jdbc:postgresql://me:{SENTINEL}-jdbc@db/x",
                    }
                },
            }
            event = {
                "eventTime": "2026-01-01T00:00:00Z",
                "eventType": "START",
                "run": {"runId": RUN, "facets": facets},
                "job": {"namespace": "a", "name": "b"},
            }
            assert client.post("/api/v1/lineage", json=event, headers=good).status_code == 201
            answers += [
                client.get("/hw/v1/status", headers=bad),
                client.get("/hw/v1/status", headers={"X-API-Key": f"hw_{'0' * 12}_{SENTINEL}{'x' * 35}"}),
                client.get(f"/hw/v1/status?api_key={SENTINEL}-query&token={SENTINEL}-query", headers=good),
                client.get(f"/nowhere/{SENTINEL}-path?password={SENTINEL}-query"),
                client.get(
                    "/hw/v1/search",
                    params={"q": "a", "limit": "many"},
                    headers={**good, "Cookie": f"session={SENTINEL}-cookie"},
                ),
                client.post(
                    "/api/v1/lineage",
                    content=f'{{"password": "{SENTINEL}-body", '.encode(),
                    headers={**good, "Content-Type": "application/json"},
                ),
                client.get("/hw/v1/show", params={"node": RUN}, headers=good),
                client.get("/hw/v1/server", headers=good),
                client.get("/metrics", headers=good),
                client.get("/hw/v1/audit", headers=good),
            ]
        process.terminate()
        process.wait(20)
    finally:
        if process.poll() is None:
            process.kill()
            process.wait(10)
    lines = log.read_text()
    requests = [json.loads(line) for line in lines.splitlines() if line.startswith("{")]
    assert {"watched", None} == {each["key"] for each in requests if each["message"] == "request"}
    assert {401, 404, 400, 201, 200} <= {each["status"] for each in requests if each["message"] == "request"}
    assert all(each["correlation_id"] for each in requests if each["message"] == "request")
    assert SENTINEL not in lines
    assert key not in lines
    for answer in answers:
        assert key not in answer.text
        told_back = (
            f"{SENTINEL}-body",
            f"/nowhere/{SENTINEL}-path",
        )  # its sender hears what was wrong, and where
        assert SENTINEL not in re.sub("|".join(told_back), "", answer.text), answer.text
    for written in (lines, *(answer.text for answer in answers)):
        assert ":hidden@" not in written  # the password in the url of the Postgres store
    store = open_store(store_url)
    kept = b"".join(entry.raw for _, entry in store.log())
    store.close()
    assert b'"name":"DB_PASSWORD"' in kept
    assert SENTINEL.encode() not in kept


def test_a_fault_of_ours_is_told_without_what_caused_it(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    store = open_store("memory:")

    def broken(*_: Any, **__: Any) -> None:
        raise ZeroDivisionError(f"https://me:{SENTINEL}@host/ password={SENTINEL}")

    monkeypatch.setattr("headwater.serve.native.search", broken)
    with (
        caplog.at_level(logging.DEBUG),
        TestClient(create_app(store), raise_server_exceptions=False) as client,
    ):
        answer = client.get("/hw/v1/search", params={"q": "x"}, headers={"X-Correlation-ID": "find-me"})
    assert answer.status_code == 500
    assert answer.json()["correlation_id"] == "find-me"
    assert SENTINEL not in answer.text
    assert "ZeroDivisionError" not in answer.text
    ours = [each for each in caplog.records if each.name.startswith("headwater")]
    assert any(getattr(each, "fields", {}).get("correlation_id") == "find-me" for each in ours)
    from headwater.serve.journal import Lines

    assert SENTINEL not in "".join(Lines("json").format(each) for each in ours)
    store.close()
