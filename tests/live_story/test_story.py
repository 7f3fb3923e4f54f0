"""The whole story, on real systems: from a row in Postgres to a row in DuckDB, by seven tools, in one graph that is known beforehand.

What is found is compared with `expected.py` as a whole: nothing may be missing, twice or invented. Values that occur nowhere
else are put into Postgres and looked for in DuckDB, so that the data themselves say which column became which.
"""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Any
from urllib.parse import quote
from uuid import uuid4

import expected
import httpx
import live_jars
import pytest
import story as systems
from story import TOPIC, Story, say, until, until_told

import datahub_sdk
import services
from airflow_home import python_of

pytestmark = pytest.mark.live

ROWS = {
    "id": (700123, 700124),
    "customer": ("customer-5f1a", "customer-77c0"),
    "city": ("city-9b2e", "city-04d8"),
    "total": (31.25, 8.5),
    "note": ("note-c3d4", "note-1e0f"),
}
"""Column of Postgres -> its values, each of which occurs nowhere else."""


@pytest.fixture(scope="module")
def jars(need: Callable[[str, str], None]) -> Callable[[str], list[Path]]:
    """`jars("broker")`: those of a profile; everything else that is needed is looked for first."""
    if shutil.which("java") is None or shutil.which("javac") is None:
        need("Java", "apt install openjdk-17-jdk-headless")
    if services.postgres_bin() is None:
        need("Postgres", "apt install postgresql")
    if not (systems.BIN / "spark-submit").exists():
        need("pyspark", "pip install 'headwater[spark]'")
    if not list(python_of("3").parents[1].glob("lib/python*/site-packages/airflow/providers/apache/spark")):
        need("Airflow 3 with its Spark provider", "make .venvs/airflow-3/.ready")
    if not datahub_sdk.PYTHON.exists():
        need("acryl-datahub in an environment of its own", "make .venvs/datahub/.ready")
    for profile in systems.PROFILES:
        if not live_jars.have(profile):
            need(f"the jars of {profile}", f"python scripts/live_jars.py {profile}")
    return live_jars.have


@pytest.fixture(scope="module")
def story(tmp_path_factory: pytest.TempPathFactory, jars: Callable[[str], list[Path]]) -> Iterator[Story]:
    """All systems, and the first night: every row has come through to DuckDB, and all that was told has arrived."""
    with systems.told(tmp_path_factory.mktemp("story").resolve(), jars) as made:
        made.sql("CREATE DATABASE shop", "postgres")
        made.sql(
            "CREATE TABLE orders (id int PRIMARY KEY, customer text, city text, total double precision, note text)"
        )
        for row in zip(*ROWS.values(), strict=True):
            made.sql(f"INSERT INTO orders VALUES {row!r}")
        made.put("cdc")
        subject = f"{made.registry}/apis/ccompat/v7/subjects/{TOPIC}-value/versions/latest"
        until("the topic's schema in the registry", lambda: httpx.get(subject, timeout=10).is_success)
        made.put("lake")
        until("the sink's commit", lambda: list(made.root.glob("warehouse/sales/orders/data/*.parquet")))
        say("the stream runs, while the server hangs")
        with made.hung_server():
            made.stream()
            assert not made.delivered(), "a server that hangs was told of the stream"
        say("Airflow's database is made")
        made.airflow.migrate()
        _night(made, "2026-01-03")
        until_told("the watcher to know both connectors' columns", {"total", "amount"}, lambda: _fields(made))
        until("the spool to be empty", made.delivered)
        yield made


def _night(story: Story, date: str, *left_out: str) -> None:
    say(f"the DAG runs for {date}")
    log = story.nightly(date, *left_out)
    (story.root / f"nightly-{date}.log").write_text(log)
    jobs = [f"job:shop:{name}" for name in ("nightly", "nightly.gold", "nightly.mart", "gold", "mart")]

    def ended() -> bool:
        runs = story.ask("/hw/v1/runs", limit=1000)
        return all(
            len([each for each in runs if each["job"] == job and each["state"] == "COMPLETE"]) == nights
            for job in jobs
        )

    nights = len(list(story.root.glob("nightly-*.log")))
    try:
        until(f"night {nights} to be told as complete", ended)
    except AssertionError:
        print(log[-8000:])
        raise


def _fields(story: Story) -> set[str]:
    """The columns that anything tells as made of others, so far, around the topic."""
    topic = f"dataset:kafka://{story.workers.bootstrap}:{TOPIC}"
    graph = story.ask("/hw/v1/graph", node=topic, depth=1, columns="true")
    return {each["to"]["field"] for each in graph["columns"]}


# --- what is there


@dataclass
class Graph:
    """All that the server knows, in the short names of `expected`; what has none keeps its own."""

    datasets: list[str]
    jobs: list[str]
    edges: set[tuple[str, str]]
    columns: list[dict[str, Any]]
    fields: dict[str, list[str]]
    places: dict[str, str]


def _places(story: Story) -> dict[str, str]:
    """Node id -> its short name in `expected`."""
    at = {"postgres": str(story.postgres), "kafka": story.workers.bootstrap, "root": str(story.root)}
    named = {f"dataset:{ns}:{name}".format(**at): short for short, (ns, name) in expected.DATASETS.items()}
    return named | {f"job:{ns}:{name}": short for short, (ns, name) in expected.JOBS.items()}


def _every(story: Story, kind: str) -> list[str]:
    """The id of every dataset, or job, of every namespace."""
    return [
        f"{kind}:{each['namespace']}:{each['name']}"
        for namespace in story.ask("/api/v1/namespaces", limit=1000)["namespaces"]
        for each in story.ask(f"/api/v1/namespaces/{quote(namespace['name'], safe='')}/{kind}s", limit=1000)[
            f"{kind}s"
        ]
    ]


@pytest.fixture(scope="module")
def graph(story: Story) -> Graph:
    """As it is after the first night: every dataset of every namespace, and every edge of each."""
    places = _places(story)
    ids, jobs = (_every(story, kind) for kind in ("dataset", "job"))
    edges: set[tuple[str, str]] = set()
    columns: dict[str, dict[str, Any]] = {}
    for node in ids:
        found = story.ask("/hw/v1/graph", node=node, columns="true")
        edges |= {(each["from"], each["to"]) for each in found["edges"]}
        columns |= {json.dumps([each["from"], each["to"]]): each for each in found["columns"]}
    return Graph(
        [places.get(each, each) for each in ids],
        [each.removeprefix("job:shop:") for each in jobs],
        {(places.get(a, a), places.get(b, b)) for a, b in edges},
        list(columns.values()),
        {
            places.get(each, each): [field["name"] for field in story.ask("/hw/v1/show", node=each)["fields"]]
            for each in ids
        },
        places,
    )


def test_every_dataset_is_one_node_and_every_edge_is_found(graph: Graph) -> None:
    nodes = len(set(graph.datasets) & expected.DATASETS.keys())
    edges = len(graph.edges & expected.EDGES)
    direct, decided = _paths(graph)
    every = expected.IDENTITY | expected.DERIVED | expected.DECIDED
    print(
        f"\nnodes {nodes}/{len(expected.DATASETS)}, edges {edges}/{len(expected.EDGES)},"
        f" column paths {len((direct.keys() | decided) & every)}/{len(every)}"
    )
    assert sorted(graph.datasets) == sorted(expected.DATASETS)  # a list: none is there twice
    assert graph.edges == expected.EDGES
    names = [name for _, name in expected.JOBS.values()]
    assert sorted(graph.jobs) == sorted([*names, *expected.ABOVE])


# --- columns


def test_every_dataset_has_the_columns_that_it_really_has(graph: Graph) -> None:
    """A reader that knows less, or calls them otherwise, takes none away."""
    assert graph.fields == expected.FIELDS


Column = tuple[str, str]


def _paths(graph: Graph) -> tuple[dict[Column, bool], set[Column]]:
    """Pairs of a column of Postgres and one of DuckDB: by values, and whether by identity all the way; by what decided."""
    steps: dict[Column, list[tuple[Column, set[str]]]] = {}
    for each in graph.columns:
        source, target = (
            (graph.places.get(each[end]["dataset"], each[end]["dataset"]), each[end]["field"])
            for end in ("from", "to")
        )
        steps.setdefault(source, []).append((target, set(each["kinds"])))
    direct: dict[Column, bool] = {}
    decided: set[Column] = set()
    for column in expected.COLUMNS:
        # (where, by values so far, unchanged so far)
        met = {(("table", column), True, True)}
        new = list(met)
        while new:
            here, valued, same = new.pop()
            for target, kinds in steps.get(here, []):
                for kind in kinds:
                    way = kind.partition("+")[0]
                    state = (
                        target,
                        valued and way.startswith("DIRECT"),
                        same and way == "DIRECT:IDENTITY",
                    )
                    if state not in met:
                        met.add(state)
                        new.append(state)
        for (dataset, field), valued, same in met:
            if dataset == "mart" and valued:
                direct[column, field] = direct.get((column, field), False) or same
            elif dataset == "mart":
                decided.add((column, field))
    return direct, decided


def test_column_paths_from_postgres_to_duckdb_are_those_and_no_others(graph: Graph) -> None:
    direct, decided = _paths(graph)
    assert {pair for pair, same in direct.items() if same} == expected.IDENTITY
    assert {pair for pair, same in direct.items() if not same} == expected.DERIVED
    assert decided - direct.keys() == expected.DECIDED
    assert not any(column == "note" for column, _ in {*direct, *decided})


def test_the_data_themselves_say_the_same(story: Story, graph: Graph) -> None:
    """Each value of Postgres is looked for in every column of DuckDB."""
    columns, rows = _mart(story)
    assert len(rows) == len(ROWS["id"])
    found = {
        (column, columns[at])
        for column, values in ROWS.items()
        for at in range(len(columns))
        if {row[at] for row in rows} == set(values)
    }
    direct, _ = _paths(graph)
    assert found == {pair for pair, same in direct.items() if same}
    assert found == expected.IDENTITY


def _mart(story: Story) -> tuple[list[str], list[tuple[Any, ...]]]:
    """The table in DuckDB: its columns, its rows."""
    import duckdb

    with duckdb.connect(f"{story.places['LAKE']}/shop.duckdb", read_only=True) as connection:
        found = connection.execute("SELECT * FROM mart.orders ORDER BY id")
        return [each[0] for each in found.description], found.fetchall()


def test_what_breaks_with_a_column_of_postgres(story: Story, graph: Graph) -> None:
    node = f"dataset:postgres://127.0.0.1:{story.postgres}:shop.public.orders"
    told = story.told("impact", node, "--column", "total")
    reached = {
        graph.places[each["id"]]: {column["field"] for column in each["columns"]} for each in told["datasets"]
    }
    assert reached == {
        "topic": {"total"},
        "sink": {"amount"},
        "fresh": {"cents"},
        "gold": {"amount", "cents"},
        "mart": {"amount", "cents"},
    }
    assert told["unsure"] == []
    told = story.told("impact", node, "--column", "note", "--fail-over", "2")
    assert {graph.places[each["id"]] for each in told["datasets"]} == {"topic", "sink"}
    story.told("impact", node, "--column", "city", "--fail-over", "2", ok=(6,))


# --- runs


def _tree(story: Story) -> list[tuple[str, str | None]]:
    """Each run that a DAG run began, and that itself: (job, job of its parent)."""
    runs = {each["id"]: each for each in story.ask("/hw/v1/runs", limit=1000)}
    dags = {each["id"] for each in runs.values() if each["job"] == "job:shop:nightly"}
    found = [each for each in runs.values() if each["id"] in dags or each["root"] in dags]
    bare = {None: None} | {key: each["job"].removeprefix("job:shop:") for key, each in runs.items()}
    assert all(each["state"] == "COMPLETE" for each in found), found
    return sorted((bare[each["id"]], bare[each["parent"]]) for each in found)  # type: ignore[arg-type]


def test_runs_are_one_tree_from_dag_to_query(story: Story, graph: Graph) -> None:
    assert _tree(story) == sorted(expected.TREE.items())


# --- a bad night


@pytest.fixture(scope="module")
def bad_night(story: Story, graph: Graph) -> dict[str, Any]:
    """The batch runs again without a column; whoever checks DuckDB finds the column empty, and says so -> the incident."""
    _night(story, "2026-01-04", "city")
    until("the spool to be empty", story.delivered)
    columns, rows = _mart(story)
    assert [row[columns.index("city")] for row in rows] == [None, None]
    namespace, name = (each.format(root=story.root) for each in expected.DATASETS["mart"])
    event = {
        "eventType": "COMPLETE",
        "eventTime": datetime.now(timezone.utc).isoformat(),
        "producer": "https://example.org/checks",
        "schemaURL": "https://openlineage.io/spec/2-0-2/OpenLineage.json#/$defs/RunEvent",
        "run": {"runId": str(uuid4())},
        "job": {"namespace": "shop", "name": "checks"},
        "inputs": [
            {
                "namespace": namespace,
                "name": name,
                "inputFacets": {
                    "dataQualityAssertions": {
                        "_producer": "https://example.org/checks",
                        "_schemaURL": "https://openlineage.io/spec/facets/1-0-1/DataQualityAssertionsDatasetFacet.json",
                        "assertions": [{"assertion": "not_null", "column": "city", "success": False}],
                    }
                },
            }
        ],
        "outputs": [],
    }
    answer = httpx.post(f"{story.server.url}/api/v1/lineage", json=event, timeout=60)
    assert answer.status_code == 201, answer.text
    (found,) = (each for each in story.told("incidents", "list")["incidents"] if each["kind"] == "test")
    shown: dict[str, Any] = story.told("incidents", "show", found["id"])
    return shown


def test_the_load_is_blamed_and_the_batch_behind_it_suspected_first(
    story: Story, bad_night: dict[str, Any]
) -> None:
    assert not bad_night["orphan"]
    assert bad_night["column"] == "city"
    runs = [each for each in story.ask("/hw/v1/runs", limit=1000) if each["state"] == "COMPLETE"]
    last = {}
    for each in sorted(runs, key=lambda run: str(run["startedAt"])):
        last[each["job"]] = each["id"]
    batch, load = (f"job:{ns}:{name}" for ns, name in (expected.JOBS["batch"], expected.JOBS["load"]))
    assert bad_night["blamed"]["runId"] == last[load]
    first = bad_night["suspects"][0]
    assert (first["job"], first["runId"]) == (batch, last[batch])
    assert any("city" in each for each in first["reasons"] if each.startswith("changed the schema")), first
    suspects = {each["job"] for each in bad_night["suspects"]}
    assert suspects == {f"job:{ns}:{name}" for ns, name in expected.JOBS.values()}


def test_the_second_night_is_another_tree_of_the_same_form(story: Story, bad_night: dict[str, Any]) -> None:
    assert _tree(story) == sorted([*expected.TREE.items()] * 2, key=lambda each: (each[0], str(each[1])))


# --- DataHub


def _edges(proposals: list[dict[str, Any]]) -> set[tuple[str, str]]:
    """(urn of a dataset, urn of a job) where it reads, the other way round where it writes."""
    told = [
        (each["entityUrn"], each["aspect"]["json"])
        for each in proposals
        if each["aspectName"] == "dataJobInputOutput"
    ]
    reads = {
        (edge["destinationUrn"], job) for job, said in told for edge in said.get("inputDatasetEdges", [])
    }
    return reads | {
        (job, edge["destinationUrn"]) for job, said in told for edge in said.get("outputDatasetEdges", [])
    }


def _fields_of(proposals: list[dict[str, Any]]) -> set[tuple[str, str, str]]:
    """(urn of a job, urn of a field it reads, urn of the field it makes of it)."""
    return {
        (each["entityUrn"], source, target)
        for each in proposals
        if each["aspectName"] == "dataJobInputOutput"
        for way in each["aspect"]["json"].get("fineGrainedLineages", [])
        for source in way.get("upstreams", [])
        for target in way["downstreams"]
    }


def test_datahub_is_told_the_same_as_a_file_and_by_kafka(story: Story, bad_night: dict[str, Any]) -> None:
    urns = {short: urn.format(root=story.root) for short, urn in expected.URNS.items()}
    every = {**urns, **expected.DATAJOBS}
    wanted = {(every[a], every[b]) for a, b in expected.EDGES}
    wanted.add((urns["mart"], "urn:li:dataJob:(urn:li:dataFlow:(checks,checks,shop),checks)"))
    file = Path(story.places["PROPOSALS"])
    metrics = lambda: httpx.get(f"{story.server.url}/metrics", timeout=60).text  # noqa: E731
    until("the server to have told DataHub all", lambda: "headwater_datahub_lag_entries 0.0" in metrics())
    until_told("the file to hold every edge", wanted, lambda: _edges(json.loads(file.read_text())))
    in_file = json.loads(file.read_text())

    log = story.root / "log.jsonl"
    log.write_text(httpx.get(f"{story.server.url}/hw/v1/export", timeout=60).text)
    registry = quote(f"{story.registry}/apis/ccompat/v7", safe="")
    to = f"datahub+kafka://{story.workers.bootstrap}/MetadataChangeProposal_v1?schema_registry={registry}"
    emit = ["headwater", "datahub", "emit", str(log), "--to", to, "--coalesce", "application", "--json"]
    sent = json.loads(story.run(*emit, settings="server.toml"))  # with the server's own options
    say(f"sent to DataHub's topic: {sent}")
    count = sent["proposals"]
    records = datahub_sdk.records(
        story.workers.bootstrap, "MetadataChangeProposal_v1", f"{story.registry}/apis/ccompat/v7", count
    )
    on_topic = [
        {**each["value"], "aspect": {"json": json.loads(each["value"]["aspect"]["value"])}}
        for each in records
    ]
    for form in (in_file, on_topic):
        assert datahub_sdk.wrong(form) == []
        assert _edges(form) == wanted
        datasets = {each["entityUrn"] for each in form if each["entityType"] == "dataset"}
        assert datasets == {*urns.values()}
    assert _fields_of(in_file) == _fields_of(on_topic)
    total, amount = (
        f"urn:li:schemaField:({urns[each]},{field})"
        for each, field in (("topic", "total"), ("sink", "amount"))
    )
    assert (expected.DATAJOBS["lake"], total, amount) in _fields_of(in_file)


# --- the end


def test_no_secret_was_told(story: Story, bad_night: dict[str, Any]) -> None:
    log = httpx.get(f"{story.server.url}/hw/v1/export", timeout=60).text
    files = (Path(story.places["PROPOSALS"]), story.root / "watch.log")
    for text in (log, *(file.read_text() for file in files)):
        assert text
        assert systems.PASSWORD not in text


def test_nothing_is_left_behind(story: Story) -> None:
    """The last: it ends the story."""
    for name, port in story.ports.items():
        assert services.listens(port), f"{name} was to listen at {port}"
    before = story.left()
    assert set(story.pids.values()) <= before.keys(), "the mark does not find what was started"
    story.close()
    until("every process to be gone", lambda: not story.left(), 60)
    assert story.left() == {}
    for name, port in story.ports.items():
        assert not services.listens(port), f"{name} still listens at {port}"
    print(f"ended: {', '.join(story.pids)}; nothing left of {len(before)} processes", file=sys.stderr)
