"""Marquez's API where its recorded contract cannot look: orders, totals, times, hiding, names, many at once, replay."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from datetime import datetime, timedelta, timezone
from typing import Any
from urllib.parse import quote
from uuid import NAMESPACE_URL, uuid5

import pytest
from hypothesis import given
from hypothesis import strategies as st
from litestar.testing import TestClient

from headwater.ingest import ingest, replay
from headwater.query.marquez.stats import buckets
from headwater.serve import Serving, create_app
from headwater.store import Store, open_store
from streams import events, facet

V = "/api/v1"
DB = "postgres://db:5432"


def q(text: str) -> str:
    return quote(text, safe="")


def run(key: str) -> str:
    return str(uuid5(NAMESPACE_URL, key))


Datasets = tuple[Any, ...]


def told(
    kind: str,
    key: str,
    job: str,
    at: str,
    inputs: Datasets = (),
    outputs: Datasets = (),
    run_facets: dict[str, Any] | None = None,
    job_facets: dict[str, Any] | None = None,
) -> dict[str, Any]:
    """An event; a dataset is a name in one database, or a whole object."""

    def whole(each: Any) -> Any:
        return {"namespace": DB, "name": each} if isinstance(each, str) else each

    return {
        "eventType": kind,
        "eventTime": at if "T" in at else f"2026-02-01T{at}Z",
        "producer": "https://example.org",
        "schemaURL": "https://openlineage.io/spec/2-0-2/OpenLineage.json#/$defs/RunEvent",
        "run": {"runId": run(key), "facets": run_facets or {}},
        "job": {"namespace": "etl", "name": job, "facets": job_facets or {}},
        "inputs": [whole(each) for each in inputs],
        "outputs": [whole(each) for each in outputs],
    }


class Api:
    """A client that expects an answer."""

    def __init__(self, client: TestClient[Any], store: Store) -> None:
        self.client, self.store = client, store

    def get(self, path: str, status: int = 200, **parameters: Any) -> Any:
        answer = self.client.get(V + path, params=parameters)
        assert answer.status_code == status, answer.text
        return answer.json()

    def send(self, method: str, path: str, body: Any = None, status: int = 200, **parameters: Any) -> Any:
        answer = self.client.request(method, V + path, json=body, params=parameters)
        assert answer.status_code == status, answer.text
        return answer.json() if answer.content else None

    def tell(self, *said: dict[str, Any]) -> None:
        for each in said:
            self.send("POST", "/lineage", each, 201)


@contextmanager
def serving(store: Store) -> Iterator[Api]:
    with TestClient(create_app(store), raise_server_exceptions=False) as client:
        client.headers["X-Correlation-ID"] = "test"  # the same in every answer
        yield Api(client, store)


@pytest.fixture
def api() -> Iterator[Api]:
    with closing(open_store("memory:")) as store, serving(store) as made:
        yield made


@pytest.fixture
def both(store_url: str) -> Iterator[Api]:
    """On SQLite, then on Postgres: for what a database might answer otherwise."""
    with closing(open_store(store_url)) as store, serving(store) as made:
        yield made


# -- lists


def test_search_sorts_counts_and_filters(both: Api) -> None:
    both.tell(
        *(
            told("COMPLETE", name, name, f"0{hour}:00:00")
            for hour, name in enumerate(("b_x", "c_x", "a_x", "axx"))
        )
    )
    found = both.get("/search", q="_x", limit=2)
    assert ([each["name"] for each in found["results"]], found["totalCount"]) == (["a_x", "b_x"], 3)
    newest = both.get("/search", q="_X", sort="update_at")["results"]
    assert [each["name"] for each in newest] == ["a_x", "c_x", "b_x"]
    assert both.get("/search", q="x", filter="dataset")["totalCount"] == 0
    assert both.get("/search", q="x", after="2026-02-02")["totalCount"] == 0
    assert both.get("/search", q="x", before="2026-02-02", namespace="etl")["totalCount"] == 4


def test_what_people_write_may_hold_any_character_but_names_no_nul(both: Api) -> None:
    odd, kept = "a\0b", "a\ufffdb"
    space = both.send("PUT", "/namespaces/x", {"ownerName": "o", "description": odd})
    assert space["description"] == kept
    source = both.send("PUT", "/sources/s", {"type": "T", "connectionUrl": odd, "description": odd})
    assert (source["connectionUrl"], source["description"]) == (kept, kept)
    assert both.send("PUT", "/tags/t", {"description": odd})["description"] == kept
    whole = {"type": "DB_TABLE", "sourceName": "s", "physicalName": "d"}
    field = {"name": "f", "type": odd, "description": odd}
    texts = {"description": odd, "schemaLocation": odd, "fields": [field]}
    made = both.send("PUT", "/namespaces/x/datasets/d", {**whole, **texts})
    assert (made["description"], made["fields"][0]["description"]) == (kept, kept)
    job = both.send("PUT", "/namespaces/x/jobs/j", {"type": "BATCH", "location": odd, "description": odd})
    assert (job["description"], job["location"]) == (kept, kept)
    ran = both.send("POST", "/namespaces/x/jobs/j/runs", {"args": {odd: odd}}, 201)
    assert both.get(f"/jobs/runs/{ran['id']}")["id"] == ran["id"]
    both.send("PUT", "/namespaces/x", {"ownerName": odd}, 400)
    both.send("PUT", "/sources/s", {"type": odd, "connectionUrl": "u"}, 400)
    for body in ({"sourceName": odd}, {"physicalName": odd}, {"tags": [odd]}, {"fields": [{"name": odd}]}):
        both.send("PUT", "/namespaces/x/datasets/d", {**whole, **body}, 400)
    for pair in ({"namespace": odd, "name": "d"}, {"namespace": "x", "name": odd}):
        both.send("PUT", "/namespaces/x/jobs/j", {"type": "BATCH", "inputs": [pair]}, 400)
    both.send("PUT", "/namespaces/x/jobs/j", {"type": "BATCH", "runId": odd}, 404)
    both.send("POST", "/namespaces/x/jobs/j/runs", {"id": odd}, 400)


def test_job_lists_are_paged_with_true_totals(both: Api) -> None:
    both.tell(*(told("COMPLETE", f"r{i}", f"j{i}", f"00:00:{i:02d}") for i in range(7)))
    pages = [both.get("/jobs", limit=3, offset=offset) for offset in (0, 3, 6, 9)]
    assert [[each["name"] for each in page["jobs"]] for page in pages] == [
        ["j6", "j5", "j4"],
        ["j3", "j2", "j1"],
        ["j0"],
        [],
    ]
    assert {page["totalCount"] for page in pages} == {7}


def test_jobs_are_found_by_the_state_of_their_last_run(both: Api) -> None:
    both.tell(
        told("FAIL", "a1", "a", "00:00:00"),
        told("COMPLETE", "a2", "a", "01:00:00"),
        told("COMPLETE", "b1", "b", "00:00:00"),
        told("FAIL", "b2", "b", "01:00:00"),
        told("START", "c1", "c", "00:00:00"),
    )
    states = {
        word: both.get("/jobs", lastRunStates=word) for word in ("FAILED", "COMPLETED", "RUNNING", "NEW")
    }
    assert {word: [each["name"] for each in found["jobs"]] for word, found in states.items()} == {
        "FAILED": ["b"],
        "COMPLETED": ["a"],
        "RUNNING": ["c"],
        "NEW": [],
    }
    both = both.client.get(f"{V}/namespaces/etl/jobs?lastRunStates=failed&lastRunStates=RUNNING").json()
    assert (sorted(each["name"] for each in both["jobs"]), both["totalCount"]) == (["b", "c"], 2)


def test_every_dataset_of_a_page_has_its_facets(both: Api) -> None:
    outputs = [
        {"namespace": DB, "name": f"t{i:02d}", "facets": {"documentation": facet(description=f"table {i}")}}
        for i in range(25)
    ]
    both.tell(told("COMPLETE", "r", "load", "00:00:00", outputs=outputs))
    found = both.get(f"/namespaces/{q(DB)}/datasets", limit=20)
    assert found["totalCount"] == 25
    assert [each["facets"]["documentation"]["description"] for each in found["datasets"]] == [
        f"table {i}" for i in range(20)
    ]
    assert [each["description"] for each in found["datasets"]] == [f"table {i}" for i in range(20)]


def test_event_pages_hold_what_was_sent(both: Api) -> None:
    weird = {"x": facet(a=[1, 2.50, None], b="☃")}
    both.tell(*(told("COMPLETE", f"r{i}", "load", f"00:00:{i:02d}", run_facets=weird) for i in range(5)))
    page = both.get(
        "/events/lineage",
        limit=2,
        sortDirection="asc",
        after="2026-02-01T00:00:01Z",
        before="2026-02-01T00:00:04Z",
    )
    assert page["totalCount"] == 3
    assert [each["eventTime"] for each in page["events"]] == ["2026-02-01T00:00:01Z", "2026-02-01T00:00:02Z"]
    assert page["events"][0]["run"]["facets"]["x"] == weird["x"]


# -- runs and versions


def test_a_late_start_does_not_reopen_a_run(api: Api) -> None:
    api.tell(told("COMPLETE", "r", "load", "01:00:00"), told("START", "r", "load", "00:30:00"))
    found = api.get(f"/jobs/runs/{run('r')}")
    assert (found["state"], found["startedAt"], found["endedAt"], found["durationMs"]) == (
        "COMPLETED", "2026-02-01T00:30:00Z", "2026-02-01T01:00:00Z", 1_800_000,
    )  # fmt: skip


def test_a_running_event_does_not_move_the_start(api: Api) -> None:
    api.tell(told("START", "r", "load", "00:00:00"), told("RUNNING", "r", "load", "00:10:00"))
    assert api.get(f"/jobs/runs/{run('r')}")["startedAt"] == "2026-02-01T00:00:00Z"


def test_nominal_times_are_kept_and_a_parent_has_them_by_hearsay(api: Api) -> None:
    nominal = facet(nominalStartTime="2026-01-31T00:00:00Z", nominalEndTime="2026-02-01T00:00:00Z")
    parent = facet(run={"runId": run("dag")}, job={"namespace": "etl", "name": "dag"})
    api.tell(
        told("COMPLETE", "r", "dag.load", "00:00:00", run_facets={"nominalTime": nominal, "parent": parent})
    )
    for key in ("r", "dag"):
        assert api.get(f"/jobs/runs/{run(key)}")["nominalStartTime"] == "2026-01-31T00:00:00Z"
    own = facet(nominalStartTime="2026-01-30T00:00:00Z")
    api.tell(told("START", "dag", "dag", "00:00:00", run_facets={"nominalTime": own}))
    assert api.get(f"/jobs/runs/{run('dag')}")["nominalStartTime"] == "2026-01-30T00:00:00Z"


def test_a_child_is_found_by_its_own_name_and_by_its_parents(both: Api) -> None:
    parent = facet(run={"runId": run("dag")}, job={"namespace": "etl", "name": "dag"})
    both.tell(told("COMPLETE", "r", "load", "00:00:00", run_facets={"parent": parent}))
    one, other = both.get("/namespaces/etl/jobs/load"), both.get("/namespaces/etl/jobs/dag.load")
    assert one == other
    assert (one["simpleName"], one["parentJobName"], one["latestRun"]["id"]) == ("load", "dag", run("r"))
    assert both.get("/lineage", nodeId="job:etl:dag.load")["graph"][0]["id"] == "job:etl:load"


def test_versions_are_found_by_their_ids(both: Api) -> None:
    both.tell(
        told("COMPLETE", "r1", "load", "00:00:00", ("a",), ("b",)),
        told("COMPLETE", "r2", "load", "01:00:00", ("a", "c"), ("b",)),
        told("FAIL", "r3", "load", "02:00:00", ("a",)),
        told("COMPLETE", "r4", "read", "03:00:00", ("b",)),
    )
    versions = both.get("/namespaces/etl/jobs/load/versions")["versions"]
    assert [len(each["inputs"]) for each in versions] == [1, 2, 1]
    for each in versions:
        assert both.get(f"/namespaces/etl/jobs/load/versions/{each['version']}") == each
    for key in ("r1", "r2", "r3"):
        assert both.get(f"/jobs/runs/{run(key)}")["jobVersion"]["version"] in {
            each["version"] for each in versions
        }
    assert both.get("/namespaces/etl/jobs/load")["currentVersion"] == versions[1]["version"]
    written = both.get(f"/namespaces/{q(DB)}/datasets/b/versions")
    assert [each["createdByRun"]["id"] for each in written["versions"]] == [run("r2"), run("r1")]
    reader = both.get(f"/jobs/runs/{run('r4')}")
    current = both.get(f"/namespaces/{q(DB)}/datasets/b")["currentVersion"]
    assert current == written["versions"][0]["version"]
    assert reader["inputDatasetVersions"][0]["datasetVersionId"]["version"] == current


def test_what_a_failed_run_wrote_is_not_current(both: Api) -> None:
    both.tell(
        told("COMPLETE", "r1", "load", "00:00:00", (), ("b",)),
        told("FAIL", "r2", "load", "01:00:00", (), ("b",)),
    )
    versions = both.get(f"/namespaces/{q(DB)}/datasets/b/versions")["versions"]
    assert [each["createdByRun"]["state"] for each in versions] == ["FAILED", "COMPLETED"]
    assert both.get(f"/namespaces/{q(DB)}/datasets/b")["currentVersion"] == versions[1]["version"]


def test_run_lineage_goes_up_through_the_runs_that_wrote_what_was_read(both: Api) -> None:
    both.tell(
        told("COMPLETE", "old", "extract", "00:00:00", (), ("raw",)),
        told("COMPLETE", "new", "extract", "01:00:00", (), ("raw",)),
        told("COMPLETE", "mid", "clean", "02:00:00", ("raw",), ("tidy",)),
        told("COMPLETE", "late", "extract", "03:00:00", (), ("raw",)),
        told("COMPLETE", "end", "report", "04:00:00", ("tidy",)),
    )
    found = both.get("/runlineage/upstream", runId=run("end"))["runs"]
    assert [each["run"]["id"] for each in found] == [run("end"), run("mid"), run("new")]
    assert found[1]["inputs"][0]["producedByRunId"] == run("new")
    assert len(both.get("/runlineage/upstream", runId=run("end"), depth=1)["runs"]) == 2


def test_a_run_has_not_read_what_a_failed_one_wrote(both: Api) -> None:
    both.tell(
        told("COMPLETE", "good", "extract", "00:00:00", (), ("raw",)),
        told("FAIL", "bad", "extract", "01:00:00", (), ("raw", "broken")),
        told("COMPLETE", "end", "report", "02:00:00", ("raw", "broken")),
    )
    found = both.get("/runlineage/upstream", runId=run("end"))["runs"]
    made = {each["name"]: each["producedByRunId"] for each in found[0]["inputs"]}
    assert made == {"raw": run("good"), "broken": run("bad")}, "unless nobody else wrote it"
    versions = {each["datasetVersionId"]["name"]: each["datasetVersionId"]["version"] for each in both.get(f"/jobs/runs/{run('end')}")["inputDatasetVersions"]}  # fmt: skip
    for name, key in (("raw", "good"), ("broken", "bad")):
        path = f"/namespaces/{q(DB)}/datasets/{name}/versions/{versions[name]}"
        assert both.get(path)["createdByRun"]["id"] == run(key)


def test_topics_are_streams(api: Api) -> None:
    output = [{"namespace": "kafka://b:9092", "name": "orders"}]
    api.tell(told("COMPLETE", "r", "load", "00:00:00", outputs=output))
    assert api.get(f"/namespaces/{q('kafka://b:9092')}/datasets/orders")["type"] == "STREAM"


# -- graphs


def test_a_bare_start_wipes_no_edge(api: Api) -> None:
    api.tell(
        told("COMPLETE", "r1", "load", "00:00:00", ("a",), ("b",)), told("START", "r2", "load", "01:00:00")
    )
    job = api.get("/namespaces/etl/jobs/load")
    assert (job["inputs"], job["outputs"]) == (
        [{"namespace": DB, "name": "a"}],
        [{"namespace": DB, "name": "b"}],
    )
    assert len(api.get("/lineage", nodeId="job:etl:load")["graph"]) == 3


def test_depth_counts_jobs_and_is_bounded(api: Api) -> None:
    api.tell(
        *(told("COMPLETE", f"r{i}", f"j{i}", f"00:00:{i:02d}", (f"t{i}",), (f"t{i + 1}",)) for i in range(9))
    )
    sizes = [
        sum(node["type"] == "JOB" for node in api.get("/lineage", nodeId="job:etl:j0", depth=depth)["graph"])
        for depth in (0, 1, 3, 1_000_000_000)
    ]
    assert sizes == [1, 2, 4, 9]


COLUMNS = facet(
    fields={
        "total": {
            "inputFields": [
                {
                    "namespace": DB,
                    "name": "a",
                    "field": "price",
                    "transformations": [{"type": "DIRECT", "subtype": "AGGREGATION"}],
                }
            ]
        }
    }
)


def test_column_lineage_needs_no_schema_and_goes_down_from_a_source(both: Api) -> None:
    output = [{"namespace": DB, "name": "b", "facets": {"columnLineage": COLUMNS}}]
    schema = facet(fields=[{"name": "price", "type": "int"}])
    source = [{"namespace": DB, "name": "a", "facets": {"schema": schema}}]
    both.tell(told("COMPLETE", "r", "load", "00:00:00", inputs=source, outputs=output))
    up = both.get("/column-lineage", nodeId=f"datasetField:{DB}:b:total")["graph"]
    assert [each["id"] for each in up] == [f"datasetField:{DB}:a:price", f"datasetField:{DB}:b:total"]
    assert up[1]["data"]["inputFields"][0]["transformationType"] == "AGGREGATION"
    assert up[1]["inEdges"] == up[0]["outEdges"] == [{"origin": up[0]["id"], "destination": up[1]["id"]}]
    assert both.get("/column-lineage", nodeId=f"dataset:{DB}:a", withDownstream="True")["graph"] == up
    assert both.get("/column-lineage", nodeId=f"dataset:{DB}:a", withDownstream="False")["graph"] == []


# -- names


@pytest.mark.parametrize(
    "name", ["a/b", "a%2Fb", "a%b", "a:b", "a b", "a?b#c", "ümlaut ☃", "%25", "x/../y", "a+b", "..%2f"]
)
def test_names_survive_percent_encoding(api: Api, name: str) -> None:
    output = [{"namespace": f"s3://{name}", "name": name}]
    api.tell(told("COMPLETE", name, name, "00:00:00", outputs=output))
    assert api.get(f"/namespaces/etl/jobs/{q(name)}")["name"] == name
    found = api.get(f"/namespaces/{q('s3://' + name)}/datasets/{q(name)}")
    assert found["id"] == {"namespace": f"s3://{name}", "name": name}
    assert api.get("/lineage", nodeId=f"job:etl:{name}")["graph"][0]["id"] == f"dataset:s3://{name}:{name}"


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/jobs?limit=99999999999999999999999"),
        ("GET", "/jobs?offset=-1"),
        ("GET", "/jobs?lastRunStates=SOMETIMES"),
        ("GET", "/search?q=%00"),
        ("GET", "/namespaces/a%00b"),
        ("GET", "/namespaces/a%00b/jobs/c"),
        ("GET", "/lineage?nodeId=job%3Aa%00%3Ab"),
        ("GET", "/lineage?nodeId=job:a:b&depth=99999999999999999999"),
        ("GET", f"/lineage?nodeId={'x' * 9000}"),
        ("GET", "/events/lineage?after=0000-99-99"),
        ("GET", "/events/lineage?before=99999-01-01T00:00:00Z"),
        ("GET", "/stats/jobs?period=DAY&timezone=../../etc/passwd"),
        ("GET", "/stats/jobs?period=DAY&timezone=Europe"),
        ("GET", "/jobs/runs/%F0%9F%98%80"),
        ("GET", "/namespaces/%ff%fe/datasets/%ff"),
        ("POST", "/jobs/runs/x/dance"),
        ("PUT", "/namespaces/a%20b"),
        ("PUT", f"/tags/{'t' * 5000}"),
        ("PUT", "/tags/a%0ab"),
        ("DELETE", "/namespaces/nothing"),
    ],
)
def test_what_cannot_be_meant_is_a_4xx_with_a_reason(api: Api, method: str, path: str) -> None:
    answer = api.client.request(method, V + path, json={} if method == "PUT" else None)
    assert 400 <= answer.status_code < 500, answer.text
    assert answer.json()["code"] == answer.status_code
    assert answer.json()["message"]


@pytest.mark.parametrize("asked", ["ÜBER", "über", "Übersicht_s", "straße"])
def test_search_knows_the_case_of_every_letter(both: Api, asked: str) -> None:
    both.tell(told("COMPLETE", "r", "load", "00:00:00", outputs=("Übersicht_Straße", "other")))
    assert [each["name"] for each in both.get("/search", q=asked)["results"]] == ["Übersicht_Straße"]


@pytest.mark.parametrize("asked", ["db.orders", "DB.ÖRTE", "lake/", "b.ö"])
def test_search_finds_a_dataset_by_any_of_its_names(both: Api, asked: str) -> None:
    for number, (path, table) in enumerate((("lake/1", "db.orders"), ("lake/2", "db.örte"))):
        link = facet(identifiers=[{"namespace": "hive://meta", "name": table, "type": "TABLE"}])
        mine = {"namespace": "s3://bucket", "name": path, "facets": {"symlinks": link}}
        both.tell(told("COMPLETE", f"r{number}", "load", "00:00:00", outputs=(mine,)))
    found = both.get("/search", q=asked)
    wanted = {"db.orders": ["lake/1"], "lake/": ["lake/1", "lake/2"]}.get(asked, ["lake/2"])
    assert ([each["name"] for each in found["results"]], found["totalCount"]) == (wanted, len(wanted))


def test_a_dataset_under_a_name_that_no_event_gives_is_found_everywhere(both: Api) -> None:
    """`s3a://` and `s3n://` are `s3://`: what is told of them is told of the one that stands for both."""
    source = facet(name="lake", uri="s3://lake")
    mine = {"namespace": "s3a://lake", "name": "orders", "facets": {"dataSource": source}}
    both.tell(told("COMPLETE", "r", "load", "00:00:00", outputs=(mine,)))
    both.tell(told("COMPLETE", "s", "read", "01:00:00", ({"namespace": "s3n://lake", "name": "orders"},)))
    whole = {each["name"]: each for each in both.get("/namespaces")["namespaces"]}
    assert whole["s3://lake"]["createdAt"] == "2026-02-01T00:00:00Z"
    assert whole["s3://lake"]["updatedAt"] == "2026-02-01T01:00:00Z"
    assert both.get(f"/namespaces/{q('s3://lake')}")["isHidden"] is False
    (listed,) = both.get(f"/namespaces/{q('s3://lake')}/datasets")["datasets"]
    assert (listed["name"], listed["sourceName"], listed["updatedAt"]) == (
        "orders",
        "lake",
        "2026-02-01T01:00:00Z",
    )
    (found,) = both.get("/search", q="orders", after="2026-02-01", before="2026-02-02")["results"]
    assert (found["namespace"], found["updatedAt"]) == ("s3://lake", "2026-02-01T01:00:00Z")
    assert both.get("/stats/datasets", period="DAY")[-1]["count"] == 1
    (native,) = both.client.get("/hw/v1/search", params={"q": "orders"}).json()
    assert native["lastSeen"] == "2026-02-01T01:00:00Z"


# -- writes by hand


def shown(api: Api, namespace: str, name: str) -> set[bool]:
    """Whether each way to ask shows a dataset."""
    words = {"q": name, "type": "dataset"}
    around = api.client.get("/hw/v1/graph", params={"node": "job:etl:load"}).json()["nodes"]
    return {
        api.client.get(f"{V}/namespaces/{q(namespace)}/datasets/{q(name)}").status_code == 200,
        bool(api.get(f"/namespaces/{q(namespace)}/datasets")["totalCount"]),
        bool(api.get("/search", q=name, filter="DATASET")["totalCount"]),
        bool(api.client.get("/hw/v1/search", params=words).json()),
        any(each["type"] == "DATASET" for each in around),
    }


def test_a_hidden_dataset_comes_back_with_an_event_that_gives_any_of_its_names(both: Api) -> None:
    def tell(key: str, at: str, scheme: str) -> None:
        mine = {"namespace": f"{scheme}://lake", "name": "orders"}
        both.tell(told("COMPLETE", key, "load", at, outputs=(mine,)))

    place = f"/namespaces/{q('s3a://lake')}/datasets/orders"
    tell("r", "02:00:00", "s3a")
    for key, at, scheme in (("s", "03:00:00", "s3"), ("t", "04:00:00", "s3a"), ("u", "05:00:00", "s3n")):
        both.send("DELETE", place)
        assert shown(both, "s3://lake", "orders") == {False}
        tell(f"old {key}", "01:00:00", scheme)
        assert shown(both, "s3://lake", "orders") == {False}, "that was told before"
        tell(key, at, scheme)
        assert shown(both, "s3://lake", "orders") == {True}
    both.send("DELETE", f"/namespaces/{q('s3://lake')}")
    assert shown(both, "s3://lake", "orders") == {False}
    tell("v", "06:00:00", "s3a")
    assert shown(both, "s3://lake", "orders") == {True}
    assert both.get(f"/namespaces/{q('s3://lake')}")["isHidden"] is False
    both.send("DELETE", place)
    both.send("PUT", "/sources/s", {"type": "S3", "connectionUrl": "s3://lake"})
    both.send("PUT", place, {"type": "DB_TABLE", "physicalName": "p", "sourceName": "s"})
    assert shown(both, "s3://lake", "orders") == {True}
    hide = {"node": "dataset:s3://lake:orders", "hidden": True}
    both.tell(told("COMPLETE", "w", "load", "2040-01-01T00:00:00Z", outputs=(
        {"namespace": "s3a://lake", "name": "orders"},)))  # fmt: skip
    assert both.client.patch("/hw/v1/nodes", json=hide).status_code == 200
    assert shown(both, "s3://lake", "orders") == {False}, "though its producer's clock is ahead"


def test_hidden_things_come_back_with_an_event_and_only_those(both: Api) -> None:
    both.tell(
        told("COMPLETE", "r", "load", "00:00:00", ("a",), ("b",)), told("COMPLETE", "s", "other", "00:00:00")
    )
    both.send("DELETE", "/namespaces/etl/jobs/load")
    both.send("DELETE", f"/namespaces/{q(DB)}/datasets/b")
    both.get("/namespaces/etl/jobs/load", 404)
    assert [each["name"] for each in both.get("/jobs")["jobs"]] == ["other"]
    assert both.get("/search", q="load")["totalCount"] == 0
    assert both.get(f"/namespaces/{q(DB)}/datasets")["totalCount"] == 1
    both.tell(told("COMPLETE", "r", "load", "00:00:00", ("a",), ("b",)))  # the same again: no news
    both.get("/namespaces/etl/jobs/load", 404)
    both.tell(told("START", "r2", "load", "00:00:01"))
    both.get("/namespaces/etl/jobs/load")
    both.get(f"/namespaces/{q(DB)}/datasets/b", 404)


def test_a_hidden_namespace_hides_what_is_in_it(both: Api) -> None:
    both.tell(told("COMPLETE", "r", "load", "00:00:00", ("a",)), told("COMPLETE", "s", "other", "00:00:00"))
    assert both.send("DELETE", "/namespaces/etl")["isHidden"] is True
    assert both.get("/jobs") == {"jobs": [], "totalCount": 0}
    assert [each["isHidden"] for each in both.get("/namespaces")["namespaces"]] == [True, False]
    both.tell(told("COMPLETE", "r2", "load", "01:00:00"))
    assert both.get("/namespaces/etl")["isHidden"] is False
    assert [each["name"] for each in both.get("/jobs")["jobs"]] == ["load"]
    assert both.send("DELETE", "/namespaces/etl")["isHidden"] is True
    assert both.send("PUT", "/namespaces/etl", {"ownerName": "me"})["isHidden"] is False
    assert both.get("/jobs")["totalCount"] == 0, "the namespace is back, not what was in it"


def test_the_password_of_a_source_is_kept_nowhere(both: Api) -> None:
    body = {
        "type": "POSTGRESQL",
        "connectionUrl": "jdbc:postgresql://me:hunter2@h/d?ssl=true&password=hunter2",
    }
    said = both.send("PUT", "/sources/s", body)
    assert said["connectionUrl"] == "jdbc:postgresql://h/d?ssl=true&password=***"
    assert not any(b"hunter2" in entry.raw for _, entry in both.store.log())


def test_what_is_put_again_is_shown_again(both: Api) -> None:
    both.send("PUT", "/namespaces/n", {"ownerName": "me"})
    both.send("PUT", "/sources/s", {"type": "POSTGRESQL", "connectionUrl": "jdbc:postgresql://h/d"})
    body = {"type": "DB_TABLE", "physicalName": "p", "sourceName": "s"}
    for _ in range(2):
        both.send("PUT", "/namespaces/n/datasets/t", body)
        both.send("DELETE", "/namespaces/n/datasets/t")
        both.get("/namespaces/n/datasets/t", 404)
    both.send("PUT", "/namespaces/n/datasets/t", body)
    assert both.get("/namespaces/n/datasets/t")["sourceName"] == "s"


def test_what_people_say_outlives_events(both: Api) -> None:
    tags = facet(tags=[{"key": "gold", "value": "1", "source": "dbt"}])
    table = [
        {"namespace": DB, "name": "b", "facets": {"tags": tags, "documentation": facet(description="by dbt")}}
    ]
    both.tell(told("COMPLETE", "r1", "load", "00:00:00", outputs=table))
    place = f"/namespaces/{q(DB)}/datasets/b"
    assert (both.get(place)["tags"], both.get(place)["description"]) == (["gold"], "by dbt")
    both.send("POST", f"{place}/tags/mine")
    both.send("DELETE", f"{place}/tags/gold")
    later = (datetime.now(timezone.utc) + timedelta(days=400)).isoformat()
    both.tell(told("COMPLETE", "r2", "load", later, outputs=table))
    assert both.get(place)["tags"] == ["mine"]


def test_a_tag_that_an_event_put_is_taken_off_under_whichever_name_it_was_put(both: Api) -> None:
    facets = {
        "tags": facet(tags=[{"key": "pii"}, {"key": "core", "field": "a"}, {"key": "kept", "field": "a"}]),
        "schema": facet(fields=[{"name": "a", "type": "INT"}]),
    }
    mine = {"namespace": "s3a://lake", "name": "orders", "facets": facets}
    both.tell(told("COMPLETE", "r", "load", "00:00:00", outputs=(mine,)))
    for place in (q("s3a://lake"), q("s3://lake")):
        found = both.get(f"/namespaces/{place}/datasets/orders")
        assert (found["tags"], found["fields"][0]["tags"]) == (["pii"], ["core", "kept"])
    shown = both.client.get("/hw/v1/show", params={"node": "s3://lake/orders"}).json()
    assert [each["tag"] for each in shown["tags"]] == ["pii", "core", "kept"]
    place = f"/namespaces/{q('s3://lake')}/datasets/orders"
    assert both.send("DELETE", f"{place}/tags/pii")["tags"] == []
    assert both.send("DELETE", f"{place}/fields/a/tags/core")["fields"][0]["tags"] == ["kept"]
    both.tell(told("COMPLETE", "s", "load", "01:00:00", outputs=(mine,)))
    found = both.get(place)
    assert (found["tags"], found["fields"][0]["tags"]) == ([], ["kept"]), "it stays off"


def test_of_many_state_calls_at_once_the_last_by_time_counts(api: Api) -> None:
    api.tell(told("COMPLETE", "r", "load", "00:00:00"))
    made = api.send("POST", "/namespaces/etl/jobs/load/runs", {}, 201)["id"]
    calls = [("start", 0), *((word, second) for second in range(1, 8) for word in ("complete", "abort"))]
    calls.append(("fail", 59))

    def call(said: tuple[str, int]) -> int:
        place = f"{V}/jobs/runs/{made}/{said[0]}"
        return api.client.post(place, params={"at": f"2026-02-01T00:00:{said[1]:02d}Z"}).status_code

    with ThreadPoolExecutor(8) as pool:
        assert set(pool.map(call, reversed(calls))) == {200}
    found = api.get(f"/jobs/runs/{made}")
    assert (found["state"], found["startedAt"], found["durationMs"]) == (
        "FAILED",
        "2026-02-01T00:00:00Z",
        59_000,
    )


def test_one_id_makes_one_run_however_many_ask_at_once(api: Api) -> None:
    api.tell(told("COMPLETE", "r", "load", "00:00:00"))
    body = {"id": run("new"), "args": {"day": "1"}}
    with ThreadPoolExecutor(8) as pool:
        posts = [
            pool.submit(api.client.post, f"{V}/namespaces/etl/jobs/load/runs", json=body) for _ in range(8)
        ]
    assert sorted(each.result().status_code for each in posts) == [201] + [400] * 7
    assert api.get(f"/jobs/runs/{run('new')}")["state"] == "NEW"


def test_a_read_only_server_takes_no_writes() -> None:
    from headwater.serve import Serving

    with (
        closing(open_store("memory:")) as store,
        TestClient(create_app(store, Serving(read_only=True))) as client,
    ):
        assert client.get(f"{V}/jobs").status_code == 200
        for method, path in (("PUT", "/tags/x"), ("DELETE", "/namespaces/x"), ("POST", "/lineage")):
            assert client.request(method, V + path, json={}).status_code in (404, 405)


# -- the rest


def test_stats_count_on_the_calendar() -> None:
    from zoneinfo import ZoneInfo

    berlin = ZoneInfo("Europe/Berlin")
    edges = buckets("WEEK", berlin, datetime(2026, 10, 26, 12, tzinfo=timezone.utc))
    hours = [(b - a) // 3_600_000_000 for a, b in itertools.pairwise(edges)]
    assert hours == [24, 24, 24, 24, 24, 25, 24], "the day on which summer time ends has 25 hours"
    assert len(buckets("DAY", berlin, datetime.now(timezone.utc))) == 25


def test_stats_count_runs_by_how_they_ended(both: Api) -> None:
    now = datetime.now(timezone.utc)
    both.tell(
        told("START", "a", "load", now.isoformat()),
        told("COMPLETE", "a", "load", now.isoformat()),
        told("FAIL", "b", "load", now.isoformat()),
    )
    last = both.get("/stats/lineage-events", period="DAY")[-1]
    assert {key: last[key] for key in ("start", "complete", "fail", "abort")} == {
        "start": 1,
        "complete": 1,
        "fail": 1,
        "abort": 0,
    }
    assert [each["count"] for each in both.get("/stats/jobs", period="WEEK", timezone="UTC")] == [0] * 6 + [1]


def test_graphql_answers_the_documented_queries(both: Api) -> None:
    both.tell(
        told("COMPLETE", "r", "load", "00:00:00", ("a",), ("b",), job_facets={"sql": facet(query="select 1")})
    )
    query = """query ($ns: String!) {
      jobs { name facets latestRun { state durationMs } }
      job(namespace: "etl", name: "load") { inputs { name } }
      datasets { name }
      dataset(namespace: $ns, name: "b") { type fields { name } }
      namespace(name: "etl") { name currentOwner { name } jobs { name } datasets { name } }
      missing: job(namespace: "etl", name: "nothing") { name }
      lineageFromJob(namespace: "etl", name: "load", depth: 2) {
        graph { id type data { ... on Job { name } ... on Dataset { name } } outEdges { destination } }
      }
    }"""
    answer = both.client.post("/api/v1-beta/graphql", json={"query": query, "variables": {"ns": DB}}).json()
    assert "errors" not in answer, answer
    data = answer["data"]
    assert data["jobs"][0]["facets"]["sql"]["query"] == "select 1"
    assert (data["job"]["inputs"], data["missing"]) == ([{"name": "a"}], None)
    assert [each["name"] for each in data["datasets"]] == ["a", "b"]
    assert data["namespace"]["jobs"] == [{"name": "load"}]
    assert [each["id"] for each in data["lineageFromJob"]["graph"]] == [
        f"dataset:{DB}:a",
        f"dataset:{DB}:b",
        "job:etl:load",
    ]
    for bad in ("{ nothing }", "{ jobs {", "{" * 9000):
        told_back = both.client.post("/api/v1-beta/graphql", json={"query": bad})
        assert (told_back.status_code, bool(told_back.json()["errors"])) == (200, True)
    assert both.client.post("/api/v1-beta/graphql", json={}).status_code == 400


def test_beta_search_marks_what_was_found(both: Api) -> None:
    both.tell(told("COMPLETE", "r", "load_orders", "00:00:00"))
    found = both.client.get("/api/v2beta/search/jobs", params={"q": "ORDERS"}).json()
    assert (found["hits"][0]["run_id"], found["highlights"]) == (
        run("r"),
        [{"name": ["load_<em>orders</em>"]}],
    )


SAMPLE = (
    "/namespaces",
    "/sources",
    "/tags",
    "/jobs",
    "/namespaces/etl/jobs/load",
    "/namespaces/etl/jobs/load/versions",
    "/namespaces/etl/jobs/load/runs",
    f"/namespaces/{q('s3://lake')}/datasets",
    f"/namespaces/{q('s3://lake')}/datasets/orders/versions",
    "/search?q=o&limit=100",
    "/events/lineage",
    "/lineage?nodeId=job:etl:load",
    f"/column-lineage?nodeId={q('dataset:s3://lake:orders')}&withDownstream=true",
    f"/jobs/runs/{run('run 0')}",
    f"/runlineage/upstream?runId={run('run 0')}",
)


def answers(client: TestClient[Any]) -> dict[str, tuple[int, bytes]]:
    got = {path: client.get(V + path) for path in SAMPLE}
    assert all(each.status_code < 500 for each in got.values()), {
        path: each.text for path, each in got.items()
    }
    return {path: (each.status_code, each.content) for path, each in got.items()}


@pytest.fixture(scope="module")
def reading() -> Iterator[Callable[[Store], dict[str, tuple[int, bytes]]]]:
    """The answers over any store: an app takes far longer to make than to ask."""
    with (
        closing(open_store("memory:")) as none,
        TestClient(create_app(none, Serving(read_only=True))) as client,
    ):
        client.headers["X-Correlation-ID"] = "test"

        def over(store: Store) -> dict[str, tuple[int, bytes]]:
            client.app.state.store = store
            return answers(client)

        yield over


@given(st.lists(events, max_size=15), st.data())
def test_any_order_gives_the_same_answers_and_so_does_a_replay(
    reading: Callable[[Store], dict[str, tuple[int, bytes]]], stream: list[bytes], data: st.DataObject
) -> None:
    messy = data.draw(st.permutations(stream))
    with closing(open_store("memory:")) as one, closing(open_store("memory:")) as two:
        ingest(one, stream)
        for each in messy:
            ingest(two, [each])
        expected = reading(one)
        assert reading(two) == expected
        replay(two)
        assert reading(two) == expected


def test_what_was_written_by_hand_comes_back_with_a_replay(both: Api) -> None:
    both.tell(told("COMPLETE", "r", "load", "00:00:00", ("a",), ("b",)))
    both.send("PUT", "/namespaces/n", {"ownerName": "me", "description": "d"})
    both.send("PUT", "/sources/s", {"type": "POSTGRESQL", "connectionUrl": "jdbc:postgresql://h/d"})
    fields = [{"name": "id", "type": "INT", "tags": ["pii"], "description": "the key"}]
    body = {"type": "STREAM", "physicalName": "p", "sourceName": "s", "fields": fields, "tags": ["gold"]}
    both.send("PUT", "/namespaces/n/datasets/t", body)
    io = {"inputs": [{"namespace": DB, "name": "a"}], "outputs": [{"namespace": "n", "name": "t"}]}
    both.send("PUT", "/namespaces/n/jobs/j", {"type": "SERVICE", "location": "https://example.org/j", **io})
    made = both.send("POST", "/namespaces/n/jobs/j/runs", {"args": {"day": "1"}}, 201)["id"]
    both.send("POST", f"/jobs/runs/{made}/start", at="2026-02-01T00:00:00Z")
    both.send("POST", f"/jobs/runs/{made}/complete", at="2026-02-01T00:01:00Z")
    both.send("PUT", "/tags/gold", {"description": "the best"})
    both.send("POST", "/namespaces/etl/jobs/load/tags/mine")
    both.send("DELETE", f"/namespaces/{q(DB)}/datasets/b")
    asked = (
        *SAMPLE,
        "/namespaces/n",
        "/namespaces/n/datasets/t",
        "/namespaces/n/jobs/j",
        f"/jobs/runs/{made}",
        "/sources/s",
    )
    before = {path: both.client.get(V + path).content for path in asked}
    assert json.loads(before["/namespaces/n/jobs/j"])["type"] == "SERVICE"
    assert json.loads(before[f"/jobs/runs/{made}"])["durationMs"] == 60_000
    replay(both.store)
    assert {path: both.client.get(V + path).content for path in asked} == before
    with both.store.read() as reader:
        assert reader.catalogue().find("dataset", DB, "b") is not None


def test_the_document_describes_every_route(api: Api) -> None:
    paths = api.client.get("/openapi.json").json()["paths"]
    assert len([path for path in paths if path.startswith("/api/")]) >= 35
    for path, methods in paths.items():
        for method, about in methods.items():
            if path.startswith(("/api/v1/incidents", "/api/v1/health")):
                continue  # Correlator's
            if path.startswith("/api/v1/") and method != "parameters":
                assert "400" in about["responses"], (method, path)
                named = {each["name"] for each in about.get("parameters", ()) if each["in"] == "path"}
                assert named == {part.strip("{}") for part in path.split("/") if part.startswith("{")}, path
    assert json.dumps(paths)
