"""What Correlator's clients meet: its contract's shapes, its statuses, and its published dbt plugin, unchanged."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from datetime import datetime, timezone
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from uuid import NAMESPACE_URL, uuid4, uuid5

import httpx
import pytest
import yaml
from jsonschema import Draft202012Validator, FormatChecker

from headwater.store import open_store
from serving import Server, serving

PRODUCER = "https://github.com/OpenLineage/OpenLineage/tree/1.0.0/integration/dbt"
DB = "postgresql://demo"


@pytest.fixture(scope="module")
def contract(shared_contracts: Path) -> dict[str, Any]:
    told: dict[str, Any] = yaml.safe_load((shared_contracts / "correlator" / "openapi.yaml").read_text())
    # what its server really answers, and its clients read, though the description leaves it out
    told["components"]["schemas"]["LineageResponse"]["properties"]["status"]["enum"].append("partial_success")
    return told


@pytest.fixture(scope="module")
def shared_contracts() -> Path:
    from openlineage_schemas import SHARED

    if not (SHARED / "contracts").is_dir():
        pytest.skip("contracts are not here: set HEADWATER_SHARED to the directory that holds them")
    return SHARED / "contracts"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("correlator")
    with serving(
        f"sqlite:///{folder}/x.db", environment={"HEADWATER_SERVE__LINEAGE_STATUS": "200"}
    ) as started:
        yield started


@pytest.fixture(scope="module")
def client(server: Server) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=server.url, timeout=30) as made:
        yield made


def nullable(schema: Any) -> Any:
    """OpenAPI 3.0 as JSON Schema: `nullable` beside a type or a reference."""
    if isinstance(schema, list):
        return [nullable(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    made = {key: nullable(value) for key, value in schema.items() if key != "nullable"}
    return {"anyOf": [made, {"type": "null"}]} if schema.get("nullable") is True else made


def shaped(contract: dict[str, Any], name: str, value: Any) -> Any:
    schema = {"$ref": f"#/components/schemas/{name}", "components": nullable(contract["components"])}
    validator = Draft202012Validator(schema, format_checker=FormatChecker())
    found = [f"{list(each.absolute_path)}: {each.message}" for each in validator.iter_errors(value)]
    assert not found, found
    return value


def rid(name: str) -> str:
    return str(uuid5(NAMESPACE_URL, name))


def at(minutes_ago: float) -> str:
    moment = datetime.fromtimestamp(time.time() - minutes_ago * 60, timezone.utc)
    return moment.isoformat().replace("+00:00", "Z")


def event(job: str, ago: float, **more: Any) -> dict[str, Any]:
    made = {
        "eventType": "COMPLETE",
        "eventTime": at(ago),
        "producer": PRODUCER,
        "schemaURL": "https://openlineage.io/spec/2-0-2/OpenLineage.json",
        "run": {"runId": rid(f"{job} {ago}")},
        "job": {"namespace": "dbt_prod", "name": job},
        "inputs": [],
        "outputs": [],
    }
    return made | more


def checked(name: str, passed: bool, namespace: str = DB, test: str = "not_null(id)") -> dict[str, Any]:
    told = {"assertion": test, "success": passed, "message": "3 rows", "durationMs": 12.0}
    facet = {"dataQualityAssertions": {"assertions": [told]}}
    return {"namespace": namespace, "name": name, "inputFacets": facet}


def table(name: str, namespace: str = DB) -> dict[str, Any]:
    return {"namespace": namespace, "name": name}


def send(client: httpx.Client, *events: dict[str, Any]) -> None:
    answer = client.post("/api/v1/lineage/events", json=list(events))
    assert answer.status_code == 200, answer.text


def incidents(client: httpx.Client, contract: dict[str, Any], **parameters: Any) -> list[dict[str, Any]]:
    answer = client.get("/api/v1/incidents", params=parameters)
    assert answer.status_code == 200, answer.text
    found: list[dict[str, Any]] = shaped(contract, "IncidentListResponse", answer.json())["incidents"]
    return found


def problem(contract: dict[str, Any], answer: httpx.Response, status: int, words: str) -> None:
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"].startswith("application/problem+json")
    told = shaped(contract, "Error", answer.json())
    assert told["status"] == status
    assert told["type"] == f"https://getcorrelator.io/problems/{status}"
    assert told["instance"] == answer.request.url.path
    assert told["correlation_id"] == answer.headers["x-correlation-id"]
    assert words in told["detail"]


# ---- ingest ------------------------------------------------------------------------------------------------


def test_one_event_is_answered_with_an_empty_200(client: httpx.Client, contract: dict[str, Any]) -> None:
    one = event("single", 5, outputs=[table("single")])
    for _ in range(2):
        answer = client.post("/api/v1/lineage", json=one, headers={"X-Correlation-ID": "call-7"})
        assert (answer.status_code, answer.content) == (200, b"")
        assert answer.headers["x-correlation-id"] == "call-7"
    problem(contract, client.post("/api/v1/lineage", json=[one]), 400, "expected `object`")
    broken = {**one, "job": {"namespace": "x"}}
    problem(contract, client.post("/api/v1/lineage", json=broken), 422, "job.name")


@pytest.mark.parametrize("path", ["/api/v1/lineage/batch", "/api/v1/lineage/events"])
def test_a_batch_is_answered_as_its_clients_read_it(
    client: httpx.Client, contract: dict[str, Any], path: str
) -> None:
    good, bad = event("batch", 5), {**event("bad", 5), "eventType": "GONE"}
    for body, status, word in (
        ([good, good], 200, "success"),
        ([good, bad], 207, "partial_success"),
        ([bad], 422, "error"),
    ):
        answer = client.post(path, json=body, headers={"X-Correlation-ID": "call-8"})
        told = shaped(contract, "LineageResponse", answer.json())
        assert (answer.status_code, told["status"], told["correlation_id"]) == (status, word, "call-8")
        failed = sum(each is bad for each in body)
        assert told["summary"] == {
            "received": len(body),
            "successful": len(body) - failed,
            "failed": failed,
            "retriable": 0,
            "non_retriable": failed,
        }
        assert [each["index"] for each in told["failed_events"]] == [
            i for i, e in enumerate(body) if e is bad
        ]


@pytest.mark.parametrize(
    ("body", "kind", "status", "words"),
    [
        (b"", "application/json", 400, "Request body cannot be empty"),
        (b"[]", "application/json", 400, "Event array cannot be empty"),
        (b"[{", "application/json", 400, "Invalid JSON: "),
        (b"{}", "application/json", 400, "Invalid JSON: "),
        (b"[]", "text/plain", 415, "application/json"),
    ],
)
def test_what_is_no_batch_is_a_problem(
    client: httpx.Client, contract: dict[str, Any], body: bytes, kind: str, status: int, words: str
) -> None:
    answer = client.post("/api/v1/lineage/batch", content=body, headers={"Content-Type": kind})
    problem(contract, answer, status, words)


def test_the_first_thing_that_is_wrong_is_told_in_its_order(client: httpx.Client) -> None:
    bad: dict[str, Any] = {"eventType": "GONE", "eventTime": "never", "run": {}, "job": {}}
    for path in ("eventType", "eventTime", "run.runId", "job.namespace", "job.name"):
        (told,) = client.post("/api/v1/lineage/batch", json=[bad]).json()["failed_events"]
        assert told["reason"].startswith(f"{path}: ")
        owner, _, name = path.rpartition(".")
        good = event("x", 1)
        (bad[owner] if owner else bad)[name] = (good[owner] if owner else good)[name]
    assert client.post("/api/v1/lineage/batch", json=[bad]).status_code == 200, "no producer, no schemaURL"


def test_strictly_all_is_refused_that_correlator_refuses(tmp_path: Path, contract: dict[str, Any]) -> None:
    with serving(
        f"sqlite:///{tmp_path}/x.db", environment={"HEADWATER_SERVE__CORRELATOR_STRICT": "true"}
    ) as other:

        def sent(*events: dict[str, Any]) -> httpx.Response:
            return httpx.post(f"{other.url}/api/v1/lineage/batch", json=list(events), timeout=30)

        good = event("x", 5)
        wrong = [
            {**good, "eventType": "complete"},
            {**good, "producer": ""},
            {**good, "schemaURL": "https://example.org/spec.json"},
            {"eventTime": at(1), "dataset": table("x")},
        ]
        answer = sent(good, *wrong)
        told = shaped(contract, "LineageResponse", answer.json())
        assert (answer.status_code, [each["index"] for each in told["failed_events"]]) == (207, [1, 2, 3, 4])
        reasons = [each["reason"].partition(":")[0] for each in told["failed_events"]]
        assert reasons == ["eventType", "producer", "schemaURL", "eventType"]
        began = {**good, "eventType": "START", "eventTime": at(1)}
        problem(contract, sent(good, began), 422, "Invalid event sequence: COMPLETE -> START")
        assert sent(began | {"eventTime": at(9)}, good).status_code == 200
        as_marquez = httpx.post(f"{other.url}/api/v1/lineage", json=wrong[1], timeout=30)
        assert as_marquez.status_code == 201, "Marquez's path is not"


def test_a_correlation_id_that_could_do_harm_is_not_repeated(client: httpx.Client) -> None:
    answer = client.get("/ping", headers={"X-Correlation-ID": "a b\tc" * 50})
    assert answer.text == "pong"
    assert answer.headers["x-correlation-id"] != "a b\tc" * 50


def test_the_probes(client: httpx.Client, contract: dict[str, Any]) -> None:
    assert client.get("/ready", headers={"Accept": "text/plain"}).text == "ready"
    assert client.get("/ready").json()["status"] == "ready"
    health = shaped(contract, "SystemHealth", client.get("/health").json())
    assert health["status"] == "healthy"
    assert health["checks"]["store"]["status"] == "healthy"
    assert health["checks"]["postgres"] == {"status": "disabled"}


# ---- incidents ---------------------------------------------------------------------------------------------


def test_an_incident_from_its_failure_to_its_end(client: httpx.Client, contract: dict[str, Any]) -> None:
    parent = {"run": {"runId": rid("dag run")}, "job": {"namespace": "airflow", "name": "dag"}}
    writer = event("models.orders", 70, inputs=[table("raw.orders")], outputs=[table("marts.orders")])
    writer["run"]["facets"] = {"parent": {**parent, "root": parent}}
    later = event("models.orders", 1, inputs=[table("raw.orders")], outputs=[table("marts.orders")])
    send(
        client,
        event("load", 90, outputs=[table("raw.orders")]),
        writer,
        later,
        event("report", 60, inputs=[table("marts.orders")], outputs=[table("report")]),
        event("dbt_test", 50, inputs=[checked("marts.orders", False)]),
    )
    (found,) = (each for each in incidents(client, contract) if each["dataset_name"] == "marts.orders")
    assert found["dataset_urn"] == f"{DB}/marts.orders"
    assert (found["test_name"], found["test_status"], found["producer"]) == ("not_null(id)", "failed", "dbt")
    assert found["run_id"] == found["job_run_id"] == rid("models.orders 70"), "the run before the test"
    assert (found["downstream_count"], found["has_correlation_issue"]) == (1, False)
    path = f"/api/v1/incidents/{found['id']}"
    told = shaped(contract, "IncidentDetailResponse", client.get(path).json())
    assert (told["test"]["message"], told["test"]["duration_ms"]) == ("3 rows", 12)
    assert told["job"]["run_id"] == rid("models.orders 70")
    assert told["job"]["parent"]["run_id"] == told["job"]["orchestration"][0]["run_id"] == rid("dag run")
    assert [(each["urn"], each["depth"], each["childUrn"]) for each in told["upstream"]] == [
        (f"{DB}/raw.orders", 1, f"{DB}/marts.orders")
    ]
    assert [(each["urn"], each["parentUrn"], each["producer"]) for each in told["downstream"]] == [
        (f"{DB}/report", f"{DB}/marts.orders", "dbt")
    ]
    assert told["correlation_status"] == "correlated"
    answer = client.patch(f"{path}/status", json={"status": "acknowledged"})
    shaped(contract, "UpdateStatusResponse", answer.json())
    problem(
        contract, client.patch(f"{path}/status", json={"status": "acknowledged"}), 409, "cannot transition"
    )
    answer = client.patch(f"{path}/status", json={"status": "muted", "reason": "expected", "mute_days": 2})
    muted = shaped(contract, "UpdateStatusResponse", answer.json())
    assert muted["resolution_status"] == "muted"
    left = datetime.fromisoformat(muted["mute_expires_at"]) - datetime.now(timezone.utc)
    assert 1.9 < left.total_seconds() / 86400 <= 2
    problem(
        contract,
        client.patch(f"{path}/status", json={"status": "resolved"}),
        409,
        "cannot transition from muted to resolved: muted is a terminal state",
    )
    assert found["id"] in {each["id"] for each in incidents(client, contract, status="muted")}
    assert found["id"] not in {each["id"] for each in incidents(client, contract)}
    send(client, event("dbt_test", 0.01, inputs=[checked("marts.orders", True)]))
    over = {each["id"]: each for each in incidents(client, contract, status="resolved")}
    assert over[found["id"]]["resolved_by"] == "auto"
    counts = shaped(contract, "IncidentCountsResponse", client.get("/api/v1/incidents/counts").json())
    assert counts["resolved"] >= 1


def test_retries_under_one_root_are_one_incident(client: httpx.Client, contract: dict[str, Any]) -> None:
    root = {"run": {"runId": rid("root")}, "job": {"namespace": "airflow", "name": "dag"}}
    for ago in (30, 20):
        one = event("retry_test", ago, inputs=[checked("retried", False)])
        one["run"]["facets"] = {"parent": {**root, "root": root}}
        send(client, one)
    (found,) = (each for each in incidents(client, contract) if each["dataset_name"] == "retried")
    assert found["retry_context"] == {
        "total_attempts": 2,
        "current_attempt": 2,
        "all_failed": True,
        "root_run_id": rid("root"),
    }
    told = client.get(f"/api/v1/incidents/{found['id']}").json()
    shaped(contract, "IncidentDetailResponse", told)
    assert [each["job_run_id"] for each in told["retry_context"]["other_attempts"]] == [rid("retry_test 30")]


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ({"status": "gone"}, "'status': must be one of: active, resolved, muted, all"),
        ({"limit": 0}, "'limit': must be between 1 and 100"),
        ({"limit": 101}, "'limit': must be between 1 and 100"),
        ({"limit": "ten"}, "'limit': must be between 1 and 100"),
        ({"offset": -1}, "'offset': must be between 0"),
        ({"window": 91}, "'window': must be between 1 and 90"),
        ({"since": "yesterday"}, "'since'"),
    ],
)
def test_wrong_parameters(
    client: httpx.Client, contract: dict[str, Any], parameters: dict[str, Any], words: str
) -> None:
    problem(contract, client.get("/api/v1/incidents", params=parameters), 400, words)


@pytest.mark.parametrize(
    ("body", "status", "words"),
    [
        ({"status": "gone"}, 422, "status must be one of: acknowledged, resolved, muted"),
        ({}, 422, "status must be one of"),
        ({"status": "muted"}, 422, "reason is required"),
        ({"status": "muted", "reason": "x", "mute_days": 366}, 422, "mute_days"),
        ({"status": "muted", "reason": 5}, 422, "reason"),
        ([], 400, "Invalid JSON"),
        (None, 400, "cannot be empty"),
        ({"status": "resolved"}, 404, "Incident not found"),
    ],
)
def test_wrong_decisions(
    client: httpx.Client, contract: dict[str, Any], body: Any, status: int, words: str
) -> None:
    content = b"" if body is None else json.dumps(body).encode()
    answer = client.patch(
        "/api/v1/incidents/5/status", content=content, headers={"Content-Type": "application/json"}
    )
    problem(contract, answer, status, words)


def test_wrong_ids_paths_and_types(client: httpx.Client, contract: dict[str, Any]) -> None:
    problem(contract, client.get("/api/v1/incidents/abc"), 400, "Invalid incident ID")
    problem(contract, client.get("/api/v1/incidents/123"), 404, "Incident not found")
    form = client.patch("/api/v1/incidents/1/status", content=b"x", headers={"Content-Type": "text/plain"})
    problem(contract, form, 415, "application/json")


def test_pages(client: httpx.Client, contract: dict[str, Any]) -> None:
    send(client, *(event(f"p{n}", 100 + n, inputs=[checked(f"page{n}", False)]) for n in range(5)))
    every = [each["id"] for each in incidents(client, contract, limit=100)]
    paged = [each["id"] for start in range(0, len(every), 2) for each in incidents(client, contract, limit=2, offset=start)]  # fmt: skip
    assert paged == every
    assert len({*every}) == len(every)
    assert len(incidents(client, contract, since=at(102.5))) < len(every)


# ---- correlation -------------------------------------------------------------------------------------------


def test_orphans_are_matched_and_a_saved_pattern_leads_them_home(
    client: httpx.Client, contract: dict[str, Any]
) -> None:
    send(
        client,
        *(event(f"mart {name}", 30, outputs=[table(f"marts.{name}")]) for name in ("customers", "products")),
        *(event(f"ge {name}", 20, inputs=[checked(name, False, "demo_postgres")]) for name in ("customers", "products")),
    )  # fmt: skip
    health = shaped(contract, "CorrelationHealthResponse", client.get("/api/v1/health/correlation").json())
    orphans = {each["dataset_urn"]: each for each in health["orphan_datasets"]}
    assert orphans["demo_postgres/customers"]["likely_match"]["dataset_urn"] == f"{DB}/marts.customers"
    (pattern,) = (
        each for each in health["suggested_patterns"] if each["pattern"].startswith("demo_postgres")
    )
    assert pattern == {
        "pattern": "demo_postgres/{name}",
        "canonical": f"{DB}/marts.{{name}}",
        "resolves_count": 2,
        "orphans_resolved": ["demo_postgres/customers", "demo_postgres/products"],
    }
    assert health["correlation_rate"] < 1
    saved = client.post("/hw/v1/correlation/patterns", json={k: pattern[k] for k in ("pattern", "canonical")})
    assert saved.status_code == 201
    assert "demo_postgres/customers" not in {each["dataset_urn"] for each in saved.json()["orphan_datasets"]}
    (found,) = (each for each in incidents(client, contract) if each["dataset_name"] == "marts.customers")
    assert found["has_correlation_issue"] is False
    assert found["job_name"] == "mart customers"
    refused = client.post("/hw/v1/correlation/patterns", json={"pattern": "{a", "canonical": "b/c"})
    assert refused.status_code == 422


# ---- the published plugin ----------------------------------------------------------------------------------


def test_the_published_dbt_plugin_works_unchanged(
    client: httpx.Client, contract: dict[str, Any], server: Server
) -> None:
    emitter = pytest.importorskip("dbt_correlator.emitter")
    now, run_id = datetime.now(timezone.utc), str(uuid4())
    unique = "test.shop.unique_orders_id"
    node = {
        "unique_id": unique,
        "test_metadata": {"name": "unique", "kwargs": {"column_name": "id"}},
        "refs": [{"name": "plug_orders"}],
        "depends_on": {"nodes": ["model.shop.plug_orders"]},
        "attached_node": "model.shop.plug_orders",
    }
    model = {"unique_id": "model.shop.plug_orders", "database": "shop", "schema": "marts", "name": "plug_orders", "alias": "plug_orders", "resource_type": "model"}  # fmt: skip
    manifest = SimpleNamespace(nodes={unique: node, "model.shop.plug_orders": model}, sources={}, metadata={"adapter_type": "postgres"})  # fmt: skip
    result = SimpleNamespace(unique_id=unique, status="fail", failures=3, message="Got 3 results", execution_time_seconds=0.5)  # fmt: skip
    tests = emitter.construct_test_events(
        SimpleNamespace(results=[result], metadata=SimpleNamespace(generated_at=now)), manifest, "dbt", "shop.test", run_id
    )  # fmt: skip
    assert len(tests) == 1
    (target,) = tests[0].inputs
    made = emitter.construct_lineage_events(
        [
            SimpleNamespace(
                unique_id="model.shop.plug_orders",
                inputs=[SimpleNamespace(namespace="dbt", name="raw")],
                output=SimpleNamespace(namespace=target.namespace, name=target.name),
            )
        ],
        "dbt",
        emitter.PRODUCER,
        at(10),
    )
    start = emitter.create_wrapping_event("START", run_id, "shop.test", "dbt", now)
    end = emitter.create_wrapping_event("FAIL", run_id, "shop.test", "dbt", now)
    endpoint = f"{server.url}/api/v1/lineage/events"
    emitter.emit_events(
        [*made, start, *tests, end], endpoint, "some-key"
    )  # raises on anything but 200, 204, 207
    (found,) = (each for each in incidents(client, contract) if each["dataset_name"] == target.name)
    assert (found["test_name"], found["producer"]) == ("unique(id)", "correlator-dbt")
    told = client.get(f"/api/v1/incidents/{found['id']}").json()
    shaped(contract, "IncidentDetailResponse", told)
    assert told["test"]["message"] == "Got 3 results"
    assert told["job"]["name"] == "model.shop.plug_orders"
    with pytest.raises(ValueError, match="returned 404"):
        emitter.emit_events([start], f"{server.url}/api/v1/lineage/nowhere")


def test_marquez_paths_keep_marquez_shape(tmp_path: Path) -> None:
    with serving(f"sqlite:///{tmp_path}/x.db") as other:
        answer = httpx.post(f"{other.url}/api/v1/lineage", json={"eventTime": at(1)})
        assert set(answer.json()) >= {"code", "message"}
        assert answer.json()["code"] == 400
        assert httpx.post(f"{other.url}/api/v1/lineage", json=event("x", 1)).status_code == 201
        problem_ = httpx.get(f"{other.url}/api/v1/incidents/abc")
        assert problem_.headers["content-type"].startswith("application/problem+json")
    store = open_store(f"sqlite:///{tmp_path}/x.db")
    assert store.check() == []
    store.close()


# ---- ours --------------------------------------------------------------------------------------------------


def test_our_own_paths(client: httpx.Client) -> None:
    send(client, event("own_test", 40, inputs=[checked("own", False, test="own_check")]))
    found = client.get("/hw/v1/incidents", params={"kind": "test", "limit": 1000}).json()
    (one,) = (each for each in found["incidents"] if each["test"] == "own_check")
    path = f"/hw/v1/incidents/{one['id']}"
    assert client.get(path).json()["orphan"] is True
    noted = client.post(f"{path}/notes", json={"note": "looking"})
    assert (noted.status_code, noted.json()["history"][0]["note"]) == (201, "looking")
    assert client.patch(path, json={"status": "resolved", "reason": "fixed"}).json()["status"] == "resolved"
    assert client.patch(path, json={"status": "open"}).json()["status"] == "open"
    muted = client.patch(path, json={"status": "muted", "days": 3}).json()
    assert (muted["status"], muted["changedBy"]) == ("muted", "anonymous")
    assert client.patch(path, json={"status": "gone"}).status_code == 422
    assert client.post(f"{path}/notes", json={}).status_code == 422
    assert client.get("/hw/v1/incidents/7").status_code == 404
    assert client.get("/hw/v1/incidents", params={"status": "gone"}).status_code == 400
    assert set(client.get("/hw/v1/incidents/counts").json()) == {"active", "resolved", "muted"}
    watched = client.post("/hw/v1/watches", json={"pattern": "x/*", "measure": "volume"})
    assert watched.json() == [{"pattern": "x/*", "measure": "volume", "history": 20, "sensitivity": 6.0}]
    assert client.get("/hw/v1/watches").json() == watched.json()
    assert (
        client.post("/hw/v1/watches", json={"pattern": "x/*", "measure": "volume", "live": False}).json()
        == []
    )
    assert client.post("/hw/v1/watches", json={"pattern": "x/*", "measure": "mood"}).status_code == 422
    halves = {"pattern": "x/*", "measure": "volume", "history": 7.5}
    assert client.post("/hw/v1/watches", json=halves).status_code == 422
