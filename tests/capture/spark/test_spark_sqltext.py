"""Queries that another database answers, in its own SQL: their tables, the sources of their columns, what decides on rows."""

from __future__ import annotations

import time
from typing import Any

import pytest
from checking import ends
from replaying import replay, state

from headwater.capture.spark.sqltext import parse

pytest.importorskip("sqlglot")

Sources = dict[str, set[str]]


def lineage(url: str, query: str, *columns: str) -> tuple[set[str], Sources, set[str]]:
    """What a job that reads this is told to read, where its columns come from, and what decided on its rows."""
    listed = [[number, name, "string"] for number, name in enumerate(columns)]
    options = {"url": url, "query": query}
    read = {
        "n": "LogicalRelation",
        "relation": {"t": "relation", "class": "JDBCRelation", "options": options},
        "o": listed,
    }
    write = {
        "n": "InsertIntoHadoopFsRelationCommand",
        "outputPath": "file:/out",
        "query": {"#": 0},
        "q": listed,
        "outputColumnNames": list(columns),
        "o": [],
    }
    begun = {"kind": "start", "id": 1, "time": 1, "description": "", "plan": [read, write]}
    (end,) = ends(replay([begun, {"kind": "end", "id": 1, "time": 2}], state()))
    found: dict[str, Any] = end["outputs"][0]["facets"].get("columnLineage", {"fields": {}})
    fields = {
        name: {f"{each['name']}:{each['field']}" for each in told["inputFields"]}
        for name, told in found["fields"].items()
    }
    rows = {f"{each['name']}:{each['field']}" for each in found.get("dataset", [])}
    return {each["name"] for each in end["inputs"]}, fields, rows


PG, MYSQL, MSSQL, ORACLE = (
    "jdbc:postgresql://db/shop",
    "jdbc:mysql://db/shop",
    "jdbc:sqlserver://db;databaseName=shop",
    "jdbc:oracle:thin:@//db:1521/shop",
)


@pytest.mark.parametrize(
    ("url", "query", "columns", "expected"),
    [
        (PG, "SELECT * FROM orders WHERE paid", "id", ({"shop.public.orders"}, {"id": {"shop.public.orders:id"}}, {"shop.public.orders:paid"})),
        (PG, "SELECT o.*, c.name FROM orders o JOIN people c ON o.who = c.id", "id name", ({"shop.public.orders", "shop.public.people"}, {"id": {"shop.public.orders:id"}, "name": {"shop.public.people:name"}}, {"shop.public.orders:who", "shop.public.people:id"})),
        (PG, "SELECT * FROM (SELECT * FROM orders) o", "id", ({"shop.public.orders"}, {"id": {"shop.public.orders:id"}}, set())),
        (PG, "SELECT o.id AS n FROM (SELECT * FROM orders) o", "n", ({"shop.public.orders"}, {"n": {"shop.public.orders:id"}}, set())),
        (PG, "SELECT * FROM a JOIN b ON a.i = b.i", "x", ({"shop.public.a", "shop.public.b"}, {}, {"shop.public.a:i", "shop.public.b:i"})),
        (PG, "SELECT * FROM (SELECT x.*, y.z FROM x JOIN y USING (k)) q", "z", ({"shop.public.x", "shop.public.y"}, {}, {"shop.public.x:k", "shop.public.y:k"})),
        (PG, 'SELECT "Id" FROM "Orders"', "Id", ({"shop.public.Orders"}, {"Id": {"shop.public.Orders:Id"}}, set())),
        (PG, "SELECT q.a FROM (SELECT * FROM t UNION ALL SELECT * FROM u) q", "a", ({"shop.public.t", "shop.public.u"}, {"a": {"shop.public.t:a", "shop.public.u:a"}}, set())),
        (PG, "SELECT a FROM t x WHERE x.c UNION ALL SELECT b FROM u x WHERE x.d", "a", ({"shop.public.t", "shop.public.u"}, {"a": {"shop.public.t:a", "shop.public.u:b"}}, {"shop.public.t:c", "shop.public.u:d"})),
        (PG, "WITH orders AS (SELECT * FROM old.orders) SELECT id FROM orders", "id", ({"shop.old.orders"}, {"id": {"shop.old.orders:id"}}, set())),
        (PG, "SELECT a FROM t WHERE b IN (SELECT c FROM u WHERE u.k = t.k)", "a", ({"shop.public.t", "shop.public.u"}, {"a": {"shop.public.t:a"}}, {"shop.public.t:b", "shop.public.t:k", "shop.public.u:c", "shop.public.u:k"})),
        (PG, "SELECT a FROM generate_series(1, 2) a", "a", (set(), {}, set())),
        (MYSQL, "SELECT `Id`, o.Total FROM `Orders` O", "Id Total", ({"shop.Orders"}, {"Id": {"shop.Orders:Id"}, "Total": {"shop.Orders:Total"}}, set())),
        (MSSQL, "SELECT TOP 10 [Id] FROM [dbo].[My Orders] WITH (NOLOCK)", "Id", ({"shop.dbo.My Orders"}, {"Id": {"shop.dbo.My Orders:Id"}}, set())),
        (ORACLE, "SELECT id, t.total FROM sales.orders t", "ID TOTAL", ({"SHOP.SALES.ORDERS"}, {"ID": {"SHOP.SALES.ORDERS:ID"}, "TOTAL": {"SHOP.SALES.ORDERS:TOTAL"}}, set())),
        ("jdbc:h2:mem:shop", "SELECT id FROM items", "ID", ({"PUBLIC.ITEMS"}, {"ID": {"PUBLIC.ITEMS:ID"}}, set())),
    ],
    ids=["star", "star and column", "star of a star", "through a star", "star of two", "star of two below", "quotes", "union of stars", "one alias twice", "name of a table", "correlated", "no table", "mysql", "mssql", "oracle", "h2"],
)  # fmt: skip
def test_a_query(url: str, query: str, columns: str, expected: tuple[set[str], Sources, set[str]]) -> None:
    assert lineage(url, query, *columns.split()) == expected


def test_a_wide_query_is_read_at_once() -> None:
    columns = ", ".join(f"t.c{number} + u.d{number} AS x{number}" for number in range(400))
    begun = time.monotonic()
    found = parse(f"SELECT {columns} FROM t JOIN (SELECT * FROM v) u ON t.k = u.k", "postgres")
    assert set(found.columns["x399"]) == {("t", "c399", False), ("v", "d399", False)}
    assert time.monotonic() - begun < 10


@pytest.mark.parametrize("text", ["call it()", "garbage (", "", "SELECT 1"])
def test_what_reads_no_table(text: str) -> None:
    assert parse(text, "mysql").tables == ()
