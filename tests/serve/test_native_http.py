"""What /hw/v1 answers, from real server processes: live changes, the raw log, edits, alias rules, and bad values."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import httpx
import pytest

from headwater.cli.demo import recorded
from headwater.ingest import read_entry
from serving import Server, serving

LINES = list(recorded())
JSON = {"Content-Type": "application/json"}


def event(number: int, kind: str = "COMPLETE", namespace: str = "live") -> dict[str, Any]:
    return {
        "eventType": kind,
        "eventTime": "2026-05-01T00:00:00Z",
        "run": {"runId": f"00000000-0000-7000-8000-{number:012d}"},
        "job": {"namespace": namespace, "name": f"job_{number}"},
    }


@pytest.fixture
def server(store_url: str) -> Iterator[Server]:
    with serving(store_url) as started:
        yield started


@pytest.fixture
def client(server: Server) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=server.url, timeout=30) as made:
        made.post("/api/v1/lineage/batch", content=b"[" + b",".join(LINES) + b"]", headers=JSON)
        yield made


class Follower:
    """A client of server-sent events, in a thread."""

    def __init__(self, url: str, headers: dict[str, str] | None = None, **parameters: Any) -> None:
        self.seen: list[tuple[str, str, str]] = []
        self.greeted = threading.Event()
        self._arguments = (f"{url}/hw/v1/changes", parameters, headers or {})
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)  # it ends with the server
        self._thread.start()

    def _run(self) -> None:
        url, parameters, headers = self._arguments
        try:
            with httpx.stream("GET", url, params=parameters, headers=headers, timeout=60) as answer:
                assert answer.status_code == 200, answer.read()
                message: dict[str, str] = {}
                for line in answer.iter_lines():
                    name, _, value = line.partition(": ")
                    if name:
                        message[name] = value
                        continue
                    if message.get("event") == "hello":
                        self.greeted.set()
                    elif message.get("event") != "beat":
                        self.seen.append((message["id"], message["event"], message["data"]))
                    message = {}
                    if self._stop.is_set():
                        return
        except httpx.HTTPError:
            pass  # the server went

    def stop(self) -> list[dict[str, Any]]:
        self._stop.set()
        return [json.loads(data) for _, _, data in self.seen]


@contextmanager
def following(url: str, headers: dict[str, str] | None = None, **parameters: Any) -> Iterator[Follower]:
    made = Follower(url, headers, **parameters)
    try:
        assert made.greeted.wait(20)
        yield made
    finally:
        made.stop()


def until(true: Callable[[], bool]) -> None:
    end = time.monotonic() + 20
    while not true():
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.05)


def test_changes_are_told_as_they_come_also_of_another_server(server: Server, store_url: str) -> None:
    with (
        serving(store_url) as other,
        following(server.url) as every,
        following(other.url, state="FAIL", namespace="live") as failed,
    ):
        for number, kind in enumerate(("START", "FAIL", "COMPLETE")):
            one = (server, other)[number % 2]
            assert httpx.post(f"{one.url}/api/v1/lineage", json=event(number, kind)).status_code == 201
        httpx.post(f"{server.url}/api/v1/lineage", json=event(9, "FAIL", namespace="elsewhere"))
        until(lambda: len(every.seen) == 4)
        until(lambda: len(failed.seen) == 1)
    assert [each["type"] for each in every.stop()] == ["START", "FAIL", "COMPLETE", "FAIL"]
    (told,) = failed.stop()
    assert (told["job"], told["run"]) == ("job:live:job_1", event(1)["run"]["runId"])
    numbers = [int(number) for number, _, _ in every.seen]
    assert numbers == sorted(numbers)


def test_a_client_that_was_away_goes_on_where_it_was(client: httpx.Client, server: Server) -> None:
    with following(server.url, after=0) as first:
        until(lambda: len(first.seen) == len(LINES))
    last = first.seen[9][0]
    with following(server.url, headers={"Last-Event-ID": last}) as again:
        until(lambda: len(again.seen) == len(LINES) - 10)
    assert again.seen == first.seen[10:]


def test_a_client_that_followed_a_longer_log_is_told_from_now_on(
    client: httpx.Client, server: Server
) -> None:
    with following(server.url, headers={"Last-Event-ID": "1000000"}) as back, following(server.url) as new:
        assert client.post("/api/v1/lineage", json=event(1)).status_code == 201
        until(lambda: len(new.seen) == 1)
        until(lambda: len(back.seen) == 1)
    assert back.seen == new.seen


def test_who_follows_holds_nobody_up(client: httpx.Client, server: Server) -> None:
    """A follower that reads nothing: events are taken all the same, and the server stops at once when it is told to."""
    import socket

    host, port = server.url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port))) as deaf:
        deaf.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        deaf.sendall(f"GET /hw/v1/changes?after=0 HTTP/1.1\r\nHost: {host}\r\n\r\n".encode())
        for number in range(50):
            assert client.post("/api/v1/lineage", json=event(number)).status_code == 201
        server.process.terminate()
        server.process.wait(20)


def test_the_log_is_exported_whole_packed_or_not_and_imported_again(client: httpx.Client) -> None:
    bodies = {
        packing: client.get("/hw/v1/export", headers={"Accept-Encoding": packing})
        for packing in ("identity", "gzip", "zstd")
    }
    assert [each.headers.get("content-encoding") for each in bodies.values()] == [None, "gzip", "zstd"]
    assert len({each.content for each in bodies.values()}) == 1
    lines = bodies["zstd"].content.splitlines()
    assert {read_entry(line).digest for line in lines} == {read_entry(line).digest for line in LINES}
    assert client.get("/hw/v1/export", params={"after": len(LINES)}).content == b""
    page = client.get("/hw/v1/events", params={"limit": 5}).json()
    rest = client.get("/hw/v1/events", params={"limit": 1000, "cursor": page["next"]}).json()
    assert len(page["events"]) + len(rest["events"]) == len(LINES)
    assert rest["next"] is None


def test_questions_are_answered(client: httpx.Client) -> None:
    def ask(path: str, **parameters: Any) -> Any:
        answer = client.get(f"/hw/v1/{path}", params=parameters)
        assert answer.status_code == 200, answer.text
        return answer.json()

    assert [each["distance"] for each in ask("impact", node="bronze/orders")["datasets"]] == [1, 2, 3]
    assert ask("diff", **{"from": "2026-01-01", "to": "2026-12-31"})["edges"]["removed"] == []
    (failed,) = ask("runs", state="FAIL", job="job:checks:gold.revenue_by_day", since="2026-01-01")
    graph = ask(f"runs/{failed['id']}/graph", direction="up")
    assert len([each for each in graph["nodes"] if each["type"] == "RUN"]) == 6
    assert ask("schemas", node="bronze/orders")["versions"][0]["current"]
    for granularity in ("all", "dataset", "job", "application", "run"):
        assert ask("graph", node="gold/revenue_by_day", granularity=granularity)["edges"]
    assert ask("search", q="amount")[0]["matches"][0]["in"] == "column"
    assert ask("status")["search"] in ("fts5", "gin")


def test_edits_and_rules_hold_at_once_and_are_in_the_log(client: httpx.Client) -> None:
    told = {
        "node": "bronze/orders",
        "description": "Every order",
        "owners": ["team-shop"],
        "add_tags": ["core"],
    }
    assert client.patch("/hw/v1/nodes", json=told).json()["description"] == "Every order"
    assert [
        each["name"] for each in client.get("/hw/v1/search", params={"q": "", "owner": "team-shop"}).json()
    ] == ["bronze/orders"]
    rule = {"namespace": "kafka://{b}:9092", "to_namespace": "kafka://prod"}
    assert not client.put("/hw/v1/aliases", json=rule, params={"dry_run": "true"}).json()["applied"]
    assert client.get("/hw/v1/aliases").json() == []
    assert client.put("/hw/v1/aliases", json=rule).json()["counts"]["renames"] == 1
    assert client.get("/hw/v1/aliases").json() == [rule]
    found = client.get("/hw/v1/graph", params={"node": "bronze/orders"}).json()
    assert "kafka://prod" in {each["namespace"] for each in found["nodes"]}
    assert client.delete("/hw/v1/aliases", params={"namespace": "kafka://other"}).status_code == 404
    assert client.delete("/hw/v1/aliases", params={"namespace": rule["namespace"]}).json()["applied"]
    assert client.get("/hw/v1/aliases").json() == []
    log = client.get("/hw/v1/events", params={"kind": "command"}).json()["events"]
    assert [each["command"] for each in log] == ["say", "tag", "alias", "alias"]


HUGE = str(10**30)
BAD: list[tuple[str, dict[str, str]]] = [
    ("graph", {"node": "bronze/orders", "depth": "-1"}),
    ("graph", {"node": "bronze/orders", "depth": HUGE}),
    ("graph", {"node": "bronze/orders", "granularity": "atom"}),
    ("graph", {"node": "bronze/orders", "at": "yesterday"}),
    ("graph", {"node": "a\0b"}),
    ("impact", {"node": "bronze/orders", "at": "9" * 60}),
    ("impact", {"node": "job:spark:revenue", "column": "x"}),
    ("diff", {}),
    ("diff", {"from": "now", "to": "2020-01-01"}),
    ("diff", {"from": "x\0"}),
    ("runs", {"state": "LATE"}),
    ("runs", {"limit": "0"}),
    ("runs", {"job": "a\0b"}),
    ("runs/a%00b/graph", {}),
    ("runs/nope/graph", {"depth": HUGE}),
    ("schemas", {"node": "job:spark:revenue"}),
    ("search", {"q": "x", "limit": HUGE}),
    ("events", {"cursor": "1.2.3"}),
    ("events", {"cursor": HUGE + ".1"}),
    ("events", {"job": "a\0b"}),
    ("export", {"after": HUGE}),
    ("changes", {"after": "-1"}),
]


@pytest.mark.parametrize("store_url", ["sqlite", "postgresql"], indirect=True)
def test_bad_values_are_4xx(client: httpx.Client) -> None:
    for path, parameters in BAD:
        answer = client.get(f"/hw/v1/{path}", params=parameters)
        assert 400 <= answer.status_code < 500, (path, parameters, answer.status_code)
        assert answer.json()["status"] == answer.status_code
    assert client.get("/hw/v1/events", params={"run": "a\0b"}).status_code == 400
    assert client.get("/hw/v1/search", params={"q": "a\0b", "tag": "\0"}).status_code == 400
    assert client.get("/hw/v1/changes", headers={"Last-Event-ID": "x"}).status_code == 400
    for body in (
        {},
        {"node": "bronze/orders"},
        {"node": "bronze/orders", "description": "\0"},
        {"node": 5},
        {"node": "a\0b", "hidden": True},
    ):
        assert 400 <= client.patch("/hw/v1/nodes", json=body).status_code < 500
    for body in (
        {},
        {"namespace": "a"},
        {"namespace": "{x}", "to_namespace": "{y}"},
        {"namespace": "a\0", "to_name": "b"},
    ):
        assert 400 <= client.put("/hw/v1/aliases", json=body).status_code < 500
    assert client.delete("/hw/v1/aliases").status_code == 400


def test_a_word_that_is_none_of_a_few_is_told_with_those(client: httpx.Client) -> None:
    answer = client.get("/hw/v1/graph", params={"node": "bronze/orders", "granularity": "atom"})
    assert answer.status_code == 400
    said = "granularity: Invalid enum value 'atom': write one of all, dataset, job, application, run"
    assert answer.json()["detail"] == said


def test_a_column_that_its_dataset_never_had_cannot_be_described(client: httpx.Client) -> None:
    column = client.get("/hw/v1/schemas", params={"node": "bronze/orders"}).json()["versions"][0]["fields"][
        0
    ]["name"]
    for name, status in ((column, 200), (f"{column}s", 404)):
        answer = client.patch(
            "/hw/v1/nodes", json={"node": "bronze/orders", "column": name, "add_tags": ["pii"]}
        )
        assert answer.status_code == status, answer.text


def test_a_read_only_server_takes_no_edits(tmp_path: Any) -> None:
    with serving(f"sqlite:///{tmp_path}/x.db", "--read-only") as server:
        assert httpx.patch(f"{server.url}/hw/v1/nodes", json={"node": "x"}).status_code in (404, 405)
        assert httpx.put(f"{server.url}/hw/v1/aliases", json={}).status_code in (404, 405)
        assert httpx.get(f"{server.url}/hw/v1/aliases").json() == []


def test_runs_of_a_dataset_are_those_whose_events_name_it(client: httpx.Client) -> None:
    named: dict[str, set[str]] = {}
    for line in LINES:
        told = json.loads(line)
        for each in (*told.get("inputs", ()), *told.get("outputs", ())):
            node = f"dataset:{each['namespace']}:{each['name']}"
            named.setdefault(node, set()).add(told["run"]["runId"])
    assert len(named) > 5
    found: dict[str, set[str]] = {}
    for node in named:
        answer = client.get("/hw/v1/runs", params={"dataset": node, "limit": 1000})
        assert answer.status_code == 200, answer.text
        found[node] = {each["id"] for each in answer.json()}
        assert found[node] >= named[node]  # several names of one dataset are asked for by any of them
    assert set().union(*found.values()) == set().union(*named.values())
    failed = client.get("/hw/v1/runs", params={"dataset": "gold/revenue_by_day", "state": "FAIL"}).json()
    assert [each["job"] for each in failed] == ["job:checks:gold.revenue_by_day"]
    wrong = client.get("/hw/v1/runs", params={"dataset": "job:spark:revenue"})
    assert (wrong.status_code, "not a dataset" in wrong.text) == (400, True)


def test_an_entry_of_the_log_is_found_by_its_number(client: httpx.Client) -> None:
    pages = client.get("/hw/v1/events", params={"limit": 1000}).json()["events"]
    for each in pages:
        (one,) = client.get("/hw/v1/events", params={"number": each["number"]}).json()["events"]
        assert one == each
    beyond = max(each["number"] for each in pages) + 1
    assert client.get("/hw/v1/events", params={"number": beyond}).json() == {"events": [], "next": None}
    assert client.get("/hw/v1/events", params={"number": 0}).status_code == 400
