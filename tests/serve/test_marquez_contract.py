"""Marquez's API as a real Marquez answered it: its recorded contract, and its own Python client."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import warnings
from collections.abc import Iterator
from typing import Any
from uuid import uuid4

import httpx
import pytest

from openlineage_schemas import SHARED
from serving import Server, serving

CONTRACT = SHARED / "acceptance" / "backend"
JUDGED = {
    # Marquez answers 500 there, and the script knows no other answer; ours must be no server error
    "ingest:no eventType": "an event without a type is one: OTHER",
    "read:run lineage upstream": "it works",
    "web:addJobTag child": "a child's tags are tags",
    "write:put tag without body": "a tag needs no description",
    "bad:put namespace without owner": "a clear 400",
    # the twenty newest events: Marquez counts the event that came twice twice, so its page ends one event earlier
    "web:getEvents": "the same event twice is one event",
}
BARE = {"dataset:{dsns}:bare.out", "job:{ns}:plain.bare"}
"""What a bare START wipes from Marquez's graph; the facts of the graph were recorded without it."""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with serving(f"sqlite:///{tmp_path_factory.mktemp('marquez')}/x.db") as started:
        yield started


def test_the_recorded_contract_holds(store_url: str) -> None:
    if not (CONTRACT / "contract.py").exists():
        pytest.skip(f"needs the recorded contract in {CONTRACT}")
    with serving(store_url) as server:
        command = [sys.executable, str(CONTRACT / "contract.py"), "--url", server.url]
        done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    lines = done.stdout.splitlines()
    counts = json.loads(lines[-1])
    assert counts["steps"] == 348, "the client group was left out: marquez-python and pytz are missing"
    failed: dict[str, list[str]] = {}
    for line in lines:
        if found := re.match(r"FAIL\s+((?:fact )?\S+.*?)  (.*)", line):
            failed.setdefault(found[1].split(": [")[0], []).append(found[2])
    facts = {name for name in failed if name.startswith("fact ")}
    assert {name for name in failed if not name.startswith("fact ")} == set(JUDGED), failed
    for name in JUDGED:
        for text in failed[name]:
            status = re.search(r"status (\d+), expected 500", text)
            assert name == "web:getEvents" or (status is not None and int(status[1]) < 500), (name, text)
    assert all(re.match(r"fact lineage of a (job|dataset): ", name) for name in facts), facts
    quirks = [line for line in lines if line.startswith("quirk") and ": 500  (Marquez" in line]
    assert not quirks, "a strange event made another call fail"


@pytest.mark.parametrize("start", ["job:{ns}:etl.orders", "dataset:{dsns}:dw.orders"])
def test_the_recorded_graph_holds_but_for_what_a_bare_start_wiped(server: Server, start: str) -> None:
    """The facts that the script compares whole, compared with what Marquez lost put back."""
    shapes = CONTRACT / "marquez_shapes.json"
    if not shapes.exists():
        pytest.skip(f"needs the recorded contract in {CONTRACT}")
    facts = json.loads(shapes.read_text())["facts"]
    ns = f"g{uuid4().hex[:8]}"
    names = {"ns": ns, "dsns": f"postgres://{ns}:5432"}
    kind = start.partition(":")[0]
    edges = {tuple(edge) for edge in facts[f"lineage of a {kind}: out edges"]}
    edges |= {
        ("dataset:{dsns}:raw.orders", "job:{ns}:plain.bare"),
        ("job:{ns}:plain.bare", "dataset:{dsns}:bare.out"),
    }
    with httpx.Client(base_url=server.url, timeout=30) as client:
        for number, job in enumerate(
            sorted({end for edge in edges for end in edge if end.startswith("job:")})
        ):
            io = {
                "inputs": [origin for origin, end in edges if end == job],
                "outputs": [end for origin, end in edges if origin == job],
            }
            _post(client, names, job, f"2026-02-01T00:{number:02d}:00Z", io)
            if job.endswith("bare"):
                _post(client, names, job, "2026-02-01T01:00:00Z", {}, "START")
        node = start.format(**names)
        graph = client.get("/api/v1/lineage", params={"nodeId": node, "depth": 20}).json()["graph"]
    for side in ("outEdges", "inEdges"):
        found = {(edge["origin"], edge["destination"]) for each in graph for edge in each[side]}
        assert found == {(a.format(**names), b.format(**names)) for a, b in edges}
    wanted = {*facts[f"lineage of a {kind}: node ids"], *BARE}
    assert [each["id"] for each in graph] == sorted(name.format(**names) for name in wanted)


def _post(
    client: httpx.Client,
    names: dict[str, str],
    job: str,
    at: str,
    io: dict[str, list[str]],
    kind: str = "COMPLETE",
) -> None:
    def split(node: str) -> dict[str, str]:
        _, key, name = re.match(r"(\w+):\{(\w+)\}:(.*)", node).groups()  # type: ignore[union-attr]
        return {"namespace": names[key], "name": name}

    body = {
        "eventType": kind,
        "eventTime": at,
        "producer": "https://example.org",
        "run": {"runId": str(uuid4())},
        "job": split(job),
        **{side: [split(each) for each in found] for side, found in io.items()},
    }
    assert client.post("/api/v1/lineage", json=body).status_code == 201


@pytest.fixture(scope="module")
def marquez(server: Server) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        client = pytest.importorskip("marquez_client", reason="needs marquez-python and pytz")
        return client.MarquezClient(server.url)


@pytest.mark.filterwarnings("ignore")
def test_marquez_python_works_unchanged(marquez: Any) -> None:
    from marquez_client.models import DatasetId, DatasetType, JobType

    ns = f"py://{uuid4().hex[:8]}/a:b"
    marquez.create_namespace(ns, "me", "ours")
    assert marquez.get_namespace(ns)["ownerName"] == "me"
    assert ns in {each["name"] for each in marquez.list_namespaces()["namespaces"]}
    marquez.create_source("warehouse", "POSTGRESQL", "jdbc:postgresql://localhost:5432/db", "d")
    assert marquez.get_source("warehouse")["type"] == "POSTGRESQL"
    fields = [{"name": "id", "type": "INTEGER", "tags": [], "description": "the key"}]
    marquez.create_dataset(
        ns, "a/b:c d", DatasetType.DB_TABLE, "p", "warehouse", "d", fields=fields, tags=["PII"]
    )
    made = marquez.get_dataset(ns, "a/b:c d")
    assert (made["tags"], made["fields"][0]["description"], made["sourceName"]) == (
        ["PII"],
        "the key",
        "warehouse",
    )
    marquez.create_dataset(
        ns, "topic", DatasetType.STREAM, "p", "warehouse", schema_location="http://example.org/s"
    )
    assert marquez.get_dataset(ns, "topic")["type"] == "STREAM"
    assert [each["name"] for each in marquez.list_datasets(ns)["datasets"]] == ["a/b:c d", "topic"]
    marquez.create_job(
        ns,
        "j/1",
        JobType.BATCH,
        "https://example.org/j",
        [DatasetId(ns, "a/b:c d")],
        [DatasetId(ns, "topic")],
    )
    job = marquez.get_job(ns, "j/1")
    assert (job["inputs"], job["outputs"]) == (
        [{"namespace": ns, "name": "a/b:c d"}],
        [{"namespace": ns, "name": "topic"}],
    )
    run = marquez.create_job_run(ns, "j/1", run_args={"day": "1"}, mark_as_running=True)["id"]
    assert marquez.get_job_run(run)["state"] == "RUNNING"
    assert marquez.mark_job_run_as_completed(run)["state"] == "COMPLETED"
    done = marquez.get_job_run(run)
    assert (done["args"], done["state"]) == ({"day": "1"}, "COMPLETED")
    assert marquez.get_job(ns, "j/1")["latestRun"]["id"] == run
    assert [each["id"] for each in marquez.list_job_runs(ns, "j/1")["runs"]] == [run]
    versions = marquez.list_dataset_versions(ns, "topic")["versions"]
    assert {each["version"] for each in versions} >= {marquez.get_dataset(ns, "topic")["currentVersion"]}
    for each in versions:
        assert marquez.get_dataset_version(ns, "topic", each["version"])["version"] == each["version"]
    assert marquez.tag_dataset(ns, "topic", "SENSITIVE")["tags"] == ["SENSITIVE"]
    assert marquez.tag_dataset_field(ns, "a/b:c d", "id", "secret")["fields"][0]["tags"] == ["SECRET"]
    marquez.create_tag("PYTAG", "from Python")
    assert {"name": "PYTAG", "description": "from Python"} in marquez.list_tags()["tags"]
    assert marquez.get_column_lineage_by_dataset(ns, "topic", 5, True)["graph"] == []


@pytest.mark.filterwarnings("ignore")
def test_marquez_python_lists_events_that_no_marquez_has(marquez: Any, server: Server) -> None:
    ns = f"ev://{uuid4().hex[:8]}"
    names = {"ns": ns}
    with httpx.Client(base_url=server.url, timeout=30) as client:
        _post(client, names, "job:{ns}:one", "2026-02-01T00:00:00Z", {})
    assert [each["job"]["name"] for each in marquez.list_events(ns)["events"]] == ["one"]
    assert marquez.list_events(limit=1)["totalCount"] >= 1
    assert marquez.list_events("no-such-namespace")["events"] == []
