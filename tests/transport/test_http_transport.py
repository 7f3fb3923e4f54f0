from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import warnings
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lineage_server import Answer, Request, Server

from headwater.errors import ConfigError, TransportError
from headwater.transport import http as module
from headwater.transport.http import HttpTransport

KEY = "s3cr3t-key-of-mine"


@pytest.fixture
def waits(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """How long it would have waited; nobody does."""
    waited: list[float] = []
    monkeypatch.setattr(module, "sleep", waited.append)
    return waited


def event(n: int, size: int = 0) -> bytes:
    made = {
        "eventType": "START",
        "eventTime": "2026-01-01T00:00:00Z",
        "job": {"namespace": "n", "name": str(n)},
        "pad": "x" * size,
    }
    return json.dumps(made).encode()


def numbers(server: Server) -> list[int]:
    return [int(e["job"]["name"]) for e in server.events]


def send(server: Server, *events: bytes, **options: Any) -> None:
    transport = HttpTransport(server.url, **options)
    try:
        transport.send(events)
    finally:
        transport.close()


def failed(*rows: tuple[int, str, bool]) -> dict[str, Any]:
    return {
        "status": "partial_success",
        "failed_events": [{"index": i, "reason": r, "retriable": t} for i, r, t in rows],
    }


def test_one_event_goes_to_the_single_path_and_several_to_the_batch_path(server: Server) -> None:
    send(server, event(1))
    send(server, event(1), event(2))
    assert [r.path for r in server.requests] == ["/api/v1/lineage", "/api/v1/lineage/batch"]
    assert [r.headers["Content-Type"] for r in server.requests] == ["application/json"] * 2


def test_an_endpoint_of_its_own(server: Server) -> None:
    transport = HttpTransport(server.url + "/base/", endpoint="/events")
    transport.send([event(1)])
    transport.close()
    assert server.requests[0].path == "/base/events"


def test_key_headers_and_compression(server: Server) -> None:
    send(server, event(1), event(2), api_key=KEY, headers={"X-Team": "shop"}, compression="gzip")
    headers = server.requests[0].headers
    assert (headers["Authorization"], headers["X-Team"], headers["Content-Encoding"]) == (
        f"Bearer {KEY}",
        "shop",
        "gzip",
    )
    assert numbers(server) == [1, 2]


def test_parameters_go_into_every_request(server: Server) -> None:
    send(server, event(1), params={"team": "shop", "a b": "c&d"})
    send(server, event(1), event(2), params={"team": "shop"})
    assert [r.path for r in server.requests] == [
        "/api/v1/lineage?team=shop&a+b=c%26d",
        "/api/v1/lineage/batch?team=shop",
    ]


@pytest.mark.parametrize("status", [500, 507, 522])
def test_5xx_then_201_is_sent_again_after_a_wait(server: Server, waits: list[float], status: int) -> None:
    server.answers.extend([Answer(status), Answer(503), Answer(201)])
    send(server, event(1))
    assert len(server.requests) == 3
    assert len(waits) == 2
    assert 0.1 <= waits[0] <= 0.3
    assert 0.2 <= waits[1] <= 0.6


def test_retries_are_bounded_and_the_error_is_retryable(server: Server, waits: list[float]) -> None:
    server.always = Answer(503, {"detail": "store is down"})
    with pytest.raises(TransportError, match="answered 503 store is down") as caught:
        send(server, event(1), retries=2)
    assert caught.value.retryable
    assert len(server.requests) == 3


def test_no_attempt_begins_after_its_patience(
    server: Server, waits: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    server.always = Answer(503)
    monkeypatch.setattr(module, "PATIENCE", -1.0)
    with pytest.raises(TransportError):
        send(server, event(1), retries=100)
    assert len(server.requests) == 1


def test_429_waits_as_long_as_retry_after_says(server: Server, waits: list[float]) -> None:
    server.answers.append(Answer(429, headers={"Retry-After": "7"}))
    send(server, event(1))
    assert waits == [7.0]
    assert len(server.requests) == 2


def test_429_with_a_date(server: Server, waits: list[float]) -> None:
    server.answers.append(Answer(429, headers={"Retry-After": "Thu, 01 Jan 1970 00:00:00 GMT"}))
    send(server, event(1))
    assert waits == [0.0]


def test_429_that_asks_for_too_long_is_left_for_later(server: Server, waits: list[float]) -> None:
    server.always = Answer(429, headers={"Retry-After": "3600"})
    with pytest.raises(TransportError) as caught:
        send(server, event(1))
    assert caught.value.retryable
    assert (waits, len(server.requests)) == ([], 1)


@pytest.mark.parametrize("status", [401, 403, 404, 409])
def test_other_4xx_are_not_sent_again(server: Server, waits: list[float], status: int) -> None:
    server.always = Answer(status)
    with pytest.raises(TransportError, match=f"answered {status}") as caught:
        send(server, event(1))
    assert not caught.value.retryable
    assert len(server.requests) == 1


def test_401_says_what_to_set(server: Server) -> None:
    server.always = Answer(401)
    with pytest.raises(TransportError, match="HEADWATER_API_KEY"):
        send(server, event(1))


def test_a_redirect_is_told_not_followed(server: Server) -> None:
    server.always = Answer(302, headers={"Location": "http://elsewhere/x"})
    with pytest.raises(TransportError, match="moved to http://elsewhere/x"):
        send(server, event(1), api_key=KEY)
    assert len(server.requests) == 1


@pytest.mark.parametrize("status", [200, 207, 422])
def test_refused_events_are_named_with_their_reasons(server: Server, waits: list[float], status: int) -> None:
    server.always = Answer(status, failed((1, "no runId", False)))
    with pytest.raises(
        TransportError, match=r"refused 1 event\(s\):\n  no runId: START of n/2 at 2026"
    ) as caught:
        send(server, event(1), event(2), event(3))
    assert not caught.value.retryable
    assert len(server.requests) == 1


def test_207_sends_the_retriable_ones_again(server: Server, waits: list[float]) -> None:
    server.answers.append(Answer(207, failed((0, "busy", True), (2, "busy", True))))
    send(server, event(1), event(2), event(3))
    assert [[e["job"]["name"] for e in r.json] for r in server.requests] == [["1", "2", "3"], ["1", "3"]]
    assert len(waits) == 1


def test_what_is_said_of_an_event_alone_is_heard(server: Server, waits: list[float]) -> None:
    server.answers.append(Answer(207, failed((0, "busy", True))))
    send(server, event(1))
    assert len(server.requests) == 2
    server.always = Answer(200, failed((0, "no runId", False)))
    with pytest.raises(TransportError, match="no runId") as caught:
        send(server, event(1))
    assert not caught.value.retryable
    server.always = Answer(207, failed((0, "busy", True)))
    with pytest.raises(TransportError, match="busy") as caught:
        send(server, event(1), retries=0)
    assert caught.value.pending == {0}


def test_207_that_stays_busy_is_retryable(server: Server, waits: list[float]) -> None:
    def busy(request: Request) -> Answer:
        return Answer(207, failed(*[(i, "busy", True) for i in range(len(request.json))]))

    server.rule = busy
    with pytest.raises(TransportError, match="refused 2") as caught:
        send(server, event(1), event(2), retries=1)
    assert caught.value.retryable
    assert len(server.requests) == 2


def test_one_refused_and_one_busy_is_retryable_so_that_the_busy_one_is_not_lost(
    server: Server, waits: list[float]
) -> None:
    server.answers.append(Answer(207, failed((0, "no runId", False), (1, "busy", True))))
    with pytest.raises(TransportError, match="no runId") as caught:
        send(server, event(1), event(2), retries=0)
    assert caught.value.retryable


def test_a_refusal_that_names_no_event_counts_for_all(server: Server, waits: list[float]) -> None:
    server.always = Answer(207, failed((99, "?", False)))
    with pytest.raises(TransportError, match="did not say which") as caught:
        send(server, event(1), event(2), retries=0)
    assert caught.value.retryable


def test_only_some_refusals_are_listed(server: Server) -> None:
    server.always = Answer(207, failed(*[(i, "bad", False) for i in range(9)]))
    with pytest.raises(TransportError, match=r"refused 9 event\(s\)") as caught:
        send(server, *map(event, range(9)))
    assert str(caught.value).endswith("and 4 more")


def test_413_halves_until_it_fits_and_keeps_the_order(server: Server) -> None:
    server.rule = lambda request: Answer(413) if len(request.body) > 500 else None
    send(server, *map(event, range(20)))
    taken = [r for r in server.requests if len(r.body) <= 500]
    out: list[int] = []
    for request in taken:
        out += [
            int(e["job"]["name"])
            for e in (request.json if isinstance(request.json, list) else [request.json])
        ]
    assert out == list(range(20))
    assert len(taken) < 20


def test_413_of_a_single_event_is_told_and_the_others_arrive(server: Server) -> None:
    server.rule = lambda request: Answer(413, {"detail": "too big"}) if len(request.body) > 500 else None
    with pytest.raises(TransportError, match="413 too big: START of n/2") as caught:
        send(server, event(1), event(2, 600), event(3))
    assert not caught.value.retryable
    small = [r.json for r in server.requests if len(r.body) <= 500]
    assert [e["job"]["name"] for e in small] == ["1", "3"]


def test_a_bad_event_does_not_sink_the_batch_of_a_server_that_refuses_all(server: Server) -> None:
    server.rule = lambda request: Answer(422, {"detail": "bad"}) if b'"name": "5"' in request.body else None
    with pytest.raises(TransportError, match=r"refused 1 event\(s\):\n  422 bad: START of n/5"):
        send(server, *map(event, range(8)))


@pytest.mark.parametrize("status", [404, 405])
def test_a_server_without_batches_gets_them_one_by_one_and_is_asked_once(server: Server, status: int) -> None:
    server.rule = lambda request: Answer(status) if request.path.endswith("/batch") else None
    transport = HttpTransport(server.url)
    transport.send([event(1), event(2)])
    transport.send([event(3), event(4)])
    transport.close()
    assert [r.path.rpartition("/")[2] for r in server.requests] == ["batch", *["lineage"] * 4]
    assert [r.json["job"]["name"] for r in server.requests[1:]] == ["1", "2", "3", "4"]


def test_large_batches_are_split_by_bytes(server: Server) -> None:
    send(server, *[event(n, 300) for n in range(10)], max_batch_bytes="1000")
    assert numbers(server) == list(range(10))
    assert all(len(r.body) <= 1002 for r in server.requests)
    assert len(server.requests) == 5


def test_large_batches_are_split_by_count(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "BATCH", 4)
    send(server, *map(event, range(10)))
    assert [len(r.json) for r in server.requests] == [4, 4, 2]


@given(sizes=st.lists(st.integers(0, 30), max_size=30), limit=st.integers(1, 60))
def test_parts_hold_every_event_once_in_order_and_keep_the_limit(sizes: list[int], limit: int) -> None:
    events = [b"x" * size for size in sizes]
    parts = list(HttpTransport("http://h", max_batch_bytes=limit)._parts(events))
    assert [e for part in parts for e in part] == events
    assert all(part and (len(part) == 1 or len(b",".join(part)) <= limit) for part in parts)


def closed_port() -> int:
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return int(s.getsockname()[1])


def test_a_refused_connection_says_what_to_do_and_is_retryable(waits: list[float]) -> None:
    transport = HttpTransport(f"http://me:pa55word@127.0.0.1:{closed_port()}", api_key=KEY, retries=2)
    with pytest.raises(
        TransportError, match=r"no answer from http://127.0.0.1:\d+.*`headwater serve`.*HEADWATER_TRANSPORT"
    ) as caught:
        transport.send([event(1)])
    transport.close()
    assert caught.value.retryable
    assert len(waits) == 2


def test_a_server_that_never_answers_is_given_up(waits: list[float]) -> None:
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        transport = HttpTransport(f"http://127.0.0.1:{silent.getsockname()[1]}", timeout="0.05", retries="1")
        with pytest.raises(TransportError, match=r"no answer from .*timed out") as caught:
            transport.send([event(1)])
        transport.close()
    assert caught.value.retryable


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        (Answer(200, b"<html>", {"Content-Encoding": "gzip"}), "decompressing"),
        (Answer(503, b'{"message": "g\xe9n\xe9ral"}'), "answered 503 g"),
        (Answer(503, b"[" * 100_000), r"answered 503 \[\["),
    ],
)
def test_what_a_proxy_answers_in_place_of_the_server_is_a_fault_to_wait_for(
    server: Server, answer: Answer, told: str
) -> None:
    server.always = answer
    transport = HttpTransport(server.url, retries=0)
    with pytest.raises(TransportError, match=told) as caught:
        transport.send([event(1), event(2)])
    transport.close()
    assert caught.value.retryable
    assert caught.value.pending == {0, 1}


def test_a_refusal_in_another_encoding_is_heard(server: Server) -> None:
    server.always = Answer(207, b'{"failed_events": [{"index": 1, "reason": "cass\xe9"}]}')
    transport = HttpTransport(server.url, retries=0)
    with pytest.raises(TransportError) as caught:
        transport.send([event(1), event(2)])
    transport.close()
    assert list(caught.value.refused) == [1]


def test_secrets_never_leave_in_an_error(server: Server) -> None:
    host = server.url.removeprefix("http://")
    transport = HttpTransport(
        f"http://me:pa55word@{host}", api_key=KEY, headers={"X-Auth": "t0ken"}, retries=0
    )
    for status in (400, 401, 500, 302):
        server.always = Answer(
            status, {"detail": f"bad {KEY} pa55word t0ken"}, {"Location": f"http://me:pa55word@{host}/{KEY}"}
        )
        with pytest.raises(TransportError) as caught:
            transport.send([event(1)])
        told = f"{caught.value} {caught.value!r} {transport!r}"
        assert [s for s in (KEY, "pa55word", "t0ken") if s in told] == []
    transport.close()


def test_user_and_password_of_the_url_are_sent(server: Server) -> None:
    transport = HttpTransport(server.url.replace("//", "//me:pw@"))
    transport.send([event(1)])
    transport.close()
    assert server.requests[0].headers["Authorization"] == "Basic bWU6cHc="


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"timeout": "soon"}, "timeout: 'soon' is no number"),
        ({"timeout": "0"}, "timeout: '0' must be at least 0.001"),
        ({"timeout": True}, "timeout: True is no number"),
        ({"retries": "1.5"}, "retries: '1.5' is no whole number"),
        ({"retries": -1}, "retries: -1 must be at least 0"),
        ({"compression": "lzma"}, "compression: 'lzma' is not offered"),
        ({"verify": "maybe"}, "verify: 'maybe' is neither yes, no nor a file"),
        ({"headers": "X"}, "headers: must be a table"),
        ({"headers": {"X Y": "1"}}, "headers: 'X Y' cannot be the name of a header"),
        ({"headers": {"X-Y": "a\nb"}}, "headers.X-Y: holds a character that no header can"),
        ({"api_key": "kéy"}, "api_key: holds a character that no header can"),
        ({"max_batch_bytes": 0}, "max_batch_bytes: 0 must be at least 1"),
    ],
)
def test_options_that_cannot_be_used_are_refused_by_name(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        HttpTransport("http://localhost", **options)


@pytest.mark.parametrize("url", ["http://", "ftp://host", "localhost:5000"])
def test_a_url_without_host_is_refused(url: str) -> None:
    with pytest.raises(ConfigError, match="names no host"):
        HttpTransport(url)


@pytest.mark.parametrize("url", ["http://host:abc", "http://host:99999", "http://me:pa55/word@host"])
def test_a_port_that_cannot_be_is_refused_without_a_password(url: str) -> None:
    with pytest.raises(ConfigError, match="names no port that there is") as caught:
        HttpTransport(url)
    assert "pa55" not in str(caught.value)


def test_verify_takes_words() -> None:
    assert HttpTransport("https://h", verify="no")._verify is False
    assert HttpTransport("https://h", verify="true")._verify is True


def test_a_plain_url_reads_no_certificates_unless_its_tokens_come_from_elsewhere() -> None:
    oauth = {"type": "oauth", "token_url": "https://id", "client_id": "a", "client_secret": "b"}
    assert HttpTransport("http://h")._verify is False
    assert HttpTransport("http://h", auth=oauth)._verify is True


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_forked_child_opens_connections_of_its_own(server: Server) -> None:
    transport = HttpTransport(server.url)
    transport.send([event(1)])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # the server is a thread of this process
        child = os.fork()
    if child == 0:
        code = 1
        try:
            transport.send([event(2)])
            code = 0
        finally:
            os._exit(code)
    assert os.waitpid(child, 0)[1] == 0
    transport.send([event(3)])
    transport.close()
    assert numbers(server) == [1, 2, 3]
    ports = [request.port for request in server.requests]
    assert ports[0] == ports[2] != ports[1]


def test_httpx_is_imported_when_something_is_sent() -> None:
    code = "import sys; from headwater.transport import open_transport; open_transport('http://h'); sys.exit('httpx' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
