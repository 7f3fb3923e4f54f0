import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headwater.errors import UnknownName
from headwater.naming import (
    CATALOGS,
    Dataset,
    Symlink,
    from_catalog,
    from_endpoint,
    from_jdbc,
    in_memory,
    unknown,
)

CASES = [
    ("hive", {"uri": "thrift://MS:9083", "location": "s3a://b/wh/x"}, ("s3://b", "wh/x"), ("hive://ms:9083", "shop.orders")),
    ("hive", {"uri": "thrift://m1,thrift://m2", "warehouse": "s3://b/wh"}, ("s3://b", "wh/shop.db/orders"), ("hive://m1:9083", "shop.orders")),
    ("hive", {"warehouse": "/wh"}, ("file", "/wh/shop.db/orders"), ("file:/wh", "shop.orders")),
    ("hadoop", {"warehouse": "file:/wh/"}, ("file", "/wh/shop/orders"), ("file:/wh", "shop.orders")),
    ("hadoop", {"warehouse": "hdfs://NN:8020/wh"}, ("hdfs://nn:8020", "/wh/shop/orders"), ("hdfs://nn:8020/wh", "shop.orders")),
    ("hadoop", {"warehouse": "s3a://b/wh"}, ("s3://b", "wh/shop/orders"), ("s3://b/wh", "shop.orders")),
    ("rest", {"uri": "http://rest:8181/", "warehouse": "s3://b/wh"}, ("s3://b", "wh/shop/orders"), ("http://rest:8181", "shop.orders")),
    ("rest", {"uri": "http://u:pw@rest:8181?token=x", "warehouse": "prod"}, ("http://rest:8181", "shop.orders"), None),
    ("nessie", {"uri": "http://n:19120/api/v1", "location": "s3://b/o_1"}, ("s3://b", "o_1"), ("http://n:19120/api/v1", "shop.orders")),
    ("nessie", {"uri": "http://n:19120/api/v1", "warehouse": "s3://b/wh"}, ("http://n:19120/api/v1", "shop.orders"), None),
    ("glue", {"region": "r", "account": "1", "warehouse": "s3://b/wh"}, ("s3://b", "wh/shop.db/orders"), ("arn:aws:glue:r:1", "table/shop/orders")),
    ("s3tables", {"warehouse": "arn:aws:s3tables:r:1:bucket/b", "location": "s3://63a8--table-s3"}, ("s3://63a8--table-s3", "/"), ("arn:aws:s3tables:r:1:bucket/b", "shop.orders")),
    ("s3tables", {"warehouse": "arn:aws:s3tables:r:1:bucket/b"}, ("arn:aws:s3tables:r:1:bucket/b", "shop.orders"), None),
    ("snowflake", {"uri": "https://Org-Acct.snowflakecomputing.com/polaris/api/catalog", "warehouse": "lake", "location": "s3://b/x"}, ("s3://b", "x"), ("snowflake://org-acct", "LAKE.SHOP.ORDERS")),
    ("snowflake", {"uri": "jdbc:snowflake://org-acct.snowflakecomputing.com", "warehouse": "lake"}, ("snowflake://org-acct", "LAKE.SHOP.ORDERS"), None),
    ("jdbc", {"uri": "jdbc:postgresql://u:pw@PG/ice", "warehouse": "s3://b/wh"}, ("s3://b", "wh/shop/orders"), ("postgres://pg:5432/ice", "shop.orders")),
    ("jdbc", {"uri": "jdbc:sqlite:/x/y.db", "warehouse": "/wh"}, ("file", "/wh/shop/orders"), ("sqlite:///x/y.db", "shop.orders")),
    ("unity", {"uri": "https://DBX:443", "catalog": "main", "location": "s3://b/x"}, ("s3://b", "x"), ("unitycatalog://dbx", "main.shop.orders")),
    ("bigquery", {"account": "proj", "location": "gs://b/x"}, ("gs://b", "x"), ("bigquery", "proj.shop.orders")),
    ("biglake", {"catalog": "lh", "location": "gs://b/x"}, ("gs://b", "x"), ("gcp_lakehouse", "lh.shop.orders")),
    ("hive", {"catalog": "spark_catalog"}, ("spark_catalog", "shop.orders"), None),
    ("hive", {}, ("hive_catalog", "shop.orders"), None),
    ("rest", {"uri": "?token=x"}, ("rest_catalog", "shop.orders"), None),
    ("jdbc", {"uri": "jdbc:"}, ("jdbc", "shop.orders"), None),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "known", "first", "link"), CASES)
def test_a_table_is_its_location_and_its_catalog_name(kind, known, first, link):
    assert from_catalog(kind, "shop.orders", **known) == Dataset(
        *first, (Symlink(*link, "TABLE"),) if link else ()
    )


def test_every_kind_has_a_case():
    assert {case[0] for case in CASES} == set(CATALOGS)


@pytest.mark.parametrize(
    ("kind", "table", "name"),
    [
        ("hive", "default.t", "wh/t"),
        ("hive", "t", "wh/t"),
        ("glue", "default.t", "wh/default.db/t"),
        ("hadoop", "a.b.t", "wh/a/b/t"),
        ("rest", "default.t", "wh/default/t"),
        ("hadoop", "`a`.`t`", "wh/a/t"),
    ],
)
def test_default_locations(kind, table, name):
    assert from_catalog(kind, table, warehouse="s3://b/wh/").name == name


def test_the_catalogs_own_name_is_no_level():
    assert from_catalog("hadoop", "ice.db.t", catalog="ice", warehouse="/wh").name == "/wh/db/t"


def test_locations_may_be_uris():
    assert from_catalog("hive", "d.t", location="file:/a%20b", encoded=True).name == "/a b"
    assert from_catalog("hive", "d.t", location="file:/a%20b").name == "/a%20b"


def test_a_jdbc_catalogs_table_is_not_a_table_of_that_database():
    table = from_jdbc("jdbc:postgresql://pg/ice", "shop.orders")
    assert from_catalog("jdbc", "shop.orders", uri="jdbc:postgresql://pg/ice").identity != table.identity


def test_an_unknown_kind_is_refused():
    with pytest.raises(UnknownName, match="did you mean 'hive'"):
        from_catalog("hiv", "t")


@settings(deadline=None)
@given(st.sampled_from(CATALOGS), *[st.text(max_size=25)] * 4)
def test_no_text_is_refused(kind, table, location, uri, warehouse):
    found = from_catalog(kind, table, location=location, uri=uri, warehouse=warehouse)
    assert found.namespace
    assert found.name


@pytest.mark.parametrize(
    ("url", "path", "namespace", "name"),
    [
        ("https://API.x.org/v1/orders/", None, "https://api.x.org", "/v1/orders"),
        ("https://api.x.org:443", "orders/{id}", "https://api.x.org", "/orders/{id}"),
        ("http://api.x.org:80/v1/", "/orders?page=1", "http://api.x.org", "/v1/orders"),
        ("http://api.x.org:8080", None, "http://api.x.org:8080", "/"),
        ("https://u:p/w@api.x.org/v1", None, "https://api.x.org", "/v1"),
        ("https://u:pw@api.x.org/v1?api_key=x#y", None, "https://api.x.org", "/v1"),
        ("orders feed", None, "unknown", "orders feed"),
        ("", None, "unknown", "unnamed"),
    ],
)
def test_endpoints(url, path, namespace, name):
    assert from_endpoint(url, path) == Dataset(namespace, name)


@settings(deadline=None)
@given(st.text(max_size=40), st.none() | st.text(max_size=20))
def test_no_endpoint_is_refused(url, path):
    found = from_endpoint(url, path)
    assert found.namespace
    assert found.name


def test_what_has_no_address():
    assert in_memory("LocalRelation 1") == Dataset("inmemory://", "LocalRelation 1")
    assert unknown("com.acme.Source password=x") == Dataset("unknown", "com.acme.Source password=***")
