import doctest
import importlib
import pkgutil
import re
from pathlib import Path

import pytest

import headwater.naming
from headwater.naming import CATALOGS, FILESYSTEMS, PLATFORMS, Dataset, database, from_jdbc, platform_key
from headwater.naming._urls import READERS

DOCS = Path(__file__).parents[2] / "docs" / "naming.md"

CASES = [
    (("postgres", "Orders", {"host": "DB", "database": "shop"}), "postgres://db:5432", "shop.public.Orders"),
    (("postgresql", "t", {"host": "db", "port": 5433, "database": "d", "schema": "s"}), "postgres://db:5433", "d.s.t"),
    (("mysql", "t", {"host": "h", "database": "d"}), "mysql://h:3306", "d.t"),
    (("mysql", "t", {"host": "h", "schema": "d"}), "mysql://h:3306", "d.t"),
    (("mariadb", "t", {"host": "h", "database": "d"}), "mysql://h:3306", "d.t"),
    (("mssql", "t", {"host": "h", "database": "d"}), "mssql://h:1433", "d.dbo.t"),
    (("mssql", "t", {"host": "h", "instance": "i", "database": "d"}), "mssql://h/i", "d.dbo.t"),
    (("synapse", "t", {"host": "h", "database": "d", "schema": "s"}), "sqlserver://h:1433", "s.t"),
    (("fabric", "t", {"host": "h", "port": 1433, "database": "d"}), "fabric-warehouse://h", "d.dbo.t"),
    (("oracle", "T", {"host": "h", "database": "ORCL", "schema": "S"}), "oracle://h:1521", "ORCL.S.T"),
    (("redshift", "t", {"host": "w.1234.eu-west-1.redshift-serverless.amazonaws.com", "database": "d"}), "redshift://w.eu-west-1:5439", "d.public.t"),
    (("snowflake", "T", {"host": "https://org-acc.snowflakecomputing.com:443", "database": "D", "schema": "S"}), "snowflake://org-acc", "D.S.T"),
    (("bigquery", "t", {"project": "p", "dataset": "d"}), "bigquery", "p.d.t"),
    (("bigquery", "t", {"database": "p", "schema": "d"}), "bigquery", "p.d.t"),
    (("athena", "T", {"region": "eu-west-1", "catalog": "awsdatacatalog", "database": "d"}), "awsathena://athena.eu-west-1.amazonaws.com", "AwsDataCatalog.d.t"),
    (("glue", "t", {"region": "r", "account": "1", "database": "d"}), "arn:aws:glue:r:1", "table/d/t"),
    (("databricks", "t", {"host": "H", "port": 443, "catalog": "Main", "schema": "s"}), "unitycatalog://h", "main.s.t"),
    (("trino", "t", {"host": "h", "catalog": "c", "schema": "s"}), "trino://h:443", "c.s.t"),
    (("cassandra", "t", {"host": "h", "keyspace": "k"}), "cassandra://h:9042", "k.t"),
    (("cosmos", "c", {"host": "a.documents.azure.com", "database": "d"}), "azurecosmos://a.documents.azure.com/dbs/d", "colls/c"),
    (("kusto", "t", {"host": "cl", "database": "d"}), "azurekusto://cl.kusto.windows.net", "d/t"),
    (("milvus", "c", {"host": "h"}), "milvus://h:19530", "default.c"),
    (("spanner", "t", {"project": "p", "instance": "i", "database": "d"}), "spanner://p:i", "d.t"),
    (("pubsub", "t", {"project": "p"}), "pubsub", "topic:p:t"),
    (("pubsub_subscription", "s", {"project": "p"}), "pubsub", "subscription:p:s"),
    (("clickhouse", "ds___t", {"host": "h", "port": "8443", "database": "d"}), "clickhouse://h:8443", "d.ds___t"),
    (("duckdb", "t", {"path": "/x/y.db", "schema": "s"}), "duckdb:///x/y.db", "s.t"),
    (("duckdb", "t", {"path": "s3a://b/y.db"}), "duckdb://s3://b/y.db", "main.t"),
    (("motherduck", "t", {"database": "d", "schema": "s"}), "motherduck://md", "d.s.t"),
    (("mongodb", "c", {"host": "mongodb://u:pw@h1,h2:27018/x", "database": "d"}), "mongodb://h1:27017,h2:27018", "d.c"),
    (("elasticsearch", "Orders", {"host": "https://u:pw@es:9243"}), "elasticsearch://es:9243", "orders"),
    (("dynamodb", "t", {"region": "r", "account": "1"}), "arn:aws:dynamodb:r:1", "table/t"),
    (("kinesis", "s", {"region": "r"}), "arn:aws:kinesis:r", "stream/s"),
    (("rabbitmq", "q", {"host": "h", "vhost": "v"}), "amqp://h:5672", "v.q"),
    (("hbase", "t", {"host": "zk"}), "hbase://zk:2181", "default:t"),
    (("newdb", "t", {"host": "H", "port": 7, "database": "d"}), "newdb://h:7", "d.t"),
    (("postgres", "t", {}), "postgres", "public.t"),
]  # fmt: skip


@pytest.mark.parametrize(("asked", "namespace", "name"), CASES)
def test_parts_make_a_name(asked, namespace, name):
    platform, table, parts = asked
    assert database(platform, table, **parts) == Dataset(namespace, name)


def test_names_fold_only_when_they_are_sql():
    assert database("postgres", "S.Orders", host="h", database="d", sql=True).name == "d.s.orders"
    assert database("postgres", "Orders", host="h", database="d", schema="S").name == "d.S.Orders"
    assert (
        database("snowflake", "orders", host="a-b", database="D", schema="S", sql=True).name == "D.S.ORDERS"
    )


def test_the_innermost_level_may_go_by_its_own_name():
    assert database("mongodb", host="h", database="d", collection="c").name == "d.c"


@pytest.mark.parametrize("key", PLATFORMS)
def test_each_platform_fills_its_templates_wholly(key):
    platform = PLATFORMS[key]
    fields = set(re.findall(r"\{(\w+)\}", platform.namespace + platform.name)) - {"host", "port"}
    found = database(key, host="h1", **{field: f"x_{field}" for field in fields})
    assert not re.search(r"[{}\[\]]", str(found))
    assert all(f"x_{field}" in str(found) for field in fields)
    if "{host}" in platform.namespace:
        assert "h1" in found.namespace
    if "{host}:{port}" in platform.namespace and platform.port and "{instance}" not in platform.namespace:
        assert f"h1:{platform.port}" in found.namespace


def test_no_alias_means_two_platforms():
    names = [name for key, platform in PLATFORMS.items() for name in (key, *platform.aliases)]
    assert sorted(names) == sorted(set(names))
    assert platform_key("postgresql+psycopg") == "postgres"
    assert platform_key("nobody") is None


def test_each_reader_of_urls_belongs_to_a_platform():
    assert [scheme for scheme in READERS if scheme != "jtds" and platform_key(scheme) is None] == []


def test_settings_and_urls_agree():
    """A Debezium source, a Spark job and a dlt pipeline see one table."""
    debezium = database("postgres", "orders", host="db.corp", port="5432", database="shop", schema="public")
    spark = from_jdbc("jdbc:postgresql://DB.corp/shop?user=u&password=p", "public.orders")
    dlt = from_jdbc("postgresql+psycopg2://u:p@db.corp:5432/shop", "orders")
    assert debezium == spark == dlt


@pytest.mark.parametrize("key", [*PLATFORMS, *FILESYSTEMS, *CATALOGS])
def test_each_key_is_documented(key):
    text = DOCS.read_text(encoding="utf-8")
    assert f"| `{key}` |" in text


@pytest.mark.parametrize("key", PLATFORMS)
def test_the_documents_tell_the_truth_of_each_platform(key):
    platform = PLATFORMS[key]
    row = next(
        line for line in DOCS.read_text(encoding="utf-8").splitlines() if line.startswith(f"| `{key}` |")
    )
    cells = [cell.strip() for cell in row.strip("|").split("|")]
    assert cells[1:4] == [f"`{platform.namespace}`", f"`{platform.name}`", str(platform.port or "")]
    above = ".".join(part for part in (platform.catalog, platform.schema) if part)
    assert cells[4] == (f"`{above}`" if above else "")
    assert cells[5] == f"{platform.fold}{', quoted too' if platform.insensitive else ''}"
    assert cells[6] == ", ".join(f"`{alias}`" for alias in platform.aliases)


@pytest.mark.parametrize("module", [m.name for m in pkgutil.iter_modules(headwater.naming.__path__)])
def test_the_examples_in_the_code_run(module):
    assert doctest.testmod(importlib.import_module(f"headwater.naming.{module}")).failed == 0


def test_all_names_what_there_is():
    assert sorted(headwater.naming.__all__) == sorted(set(headwater.naming.__all__))
    assert all(hasattr(headwater.naming, name) for name in headwater.naming.__all__)
