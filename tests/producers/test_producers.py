"""Producers that are not ours, through a real server: what they send is what one sees, and one table is one node.

`recorded/` was told by the tools themselves: `dbt.jsonl` by `dbt-ol run` and `dbt-ol test` (openlineage-dbt 1.54, dbt 1.10, Postgres),
`dbt_structured_logs.jsonl` by `dbt-ol build --consume-structured-logs`, `great_expectations.jsonl` by a checkpoint with OpenLineage's
action (1.39, Great Expectations 0.15.34) on the table that dbt made; only the database's address was changed to `warehouse:5432`.
Flink's and dbt-on-Spark's events lie beside the project. Trino's have the shape that its listener gives them: no Trino is at hand.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import NAMESPACE_URL, uuid5

import httpx
import pytest

from headwater.naming import Dataset, from_catalog, from_jdbc, from_path
from serving import serving

RECORDED = Path(__file__).parent / "recorded"
WAREHOUSE = "postgres://warehouse:5432"
UNNAMED = "postgresql+psycopg2://warehouse"
"""What Great Expectations calls the same: it does not say which database."""
TRINO = "trino://trino.example.org:8080"


class Asked:
    """A server, fed and asked over HTTP as people and producers do."""

    def __init__(self, client: httpx.Client) -> None:
        self.client = client

    def take(self, *events: dict[str, Any]) -> None:
        """Send one at a time, as OpenLineage's clients do; none may be refused."""
        for each in events:
            answer = self.client.post("/api/v1/lineage", json=each)
            assert answer.status_code == 201, answer.text

    def get(self, path: str, **parameters: Any) -> Any:
        answer = self.client.get(f"/hw/v1/{path}", params=parameters)
        assert answer.status_code == 200, answer.text
        return answer.json()

    def edges(self, node: str, **more: Any) -> set[tuple[str, str]]:
        return {(each["from"], each["to"]) for each in self.get("graph", node=node, **more)["edges"]}

    def columns(self, node: str, **more: Any) -> set[tuple[str, str]]:
        found = self.get("graph", node=node, columns="true", **more)["columns"]
        return {
            tuple(f"{each[end]['dataset'].rpartition(':')[2]}.{each[end]['field']}" for end in ("from", "to"))  # type: ignore[misc]
            for each in found
        }

    def datasets(self, named: str) -> set[str]:
        """Every dataset whose name holds a word."""
        return {each["id"] for each in self.get("search", q=named, type="dataset", limit=100)}

    def incidents(self) -> list[dict[str, Any]]:
        """The open ones, each with who is blamed."""
        listed = self.get("incidents", status="active", days=3_650)["incidents"]
        return [self.get(f"incidents/{each['id']}") for each in listed]

    def alias(self, **rule: str) -> None:
        answer = self.client.put("/hw/v1/aliases", json=rule)
        assert answer.is_success, answer.text


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Asked]:
    with (
        serving(f"sqlite:///{tmp_path}/x.db") as started,
        httpx.Client(base_url=started.url, timeout=30) as client,
    ):
        yield Asked(client)


def recorded(name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (RECORDED / name).read_text().splitlines() if line]


def beside(shared: Path, name: str) -> list[dict[str, Any]]:
    text = (shared / "events" / "rentgen" / name).read_text()
    return [json.loads(line) for line in text.splitlines() if line]


def of_spark(name: str, inputs: list[Any], outputs: list[Any], at: str) -> dict[str, Any]:
    """A run of a Spark application, with the names that our capture gives."""

    def told(each: Any) -> dict[str, Any]:
        links = [
            {"namespace": link.namespace, "name": link.name, "type": link.type} for link in each.symlinks
        ]
        facets = {"symlinks": {"identifiers": links}} if links else {}
        return {"namespace": each.namespace, "name": each.name, "facets": facets}

    return {
        "eventType": "COMPLETE",
        "eventTime": at,
        "producer": "https://example.org/spark",
        "run": {"runId": str(uuid5(NAMESPACE_URL, name + at))},
        "job": {"namespace": "spark", "name": name},
        "inputs": [told(each) for each in inputs],
        "outputs": [told(each) for each in outputs],
    }


# --- what the pages tell


def test_every_rule_that_a_page_shows_is_one_that_was_tried() -> None:
    """The rules to paste are those of the tests below, word for word."""
    pages = Path(__file__).parents[2] / "docs" / "producers"
    found = {
        each.stem: re.findall(r"```json\n\s*(.*?)\s*```", each.read_text(), re.DOTALL)
        for each in pages.glob("*.md")
    }
    assert {name: len(rules) for name, rules in found.items()} == {
        "dbt": 2, "trino": 2, "great-expectations": 1, "flink": 0,
    }  # fmt: skip
    shown = [json.loads(rule) for rules in found.values() for rule in rules]
    tried = (ON_SPARK, ON_SNOWFLAKE, ON_POSTGRES, ON_THE_LAKE, UNNAMED_TO_NAMED)
    assert sorted(shown, key=str) == sorted(tried, key=str)


ON_SPARK = {
    "namespace": "spark://localhost:10000", "name": "{db}.{table}",
    "to_namespace": "hive://metastore:9083", "to_name": "{db}.{table}",
}  # fmt: skip
ON_SNOWFLAKE = {"namespace": "snowflake://{account}", "name": "{table*}", "to_name": "{table*:upper}"}
ON_POSTGRES = {
    "namespace": TRINO, "name": "pg.{schema}.{table}",
    "to_namespace": WAREHOUSE, "to_name": "shop.{schema}.{table}",
}  # fmt: skip
ON_THE_LAKE = {
    "namespace": TRINO, "name": "lake.{schema}.{table}",
    "to_namespace": "hive://metastore:9083", "to_name": "{schema}.{table}",
}  # fmt: skip
UNNAMED_TO_NAMED = {
    "namespace": UNNAMED, "name": "{schema}.{table}",
    "to_namespace": WAREHOUSE, "to_name": "shop.{schema}.{table}",
}  # fmt: skip


# --- everybody


def test_whatever_others_recorded_is_taken_and_every_name_in_it_leads_somewhere(
    server: Asked, shared: Path
) -> None:
    """Airflow, dbt, Flink, Hive, Spark and tools unknown, and what Marquez is tested with: by the name that an event gave it,
    each dataset and job is found, and each input and output of a run that completed is an edge of its job."""
    files = sorted((shared / "events").rglob("*.json*"))
    events = []
    for file in files:
        if file.name.startswith("food_delivery"):  # a template, not yet events
            continue
        text = file.read_text()
        told = (
            [json.loads(text)]
            if file.suffix == ".json"
            else [json.loads(line) for line in text.splitlines() if line]
        )
        events += [each for one in told for each in (one if isinstance(one, list) else [one])]
    assert len(events) > 20
    answers = server.client.post("/api/v1/lineage/batch", json=events).json()
    assert answers["summary"]["failed"] == 0, answers
    jobs, datasets, pairs = set(), set(), set()
    for event in events:
        job = event.get("job")
        named = [*(event.get("inputs") or ()), *(event.get("outputs") or ())]
        named += [event["dataset"]] if event.get("dataset") else []
        datasets |= {(each["namespace"], each["name"]) for each in named}
        if job:
            jobs.add((job["namespace"], job["name"]))
            if event.get("eventType") == "COMPLETE":
                pairs |= {
                    ((job["namespace"], job["name"]), (each["namespace"], each["name"])) for each in named
                }
    ids: dict[tuple[str, str, str], str] = {}
    for kind, names in (("job", jobs), ("dataset", datasets)):
        for namespace, name in names:
            ids[kind, namespace, name] = server.get("show", node=f"{kind}:{namespace}:{name}")["id"]
    assert pairs
    for job, dataset in pairs:
        mine, its = ids[("job", *job)], ids[("dataset", *dataset)]
        assert {(mine, its), (its, mine)} & server.edges(mine), (job, dataset)


# --- dbt


def test_dbt_models_columns_and_tests(server: Asked) -> None:
    server.take(*recorded("dbt.jsonl"))
    orders, staged, revenue = (
        f"dataset:{WAREHOUSE}:shop.{table}" for table in ("raw.orders", "marts.stg_orders", "marts.revenue")
    )
    first, second = (f"job:dbt-shop:shop.marts.shop.{model}" for model in ("stg_orders", "revenue"))
    assert {(orders, first), (first, staged), (staged, second), (second, revenue)} <= server.edges(
        staged, depth=5
    )
    assert {
        ("shop.raw.orders.id", "shop.marts.stg_orders.order_id"),
        ("shop.marts.stg_orders.amount", "shop.marts.revenue.revenue"),
    } <= server.columns(revenue, direction="up", depth=5)
    assert server.get("show", node=staged)["description"] == "Orders as they came."
    # models hang below the invocation that ran them
    (invocation, *_) = server.get("runs", job="job:dbt-shop:dbt-run-shop", state="COMPLETE")
    parts = server.get("show", node=invocation["id"])["children"]
    assert {each["job"] for each in parts} == {first, second}


def test_a_failed_dbt_test_blames_the_model_that_wrote_the_table(server: Asked) -> None:
    events = recorded("dbt.jsonl")
    server.take(*events)
    (incident,) = server.incidents()
    assert (incident["kind"], incident["test"], incident["column"]) == (
        "test",
        "unique_stg_orders_order_id",
        "order_id",
    )
    (wrote,) = {
        each["run"]["runId"]
        for each in events
        if each["outputs"] and each["job"]["name"].endswith("shop.stg_orders")
    }
    assert incident["blamed"]["runId"] == wrote
    assert incident["dataset"] == f"dataset:{WAREHOUSE}:shop.marts.stg_orders"
    hit = {each["id"] for each in incident["impact"]["datasets"]}
    assert f"dataset:{WAREHOUSE}:shop.marts.revenue" in hit


def test_dbt_as_it_goes_tells_the_same_and_a_skipped_test_is_no_incident(server: Asked) -> None:
    """dbt says `success: false` of a test that it never ran, because the model before it had failed."""
    events = recorded("dbt_structured_logs.jsonl")
    skipped = [
        each for each in events if each["eventType"] == "ABORT" and each["job"]["name"].startswith("test.")
    ]
    assert skipped
    server.take(*events)
    found = server.incidents()
    assert [each["test"] for each in found] == ["unique_stg_orders_order_id"]
    assert found[0]["blamed"]["job"] == "job:dbt-shop:model.shop.stg_orders"
    edges = server.edges(f"dataset:{WAREHOUSE}:shop.marts.stg_orders", depth=3)
    assert (f"dataset:{WAREHOUSE}:shop.raw.orders", "job:dbt-shop:model.shop.stg_orders") in edges


def test_a_table_of_dbt_is_the_one_that_spark_reads(server: Asked) -> None:
    """By JDBC, by whatever spelling: the same node, without any rule."""
    server.take(*recorded("dbt.jsonl"))
    urls = ("jdbc:postgresql://warehouse/shop", "jdbc:postgresql://WAREHOUSE:5432/shop?user=me")
    lake = from_path("s3a://lake/revenue")
    for number, url in enumerate(urls):
        table = from_jdbc(url, "marts.revenue")
        server.take(of_spark(f"export{number}", [table], [lake], f"2026-11-17T0{number}:00:00Z"))
    assert server.datasets("revenue") == {
        f"dataset:{WAREHOUSE}:shop.marts.revenue",
        "dataset:s3://lake:revenue",
    }
    up = server.edges("dataset:s3://lake:revenue", direction="up", depth=9)
    assert (f"dataset:{WAREHOUSE}:shop.raw.orders", "job:dbt-shop:shop.marts.shop.stg_orders") in up


def test_dbt_on_spark_meets_spark_by_one_rule(server: Asked, shared: Path) -> None:
    """dbt names what its Thrift server shows, `spark://host:port`; Spark itself names the place and the metastore."""
    server.take(*beside(shared, "events_dbt.jsonl"))
    source = from_catalog(
        "hive", "demo_schema.source_table", uri="thrift://metastore:9083", warehouse="s3://lake/wh"
    )
    server.take(of_spark("load", [], [source], "2025-05-20T08:00:00Z"))
    target = "dataset:spark://localhost:10000:demo_schema.target_table"
    up = server.edges(target, direction="up", depth=5)
    assert ("job:spark:load", "dataset:s3://lake:wh/demo_schema.db/source_table") not in up
    server.alias(**ON_SPARK)
    (known,) = server.datasets("source_table")
    assert known == "dataset:s3://lake:wh/demo_schema.db/source_table"
    made = "dataset:hive://metastore:9083:demo_schema.target_table"
    up = server.edges(made, direction="up", depth=5)
    assert ("job:spark:load", known) in up
    assert ("demo_schema.source_table.complex_id", "demo_schema.target_table.complex_id") in {
        tuple(part.replace("wh/demo_schema.db/", "demo_schema.") for part in each)
        for each in server.columns(made, direction="up")
    }


def test_dbt_on_snowflake_meets_others_by_one_rule(server: Asked) -> None:
    """dbt names databases and schemas as a profile writes them; Snowflake itself, and who reads it, has capitals."""
    profile = Dataset("snowflake://org-acc", "shop.marts.revenue")
    server.take(of_spark("model", [], [profile], "2026-11-17T01:00:00Z"))
    table = from_jdbc("jdbc:snowflake://Org-Acc.snowflakecomputing.com/?db=shop&schema=marts", "revenue")
    server.take(of_spark("report", [table], [], "2026-11-17T02:00:00Z"))
    made = "dataset:snowflake://org-acc:SHOP.MARTS.REVENUE"
    assert server.edges(made, depth=5) == {(made, "job:spark:report")}
    server.alias(**ON_SNOWFLAKE)
    assert server.edges(made, depth=5) == {("job:spark:model", made), (made, "job:spark:report")}


# --- Flink


def test_flink_reads_and_writes_topics_that_others_know(server: Asked, shared: Path) -> None:
    events = beside(shared, "events_flink.jsonl")
    server.take(*events)
    job = "job:http://localhost:18081:insert-into_default_catalog.default_database.kafka_output"
    read, written = (
        "dataset:kafka://kafka-host1:9092:input_topic",
        "dataset:kafka://kafka-host2:9092:output_topic",
    )
    assert server.edges(job) == {(read, job), (job, written)}
    fields = {each["name"]: each["type"] for each in server.get("show", node=read)["fields"]}
    assert fields["log_ts"] == "TIMESTAMP(3)"
    (run,) = server.get("runs", job=job)
    assert run["state"] == "COMPLETE"
    # the table of Flink's catalog is another name of the topic, and no second node
    assert server.datasets("kafka_input") <= {read}
    from headwater.naming import from_topic

    topic = from_topic("SASL_SSL://KAFKA-HOST2:9092,kafka-host3:9092", "output_topic")
    server.take(of_spark("sink", [topic], [from_path("s3://lake/out")], "2025-04-22T09:00:00Z"))
    assert server.datasets("output_topic") == {written}
    assert (read, job) in server.edges("dataset:s3://lake:out", direction="up", depth=5)
    assert server.incidents() == []


# --- Trino: events of the shape that its listener documents, and its own tests hold it to


def of_trino(
    query: str, at: str, *, state: str = "COMPLETE", sql: str = "", reads: Any = (), writes: Any = None
) -> Any:
    """What Trino's listener sends when a query begins, and when it ends."""
    facet = {
        "_producer": "https://github.com/trinodb/trino/plugin/trino-openlineage",
        "_schemaURL": "https://openlineage.io/spec/x",
    }
    context = {
        "server_address": "trino.example.org",
        "environment": "production",
        "query_type": "INSERT",
        "user": "ann",
    }
    run = {
        "processing_engine": {**facet, "name": "trino", "version": "479"},
        "trino_metadata": {**facet, "query_id": query, "transaction_id": "9b2f"},
        "trino_query_context": {**facet, **context},
    }
    begun = {
        "eventType": "START", "eventTime": f"{at}:00Z", "producer": facet["_producer"],
        "schemaURL": "https://openlineage.io/spec/2-0-2/OpenLineage.json#/$defs/RunEvent",
        "run": {"runId": str(uuid5(NAMESPACE_URL, query)), "facets": run},
        "job": {"namespace": TRINO, "name": query, "facets": {
            "jobType": {**facet, "processingType": "BATCH", "integration": "TRINO", "jobType": "QUERY"},
            "sql": {**facet, "query": sql},
        }},
    }  # fmt: skip
    done = {**begun, "eventType": state, "eventTime": f"{at}:09Z"}
    more = {"trino_query_statistics": {**facet, "wall_time": "1.0", "output_rows": "3"}}
    if state == "FAIL":
        more["errorMessage"] = {
            **facet,
            "message": "line 1:15: Table 'lake.shop.gone' does not exist",
            "programmingLanguage": "SQL",
        }
    done["run"] = {**begun["run"], "facets": {**run, **more}}
    done["inputs"] = [
        {
            "namespace": TRINO,
            "name": name,
            "facets": {"schema": {**facet, "fields": [{"name": each} for each in fields]}},
        }
        for name, fields in reads
    ]
    done["outputs"] = []
    if writes is not None:
        name, columns = writes
        lineage = {
            column: {"inputFields": [{
                "namespace": TRINO, "name": source, "field": field,
                "transformations": [{"type": "DIRECT", "subtype": subtype, "masking": False}],
            }]} for column, source, field, subtype in columns
        }  # fmt: skip
        schema = [{"name": column, "type": "varchar"} for column, *_ in columns]
        facets = {"schema": {**facet, "fields": schema}, "columnLineage": {**facet, "fields": lineage}}
        done["outputs"] = [{"namespace": TRINO, "name": name, "facets": facets}]
    return begun, done


CTAS = {
    "sql": "CREATE TABLE lake.shop.best AS SELECT customer, revenue FROM pg.marts.revenue",
    "reads": [("pg.marts.revenue", ["customer", "revenue"])],
    "writes": ("lake.shop.best", [
        ("customer", "pg.marts.revenue", "customer", "IDENTITY"), ("revenue", "pg.marts.revenue", "revenue", "IDENTITY"),
    ]),
}  # fmt: skip


def test_trino_queries_and_their_columns(server: Asked) -> None:
    server.take(*of_trino("20261116_180000_00001_abcde", "2026-11-16T18:00", **CTAS))
    job = f"job:{TRINO}:20261116_180000_00001_abcde"
    source, target = f"dataset:{TRINO}:pg.marts.revenue", f"dataset:{TRINO}:lake.shop.best"
    assert server.edges(job) == {(source, job), (job, target)}
    assert server.columns(target, direction="up") == {
        ("pg.marts.revenue.customer", "lake.shop.best.customer"),
        ("pg.marts.revenue.revenue", "lake.shop.best.revenue"),
    }
    server.take(*of_trino("20261116_180500_00002_abcde", "2026-11-16T18:05", state="FAIL"))
    (incident,) = server.incidents()
    assert incident["kind"] == "run"
    assert "does not exist" in json.dumps(incident)


def test_dbt_on_trino_and_trinos_listener_name_one_table_alike(server: Asked) -> None:
    """dbt takes host and port of its profile, the listener those of its own setting: an upper-case host is no other."""
    server.take(*of_trino("20261116_180000_00001_abcde", "2026-11-16T18:00", **CTAS))
    model = of_spark("model", [], [], "2026-11-16T19:00:00Z")
    table = {"namespace": TRINO.replace("trino.example", "Trino.Example"), "name": "lake.shop.best"}
    server.take(
        {**model, "inputs": [table], "job": {"namespace": "dbt-shop", "name": "lake.shop.shop.best_of"}}
    )
    assert server.datasets("best") == {f"dataset:{TRINO}:lake.shop.best"}


def test_a_catalog_of_trino_is_told_once_where_it_lies(server: Asked) -> None:
    """dbt on Postgres -> Trino -> Spark on the lake: three tools, three names, one line; with one rule for each catalog."""
    server.take(*recorded("dbt.jsonl"))
    server.take(*of_trino("20261116_180000_00001_abcde", "2026-11-16T18:00", **CTAS))
    best = from_catalog("hive", "shop.best", uri="thrift://metastore:9083", warehouse="s3://lake/wh")
    server.take(of_spark("report", [best], [from_path("s3://lake/report")], "2026-11-16T20:00:00Z"))
    report = "dataset:s3://lake:report"
    assert len(server.edges(report, direction="up", depth=20)) == 2

    server.alias(**ON_POSTGRES)
    server.alias(**ON_THE_LAKE)
    up = server.edges(report, direction="up", depth=20)
    assert (f"dataset:{WAREHOUSE}:shop.raw.orders", "job:dbt-shop:shop.marts.shop.stg_orders") in up
    assert server.datasets("best") == {"dataset:s3://lake:wh/shop.db/best"}
    best_now = "dataset:s3://lake:wh/shop.db/best"
    assert ("shop.marts.revenue.revenue", "wh/shop.db/best.revenue") in server.columns(
        best_now, direction="up"
    )


# --- Great Expectations


def test_expectations_that_fail_are_incidents_and_one_rule_finds_who_wrote(server: Asked) -> None:
    """Its action names a table by SQLAlchemy's url, without port and database: an orphan, until a rule says which."""
    written, checked = recorded("dbt.jsonl"), recorded("great_expectations.jsonl")[:1]
    server.take(*[each for each in written if not each["job"]["name"].endswith(".test")])
    server.take(*checked)
    found = {(each["test"], each["column"]): each for each in server.incidents() if each["kind"] == "test"}
    assert found.keys() == {
        ("expect_column_values_to_not_be_null", "customer"),
        ("expect_column_values_to_be_unique", "order_id"),
    }
    assert all(each["orphan"] for each in found.values())
    assert {each["dataset"] for each in found.values()} == {f"dataset:{UNNAMED}:marts.stg_orders"}
    server.alias(
        namespace="postgresql+psycopg2://warehouse", name="{schema}.{table}",
        to_namespace=WAREHOUSE, to_name="shop.{schema}.{table}",
    )  # fmt: skip
    for each in server.incidents():
        if each["kind"] == "test":
            assert not each["orphan"]
            assert each["blamed"]["job"] == "job:dbt-shop:shop.marts.shop.stg_orders"
            assert each["dataset"] == f"dataset:{WAREHOUSE}:shop.marts.stg_orders"
    assert server.datasets("stg_orders") == {f"dataset:{WAREHOUSE}:shop.marts.stg_orders"}


def test_a_rule_for_great_expectations_is_suggested(server: Asked) -> None:
    """What the docs tell to write by hand, the server finds by itself where the names of the tables agree."""
    server.take(*recorded("dbt.jsonl"), *recorded("great_expectations.jsonl"))
    told = server.get("correlation")
    assert told["suggested_patterns"], told
    best = told["suggested_patterns"][0]
    answer = server.client.post(
        "/hw/v1/correlation/patterns", json={"pattern": best["pattern"], "canonical": best["canonical"]}
    )
    assert answer.is_success, answer.text
    assert server.datasets("stg_orders") == {f"dataset:{WAREHOUSE}:shop.marts.stg_orders"}


def test_a_query_of_great_expectations_checks_every_table_in_it(server: Asked) -> None:
    """As its action tells it: the same checks for both tables of a join, the column that only one has included."""
    server.take(recorded("great_expectations.jsonl")[1])
    found = {(each["dataset"], each["test"]) for each in server.incidents() if each["kind"] == "test"}
    assert found == {
        (f"dataset:{UNNAMED}:marts.{table}", "expect_column_values_to_be_unique")
        for table in ("stg_orders", "revenue")
    }


def test_where_a_name_has_no_schema_great_expectations_needs_no_rule(server: Asked) -> None:
    """Its form for MySQL: the driver in the scheme, no port, `database.table`."""
    (told,) = recorded("great_expectations.jsonl")[:1]
    (table,) = told["inputs"]
    server.take(
        {**told, "inputs": [{**table, "namespace": "mysql+pymysql://Warehouse", "name": "shop.orders"}]}
    )
    read = from_jdbc("jdbc:mysql://warehouse/shop", "orders")
    server.take(of_spark("load", [], [read], "2026-11-16T09:00:00Z"))
    assert server.datasets("orders") == {"dataset:mysql://warehouse:3306:shop.orders"}
    assert {each["blamed"]["job"] for each in server.incidents()} == {"job:spark:load"}
