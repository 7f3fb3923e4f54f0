"""What the probe says of a table, a path or options -> the identity that every other reader of the same data gives it."""

from __future__ import annotations

from typing import Any

import pytest

from headwater.capture.spark import names
from headwater.capture.spark.names import Naming

WAREHOUSE = {"spark.sql.warehouse.dir": "file:/wh", "spark.sql.catalogImplementation": "in-memory"}
HIVE = {
    "spark.sql.warehouse.dir": "s3a://lake/wh",
    "spark.sql.catalogImplementation": "hive",
    "spark.hadoop.hive.metastore.uris": "thrift://meta:9083,thrift://spare:9083",
}
GLUE = {
    "spark.sql.catalogImplementation": "hive",
    "spark.hadoop.hive.metastore.client.factory.class": "com.amazonaws.glue.catalog.metastore.AWSGlueDataCatalogHiveClientFactory",
    "spark.hadoop.hive.metastore.glue.catalogid": "123456789012",
    "spark.hadoop.aws.region": "eu-west-1",
}


def named(found: list[names.Named]) -> list[tuple[str, str]]:
    return [(each.identity.namespace, each.identity.name) for each in found]


def files(*paths: str, **more: Any) -> dict[str, Any]:
    relation = {"t": "files", "format": "ParquetFileFormat", "paths": list(paths)}
    return {"n": "LogicalRelation", "relation": relation, "o": [], **more}


@pytest.mark.parametrize(
    ("paths", "expected"),
    [
        (["file:/in/orders"], [("file", "/in/orders")]),
        (["s3a://lake/in/orders/"], [("s3://lake", "in/orders")]),
        (["hdfs://nn:8020/in"], [("hdfs://nn:8020", "/in")]),
        (["abfss://c@acc.dfs.core.windows.net/in"], [("abfss://c@acc.dfs.core.windows.net", "in")]),
        (["file:/in/day=1", "file:/in/day=2"], [("file", "/in"), ("file", "/in")]),
        (["file:/in/a=1/b=x%20y"], [("file", "/in")]),
        (["file:/in/a=b.csv/x"], [("file", "/in/a=b.csv/x")]),
        (["file:/a", "s3://b/c"], [("file", "/a"), ("s3://b", "c")]),
        (["file:/t/_delta_log/00.json"], []),
    ],
    ids=lambda value: str(value)[:40],
)
def test_files(paths: list[str], expected: list[tuple[str, str]]) -> None:
    assert named(names.leaf(Naming(), files(*paths))[0]) == expected


def test_a_micro_batch_names_the_directory_of_its_files() -> None:
    node = files("file:/in/a.json", "file:/in/b.json", isStreaming=True)
    assert named(names.leaf(Naming(), node)[0]) == [("file", "/in")]
    node = files("file:/in", isStreaming=True)
    node["relation"]["dirs"] = 1  # the probe has named it already
    assert named(names.leaf(Naming(), node)[0]) == [("file", "/in")]


def catalog_table(*ident: str, location: str | None, kind: str = "MANAGED", provider: str = "parquet") -> Any:
    return {
        "n": "LogicalRelation",
        "relation": {"t": "files", "paths": ["file:/elsewhere"]},
        "catalogTable": {
            "t": "table",
            "ident": {"t": "ident", "id": list(ident)},
            "location": location,
            "type": kind,
            "provider": provider,
        },
    }


@pytest.mark.parametrize(
    ("conf", "node", "identity", "link"),
    [
        (WAREHOUSE, catalog_table("spark_catalog", "shop", "t", location="file:/wh/shop.db/t"), ("file", "/wh/shop.db/t"), ("file:/wh", "shop.t")),
        (WAREHOUSE, catalog_table("shop", "t", location="file:/wh/shop.db/t"), ("file", "/wh/shop.db/t"), ("file:/wh", "shop.t")),
        (WAREHOUSE, catalog_table("t", location="file:/wh/t"), ("file", "/wh/t"), ("file:/wh", "default.t")),
        (WAREHOUSE, catalog_table("shop", "t", location="s3a://x/y%20z", kind="EXTERNAL"), ("s3://x", "y z"), ("file:/wh", "shop.t")),
        (HIVE, catalog_table("spark_catalog", "shop", "t", location="s3a://lake/wh/shop.db/t"), ("s3://lake", "wh/shop.db/t"), ("hive://meta:9083", "shop.t")),
        (HIVE, catalog_table("spark_catalog", "shop", "Big", location="s3a://lake/wh/shop.db/big"), ("s3://lake", "wh/shop.db/big"), ("hive://meta:9083", "shop.big")),
        (GLUE, catalog_table("spark_catalog", "shop", "t", location="s3a://lake/wh/shop.db/t"), ("s3://lake", "wh/shop.db/t"), ("arn:aws:glue:eu-west-1:123456789012", "table/shop/t")),
    ],
    ids=["session", "two levels", "one level", "external", "hive", "hive folds", "glue as metastore"],
)  # fmt: skip
def test_tables_of_the_session_catalog(conf: dict[str, str], node: Any, identity: Any, link: Any) -> None:
    (found,), query = names.leaf(Naming(conf), node)
    assert query is None
    assert (found.identity.namespace, found.identity.name) == identity
    assert [each[:2] for each in found.symlinks] == [link]
    assert found.kind == "TABLE"


@pytest.mark.parametrize(
    ("conf", "expected"), [(WAREHOUSE, ("file:/wh", "shop.v")), (HIVE, ("hive://meta:9083", "shop.v"))], ids=["memory", "hive"]
)  # fmt: skip
def test_a_view_is_named_by_its_catalog(conf: dict[str, str], expected: tuple[str, str]) -> None:
    described = {"ident": {"id": ["spark_catalog", "shop", "v"]}, "type": "VIEW"}
    (found,) = names.table(Naming(conf), described)
    assert (found.identity.namespace, found.identity.name) == expected
    assert found.kind == "VIEW"


def iceberg(catalog: str, **conf: str) -> dict[str, str]:
    prefix = f"spark.sql.catalog.{catalog}"
    return {
        prefix: "org.apache.iceberg.spark.SparkCatalog",
        **{f"{prefix}.{key.replace('__', '-').replace('_', '.')}": value for key, value in conf.items()},
    }


def v2(catalog: str, *ident: str, location: str | None = None, **table: Any) -> dict[str, Any]:
    return {
        "n": "DataSourceV2Relation",
        "table": {"t": "v2", "class": "SparkTable", "name": ".".join(ident), "properties": {"location": location} if location else {}, **table},
        "catalog": {"t": "catalog", "name": catalog, "class": "org.apache.iceberg.spark.SparkCatalog"},
        "identifier": {"t": "ident", "id": list(ident)},
        "o": [],
    }  # fmt: skip


@pytest.mark.parametrize(
    ("conf", "identity", "link"),
    [
        (iceberg("ice", type="hadoop", warehouse="s3://lake/ice"), ("s3://lake", "ice/db/t"), ("s3://lake/ice", "db.t")),
        (iceberg("ice", type="rest", uri="https://cat.example.org/api"), ("s3://lake", "ice/db/t"), ("https://cat.example.org/api", "db.t")),
        (iceberg("ice", type="jdbc", uri="jdbc:postgresql://db/cat"), ("s3://lake", "ice/db/t"), ("postgres://db:5432/cat", "db.t")),
        (iceberg("ice", type="hive", uri="thrift://meta:9083"), ("s3://lake", "ice/db/t"), ("hive://meta:9083", "db.t")),
        (iceberg("ice", type="nessie", uri="http://nessie:19120/api/v2"), ("s3://lake", "ice/db/t"), ("http://nessie:19120/api/v2", "db.t")),
        (
            iceberg("ice", type="glue", client_region="eu-west-1", glue_account__id="1234"),
            ("s3://lake", "ice/db/t"),
            ("arn:aws:glue:eu-west-1:1234", "table/db/t"),
        ),
        (iceberg("ice", catalog__impl="org.apache.iceberg.aws.glue.GlueCatalog", client_region="eu-west-1", glue_account__id="1234"), ("s3://lake", "ice/db/t"), ("arn:aws:glue:eu-west-1:1234", "table/db/t")),
        (iceberg("ice", catalog__impl="org.apache.iceberg.rest.RESTCatalog", uri="https://cat.example.org"), ("s3://lake", "ice/db/t"), ("https://cat.example.org", "db.t")),
        (iceberg("ice", catalog__impl="org.apache.iceberg.nessie.NessieCatalog", uri="http://nessie:19120/api/v1"), ("s3://lake", "ice/db/t"), ("http://nessie:19120/api/v1", "db.t")),
        (iceberg("ice", catalog__impl="software.amazon.s3tables.iceberg.S3TablesCatalog", warehouse="arn:aws:s3tables:r:1:bucket/b"), ("s3://lake", "ice/db/t"), ("arn:aws:s3tables:r:1:bucket/b", "db.t")),
        (iceberg("ice", type="rest", uri="https://s3tables.r.amazonaws.com/iceberg", warehouse="arn:aws:s3tables:r:1:bucket/b"), ("s3://lake", "ice/db/t"), ("arn:aws:s3tables:r:1:bucket/b", "db.t")),
        (iceberg("ice", catalog__impl="org.apache.iceberg.snowflake.SnowflakeCatalog", uri="jdbc:snowflake://org-acct.snowflakecomputing.com", warehouse="lake"), ("s3://lake", "ice/db/t"), ("snowflake://org-acct", "LAKE.DB.T")),
        (iceberg("ice", type="rest", uri="https://org-acct.snowflakecomputing.com/polaris/api/catalog", warehouse="lake"), ("s3://lake", "ice/db/t"), ("snowflake://org-acct", "LAKE.DB.T")),
    ],
    ids=["hadoop", "rest", "jdbc", "hive", "nessie", "glue", "glue class", "rest class", "nessie class", "S3 tables", "S3 tables by REST", "Snowflake", "Snowflake by REST"],
)  # fmt: skip
def test_iceberg_tables(conf: dict[str, str], identity: Any, link: Any) -> None:
    properties = {"location": "s3://lake/ice/db/t", "current-snapshot-id": "77", "provider": "iceberg"}
    (found,) = names.leaf(Naming(conf), v2("ice", "db", "t", properties=properties))[0]
    assert (found.identity.namespace, found.identity.name) == identity
    assert [each[:2] for each in found.symlinks] == [link]
    assert found.version == "77"
    assert dict(found.catalog)["name"] == "ice"


def test_an_empty_iceberg_table_has_no_version() -> None:
    properties = {"location": "s3://lake/t", "current-snapshot-id": "none"}
    (found,) = names.leaf(Naming(iceberg("ice", type="hadoop")), v2("ice", "t", properties=properties))[0]
    assert found.version is None


def test_what_iceberg_says_of_a_table_is_no_dataset() -> None:
    node = v2("ice", "db", "t", "snapshots", location="s3://lake/t", metadata=1)
    assert names.leaf(Naming(iceberg("ice", type="hadoop")), node) == ([], None)


@pytest.mark.parametrize(
    ("ident", "told"),
    [
        (("db", "t"), {"name": "ice.db.t"}),
        (("db", "t", "branch_x"), {"name": "ice.db.t"}),
        (("db", "t", "tag_x"), {"name": "ice.db.t"}),
        (("db", "t", "changes"), {"name": "ice.db.t.changes", "class": "SparkChangelogTable"}),
    ],
)
def test_what_is_asked_of_an_iceberg_table_is_not_its_name(ident: Any, told: dict[str, str]) -> None:
    conf = iceberg("ice", type="rest", uri="https://cat.example.org")
    (found,) = names.leaf(Naming(conf), v2("ice", *ident, location="s3://lake/x", **told))[0]
    assert named([found]) == [("s3://lake", "x")]
    assert [each[:2] for each in found.symlinks] == [("https://cat.example.org", "db.t")]


def test_a_table_called_as_its_branch_would_be_keeps_its_name() -> None:
    conf = iceberg("ice", type="rest", uri="https://cat.example.org")
    node = v2("ice", "t", "t", location="s3://lake/x", name="ice.t.t")
    assert [each[:2] for each in names.leaf(Naming(conf), node)[0][0].symlinks] == [
        ("https://cat.example.org", "t.t")
    ]


def test_an_iceberg_table_at_a_path_has_no_name_in_a_catalog() -> None:
    node = v2("default_iceberg", "/wh/db", "t", location="/wh/db/t", name="/wh/db/t", version="7")
    (found,) = names.leaf(Naming(), node)[0]
    assert (named([found]), found.symlinks, found.version) == ([("file", "/wh/db/t")], (), "7")


def test_a_table_with_levels_and_dots() -> None:
    conf = iceberg("ice", type="rest", uri="https://cat.example.org")
    (found,) = names.leaf(Naming(conf), v2("ice", "a", "b", "t", location="s3://lake/x"))[0]
    assert [each[:2] for each in found.symlinks] == [("https://cat.example.org", "a.b.t")]


def test_delta_by_path_and_by_name() -> None:
    by_path = {"n": "DataSourceV2Relation", "table": {"t": "v2", "class": "DeltaTableV2", "name": "delta.`file:/d/t`", "location": "file:/d/t", "properties": {}}, "o": []}  # fmt: skip
    assert named(names.leaf(Naming(WAREHOUSE), by_path)[0]) == [("file", "/d/t")]
    by_name = v2("spark_catalog", "shop", "t", **{"class": "DeltaTableV2", "location": "file:/wh/shop.db/t"})
    by_name["table"]["location"] = "file:/wh/shop.db/t"
    (found,) = names.leaf(Naming(WAREHOUSE), by_name)[0]
    assert named([found]) == [("file", "/wh/shop.db/t")]
    assert [each[:2] for each in found.symlinks] == [("file:/wh", "shop.t")]


def jdbc(**options: str) -> dict[str, Any]:
    return {
        "n": "LogicalRelation",
        "relation": {"t": "relation", "class": "JDBCRelation", "options": options},
        "o": [],
    }


PG = "jdbc:postgresql://fred:pw@db/shop"


@pytest.mark.parametrize(
    ("options", "expected", "query"),
    [
        ({"url": PG, "dbtable": "orders"}, [("postgres://db:5432", "shop.public.orders")], None),
        ({"url": PG, "dbTable": "sales.orders"}, [("postgres://db:5432", "shop.sales.orders")], None),
        ({"URL": "jdbc:mysql://h:3307/shop", "dbtable": "orders"}, [("mysql://h:3307", "shop.orders")], None),
        ({"url": PG, "query": "SELECT 1"}, [], "SELECT 1"),
        ({"url": PG, "dbtable": "(SELECT a FROM t) AS q"}, [], "SELECT a FROM t"),
        ({"url": PG, "dbtable": "(SELECT a\nFROM t) q"}, [], "SELECT a\nFROM t"),
    ],
    ids=["table", "schema", "mysql", "query", "subquery", "subquery over lines"],
)
def test_jdbc(options: dict[str, str], expected: Any, query: str | None) -> None:
    found, text = names.leaf(Naming(), jdbc(**options))
    assert (named(found), text) == (expected, query)


BROKERS = {"kafka.bootstrap.servers": "b1:9092,b2:9092"}


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"subscribe": "orders"}, ["orders"]),
        ({"subscribe": "orders, people"}, ["orders", "people"]),
        ({"assign": '{"orders":[0,1],"people":[0]}'}, ["orders", "people"]),
        ({"subscribePattern": "or.*"}, ["or.*"]),
        ({"topic": "out"}, ["out"]),
    ],
    ids=["subscribe", "two", "assign", "pattern", "write"],
)
def test_kafka(options: dict[str, str], expected: list[str]) -> None:
    found = names.kafka({**BROKERS, **options})
    assert named(found) == [("kafka://b1:9092", topic) for topic in expected]
    assert all(each.kind == "TOPIC" for each in found)
    assert all(("kafka://b2:9092", topic) in [link[:2] for link in each.symlinks] for each, topic in zip(found, expected, strict=True))  # fmt: skip
    stream = {"n": "StreamingDataSourceV2Relation", "table": {"t": "v2", "class": "KafkaTable", "name": "KafkaTable"}, "options": {**BROKERS, **options}, "o": []}  # fmt: skip
    assert named(names.leaf(Naming(), stream)[0]) == named(found)
    relation = {"n": "LogicalRelation", "relation": {"t": "relation", "class": "KafkaRelation", "options": {**BROKERS, **options}}, "o": []}  # fmt: skip
    assert named(names.leaf(Naming(), relation)[0]) == named(found)


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"url": PG, "dbtable": "out"}, [("postgres://db:5432", "shop.public.out")]),
        ({**BROKERS, "topic": "out"}, [("kafka://b1:9092", "out")]),
        ({"path": "s3a://lake/out"}, [("s3://lake", "out")]),
        ({"collection": "x"}, []),
    ],
    ids=["jdbc", "kafka", "path", "nobody knows"],
)
def test_what_options_write_to(options: dict[str, str], expected: Any) -> None:
    assert named(names.option_target(options)) == expected


def test_what_writes_nowhere_is_no_dataset() -> None:
    assert names.v2(Naming(), {"table": {"t": "v2", "class": "NoopTable$"}}) == []


def test_the_same_table_by_path_and_by_name_is_one() -> None:
    by_path = names.leaf(Naming(WAREHOUSE), files("file:/wh/shop.db/t"))[0]
    by_name = names.leaf(Naming(WAREHOUSE), catalog_table("shop", "t", location="file:/wh/shop.db/t"))[0]
    assert named(by_path) == named(by_name)


@pytest.mark.parametrize(
    "options", [{"url": "jdbc:postgresql://u:hunter2@h/d?password=hunter2", "dbtable": "t", "password": "hunter2"}]
)  # fmt: skip
def test_names_hold_no_secret(options: dict[str, str]) -> None:
    assert "hunter2" not in repr(names.leaf(Naming(), jdbc(**options)))


def test_a_table_of_unity() -> None:
    conf = {
        "spark.sql.catalog.main": "io.unitycatalog.spark.UCSingleCatalog",
        "spark.sql.catalog.main.uri": "http://uc.example.org:8080",
        "spark.sql.catalog.main.token": "hush",
    }
    node = v2(
        "main",
        "shop",
        "orders",
        location="s3://lake/x",
        properties={"location": "s3://lake/x", "provider": "delta"},
    )
    (found,), _ = names.leaf(Naming(conf), node)
    assert (found.identity.namespace, found.identity.name) == ("s3://lake", "x")
    assert [each[:2] for each in found.symlinks] == [
        ("unitycatalog://uc.example.org:8080", "main.shop.orders")
    ]
    assert dict(found.catalog)["type"] == "unity"
    assert "hush" not in repr(found)
