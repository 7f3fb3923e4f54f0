"""The server as a client meets it: a real process, real sockets."""

from __future__ import annotations

import gzip
import json
import socket
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest
import zstandard
from prometheus_client.parser import text_string_to_metric_families

from headwater.cli.demo import recorded
from headwater.store import open_store
from headwater.transport.spool import SpoolTransport
from serving import Server, serving

LINES = list(recorded())
JSON = {"Content-Type": "application/json"}
LIMITS = {"HEADWATER_INGEST__MAX_BYTES": "2000000", "HEADWATER_SERVE__MAX_REQUEST_BYTES": "8000000"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("serve")


@pytest.fixture(scope="module")
def server(folder: Path) -> Iterator[Server]:
    with serving(f"sqlite:///{folder}/x.db", environment=LIMITS, fresh=True) as started:
        yield started


@pytest.fixture(scope="module")
def client(server: Server) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=server.url, timeout=30) as made:
        made.post("/api/v1/lineage/batch", content=b"[" + b",".join(LINES) + b"]", headers=JSON)
        yield made


def status(client: httpx.Client, rejects: int = 0) -> dict[str, Any]:
    found: dict[str, Any] = client.get("/hw/v1/status", params={"rejects": rejects}).json()
    return found


def event(name: str, **more: Any) -> dict[str, Any]:
    return {"eventTime": "2026-01-01T00:00:00Z", "job": {"namespace": "test", "name": name}, **more}


def test_one_event_is_answered_with_an_empty_201(client: httpx.Client) -> None:
    answer = client.post("/api/v1/lineage", json=event("one"))
    assert (answer.status_code, answer.content) == (201, b"")
    assert client.get("/hw/v1/show", params={"node": "job:test:one"}).json()["name"] == "one"


def test_a_batch_says_what_became_of_each(client: httpx.Client) -> None:
    good, bad = (
        event("two"),
        {"eventTime": "2026-01-01T00:00:00Z", "run": {}, "job": {"namespace": "a", "name": "b"}},
    )
    answer = client.post("/api/v1/lineage/batch", json=[good], headers={"X-Correlation-ID": "abc"})
    assert answer.status_code == 200
    told = answer.json()
    assert (told["status"], told["correlation_id"], told["failed_events"]) == ("success", "abc", [])
    assert told["summary"] == {
        "received": 1,
        "successful": 1,
        "failed": 0,
        "retriable": 0,
        "non_retriable": 0,
    }
    answer = client.post("/api/v1/lineage/batch", json=[bad, good, 5])
    assert answer.status_code == 207
    assert [(each["index"], each["reason"]) for each in answer.json()["failed_events"]] == [
        (0, "run.runId: missing"),
        (2, "expected `object`, got `int`"),
    ]
    answer = client.post("/api/v1/lineage/events", json=[bad])
    assert (answer.status_code, answer.json()["status"]) == (422, "error")


@pytest.mark.parametrize("encoding", ["gzip", "deflate", "zstd"])
def test_packed_bodies_are_unpacked(client: httpx.Client, encoding: str) -> None:
    import zlib

    pack = {"gzip": gzip.compress, "deflate": zlib.compress, "zstd": zstandard.compress}[encoding]
    body = json.dumps(event(f"packed {encoding}")).encode()
    answer = client.post(
        "/api/v1/lineage", content=pack(body), headers={**JSON, "Content-Encoding": encoding}
    )
    assert answer.status_code == 201, answer.text
    assert client.get("/hw/v1/search", params={"q": f"packed {encoding}"}).json()


DEEP = b"[" * 10_000 + b"]" * 10_000
BAD = {
    "broken JSON": (b'{"eventTime": ', JSON, 400, "broken JSON"),
    "nothing": (b"", JSON, 400, "broken JSON"),
    "an array where one event belongs": (b"[]", JSON, 400, "expected `object`"),
    "wrong types": (b'{"eventTime": 5, "job": {}}', JSON, 422, "eventTime: expected `str`"),
    "no event": (b'{"eventTime": "2026-01-01T00:00:00Z"}', JSON, 400, "no OpenLineage event"),
    "10,000-deep nesting": (b'{"eventTime": "2026-01-01T00:00:00Z", "job": {"namespace": "a", "name": "b"}, "x": ' + DEEP + b"}", JSON, 413, "max_depth"),
    "invalid UTF-8": (b'{"eventTime": "2026-01-01T00:00:00Z", "job": {"namespace": "a", "name": "\xff\xfe"}}', JSON, 400, "invalid UTF-8"),
    "an event over max_bytes": (json.dumps(event("big", x="y" * 2_100_000)).encode(), JSON, 413, "max_bytes = 2,000,000"),
    "a body over the request's limit": (b" " * 50_000_000, JSON, 413, "8,000,000"),
    "wrong content type": (b"a=b", {"Content-Type": "application/x-www-form-urlencoded"}, 415, "send application/json"),
    "wrong content encoding": (b"{}", {**JSON, "Content-Encoding": "br"}, 415, "gzip, deflate or zstd"),
    "a body that is not what it says": (b"{}", {**JSON, "Content-Encoding": "gzip"}, 400, "not what its Content-Encoding says"),
    "a small body that unpacks into a large one": (gzip.compress(b" " * 50_000_000), {**JSON, "Content-Encoding": "gzip"}, 413, "8,000,000"),
}  # fmt: skip


@pytest.mark.parametrize("case", BAD)
def test_bad_input_is_a_clear_4xx_and_changes_nothing_but_the_rejects(
    client: httpx.Client, case: str, folder: Path
) -> None:
    body, headers, code, words = BAD[case]
    before = status(client)
    reader = open_store(f"sqlite:///{folder}/x.db")
    tables = reader.dump()
    answer = client.post("/api/v1/lineage", content=body, headers=headers)
    assert answer.status_code == code
    assert words in answer.json()["message"]
    assert answer.json()["code"] == code
    assert reader.dump() == tables
    reader.close()
    after = status(client, rejects=1)
    assert after["events"] == before["events"]
    if code not in (415,) and "not what it says" not in case:
        assert after["rejects"] == before["rejects"] + 1
        assert (
            words in after["rejected"][0]["reason"]
            or words in after["rejected"][0]["path"] + ": " + after["rejected"][0]["reason"]
        )
    assert client.get("/health").status_code == 200


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b"", "empty"),
        (b"{}", "no array"),
        (b"[]", "empty"),
        (b"[{", "Invalid JSON"),
        (DEEP, "nested too deeply"),
    ],
)
def test_a_batch_that_is_none_is_refused_whole(client: httpx.Client, body: bytes, words: str) -> None:
    answer = client.post("/api/v1/lineage/batch", content=body, headers=JSON)
    assert answer.status_code in (400, 413)
    assert words in answer.json()["detail"]


def test_a_chunked_body_is_counted_while_it_comes(client: httpx.Client) -> None:
    def endless() -> Iterator[bytes]:
        for _ in range(1000):
            yield b" " * 100_000

    try:
        answer = client.post("/api/v1/lineage", content=endless(), headers=JSON)
        assert answer.status_code == 413
    except httpx.WriteError:
        pass  # the server hung up in the middle: as good
    assert client.get("/health").status_code == 200


def test_the_graph_over_http(client: httpx.Client) -> None:
    model = client.get(
        "/hw/v1/graph", params={"node": "gold/revenue_by_day", "direction": "up", "columns": "true"}
    ).json()
    assert model["start"] == "dataset:s3://lake:gold/revenue_by_day"
    assert {
        "dataset:https://pay.example.com:/v1/payments",
        "dataset:postgres://shop-db:5432:shop.public.orders",
    } <= {node["id"] for node in model["nodes"]}
    ids = {node["id"] for node in model["nodes"]}
    assert all(edge["from"] in ids and edge["to"] in ids for edge in model["edges"])
    assert any(each["masked"] for each in model["columns"])
    one = client.get(
        "/hw/v1/graph", params={"node": "gold/revenue_by_day", "direction": "up", "depth": 1}
    ).json()
    assert one["cut"]
    assert len(one["nodes"]) == 3
    past = client.get(
        "/hw/v1/graph", params={"node": "silver/orders_paid", "at": "2026-03-02T05:22:00Z"}
    ).json()
    assert len(past["nodes"]) == 1, "nothing had written it by then"


@pytest.mark.parametrize(
    ("parameters", "code", "words"),
    [
        ({}, 400, "node"),
        ({"node": "nothing"}, 404, "no node is called"),
        ({"node": "shop.public.orders"}, 409, "could be any of these"),
        ({"node": "raw/payments", "at": "yesterday"}, 400, "is no time"),
        ({"node": "raw/payments", "depth": "x"}, 400, "depth"),
        ({"node": "raw/payments", "depth": "-1"}, 400, "depth"),
        ({"node": "raw/payments", "direction": "sideways"}, 400, "direction"),
    ],
)
def test_wrong_questions_are_answered_as_problems(
    client: httpx.Client, parameters: dict[str, str], code: int, words: str
) -> None:
    answer = client.get("/hw/v1/graph", params=parameters)
    assert answer.status_code == code
    assert answer.headers["content-type"].startswith("application/problem+json")
    assert words in json.dumps(answer.json())


def test_health_readiness_and_the_description_of_the_api(client: httpx.Client) -> None:
    assert client.get("/health").json()["status"] == "healthy"
    assert client.get("/ready").json()["status"] == "ready"
    paths = client.get("/openapi.json").json()["paths"]
    assert {"/api/v1/lineage", "/api/v1/lineage/batch", "/hw/v1/graph", "/health", "/ready"} <= set(paths)
    nothing = client.get("/api/v1/nothing", headers={"X-Correlation-ID": "abc"}).json()
    assert nothing == {"code": 404, "message": "Not Found", "correlation_id": "abc"}
    assert client.get("/nothing").headers["content-type"].startswith("application/problem+json")
    assert client.delete("/api/v1/lineage").status_code == 405


def test_many_clients_at_once_lose_nothing(client: httpx.Client, server: Server) -> None:
    before = status(client)["events"]

    def send(worker: int) -> None:
        with httpx.Client(base_url=server.url, timeout=30) as own:
            for number in range(20):
                answer = own.post("/api/v1/lineage", json=event(f"crowd {worker} {number}"))
                assert answer.status_code == 201

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(send, range(8)))
    assert status(client)["events"] == before + 160


def test_a_client_that_leaves_does_no_harm(client: httpx.Client, server: Server) -> None:
    host, port = server.url.removeprefix("http://").split(":")
    for part in (
        b"POST /api/v1/lineage HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 500\r\n\r\n{",
        b"GARBAGE\r\n\r\n",
    ):
        with socket.create_connection((host, int(port))) as sock:
            sock.sendall(part)
    assert client.post("/api/v1/lineage", json=event("still here")).status_code == 201


def test_a_read_only_server_takes_nothing(folder: Path, client: httpx.Client) -> None:
    with serving(f"sqlite:///{folder}/x.db", "--read-only", "--base-path", "/lineage") as other:
        refused = httpx.post(f"{other.url}/api/v1/lineage", json=event("no"), timeout=60)
        assert refused.status_code in (404, 405)
        assert set(refused.json()) == {"code", "message", "correlation_id"}
        asked = httpx.get(f"{other.url}/hw/v1/graph", params={"node": "gold/revenue_by_day"}, timeout=60)
        assert asked.status_code == 200
        assert other.url.endswith("/lineage")


def test_a_taken_port_is_told_with_exit_4(server: Server, tmp_path: Path) -> None:
    import subprocess
    import sys

    port = server.url.rsplit(":", 1)[1]
    done = subprocess.run(
        [sys.executable, "-m", "headwater", "serve", "--port", port, "--store", f"sqlite:///{tmp_path}/y.db"],
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert done.returncode == 4
    assert "--port" in done.stderr


def test_events_that_were_answered_survive_a_stop(tmp_path: Path) -> None:
    """SIGTERM while clients send: what got its 201 is there."""
    taken: list[str] = []
    with serving(f"sqlite:///{tmp_path}/x.db") as own:

        def send(worker: int) -> None:
            with httpx.Client(base_url=own.url, timeout=30) as sender:
                for number in range(10_000):
                    try:
                        answer = sender.post("/api/v1/lineage", json=event(f"stop {worker} {number}"))
                    except httpx.TransportError:
                        return
                    if answer.status_code != 201:
                        return
                    taken.append(f"test\nstop {worker} {number}")

        threads = [threading.Thread(target=send, args=(worker,)) for worker in range(4)]
        for thread in threads:
            thread.start()
        while len(taken) < 50:
            pass
        own.process.terminate()
        for thread in threads:
            thread.join()
        assert own.process.wait(20) == 0
    assert [each.name for each in tmp_path.glob("x.db*")] == ["x.db"], "the store was closed"
    store = open_store(f"sqlite:///{tmp_path}/x.db")
    assert {(name,) for name in taken} <= set(store.dump()["jobs"])
    store.close()


def metrics(client: httpx.Client) -> dict[str, float]:
    text = client.get("/metrics")
    assert text.status_code == 200
    assert text.headers["Content-Type"].startswith("text/plain; version=")
    families = text_string_to_metric_families(text.text)
    return {
        f"{each.name}{sorted(each.labels.items())}": each.value
        for family in families
        for each in family.samples
    }


def test_metrics_tell_what_became_of_events_and_requests(folder: Path) -> None:
    transport = SpoolTransport(f"spool://{folder}/spool", to="http://me:pa55@localhost:1", drain="off")
    transport.send([json.dumps(event("waiting")).encode()] * 2)
    here = {**LIMITS, "HEADWATER_SPOOL": f"{folder}/spool"}
    with serving(f"sqlite:///{folder}/metrics.db", environment=here) as started, httpx.Client(base_url=started.url, timeout=30) as client:  # fmt: skip
        before = metrics(client)
        assert before["headwater_events_total[('outcome', 'refused')]"] == 0
        client.post("/api/v1/lineage", json=event("once"))
        bad = {"eventTime": "2026-01-01T00:00:00Z", "run": {}, "job": {"namespace": "a", "name": "b"}}
        client.post("/api/v1/lineage/batch", json=[event("once"), event("twice"), bad, bad])
        client.post("/api/v1/lineage", content=b"{", headers=JSON)
        client.post("/api/v1/lineage", content=b'"' + b"x" * 8_000_001 + b'"', headers=JSON)
        client.get("/api/v1/nowhere/at/all")
        client.get("/hw/v1/show", params={"node": "secret-name"})
        seen = metrics(client)
    told = {
        outcome: seen[f"headwater_events_total[('outcome', '{outcome}')]"]
        for outcome in ("accepted", "duplicate", "refused")
    }
    assert told == {"accepted": 2, "duplicate": 1, "refused": 4}
    refused = {k: v for k, v in seen.items() if k.startswith("headwater_events_refused_total")}
    assert refused == {
        "headwater_events_refused_total[('reason', 'run.runId')]": 2,
        "headwater_events_refused_total[('reason', 'no_event')]": 1,
        "headwater_events_refused_total[('reason', 'too_large')]": 1,
    }
    assert seen["headwater_batch_events_sum[]"] == 7
    took = {k: v for k, v in seen.items() if k.startswith("headwater_request_duration_seconds_count")}
    assert sum(v for k, v in took.items() if "'/api/v1/lineage/batch'" in k and "'207'" in k) == 1
    assert sum(v for k, v in took.items() if "'/api/v1/lineage'" in k and "'201'" in k) == 1
    assert not [
        k for k in seen if "nowhere" in k or "secret-name" in k or "pa55" in k
    ]  # few labels, and no secrets
    assert [v for k, v in seen.items() if k.startswith("headwater_spool_waiting_events")] == [2]
