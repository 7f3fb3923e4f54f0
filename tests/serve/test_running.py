"""The server as those meet it who run it: readiness, stopping, logs, keys, the doctor, large events."""

from __future__ import annotations

import datetime as dt
import json
import os
import re
import ssl
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import closing
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any
from uuid import UUID

import httpx
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from litestar.testing import TestClient
from sqlalchemy import text

from headwater import keys
from headwater.errors import ConfigError, NotFound
from headwater.facts.commands import SetTag
from headwater.ingest import command, ingest_all
from headwater.query.audit import audit
from headwater.serve import Serving, create_app
from headwater.serve.auth import check_keys
from headwater.serve.oidc import Oidc
from headwater.store import Store, open_store
from serving import Server, serving


def event(name: str, **more: Any) -> dict[str, Any]:
    return {"eventTime": "2026-01-01T00:00:00Z", "job": {"namespace": "test", "name": name}, **more}


@pytest.fixture
def store(store_url: str) -> Iterator[Store]:
    made = open_store(store_url)
    yield made
    made.close()


def headwater(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "headwater", *arguments],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        env={**os.environ, **environment},
    )


# --- keys, on each store


def test_a_key_from_its_making_to_its_end(store: Store) -> None:
    made, key = keys.create(store, "airflow", ["ingest", "ingest"], by="me", rate=5)
    assert (made.scopes, made.rate) == (("ingest",), 5)
    found = keys.find(store, key)
    assert found == made
    assert keys.find(store, key[:-1] + "_") is None
    with pytest.raises(ConfigError, match="in use"):
        keys.create(store, "airflow", ["read"], by="me")
    keys.note_use(store, made)
    assert keys.listed(store)[0].used_at is not None
    new, other = keys.rotate(store, "airflow", by="you")
    assert (new.name, new.scopes, new.rate) == ("airflow", ("ingest",), 5)
    assert other != key
    assert keys.find(store, key).state(time.time_ns() // 1000) == "revoked"  # type: ignore[union-attr]
    keys.revoke(store, new.id, by="you")
    with pytest.raises(NotFound):
        keys.revoke(store, "airflow", by="you")
    keys.create(store, "airflow", ["read"], by="me")
    trail = audit(store)
    assert [(each["what"], each["by"]) for each in trail] == [
        ("key_create", "me"),
        ("key_revoke", "you"),
        ("key_rotate", "you"),
        ("key_create", "me"),
    ]


def test_a_rotated_key_lives_as_long_as_the_one_before(store: Store) -> None:
    now = time.time_ns() // 1000
    old, _ = keys.create(store, "x", ["read"], by="me", expires_at=now + keys.lifetime("90d"))
    new, _ = keys.rotate(store, "x", by="me")
    assert new.expires_at is not None
    assert old.expires_at is not None
    assert new.expires_at - new.created_at == old.expires_at - old.created_at


@pytest.mark.parametrize(
    ("name", "scopes", "more"),
    [
        ("", ["read"], {}),
        ("a b", ["read"], {}),
        ("a\nb", ["read"], {}),
        ("x", [], {}),
        ("x", ["root"], {}),
        ("x", ["read"], {"rate": 0}),
        ("x", ["read"], {"expires_at": 1}),
    ],
)
def test_a_key_that_makes_no_sense_is_refused(name: str, scopes: list[str], more: dict[str, Any]) -> None:
    made = open_store("memory:")
    with pytest.raises(ConfigError):
        keys.create(made, name, scopes, by="me", **more)
    assert keys.listed(made) == []
    made.close()


def test_who_did_what_is_told_newest_first(store: Store) -> None:
    for number in range(450):
        said = SetTag(
            at=number,
            by="fred" if number % 2 else "ann",
            kind="job",
            namespace="a",
            name=f"j{number}",
            tag="x",
        )
        assert command(store, said)
    keys.create(store, "late", ["read"], by="ann")
    trail = audit(store, limit=1000)
    assert len(trail) == 451
    assert trail[0]["what"] == "key_create"
    assert [each["detail"]["name"] for each in trail[1:]] == [f"j{number}" for number in reversed(range(450))]
    assert trail[1]["said_at"] == "1970-01-01T00:00:00.000449Z"
    assert {each["by"] for each in audit(store, by="fred", limit=1000)} == {"fred"}
    assert len(audit(store, by="fred", limit=1000)) == 225
    assert len(audit(store, limit=7)) == 7
    assert audit(store, since=time.time_ns() // 1000 + 10**9) == []


# --- starting


@pytest.mark.parametrize(
    ("serving_given", "needed"),
    [
        (Serving(), False),
        (Serving(host="localhost"), False),
        (Serving(host="::1"), False),
        (Serving(host="127.0.0.53"), False),
        (Serving(host="0.0.0.0"), True),
        (Serving(host="::"), True),
        (Serving(host="10.0.0.1"), True),
        (Serving(host="lineage.example.org"), True),
        (Serving(auth="on"), True),
        (Serving(host="0.0.0.0", auth="off"), False),
        (Serving(trusted_proxies=("127.0.0.1",)), True),
    ],
    ids=str,
)
def test_a_server_that_others_reach_needs_keys(serving_given: Serving, needed: bool) -> None:
    made = open_store("memory:")
    assert serving_given.needs_keys is needed
    if needed:
        with pytest.raises(ConfigError, match="headwater keys create"):
            check_keys(made, serving_given, Oidc())
        check_keys(made, serving_given, Oidc(issuer="https://x", audience="y"))
        keys.create(made, "me", ["admin"], by="me")
    check_keys(made, serving_given, Oidc())
    made.close()


def test_the_command_refuses_to_let_everyone_in_unasked(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/x.db"
    refused = headwater("serve", "--host", "0.0.0.0", "--port", "0", "--store", url)
    assert refused.returncode == 2
    assert "headwater keys create" in refused.stderr
    assert "--no-auth" in refused.stderr
    made = headwater("keys", "create", "me", "--scope", "admin", "--expires", "90d", "--store", url, "--json")
    key = json.loads(made.stdout)["key"]
    assert json.loads(headwater("keys", "list", "--store", url, "--json").stdout)[0]["state"] == "active"
    with serving(url, "--host", "0.0.0.0") as server:
        address = server.url.replace("0.0.0.0", "127.0.0.1")
        assert httpx.get(f"{address}/hw/v1/status").status_code == 401
        assert httpx.get(f"{address}/hw/v1/status", headers={"X-API-Key": key}).status_code == 200
        told = headwater("doctor", address, "--json")
        assert told.returncode == 1
        found = {each["what"]: each for each in json.loads(told.stdout)}
        assert (found["reaches"]["state"], found["auth"]["state"]) == ("ok", "broken")
        told = headwater("doctor", address, "--json", HEADWATER_API_KEY=key)
        found = {each["what"]: each for each in json.loads(told.stdout)}
        assert told.returncode == 0, told.stdout
        assert set(found) == {"reaches", "version", "latency", "clock", "ready", "auth", "room", "events"}
        assert {each["state"] for each in found.values()} <= {"ok", "warning"}
        trail = headwater("audit", "--url", address, "--json", HEADWATER_API_KEY=key)
        assert json.loads(trail.stdout)[0]["what"] == "key_create"
        assert headwater("audit", "--url", address).returncode == 4
        assert headwater("keys", "revoke", "me", "--store", url).returncode == 0
        until = time.monotonic() + 60
        while httpx.get(f"{address}/hw/v1/status", headers={"X-API-Key": key}).status_code != 401:
            assert time.monotonic() < until
            time.sleep(0.1)
    opened = open_store(url)
    assert opened.counts()["log"] == 0  # the doctor left nothing behind
    opened.close()


# --- the doctor


def test_a_server_that_is_not_there_is_exit_4() -> None:
    told = headwater("doctor", "http://127.0.0.1:9", "--json")
    assert told.returncode == 4
    assert json.loads(told.stdout)[-1]["what"] == "reaches"
    assert headwater("doctor", "nonsense").returncode == 2  # a slip, not a server that is away


def test_the_doctor_waits_where_a_server_says_that_it_asks_too_often(tmp_path: Path) -> None:
    few = {"HEADWATER_SERVE__RATE_LIMIT": "2", "HEADWATER_SERVE__RATE_BURST": "1"}
    with serving(f"sqlite:///{tmp_path}/s.db", environment=few) as server:
        told = headwater("doctor", server.url, "--json")
        found = {each["what"]: each["state"] for each in json.loads(told.stdout)}
        assert told.returncode == 0, told.stdout
        assert {found[each] for each in ("reaches", "version", "ready", "auth", "events")} == {"ok"}


def test_the_doctor_looks_at_clock_and_certificate(tmp_path: Path) -> None:
    class Elsewhere(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response_only(200 if self.path == "/health" else 503)
            self.send_header("Date", "Thu, 01 Jan 2026 00:00:00 GMT")
            self.end_headers()
            self.wfile.write(b'{"service": "headwater", "version": "0.0.1", "reason": "the disk is full"}')

        def do_POST(self) -> None:
            self.do_GET()

        def log_message(self, *_: Any) -> None: ...

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "localhost")])
    now = dt.datetime.now(dt.timezone.utc)
    made = x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(key.public_key())
    made = (
        made.serial_number(1)
        .not_valid_before(now - dt.timedelta(days=1))
        .not_valid_after(now + dt.timedelta(days=5, hours=1))
    )
    made = made.add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), critical=False)
    made = made.add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
    pem = tmp_path / "cert.pem"
    pem.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
        + made.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)
    )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pem)
    server = HTTPServer(("127.0.0.1", 0), Elsewhere)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        address = f"https://localhost:{server.server_port}"
        told = headwater("doctor", address, "--json", SSL_CERT_FILE=str(pem))
        found = {each["what"]: each for each in json.loads(told.stdout)}
        assert found["TLS"]["state"] == "warning"
        assert "5 more days" in found["TLS"]["detail"]
        assert found["clock"]["state"] == "warning"
        assert "0.0.1" in found["version"]["detail"]
        assert (found["ready"]["state"], found["ready"]["detail"]) == ("broken", "the disk is full")
        assert told.returncode == 1
        told = headwater("doctor", address, "--json")  # nobody vouches for it
        assert told.returncode == 4
        assert json.loads(told.stdout)[0]["state"] == "broken"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


# --- readiness tells the truth


def test_not_ready_when_the_store_cannot_be_written_or_read(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("headwater.serve.health._FRESH", 0.0)
    made = open_store(f"sqlite:///{tmp_path}/x.db")
    with TestClient(create_app(made)) as client:
        assert client.get("/ready").json()["status"] == "ready"
        with made.writing() as connection:  # as a full disk or a file that may not be written would
            connection.execute(
                text("CREATE TRIGGER no BEFORE INSERT ON meta BEGIN SELECT raise(FAIL, 'disk full'); END")
            )
        answer = client.get("/ready")
        assert answer.status_code == 503
        assert "disk full" in answer.json()["reason"]
        assert client.get("/health").status_code == 200
        with made.writing() as connection:
            connection.execute(text("DROP TRIGGER no"))
        assert client.get("/ready").status_code == 200
        monkeypatch.setattr("headwater.serve.health._SECONDS", 0.05)
        with made._lock:  # type: ignore[attr-defined]  # something keeps the writer
            assert client.get("/ready").status_code == 503
        client.app.state.probe.stopping = True
        assert client.get("/ready").json()["reason"] == "the server is shutting down"
    made.close()


def test_a_stopping_server_says_so_and_finishes_what_it_has(tmp_path: Path) -> None:
    """SIGTERM under load: every 2xx is in the store, and every other request heard a clean no or found no one."""
    taken: list[str] = []
    others: list[Any] = []
    environment = {"HEADWATER_SERVE__DRAIN_SECONDS": "1"}
    with serving(f"sqlite:///{tmp_path}/x.db", environment=environment) as own:

        def send(worker: int) -> None:
            with httpx.Client(base_url=own.url, timeout=60) as sender:
                for number in range(100_000):
                    name = f"stop {worker} {number}"
                    try:
                        answer = sender.post("/api/v1/lineage", json=event(name))
                    except httpx.TransportError as fault:
                        others.append(type(fault))
                        return
                    if answer.status_code == 201:
                        taken.append(f"test\n{name}")
                    else:
                        others.append((answer.status_code, answer.headers.get("Retry-After")))
                        return

        threads = [threading.Thread(target=send, args=(worker,)) for worker in range(8)]
        for thread in threads:
            thread.start()
        until = time.monotonic() + 60
        while len(taken) < 50 and time.monotonic() < until:
            time.sleep(0.01)
        own.process.terminate()
        seen = set()
        while own.process.poll() is None and 503 not in seen:
            try:
                seen.add(httpx.get(f"{own.url}/ready", timeout=30).status_code)
            except httpx.TransportError:
                break
        assert 503 in seen  # before it stops taking connections, balancers can see that it will
        for thread in threads:
            thread.join()
        assert own.process.wait(60) == 0
    assert len(others) == 8
    assert all(
        each == (503, "1") or (isinstance(each, type) and issubclass(each, httpx.TransportError))
        for each in others
    )
    opened = open_store(f"sqlite:///{tmp_path}/x.db")
    assert {(name,) for name in taken} <= set(opened.dump()["jobs"])
    assert len(opened.dump()["jobs"]) <= len(taken) + 8  # at most what was on its way to each
    opened.close()


def test_a_body_that_arrives_while_the_server_stops_is_finished(tmp_path: Path) -> None:
    with serving(f"sqlite:///{tmp_path}/x.db") as own:
        assert httpx.get(f"{own.url}/health", timeout=60).status_code == 200  # it listens sooner than it runs
        ready, go = threading.Event(), threading.Event()

        def body() -> Iterator[bytes]:
            whole = json.dumps(event("half sent")).encode()
            yield whole[:20]
            ready.set()
            go.wait(30)
            yield whole[20:]

        answers: list[int] = []

        def send() -> None:
            headers = {"Content-Type": "application/json"}
            answers.append(
                httpx.post(
                    f"{own.url}/api/v1/lineage", content=body(), headers=headers, timeout=60
                ).status_code
            )

        thread = threading.Thread(target=send)
        thread.start()
        ready.wait(30)
        time.sleep(0.3)
        own.process.terminate()
        time.sleep(0.5)
        go.set()
        thread.join()
        own.process.wait(60)
    assert answers == [201]
    opened = open_store(f"sqlite:///{tmp_path}/x.db")
    assert ("test\nhalf sent",) in opened.dump()["jobs"]
    opened.close()


# --- correlation ids


@pytest.mark.parametrize(
    ("given", "kept"), [("abc-123", True), ("a" * 129, False), ("a b", False), ("", False)]
)
def test_a_correlation_id_comes_back(given: str, kept: bool) -> None:
    made = open_store("memory:")
    with TestClient(create_app(made)) as client:
        for path in ("/health", "/nowhere", "/hw/v1/show?node=none", "/hw/v1/graph"):
            answer = client.get(path, headers={"X-Correlation-ID": given})
            told = answer.headers["X-Correlation-ID"]
            assert (told == given) is kept
            assert re.fullmatch(r"[\w.-]{1,128}", told)
            if answer.status_code >= 400:
                assert answer.json()["correlation_id"] == told
    made.close()


# --- metrics


def test_metrics_tell_of_what_waits_and_of_room(store: Store) -> None:
    with TestClient(create_app(store)) as client:
        client.post("/api/v1/lineage", json=event("counted"))
        told = dict(
            line.rsplit(" ", 1)
            for line in client.get("/metrics").text.splitlines()
            if line.startswith("headwater_")
        )
    assert float(told["headwater_store_bytes"]) > 10_000
    assert ("headwater_store_free_bytes" in told) is store.url.startswith(
        "sqlite"
    )  # a database elsewhere cannot tell
    for name in ("headwater_intake_requests", "headwater_intake_bytes", "headwater_arriving_bytes"):
        assert float(told[name]) == 0


# --- what would become of an event


def test_an_event_can_be_looked_at_without_being_kept(store: Store) -> None:
    with TestClient(create_app(store)) as client:
        answer = client.post(
            "/hw/v1/check", json=event("x", outputs=[{"namespace": "s3://lake", "name": "t"}])
        )
        assert answer.status_code == 200
        assert answer.json()["rows"]["jobs"] == 1
        assert answer.json()["redacted"] is False
        assert client.post("/hw/v1/check", json={"eventTime": 5}).status_code == 422
    assert store.counts()["log"] == store.counts()["rejects"] == 0


# --- large events


def plan(size: int) -> bytes:
    """An event with a Spark plan of so many bytes: nodes in nodes, as Spark writes them."""
    node = {
        "class": "org.apache.spark.sql.catalyst.plans.logical.Project",
        "num-children": 1,
        "projectList": [
            [
                {
                    "class": "org.apache.spark.sql.catalyst.expressions.AttributeReference",
                    "name": f"column_{n}",
                    "dataType": "string",
                    "nullable": True,
                    "exprId": {"id": n, "jvmId": "4a8c"},
                }
            ]
            for n in range(50)
        ],
    }
    one = len(json.dumps(node)) + 2
    facet = {"_producer": "p", "_schemaURL": "s", "plan": [node] * (size // one)}
    made = event(
        "large",
        eventType="COMPLETE",
        run={"runId": "3f5e83fa-3480-44ff-99c5-ff943904e5e8", "facets": {"spark.logicalPlan": facet}},
    )
    return json.dumps(made).encode()


def peak(server: Server) -> int:
    told = Path(f"/proc/{server.process.pid}/status").read_text()
    return int(re.search(r"VmHWM:\s+(\d+) kB", told)[1]) * 1024  # type: ignore[index]


def test_an_idle_connection_is_kept_for_whoever_comes_back(tmp_path: Path) -> None:
    """A proxy keeps its connections for a minute: one that is closed before costs it a request."""
    with serving(f"sqlite:///{tmp_path}/x.db") as server:
        host, port = server.url.removeprefix("http://").split(":")
        with closing(HTTPConnection(host, int(port), timeout=30)) as connection:
            for pause in (
                0,
                8,
            ):  # after five seconds uvicorn would have closed it, had nobody told it otherwise
                time.sleep(pause)
                connection.request("GET", "/ping")
                assert connection.getresponse().read() == b"pong"
                assert connection.sock is not None, "it was to be closed"


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs /proc")
def test_a_large_event_costs_a_bounded_many_times_its_size(tmp_path: Path) -> None:
    large = plan(20_000_000)
    assert 19_000_000 < len(large) < 21_000_000
    with serving(f"sqlite:///{tmp_path}/x.db", fresh=True) as server:
        headers = {"Content-Type": "application/json"}
        assert (
            httpx.post(f"{server.url}/api/v1/lineage", content=plan(1_000), headers=headers).status_code
            == 201
        )
        idle = peak(server)
        assert (
            httpx.post(
                f"{server.url}/api/v1/lineage", content=large, headers=headers, timeout=300
            ).status_code
            == 201
        )
        used = peak(server) - idle
        for _ in range(3):
            assert (
                httpx.post(
                    f"{server.url}/api/v1/lineage", content=large, headers=headers, timeout=300
                ).status_code
                == 201
            )
        again = peak(server) - idle
        shown = httpx.get(f"{server.url}/hw/v1/show", params={"node": "job:test:large"}, timeout=300)
        assert shown.status_code == 200
    print(f"{used / len(large):.1f} times the event, {again / len(large):.1f} after four")
    assert used < 8 * len(large)
    assert again < 10 * len(large)  # nothing of it stays


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs /proc")
def test_a_hub_of_five_thousand_edges_is_answered_in_bounded_memory(store: Store, store_url: str) -> None:
    """As docs/graph.md says: cut and counted unless asked for whole, and less than 150 MB of the server's memory for all of it."""
    hub = {"namespace": "db", "name": "hub"}
    readers = (
        event(
            f"reader {number}",
            eventType="COMPLETE",
            run={"runId": str(UUID(int=number))},
            inputs=[hub],
            outputs=[{"namespace": "db", "name": f"out {number}"}],
        )
        for number in range(5_000)
    )
    for outcome in ingest_all(store, (json.dumps(each).encode() for each in readers)):
        assert not outcome.rejected
    node = {"node": "dataset:db:hub"}
    with serving(store_url, fresh=True) as server, httpx.Client(base_url=server.url, timeout=300) as client:
        assert client.get("/hw/v1/graph", params={"node": "dataset:db:out 7"}).status_code == 200
        idle = peak(server)
        cut = client.get("/hw/v1/graph", params=node).json()
        start = next(each for each in cut["nodes"] if each["id"] == "dataset:db:hub")
        assert (len(cut["nodes"]), cut["cut"], start["more"]) == (1_001, True, {"down": 4_500})
        whole = client.get("/hw/v1/graph", params={**node, "fan": 5_000, "limit": 10_001}).json()
        assert len(whole["edges"]) == 10_000
        assert len(client.get("/hw/v1/impact", params=node).json()["datasets"]) == 5_000
        theirs = client.get("/api/v1/lineage", params={"nodeId": node["node"], "depth": 1}).json()
        assert "dataset:db:hub" in {each["id"] for each in theirs["graph"]}
        used = peak(server) - idle
    print(f"{used / 1e6:.0f} MB")
    assert used < 150_000_000
