"""What each connector reads and writes; what cannot be known is left out and said."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.capture.connect import sinks, sources
from headwater.capture.connect.catalogue import built_in, shapes, with_own
from headwater.capture.connect.events import Teller
from headwater.capture.connect.lifecycle import Moment, State, step
from headwater.capture.connect.lineage import Lineage, lineage
from headwater.capture.connect.places import Site
from headwater.capture.connect.queries import read
from headwater.capture.connect.schemas import parse
from headwater.capture.connect.snapshots import Connector, from_rest
from headwater.capture.connect.subjects import Registered
from headwater.capture.connect.templates import java_hash, snowflake
from headwater.errors import ConfigError
from headwater.event import of
from headwater.ingest import ingest
from headwater.query.lineage import lineage as graph_of
from headwater.store import open_store
from openlineage_schemas import SHARED, assert_openlineage

SITE = Site("prod", "b:9092")
B = "kafka://b:9092/"


def understood(
    kind: str,
    config: Mapping[str, str],
    topics: set[str] | None = None,
    schemas: Any = None,
    site: Site = SITE,
    type: Any = "unknown",
) -> Lineage:
    seen = frozenset(topics) if topics is not None else None
    return lineage(
        Connector("c", type, {"connector.class": kind, **config}, "RUNNING", topics=seen), site, schemas
    )


def edges(found: Lineage) -> set[str]:
    told = {f"{source} > {each.dataset}" for each in found.outputs for source in each.sources}
    lone = {f"> {each.dataset}" for each in found.outputs if not each.sources}
    fed = {source for each in found.outputs for source in each.sources}
    return told | lone | {f"{each.dataset} >" for each in found.inputs if each.dataset.identity not in fed}


def avro(topic: str, **fields: Any) -> dict[tuple[str, str], Registered]:
    text = json.dumps(
        {"type": "record", "name": "R", "fields": [{"name": n, "type": t} for n, t in fields.items()]}
    )
    return {(topic, "value"): Registered(f"{topic}-value", 1, 7, "AVRO", parse("AVRO", text))}


def columns(found: Lineage, at: int = 0) -> dict[str, str]:
    return {
        name: " + ".join(
            f"{o.dataset.name}.{'.'.join(o.path)}{''.join(' ' + w for w in o.ways)}" for o in origins
        )
        for name, origins in found.outputs[at].columns
    }


DEBEZIUM = {
    "database.hostname": "DB",
    "database.dbname": "shop",
    "topic.prefix": "p",
    "database.password": "x",
}
CASES: list[tuple[str, dict[str, str], set[str] | None, set[str]]] = [
    ("com.amazonaws.mskdatagen.GeneratorSourceConnector", {"genv.orders.id.with": "x", "genkp.orders.with": "x"}, None, {f"> {B}orders"}),
    ("io.confluent.kafka.connect.datagen.DatagenConnector", {"kafka.topic": "t"}, None, {f"> {B}t"}),
    ("FileStreamSource", {"file": "/in.txt", "topic": "t"}, None, {f"file//in.txt > {B}t"}),
    ("FileStreamSink", {"file": "/out.txt", "topics": "t,u"}, None, {f"{B}t > file//out.txt", f"{B}u > file//out.txt"}),
    ("io.debezium.connector.postgresql.PostgresConnector", {**DEBEZIUM, "table.include.list": r"public.orders,sales\.items"}, None,
     {f"postgres://db:5432/shop.public.orders > {B}p.public.orders", f"postgres://db:5432/shop.sales.items > {B}p.sales.items"}),
    ("io.debezium.connector.postgresql.PostgresConnector", {**DEBEZIUM, "table.include.list": "public.*"},
     {"p.public.orders", "p", "__debezium-heartbeat.p", "p.transaction"}, {f"postgres://db:5432/shop.public.orders > {B}p.public.orders"}),
    ("io.debezium.connector.mysql.MySqlConnector", {**DEBEZIUM, "table.include.list": "shop.orders"}, None,
     {f"mysql://db:3306/shop.orders > {B}p.shop.orders"}),
    ("io.debezium.connector.sqlserver.SqlServerConnector", {**DEBEZIUM, "database.names": "A,B", "table.include.list": "dbo.t"}, None,
     {f"mssql://db:1433/A.dbo.t > {B}p.A.dbo.t", f"mssql://db:1433/B.dbo.t > {B}p.B.dbo.t"}),
    ("io.debezium.connector.oracle.OracleConnector", {**DEBEZIUM, "database.pdb.name": "PDB"}, {"p.INV.T"},
     {f"oracle://db:1521/PDB.INV.T > {B}p.INV.T"}),
    ("io.debezium.connector.db2.Db2Connector", DEBEZIUM, {"p.S.T"}, {f"db2://db:50000/shop.S.T > {B}p.S.T"}),
    ("io.debezium.connector.mongodb.MongoDbConnector", {"topic.prefix": "p", "mongodb.connection.string": "mongodb://u:pw@m1:27017,m2/?replicaSet=r", "collection.include.list": "shop.orders"}, None,
     {f"mongodb://m1:27017,m2:27017/shop.orders > {B}p.shop.orders"}),
    ("io.confluent.connect.jdbc.JdbcSourceConnector", {"connection.url": "jdbc:postgresql://u:pw@db/shop", "table.whitelist": "orders", "topic.prefix": "pg-"}, None,
     {f"postgres://db:5432/shop.public.orders > {B}pg-orders"}),
    ("io.confluent.connect.jdbc.JdbcSourceConnector", {"connection.url": "jdbc:postgresql://db/shop", "table.whitelist": "sales.orders,crm.orders,public.Users", "topic.prefix": "pg-"},
     {"pg-orders", "pg-Users"},
     {f"postgres://db:5432/shop.sales.orders > {B}pg-orders", f"postgres://db:5432/shop.crm.orders > {B}pg-orders", f"postgres://db:5432/shop.public.Users > {B}pg-Users"}),
    ("io.debezium.connector.postgresql.PostgresConnector",
     {**DEBEZIUM, "table.include.list": "public.orders_1,public.orders_2,public.items", "topic.regex": r"(.*)_\d+", "topic.replacement": "$1",
      "topic.naming.strategy": "io.debezium.schema.DefaultRegexTopicNamingStrategy"}, {"p.public.orders", "p.public.items"},
     {f"postgres://db:5432/shop.public.orders_{n} > {B}p.public.orders" for n in (1, 2)} | {f"postgres://db:5432/shop.public.items > {B}p.public.items"}),
    ("io.confluent.connect.jdbc.JdbcSourceConnector", {"connection.url": "jdbc:postgresql://db/shop", "topic.prefix": "pg-"}, {"pg-orders"},
     {f"postgres://db:5432/shop.public.orders > {B}pg-orders"}),
    ("io.aiven.connect.jdbc.JdbcSourceConnector", {"connection.url": "jdbc:postgresql://db/shop", "query": "select o.id, c.n from orders o join s.c c on true", "topic.prefix": "q"}, None,
     {f"postgres://db:5432/shop.public.orders > {B}q", f"postgres://db:5432/shop.s.c > {B}q"}),
    ("io.confluent.connect.jdbc.JdbcSinkConnector", {"connection.url": "jdbc:mysql://db/shop", "table.name.format": "kafka_${topic}", "topics": "t"}, None,
     {f"{B}t > mysql://db:3306/shop.kafka_t"}),
    ("io.aiven.connect.jdbc.JdbcSinkConnector", {"connection.url": "jdbc:postgresql://db/shop", "topics.to.tables.mapping": "t:s.T", "topics": "t"}, None,
     {f"{B}t > postgres://db:5432/shop.s.T"}),
    ("io.debezium.connector.jdbc.JdbcSinkConnector", {"connection.url": "jdbc:postgresql://db/shop", "topics": "a.b.c"}, None,
     {f"{B}a.b.c > postgres://db:5432/shop.public.a_b_c"}),
    ("io.confluent.connect.s3.S3SinkConnector", {"s3.bucket.name": "lake", "topics": "orders,bids"}, None,
     {f"{B}orders > s3://lake/topics/orders", f"{B}bids > s3://lake/topics/bids"}),
    ("io.confluent.connect.gcs.GcsSinkConnector", {"gcs.bucket.name": "lake", "topics.dir": "x", "topics": "t"}, None, {f"{B}t > gs://lake/x/t"}),
    ("io.confluent.connect.azure.blob.AzureBlobStorageSinkConnector", {"azblob.account.name": "acc", "azblob.container.name": "con", "topics": "t"}, None,
     {f"{B}t > wasbs://con@acc.blob.core.windows.net/topics/t"}),
    ("io.confluent.connect.hdfs3.Hdfs3SinkConnector", {"hdfs.url": "hdfs://nn:8020", "topics": "t"}, None, {f"{B}t > hdfs://nn:8020//topics/t"}),
    ("io.aiven.kafka.connect.s3.AivenKafkaConnectS3SinkConnector", {"aws.s3.bucket.name": "lake", "aws.s3.prefix": "a/b/", "topics": "t"}, None, {f"{B}t > s3://lake/a/b"}),
    ("io.confluent.connect.s3.source.S3SourceConnector", {"s3.bucket.name": "lake"}, {"t"}, {f"s3://lake/topics > {B}t"}),
    ("com.snowflake.kafka.connector.SnowflakeSinkConnector", {"snowflake.url.name": "acc.snowflakecomputing.com:443", "snowflake.database.name": "db", "snowflake.schema.name": "s", "snowflake.topic2table.map": "t:tbl", "topics": "t,u.v"}, None,
     {f"{B}t > snowflake://acc/DB.S.TBL", f"{B}u.v > snowflake://acc/DB.S.U_V_{java_hash('u.v')}"}),
    ("com.wepay.kafka.connect.bigquery.BigQuerySinkConnector", {"project": "p", "defaultDataset": "d", "topics": "a-b", "sanitizeTopics": "true"}, None, {f"{B}a-b > bigquery/p.d.a_b"}),
    ("com.clickhouse.kafka.connect.ClickHouseSinkConnector", {"hostname": "ch", "topic2TableMap": "t=tbl", "topics": "t"}, None, {f"{B}t > clickhouse://ch:8443/default.tbl"}),
    ("com.mongodb.kafka.connect.MongoSourceConnector", {"connection.uri": "mongodb://u:pw@m/", "database": "d", "collection": "c", "topic.prefix": "x"}, None, {f"mongodb://m:27017/d.c > {B}x.d.c"}),
    ("com.mongodb.kafka.connect.MongoSourceConnector", {"connection.uri": "mongodb://m", "topic.suffix": "s"}, {"d.c.s"}, {f"mongodb://m:27017/d.c > {B}d.c.s"}),
    ("com.mongodb.kafka.connect.MongoSinkConnector", {"connection.uri": "mongodb://m", "database": "d", "topic.override.u.collection": "other", "topics": "t,u"}, None,
     {f"{B}t > mongodb://m:27017/d.t", f"{B}u > mongodb://m:27017/d.other"}),
    ("io.confluent.connect.elasticsearch.ElasticsearchSinkConnector", {"connection.url": "http://es:9200,http://es2:9200", "topics": "Orders"}, None, {f"{B}Orders > elasticsearch://es:9200/orders"}),
    ("io.aiven.kafka.connect.opensearch.OpensearchSinkConnector", {"connection.url": "https://os:9200", "topics": "t"}, None, {f"{B}t > opensearch://os:9200/t"}),
    ("com.datastax.oss.kafka.sink.CassandraSinkConnector", {"contactPoints": "cas", "topics": "t", "topic.t.ks.tbl.mapping": "id=key, n=value.name"}, None, {f"{B}t > cassandra://cas:9042/ks.tbl"}),
    ("org.apache.kafka.connect.mirror.MirrorSourceConnector", {"source.cluster.alias": "a", "source.cluster.bootstrap.servers": "src:9092", "topics": "orders"}, None, {f"kafka://src:9092/orders > {B}a.orders"}),
    ("org.apache.kafka.connect.mirror.MirrorSourceConnector", {"source.cluster.alias": "a", "source.cluster.bootstrap.servers": "src:9092", "topics": ".*", "replication.policy.class": "org.apache.kafka.connect.mirror.IdentityReplicationPolicy"}, {"x.y"}, {f"kafka://src:9092/x.y > {B}x.y"}),
    ("org.apache.kafka.connect.mirror.MirrorHeartbeatConnector", {}, {"heartbeats"}, set()),
    ("io.confluent.connect.replicator.ReplicatorSourceConnector", {"src.kafka.bootstrap.servers": "src:9092", "topic.whitelist": "t", "topic.rename.format": "${topic}.copy"}, None, {f"kafka://src:9092/t > {B}t.copy"}),
    ("io.confluent.connect.http.HttpSinkConnector", {"http.api.url": "https://u:pw@api.x/v1?key=1", "topics": "t"}, None, {f"{B}t > https://api.x//v1"}),
    ("io.lenses.streamreactor.connect.aws.s3.sink.S3SinkConnector", {"connect.s3.kcql": "INSERT INTO lake:shop SELECT id AS i FROM t STOREAS `JSON`", "topics": "t"}, None, {f"{B}t > s3://lake/shop"}),
    ("com.example.Unknown", {"topics": "t"}, None, {f"{B}t >"}),
    ("com.example.Unknown", {}, {"t"}, {f"> {B}t"}),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "config", "topics", "expected"), CASES, ids=lambda v: v.rpartition(".")[2] if isinstance(v, str) else "")  # fmt: skip
def test_edges(kind: str, config: dict[str, str], topics: set[str] | None, expected: set[str]) -> None:
    found = understood(kind, config, topics)
    assert edges(found) == expected
    assert "pw" not in repr(found)


def test_topics_of_a_strategy_that_nobody_knows_are_not_invented() -> None:
    config = {
        **DEBEZIUM,
        "table.include.list": "public.orders",
        "topic.naming.strategy": "org.example.OurOwn",
    }
    found = understood("io.debezium.connector.postgresql.PostgresConnector", config)
    assert not found.inputs
    assert not any("public.orders" in str(each.dataset) for each in found.outputs)
    assert any("OurOwn" in each for each in found.why)


@pytest.mark.parametrize(
    "form",
    ["${source.schema}.${source.table}", "${source.db}_${source.table}", "${source.table}_${source.x}"],
)
def test_a_table_that_only_the_data_name_is_not_invented(form: str) -> None:
    config = {
        "connection.url": "jdbc:postgresql://db/shop",
        "topics": "p.public.orders",
        "collection.name.format": form,
    }
    found = understood("io.debezium.connector.jdbc.JdbcSinkConnector", config)
    assert edges(found) == {f"{B}p.public.orders >"}
    assert any("${source." in each for each in found.why)


@pytest.mark.parametrize(
    ("query", "tables"),
    [
        ("WITH orders AS (SELECT * FROM shop.orders WHERE x) SELECT id FROM orders", {"shop.orders"}),
        ("WITH orders AS (SELECT * FROM orders) SELECT id FROM orders", {"orders"}),
        ("WITH RECURSIVE t AS (SELECT id FROM base UNION ALL SELECT id FROM t) SELECT id FROM t", {"base"}),
        ("WITH a AS (SELECT * FROM x), b AS (SELECT * FROM a) SELECT * FROM b JOIN a ON true", {"x"}),
        (
            "SELECT * FROM (WITH q AS (SELECT * FROM inside) SELECT * FROM q) s JOIN q ON true",
            {"inside", "q"},
        ),
        ("SELECT id FROM a.o23 t UNION ALL SELECT id FROM a.o24 t", {"a.o23", "a.o24"}),
    ],
)
def test_each_table_of_a_query_is_told_and_no_name_of_its_own(query: str, tables: set[str]) -> None:
    assert {each.table for each in read(query, "jdbc:postgresql://h/d")} == tables


def test_every_entry_has_its_code_and_every_class_its_case() -> None:
    assert {shape for direction, shape in shapes(built_in().values()) if direction == "sink"} == set(
        sinks.SHAPES
    )
    assert {s for direction, s in shapes(built_in().values()) if direction == "source"} == set(sources.SHAPES)


def test_snowflakes_names() -> None:
    assert snowflake("orders_2") == "ORDERS_2"
    assert snowflake("1a").startswith("_1A_")
    assert java_hash("polygenelubricants") == -(2**31)  # the text that every one knows for it


# --- Iceberg

LAKE = {
    "iceberg.catalog.type": "rest",
    "iceberg.catalog.uri": "http://rest:8181",
    "iceberg.catalog.warehouse": "s3://wh/x",
}
ICEBERG = "org.apache.iceberg.connect.IcebergSinkConnector"


def test_without_a_route_every_topic_reaches_every_table() -> None:
    """A real sink was seen to do so: both tables held all records of both topics."""
    found = understood(ICEBERG, {**LAKE, "iceberg.tables": "d.a,d.b", "topics": "t,u"})
    assert edges(found) == {f"{B}{t} > s3://wh/x/d/{table}" for t in "tu" for table in "ab"}
    assert found.outputs[0].dataset.symlinks[0].namespace == "http://rest:8181"


def test_a_route_by_the_topic_is_settled() -> None:
    routed = {
        **LAKE,
        "iceberg.tables": "d.a,d.b",
        "iceberg.tables.route-field": "src",
        "iceberg.table.d.a.route-regex": "t.*",
        "iceberg.table.d.b.route-regex": "u",
        "topics": "t1,u",
        "transforms": "i",
        "transforms.i.type": "org.apache.kafka.connect.transforms.InsertField$Value",
        "transforms.i.topic.field": "src",
    }
    assert edges(understood(ICEBERG, routed)) == {f"{B}t1 > s3://wh/x/d/a", f"{B}u > s3://wh/x/d/b"}
    with_one_more = {**routed, "iceberg.tables": "d.a,d.b,d.without_a_rule"}
    assert edges(understood(ICEBERG, with_one_more)) == edges(understood(ICEBERG, routed))
    dynamic = {**routed, "iceberg.tables.dynamic-enabled": "true"}
    assert edges(understood(ICEBERG, dynamic)) == {f"{B}t1 > s3://wh/x/t1", f"{B}u > s3://wh/x/u"}


def test_a_route_by_the_data_is_not_invented() -> None:
    dynamic = {
        **LAKE,
        "iceberg.tables.dynamic-enabled": "true",
        "iceberg.tables.route-field": "kind",
        "topics": "t",
    }
    found = understood(ICEBERG, dynamic)
    assert edges(found) == {f"{B}t >"}
    assert any("kind" in each for each in found.why)


# --- columns

UNWRAP = {"transforms": "u", "transforms.u.type": "io.debezium.transforms.ExtractNewRecordState"}


def test_columns_of_a_sink() -> None:
    config = {
        "connection.url": "jdbc:postgresql://db/shop",
        "topics": "t",
        "transforms": "m,r",
        "transforms.m.type": "org.apache.kafka.connect.transforms.MaskField$Value",
        "transforms.m.fields": "email",
        "transforms.r.type": "org.apache.kafka.connect.transforms.ReplaceField$Value",
        "transforms.r.renames": "id:order_id",
        "transforms.r.exclude": "junk",
    }
    found = understood(
        "io.confluent.connect.jdbc.JdbcSinkConnector",
        config,
        None,
        avro("t", id="int", email="string", junk="int"),
    )
    assert columns(found) == {"order_id": "t.id", "email": "t.email MASK"}
    assert [each.name for each in found.outputs[0].fields] == ["order_id", "email"]
    listed = {**config, "fields.whitelist": "email"}
    found = understood(
        "io.confluent.connect.jdbc.JdbcSinkConnector", listed, None, avro("t", id="int", email="string")
    )
    assert columns(found) == {"email": "t.email MASK"}


def test_columns_of_a_source_are_found_from_what_its_transforms_left() -> None:
    config = {**DEBEZIUM, "table.include.list": "public.orders", **UNWRAP, "transforms.u.add.fields": "op"}
    schemas = avro("p.public.orders", id="int", total=["null", "double"], __op="string")
    found = understood("io.debezium.connector.postgresql.PostgresConnector", config, None, schemas)
    assert columns(found) == {"id": "shop.public.orders.id", "total": "shop.public.orders.total"}


def test_columns_of_a_query() -> None:
    config = {"connection.url": "jdbc:postgresql://db/shop", "topic.prefix": "q",
              "query": "select o.id, upper(c.name) as who from orders o join customers c on c.id = o.c"}  # fmt: skip
    found = understood("io.confluent.connect.jdbc.JdbcSourceConnector", config)
    assert columns(found) == {"id": "shop.public.orders.id", "who": "shop.public.customers.name"}


def test_columns_of_a_generator_that_refers_to_another_topic() -> None:
    config = {
        "genkp.customers.with": "x",
        "genv.orders.customer_id.matching": "customers.key",
        "genv.orders.n.with": "x",
    }
    found = understood("com.amazonaws.mskdatagen.GeneratorSourceConnector", config)
    assert columns(found, 1) == {"customer_id": "customers.__key"}
    assert [each.name for each in found.outputs[1].fields] == ["customer_id", "n"]


def test_columns_that_a_connector_names_itself() -> None:
    config = {"contactPoints": "cas", "topics": "t", "topic.t.ks.tbl.mapping": "id=key, n=value.name"}
    found = understood("com.datastax.oss.kafka.sink.CassandraSinkConnector", config)
    assert columns(found) == {"id": "t.__key", "n": "t.name"}
    lenses = {"connect.s3.kcql": "INSERT INTO lake:shop SELECT id AS i, a.b FROM t", "topics": "t"}
    found = understood("io.lenses.streamreactor.connect.aws.s3.sink.S3SinkConnector", lenses)
    assert columns(found) == {"i": "t.id", "b": "t.a.b"}


def test_snowflake_without_schematisation_nests_all_fields() -> None:
    config = {
        "snowflake.url.name": "acc",
        "snowflake.database.name": "d",
        "snowflake.schema.name": "s",
        "topics": "t",
    }
    kind = "com.snowflake.kafka.connector.SnowflakeSinkConnector"
    found = understood(kind, config, None, avro("t", a="int", b="int"))
    assert columns(found)["RECORD_CONTENT"] == "t.a NEST + t.b NEST"
    found = understood(kind, {**config, "snowflake.enable.schematization": "true"}, None, avro("t", a="int"))
    assert columns(found) == {"A": "t.a"}


def test_an_unknown_transform_stops_columns_but_not_topics() -> None:
    config = {
        **DEBEZIUM,
        "table.include.list": "public.*",
        "transforms": "x",
        "transforms.x.type": "com.example.X",
    }
    kind = "io.debezium.connector.postgresql.PostgresConnector"
    schemas = avro("p.public.orders", id="int")
    found = understood(kind, config, {"p.public.orders", "p.public.items"}, schemas)
    assert edges(found) == {
        f"postgres://db:5432/shop.public.{t} > {B}p.public.{t}" for t in ("orders", "items")
    }
    assert columns(found) == {}
    assert any("com.example.X" in each for each in found.why)


def test_many_tables_into_one_topic() -> None:
    config = {**DEBEZIUM, "table.include.list": "public.o_1,public.o_2", "transforms": "r",
              "transforms.r.type": "io.debezium.transforms.ByLogicalTableRouter",
              "transforms.r.topic.regex": r"(.*)_\d", "transforms.r.topic.replacement": "$1"}  # fmt: skip
    found = understood("io.debezium.connector.postgresql.PostgresConnector", config, {"p.public.o"})
    assert edges(found) == {f"postgres://db:5432/shop.public.o_{n} > {B}p.public.o" for n in (1, 2)}


def test_an_outbox_is_settled_by_the_topics_seen() -> None:
    config = {**DEBEZIUM, "table.include.list": "public.outbox", "transforms": "o",
              "transforms.o.type": "io.debezium.transforms.outbox.EventRouter"}  # fmt: skip
    kind = "io.debezium.connector.postgresql.PostgresConnector"
    assert edges(understood(kind, config, set())) == {"postgres://db:5432/shop.public.outbox >"}
    seen = {"outbox.event.order", "outbox.event.customer", "p"}
    assert edges(understood(kind, config, seen)) == {
        f"postgres://db:5432/shop.public.outbox > {B}outbox.event.{t}" for t in ("order", "customer")
    }


def test_a_script_that_routes_many_tables_gives_no_edge_that_nobody_saw() -> None:
    config = {**DEBEZIUM, "table.include.list": "public.a,public.b", "transforms": "s",
              "transforms.s.type": "io.debezium.transforms.ContentBasedRouter"}  # fmt: skip
    found = understood("io.debezium.connector.postgresql.PostgresConnector", config, {"one", "two"})
    assert edges(found) == {
        f"> {B}one",
        f"> {B}two",
        "postgres://db:5432/shop.public.a >",
        "postgres://db:5432/shop.public.b >",
    }
    assert any("only the data" in each for each in found.why)


# --- topics


def test_topics_by_regex_are_those_that_were_seen() -> None:
    config = {"topics.regex": "raw\\..*", "s3.bucket.name": "lake"}
    kind = "io.confluent.connect.s3.S3SinkConnector"
    found = understood(kind, config, {"raw.a", "raw.b", "other"})
    assert edges(found) == {f"{B}raw.{t} > s3://lake/topics/raw.{t}" for t in "ab"}
    assert "no topic was seen" in understood(kind, config, set()).why[0]


def test_dead_letters_are_an_output() -> None:
    config = {"topics": "t", "s3.bucket.name": "lake", "errors.deadletterqueue.topic.name": "dlq"}
    found = understood("io.confluent.connect.s3.S3SinkConnector", config)
    assert f"{B}t > {B}dlq" in edges(found)


def test_other_brokers_than_the_workers() -> None:
    config = {"topics": "t", "s3.bucket.name": "l", "consumer.override.bootstrap.servers": "x:1"}
    found = understood("io.confluent.connect.s3.S3SinkConnector", config)
    assert str(found.inputs[0].dataset) == "kafka://x:1/t"


def test_without_brokers_a_topic_is_named_by_the_cluster_and_the_reason_told() -> None:
    found = understood(
        "FileStreamSource", {"file": "/a", "topic": "t"}, site=Site("prod", cluster_id="abc-9")
    )
    assert str(found.outputs[0].dataset) == "kafka://abc-9/t"
    assert any("bootstrap" in each for each in found.why)


def test_a_connector_of_the_other_direction_is_not_taken_for_the_known_one() -> None:
    found = understood("FileStreamSink", {"file": "/a"}, {"t"}, type="source")
    assert edges(found) == {f"> {B}t"}


# --- secrets and placeholders


def test_a_placeholder_is_no_name() -> None:
    config = {"topics": "t", "connection.url": "${vault:secret/db:url}"}
    kind = "io.confluent.connect.jdbc.JdbcSinkConnector"
    found = understood(kind, config)
    assert edges(found) == {f"{B}t >"}
    assert any("connection.url" in each and "vault" in each for each in found.why)
    assert "secret/db" not in repr(found.why)
    site = Site("prod", "b:9092", resolve={"${vault:secret/db:url}": "jdbc:postgresql://db/shop"})
    assert edges(understood(kind, config, site=site)) == {f"{B}t > postgres://db:5432/shop.public.t"}


SECRET = "hunter2-do-not-tell"


@given(
    st.sampled_from([(kind, config) for kind, config, _, _ in CASES]),
    st.lists(st.sampled_from(["database.password", "connection.url", "aws.secret.access.key", "sasl.jaas.config",
                              "value.converter.basic.auth.user.info", "mongodb.connection.string", "connection.uri",
                              "snowflake.private.key", "http.api.url", "producer.override.sasl.jaas.config", "transforms.x.type"]),
             max_size=4),
)  # fmt: skip
def test_no_secret_of_any_setting_reaches_an_event(case: tuple[str, dict[str, str]], keys: list[str]) -> None:
    kind, config = case
    hidden = {
        key: f"jdbc:postgresql://u:{SECRET}@db/x?password={SECRET}" if key.endswith(("url", "uri", "string"))
        else f'org.x.Login required username="u" password="{SECRET}";' if "jaas" in key else SECRET
        for key in keys if key != "transforms.x.type"
    }  # fmt: skip
    trace = f"java.lang.Error: login failed for jdbc:postgresql://u:{SECRET}@db/x with password={SECRET}"
    info = {
        "c": {"info": {"config": {"connector.class": kind, **config, **hidden}, "tasks": [], "type": "sink"}}
    }
    status = {"c": {"status": {"connector": {"state": "FAILED", "trace": trace}, "tasks": []}}}
    snapshot = from_rest(info, status)
    found = lineage(snapshot.connectors["c"], SITE)
    state, moments = step(State("prod"), snapshot, 0.0)
    _, more = step(state, snapshot, 60.0)
    told = [Teller("ns", "prod").tell(each, found, 0.0) for each in [*moments, *more]]
    assert [each["eventType"] for each in told] == ["START", "FAIL"]
    assert SECRET not in json.dumps(told)


# --- a user's own


def test_a_users_own_connector(tmp_path: Path) -> None:
    own = tmp_path / "own.toml"
    own.write_text(
        '[[connector]]\nclass = ["com.example.Sink"]\ndirection = "sink"\ndataset = "database"\n'
        'args = { platform = "postgres", host = "{my.host}", database = "d", table = "{topic}" }\n'
    )
    site = Site("prod", "b:9092", catalogue=with_own(own))
    found = understood("com.example.Sink", {"my.host": "h", "topics": "t"}, site=site)
    assert edges(found) == {f"{B}t > postgres://h:5432/d.public.t"}


@pytest.mark.parametrize(
    "text",
    ["x", '[[connector]]\nclass = "a"', '[[connector]]\nclass=["a"]\ndirection="up"', "[[connectors]]"],
)
def test_a_users_file_that_is_wrong_is_refused(tmp_path: Path, text: str) -> None:
    own = tmp_path / "own.toml"
    own.write_text(text)
    with pytest.raises(ConfigError, match=r"own\.toml"):
        with_own(own)


# --- events


def test_events_are_openlineage(recorded: Path) -> None:
    answer = json.loads((recorded / "expand.json").read_text())["GET /connectors?expand=info&expand=status"]
    seen = json.loads((recorded / "topics_offsets.json").read_text())
    topics = {
        name: frozenset(each["topics"][name]["topics"]) for name, each in seen.items() if name != "_about"
    }
    registry = json.loads((recorded / "registry.json").read_text())["GET latest (Debezium envelope)"][1]
    schemas: Any = {
        ("shopdb.sales.orders", "value"): Registered(
            registry["subject"], 2, 18, "AVRO", parse("AVRO", registry["schema"])
        )
    }
    snapshot = from_rest(answer, answer, topics)
    _, moments = step(State("prod"), snapshot, 0.0)
    teller = Teller("fh-local", "prod", "4.3.1")
    told = []
    for moment in moments:
        found = lineage(snapshot.connectors[moment.connector], SITE, schemas)
        told.append(teller.tell(moment, found, 1_800_000_000.0))
    assert {each["job"]["name"] for each in told} == set(answer)
    for each in told:
        of(each)
        assert_openlineage(each, SHARED)
    (sink,) = (e for e in told if e["job"]["name"] == "iceberg-sink" and e["eventType"] == "RUNNING")
    fields = sink["outputs"][0]["facets"]["columnLineage"]["fields"]
    assert fields["id"]["inputFields"][0]["field"] == "after.id"
    assert sink["inputs"][0]["facets"]["version"]["datasetVersion"] == "value:2"


@pytest.mark.parametrize(
    ("kind", "settings", "column", "expected"),
    [
        ("ReplaceField$Value", {"renames": "a:b"}, "b", ("IDENTITY", "RENAME", False)),
        ("Cast$Value", {"spec": "a:string"}, "a", ("TRANSFORMATION", "CAST string", False)),
        ("MaskField$Value", {"fields": "a"}, "a", ("TRANSFORMATION", "MASK", True)),
        ("SetSchemaMetadata$Value", {}, "a", ("IDENTITY", "", False)),
    ],
)
def test_what_was_done_to_a_column_is_told(kind: str, settings: Any, column: str, expected: Any) -> None:
    config = {"topics": "t", "s3.bucket.name": "l", "transforms": "x",
              "transforms.x.type": f"org.apache.kafka.connect.transforms.{kind}",
              **{f"transforms.x.{key}": value for key, value in settings.items()}}  # fmt: skip
    found = understood("io.confluent.connect.s3.S3SinkConnector", config, None, avro("t", a="int"))
    event = Teller("ns", "prod").tell(Moment("RUNNING", "c", "x", None), found, 0.0)
    (way,) = event["outputs"][0]["facets"]["columnLineage"]["fields"][column]["inputFields"][0][
        "transformations"
    ]
    assert (way["subtype"], way["description"], way["masking"]) == expected


def test_a_new_version_changes_the_digest_even_with_the_same_fields() -> None:
    one = understood("FileStreamSink", {"file": "/f", "topics": "t"}, None, avro("t", a="int"))
    two_schemas: Any = {
        key: Registered(each.subject, 2, 8, each.format, each.field)
        for key, each in avro("t", a="int").items()
    }
    two = understood("FileStreamSink", {"file": "/f", "topics": "t"}, None, two_schemas)
    assert one.digest != two.digest
    again = understood("FileStreamSink", {"file": "/f", "topics": "t"}, None, avro("t", a="int"))
    assert one.digest == again.digest


def test_a_debezium_connector_that_tells_lineage_itself_tells_the_same_names(recorded: Path) -> None:
    """Its own events and ours name the same table and the same topic, so they are one node each."""
    events = json.loads((recorded / "debezium_openlineage.json").read_text())["events"]
    inputs = {(each["namespace"], each["name"]) for event in events for each in event.get("inputs", ())}
    outputs = {(each["namespace"], each["name"]) for event in events for each in event.get("outputs", ())}
    assert inputs
    assert outputs
    config = {
        "topic.prefix": "shop",
        "database.hostname": "127.0.0.1",
        "database.port": "5432",
        "database.dbname": "postgres",
        "table.include.list": "public.customers,public.orders",
        "openlineage.integration.enabled": "true",
        "transforms": "openlineage",
        "transforms.openlineage.type": "io.debezium.transforms.openlineage.OpenLineage",
    }
    site = Site("prod", "127.0.0.1:9092")
    found = understood("io.debezium.connector.postgresql.PostgresConnector", config, site=site)
    assert inputs <= {(each.dataset.namespace, each.dataset.name) for each in found.inputs}
    assert outputs <= {(each.dataset.namespace, each.dataset.name) for each in found.outputs}
    assert found.why == ()


def test_a_table_is_followed_through_kafka_into_the_lake(recorded: Path) -> None:
    """Two connectors that know nothing of each other are one path in the graph, down to the column."""
    answer = json.loads((recorded / "expand.json").read_text())["GET /connectors?expand=info&expand=status"]
    seen = json.loads((recorded / "topics_offsets.json").read_text())
    topics = {n: frozenset(seen[n]["topics"][n]["topics"]) for n in ("pg-src", "iceberg-sink")}
    registry = json.loads((recorded / "registry.json").read_text())["GET latest (Debezium envelope)"][1]
    envelope = Registered(registry["subject"], 2, 18, "AVRO", parse("AVRO", registry["schema"]))
    schemas: Any = {("shopdb.sales.orders", "value"): envelope}
    both = {name: answer[name] for name in topics}
    snapshot = from_rest(both, both, topics)
    _, moments = step(State("prod"), snapshot, 1_800_000_000.0)
    told = [
        Teller("shop", "prod").tell(
            m, lineage(snapshot.connectors[m.connector], SITE, schemas), 1_800_000_000.0
        )
        for m in moments
    ]
    store = open_store("memory:")
    ingest(store, [json.dumps(each).encode() for each in told])
    lake = next(e for e in told if e["job"]["name"] == "iceberg-sink")["outputs"][0]
    graph = graph_of(store, f"dataset:{lake['namespace']}:{lake['name']}", direction="up", columns=True)
    assert "shop.sales.orders" in {node["name"] for node in graph["nodes"]}
    pairs = {(each["from"]["dataset"].rpartition(":")[2], each["from"]["field"], each["to"]["field"]) for each in graph["columns"]}  # fmt: skip
    assert ("shop.sales.orders", "amount", "after.amount") in pairs
    assert ("shopdb.sales.orders", "after.amount", "amount") in pairs


@pytest.mark.parametrize(
    ("entry", "told"),
    [
        ('direction = "sink"\ndataset = "database"\nargs = { table = "t" }', "needs args.platform"),
        ('direction = "sink"\ndataset = "path"', "needs args.path"),
        ('direction = "source"\ndataset = "jdbc"\nargs = { url = "u" }', "needs args.table"),
        ('direction = "sink"\nshape = "icebreg"', "did you mean 'iceberg'"),
        ('direction = "source"\nshape = "iceberg"', "unknown shape of a source 'iceberg'"),
    ],
)
def test_an_entry_of_one_s_own_that_cannot_be_used_is_refused(tmp_path: Path, entry: str, told: str) -> None:
    own = tmp_path / "own.toml"
    own.write_text(f'[[connector]]\nclass = ["com.example.Own"]\n{entry}\n')
    with pytest.raises(ConfigError, match=told):
        with_own(own)
