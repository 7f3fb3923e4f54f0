"""The pages of the web UI as they are served, and the calls that only they make."""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from litestar.testing import TestClient

from headwater import keys
from headwater.cli.demo import recorded
from headwater.ingest import ingest
from headwater.serve import Serving, create_app, ui
from headwater.store import Store, open_store

PAGE = '<!doctype html><html><head><base href="/" /></head><body><script src="./assets/a-1.js"></script></body></html>'


SAME = [
    # every route of Marquez's web UI (0.51), with the parameters that it writes …
    "/",
    "/?timeframe=week",
    "/jobs",
    "/datasets",
    "/events",
    "/events?dateFrom=2026-01-01T00%3A00%3A00.000Z&dateTo=2026-01-02T00%3A00%3A00.000Z",
    "/lineage/dataset/ns/name?depth=3&isCompact=true&isFull=true&collapsedNodes=job%3Aa%3Ab",
    "/lineage/dataset/postgres%3A%2F%2Fdb%3A5432/a.b.c?tableLevelNode=dataset%3Apostgres%3A%2F%2Fdb%3A5432%3Aa.b.c",
    "/lineage/job/ns/dag.task",
    "/lineage/DATASET/ns/name",
    # … and of Correlator's
    "/incidents",
    "/incidents/7",
]
"""Addresses of other UIs that are ours as well."""
MOVED = [
    ("/datasets/column-level/ns/name", "/lineage/dataset/ns/name?columns=1"),
    ("/datasets/column-level/ns/a%2Fb?depth=4", "/lineage/dataset/ns/a%2Fb?columns=1&depth=4"),
    (
        "/datasets/column-level/ns/t?column=datasetField%3As3%3A%2F%2Fb%3At%3Ac&columnName=c&dataset=t&namespace=s3%3A%2F%2Fb",
        "/lineage/dataset/ns/t?columns=1&trace=dataset%3As3%3A%2F%2Fb%3At%0Ac",
    ),
    (
        "/datasets/column-level/ns/t?column=datasetField%3An%3At%3Ac",
        "/lineage/dataset/ns/t?columns=1&trace=dataset%3An%3At%0Ac",
    ),
    ("/datasets/column-level/ns/t?column=&depth=x", "/lineage/dataset/ns/t?columns=1"),
    ("/datasets/a%2Fb%20c", "/datasets?q=a%2Fb+c"),
    ("/jobs/dag.task", "/jobs?q=dag.task"),
    ("/search?q=cust%20ema&filter=ALL&sort=NAME", "/?q=cust+ema"),
    ("/search", "/?q="),
]
"""Addresses of other UIs that lead to one of ours."""


@pytest.fixture
def store(store_url: str) -> Iterator[Store]:
    made = open_store(store_url)
    yield made
    made.close()


@pytest.fixture
def built(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "assets").mkdir()
    (tmp_path / "index.html").write_text(PAGE)
    (tmp_path / "assets" / "a-1.js").write_text("export {};" * 200)
    (tmp_path / "assets" / "a-1.css").write_text("body {}")
    monkeypatch.setattr(ui.Pages.__init__, "__defaults__", (tmp_path,))
    return tmp_path


def client(store: Store, **serving: Any) -> TestClient[Any]:
    return TestClient(create_app(store, Serving(**serving)))


@pytest.mark.usefixtures("built")
def test_every_page_is_the_same_page(store: Store) -> None:
    with client(store) as asked:
        for path in (
            "/",
            "/lineage/dataset/s3%3A%2F%2Flake/gold%2Fa",
            "/datasets/a/b",
            "/runs/1",
            "/incidents/7",
            "/admin",
        ):
            answer = asked.get(path)
            assert (answer.status_code, answer.text) == (200, PAGE), path
            assert answer.headers["content-type"].startswith("text/html")
            assert answer.headers["cache-control"] == "no-cache"
            policy = answer.headers["content-security-policy"]
            assert "unsafe-inline" not in policy
            assert "script-src 'self'" in policy
        assert asked.get("/nothing/of/ours").status_code == 404


@pytest.mark.usefixtures("built")
def test_files_are_kept_for_ever_and_packed(store: Store) -> None:
    with client(store) as asked:
        plain = asked.get("/assets/a-1.js", headers={"Accept-Encoding": "identity"})
        assert plain.headers["content-type"].startswith("text/javascript")
        assert "immutable" in plain.headers["cache-control"]
        packed = asked.get("/assets/a-1.js")
        assert packed.headers["content-encoding"] == "gzip"
        assert packed.content == plain.content  # the client unpacked it
        assert int(packed.headers["content-length"]) == len(gzip.compress(plain.content, 9, mtime=0))
        again = asked.get("/assets/a-1.js", headers={"If-None-Match": plain.headers["etag"]})
        assert (again.status_code, again.content) == (304, b"")
        assert asked.get("/assets/a-2.js").status_code == 404
        assert asked.get("/assets/..%2Findex.html").status_code == 404


@pytest.mark.usefixtures("built")
def test_below_a_base_path_the_page_says_where_it_is(store: Store) -> None:
    with client(store, base_path="/lineage-of-ours") as asked:
        assert '<base href="/lineage-of-ours/" />' in asked.get("/lineage-of-ours/").text
        assert asked.get("/lineage-of-ours/assets/a-1.css").status_code == 200
        moved = asked.get(
            "/lineage-of-ours/datasets/column-level/s3%3A%2F%2Flake/a%2Fb", follow_redirects=False
        )
        assert moved.status_code == 302
        assert moved.headers["location"] == "/lineage-of-ours/lineage/dataset/s3%3A%2F%2Flake/a%2Fb?columns=1"
        for path, there in MOVED:
            moved = asked.get(f"/lineage-of-ours{path}", follow_redirects=False)
            assert (moved.status_code, moved.headers["location"]) == (302, f"/lineage-of-ours{there}"), path


@pytest.mark.usefixtures("built")
def test_addresses_of_other_uis_lead_to_ours(store: Store) -> None:
    with client(store) as asked:
        page = asked.get("/health", headers={"Accept": "text/html,*/*"}, follow_redirects=False)
        assert (page.status_code, page.headers["location"]) == (302, "/admin?tab=names")
        assert asked.get("/health").json()["status"] == "healthy"
        for path in SAME:
            assert asked.get(path, follow_redirects=False).text == PAGE, path
        for path, there in MOVED:
            moved = asked.get(path, follow_redirects=False)
            assert (moved.status_code, moved.headers["location"]) == (302, there), path
            assert asked.get(there, follow_redirects=False).text == PAGE, there  # and it leads nowhere else


def test_a_copy_without_the_pages_says_so(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ui.Pages.__init__, "__defaults__", (tmp_path / "none",))
    with client(store) as asked:
        answer = asked.get("/")
        assert answer.status_code == 200
        assert "make web" in answer.text
        assert "<script" not in answer.text


@pytest.mark.usefixtures("built")
def test_pages_are_for_everyone_and_data_for_those_with_a_key(store: Store) -> None:
    _, key = keys.create(store, "ops", ["admin"], by="test")
    _, reader = keys.create(store, "reader", ["read"], by="test")
    with client(store, auth="on") as asked:
        assert asked.get("/").status_code == 200
        assert asked.get("/hw/v1/status").status_code == 401
        for path in ("/hw/v1/keys", "/hw/v1/hooks", "/hw/v1/settings"):
            assert asked.get(path, headers={"X-API-Key": reader}).status_code == 403
            answer = asked.get(path, headers={"X-API-Key": key})
            assert answer.status_code == 200
            assert key not in answer.text
        told = asked.get("/hw/v1/keys", headers={"X-API-Key": key}).json()
        assert {each["name"]: each["state"] for each in told} == {"ops": "active", "reader": "active"}
        ended = asked.delete("/hw/v1/keys/reader", headers={"X-API-Key": key}).json()
        assert [each["state"] for each in ended] == ["active"]  # as it was
        told = asked.get("/hw/v1/keys", headers={"X-API-Key": key}).json()
        assert {each["name"]: each["state"] for each in told}["reader"] == "revoked"
        assert asked.post("/hw/v1/hooks/none/retry", headers={"X-API-Key": key}).json() == {"again": 0}


def test_the_graph_tells_states_moments_and_an_application_by_its_parts(store: Store) -> None:
    ingest(store, list(recorded()))
    with client(store) as asked:
        table = {"node": "gold/revenue_by_day", "depth": 1}
        told = asked.get("/hw/v1/graph", params={**table, "granularity": "application", "states": "true"})
        states = {each["id"]: each["lastRun"]["state"] for each in told.json()["nodes"] if "lastRun" in each}
        assert states["job:spark:revenue"] == "COMPLETE"
        assert "job:airflow:nightly" in states
        assert all("lastRun" not in each for each in asked.get("/hw/v1/graph", params=table).json()["nodes"])

        whole = asked.get(
            "/hw/v1/graph", params={"node": "job:spark:revenue", "depth": 1, "granularity": "application"}
        ).json()
        assert whole["start"] == "job:spark:revenue"
        assert {"from": "job:spark:revenue", "to": "dataset:s3://lake:gold/revenue_by_day"} in whole["edges"]

        found = asked.get("/hw/v1/moments", params={"node": "gold/revenue_by_day"}).json()
        times = [each["at"] for each in found["moments"]]
        assert times == sorted(times)
        assert {"node": "dataset:s3://lake:gold/revenue_by_day", "what": "schema"} in [
            change for each in found["moments"] for change in each["changes"]
        ]
        whole = asked.get("/hw/v1/runs", params={"job": "job:spark:revenue"}).json()[0]
        parts = asked.get("/hw/v1/show", params={"node": whole["id"]}).json()["children"]
        assert [each["job"] for each in parts] == [
            "job:spark:revenue.join_payments.silver_orders_paid",
            "job:spark:revenue.aggregate.gold_revenue_by_day",
        ]
        assert {each["parent"] for each in parts} == {whole["id"]}
        assert asked.get("/hw/v1/sources").json()["pyspark"]
        kept = asked.get("/hw/v1/settings").json()
        assert kept["retention"]["runs"] == "400d"
