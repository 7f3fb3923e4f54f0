"""A row of Postgres, by Debezium through Kafka into another table, into the lake and into what Spark makes of it: one graph.

All parts are real: the database, the connectors, the converters, the registry, the warehouse, Spark. The lines of each connector
are compared as a whole; a version behind a name (`orders@value:2`) is the schema's in the registry.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from live import GRACE, TRANSFORMS, Eye, Line
from live import eye as open_eye

import services
from connect_workers import Workers
from headwater.ingest import ingest
from headwater.naming import from_topic
from headwater.query.lineage import lineage as graph_of
from headwater.store import open_store

pytestmark = pytest.mark.live

TOPIC = "shop.public.orders"


@dataclass
class Shop:
    """A database with orders, and everything that flows from it."""

    workers: Workers
    registry: str
    registry_pid: int
    port: int
    warehouse: Path

    def sql(self, *statements: str) -> list[Any]:
        import psycopg

        with psycopg.connect(
            host="127.0.0.1", port=self.port, user="postgres", autocommit=True
        ) as connection:
            for each in statements[:-1]:
                connection.execute(each)
            cursor = connection.execute(statements[-1])
            return cursor.fetchall() if cursor.description else []

    @property
    def avro(self) -> dict[str, str]:
        kind = "io.apicurio.registry.utils.converter.AvroConverter"
        settings = {"": kind, ".apicurio.registry.url": f"{self.registry}/apis/registry/v2", ".apicurio.registry.auto-register": "true"}  # fmt: skip
        return {
            f"{part}.converter{each}": text for part in ("key", "value") for each, text in settings.items()
        }

    @property
    def source(self) -> dict[str, str]:
        return {
            "connector.class": "io.debezium.connector.postgresql.PostgresConnector", "tasks.max": "1", "database.hostname": "127.0.0.1",
            "database.port": str(self.port), "database.user": "postgres", "database.password": "hunter2", "database.dbname": "postgres",
            "topic.prefix": "shop", "table.include.list": "public.orders", "plugin.name": "pgoutput", "slot.name": "shop",
            "publication.autocreate.mode": "filtered", "decimal.handling.mode": "double", "transforms": "unwrap",
            "transforms.unwrap.type": "io.debezium.transforms.ExtractNewRecordState", **self.avro,
        }  # fmt: skip

    @property
    def copy(self) -> dict[str, str]:
        return {
            "connector.class": "io.debezium.connector.jdbc.JdbcSinkConnector", "tasks.max": "1", "topics": TOPIC,
            "connection.url": f"jdbc:postgresql://127.0.0.1:{self.port}/postgres", "connection.username": "postgres",
            "connection.password": "hunter2", "insert.mode": "upsert", "primary.key.mode": "record_key", "schema.evolution": "basic",
            "collection.name.format": "copy_${topic}", **self.avro,
        }  # fmt: skip

    @property
    def lake(self) -> dict[str, str]:
        return {
            "connector.class": "org.apache.iceberg.connect.IcebergSinkConnector", "tasks.max": "1", "topics": TOPIC,
            "iceberg.tables": "sales.orders", "iceberg.tables.auto-create-enabled": "true", "iceberg.tables.evolve-schema-enabled": "true",
            "iceberg.catalog": "shop", "iceberg.catalog.type": "hadoop", "iceberg.catalog.warehouse": f"file://{self.warehouse}",
            "iceberg.control.commit.interval-ms": "2000", "consumer.override.auto.offset.reset": "earliest",
            "transforms": "names", "transforms.names.type": f"{TRANSFORMS}ReplaceField$Value", "transforms.names.renames": "total:amount",
            **self.avro,
        }  # fmt: skip


@pytest.fixture(scope="module")
def shop(workers: Workers, registry: tuple[str, int], need: Callable[[str, str], None]) -> Iterator[Shop]:
    if services.postgres_bin() is None:
        need("Postgres", "apt install postgresql")
    with tempfile.TemporaryDirectory(prefix="hwpg") as folder:
        server = services.PostgresServer(Path(folder), logical=True)
        with server.running():
            made = Shop(workers, *registry, server.port, workers.folder / "warehouse")
            made.sql(
                "CREATE TABLE orders (id int PRIMARY KEY, customer text, total numeric(10, 2))", "SELECT 1"
            )
            try:
                yield made
            finally:
                for name in workers.ask("GET", "/connectors"):
                    workers.ask("DELETE", f"/connectors/{name}")


@pytest.fixture(scope="module")
def eye(shop: Shop) -> Iterator[Eye]:
    with open_eye(
        shop.workers, schemas="value", schema_registry=f"{shop.registry}/apis/ccompat/v7", timeout=2.0
    ) as made:
        yield made


def lines(name: str, before: str, after: str, versions: int) -> list[Line]:
    """Created with the first version there, then one more for each that came."""
    told: list[Line] = [("START", name, f"{before}1 -> {after}")]
    told += [("RUNNING", name, f"datasets known: {before}1 -> {after}")]
    return told + [
        ("RUNNING", name, f"datasets changed: {before}{n} -> {after}") for n in range(2, versions + 1)
    ]


def source_lines(versions: int) -> list[Line]:
    table, topic = "postgres.public.orders", TOPIC
    told: list[Line] = [("START", "cdc", f"{table} -> {topic}"), ("RUNNING", "cdc", f"datasets known: {table} -> {topic}")]  # fmt: skip
    return told + [("RUNNING", "cdc", f"datasets changed: {table} -> {topic}@value:{n}") for n in range(1, versions + 1)]  # fmt: skip


VALUE = f"{TOPIC}@value:"


def test_a_table_is_followed_as_its_first_row_brings_a_schema(shop: Shop, eye: Eye) -> None:
    shop.workers.put("cdc", shop.source)
    eye.until("cdc", *source_lines(0))
    shop.sql("INSERT INTO orders VALUES (1, 'ann', 9.50)")
    eye.until("cdc", *source_lines(1))
    (output,) = eye.events[-1]["outputs"]
    assert {each["name"] for each in output["facets"]["schema"]["fields"]} == {"id", "customer", "total"}
    total = output["facets"]["columnLineage"]["fields"]["total"]["inputFields"]
    assert [(each["name"], each["field"]) for each in total] == [("postgres.public.orders", "total")]


def test_sinks_write_what_is_told_of_them(shop: Shop, eye: Eye) -> None:
    shop.workers.put("copy", shop.copy)
    eye.until("copy", *lines("copy", VALUE, "postgres.public.copy_shop_public_orders", 1))
    shop.workers.put("lake", shop.lake)
    eye.until("lake", *lines("lake", VALUE, "orders", 1))
    eye.when(lambda: bool(shop.sql("SELECT 1 FROM pg_tables WHERE tablename = 'copy_shop_public_orders'")))
    eye.when(lambda: shop.sql("SELECT id, customer, total FROM copy_shop_public_orders") == [(1, "ann", 9.5)])
    eye.when(lambda: bool(list(shop.warehouse.glob("sales/orders/data/*.parquet"))), 90)
    copied = next(each for each in eye.events if each["job"]["name"] == "copy")["outputs"][0]
    columns = {row[0] for row in shop.sql("SELECT column_name FROM information_schema.columns WHERE table_name = 'copy_shop_public_orders'")}  # fmt: skip
    assert {each["name"] for each in copied["facets"]["schema"]["fields"]} == columns


def test_a_registry_that_hangs_changes_nothing(shop: Shop, eye: Eye) -> None:
    before = [len(eye.saw(name)) for name in ("cdc", "copy", "lake")]
    os.kill(shop.registry_pid, signal.SIGSTOP)
    try:
        eye.for_a_while(6)
    finally:
        os.kill(shop.registry_pid, signal.SIGCONT)
    eye.for_a_while(GRACE)
    assert [len(eye.saw(name)) for name in ("cdc", "copy", "lake")] == before


def test_a_new_column_is_a_new_version_for_all_who_meet_it(shop: Shop, eye: Eye) -> None:
    shop.sql("ALTER TABLE orders ADD COLUMN coupon text", "INSERT INTO orders VALUES (2, 'bob', 3, 'x')")
    eye.until("cdc", *source_lines(2))
    eye.until("copy", *lines("copy", VALUE, "postgres.public.copy_shop_public_orders", 2))
    eye.until("lake", *lines("lake", VALUE, "orders", 2))
    for name, column in (("copy", "coupon"), ("lake", "coupon")):
        last = [each for each in eye.events if each["job"]["name"] == name][-1]
        assert column in {each["name"] for each in last["outputs"][0]["facets"]["schema"]["fields"]}
    assert [eye.runs(name) for name in ("cdc", "copy", "lake")] == [1, 1, 1]
    eye.when(lambda: ("x",) in shop.sql("SELECT coupon FROM copy_shop_public_orders"))


def test_from_a_column_of_postgres_to_a_column_that_spark_wrote(
    shop: Shop, eye: Eye, jars: Callable[[str], list[Path]], tmp_path: Path
) -> None:
    events, out = tmp_path / "spark.jsonl", tmp_path / "report"
    worker = Path(__file__).with_name("lake_worker.py")
    path = ",".join(map(str, jars("spark-4.1")))
    ran = subprocess.run(
        [sys.executable, str(worker), f"file://{shop.warehouse}", str(out), str(events), path],
        capture_output=True,
        text=True,
        timeout=300,
        cwd=tmp_path,
    )
    assert ran.returncode == 0, (ran.stdout + ran.stderr)[-4000:]
    store = open_store("memory:")
    spark = events.read_bytes().splitlines()
    ingest(store, [*(json.dumps(each).encode() for each in eye.events), *spark])
    graph = graph_of(store, f"dataset:file:{out}", direction="up", depth=9, columns=True)
    names = {(each["type"].lower(), each["namespace"], each["name"]) for each in graph["nodes"]}
    table, topic = ("dataset", f"postgres://127.0.0.1:{shop.port}", "postgres.public.orders"), from_topic(shop.workers.bootstrap, TOPIC)  # fmt: skip
    lake = ("dataset", "file", str(shop.warehouse / "sales" / "orders"))
    assert {
        table,
        ("dataset", topic.namespace, topic.name),
        lake,
    } <= names  # the sink's table is the one that Spark names
    reads = [each for line in spark for each in json.loads(line).get("inputs", [])]
    assert lake[1:] in {(each["namespace"], each["name"]) for each in reads}
    pairs = {(each["from"]["dataset"].rpartition(":")[2], each["from"]["field"], each["to"]["dataset"].rpartition(":")[2], each["to"]["field"]) for each in graph["columns"]}  # fmt: skip
    path_of_total = [
        (table[2], "total", TOPIC, "total"),
        (TOPIC, "total", lake[2], "amount"),
        (lake[2], "amount", str(out), "twice"),
    ]
    assert set(path_of_total) <= pairs
    assert "hunter2" not in json.dumps(eye.events)


# --- the connectors of the Factor House labs, under their own names


def test_the_three_connectors_of_the_seed(shop: Shop) -> None:
    """Two of them stand in for plugins that nobody can fetch; the third is Iceberg's own under its old name."""
    workers = shop.workers
    options = {"naming": "factorhouse-seed", "lifecycle": "seed", "schemas": "value", "schema_registry": f"{shop.registry}/apis/ccompat/v7"}  # fmt: skip
    iceberg = {**shop.lake, "connector.class": "io.tabular.iceberg.connect.IcebergSinkConnector", "topics": "gen", "iceberg.tables": "sales.gen"}  # fmt: skip
    del iceberg["transforms"]
    workers.put("gen", {"connector.class": "com.amazonaws.mskdatagen.GeneratorSourceConnector", "tasks.max": "1",
                        "genv.gen.order_id.with": "#{Internet.uuid}", "genv.gen.price.with": "#{number.random_double}", **shop.avro})  # fmt: skip
    s3 = {"connector.class": "io.confluent.connect.s3.S3SinkConnector", "topics": "gen", "s3.bucket.name": "fh-dev-bucket", **shop.avro}  # fmt: skip
    workers.put("s3", s3)
    workers.put("iceberg", iceberg)
    expected = {
        "gen": " -> gen@value:1",
        "s3": "gen@value:1 -> fh-dev-bucket",
        "iceberg": "gen@value:1 -> shop",
    }
    with open_eye(workers, name="seed", **options) as eye:
        for name, flow in expected.items():
            eye.until(name, ("START", name, flow))
        eye.when(lambda: bool(list(shop.warehouse.glob("sales/gen/data/*.parquet"))), 90)
        workers.put("s3", {**s3, "flush.size": "7"})
        eye.until("s3", ("START", "s3", expected["s3"]), ("COMPLETE", "s3", "reconfigured"), ("START", "s3", expected["s3"]))  # fmt: skip
        for name in expected:
            workers.ask("DELETE", f"/connectors/{name}")
        for name, reason in (("gen", "deleted"), ("iceberg", "deleted")):
            eye.until(name, ("START", name, expected[name]), ("COMPLETE", name, reason))
