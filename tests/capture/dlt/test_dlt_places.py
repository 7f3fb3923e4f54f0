"""Where real pipelines read from and load to -> the names of the datasets, which others give to the same tables and folders."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import duckdb
import psycopg
import pytest
from telling import VERSION, Told, needs_inputs, pairs

import dlt
from databases import Postgres
from headwater.naming import from_jdbc, from_path

pytestmark = [
    pytest.mark.filterwarnings("ignore::DeprecationWarning:dlt"),  # of its own older options
    pytest.mark.filterwarnings("ignore::DeprecationWarning:pyiceberg"),
]

ROWS = [{"Cust Id": 1, "total": 1.5, "tags": ["a", "b"]}, {"Cust Id": 2, "total": 2.5, "tags": []}]


def names(datasets: list[dict[str, Any]]) -> set[tuple[str, str]]:
    return {(each["namespace"], each["name"]) for each in datasets}


@pytest.fixture
def shop(postgres: Postgres) -> str:
    """A database with a table whose names want quotes -> its url, with a password."""
    url = postgres.make(template=None)
    with psycopg.connect(url) as connection:
        connection.execute(
            'CREATE TABLE "Order Items" ("Order ID" int PRIMARY KEY, "unitPrice" numeric(10, 2))'
        )
        connection.execute('INSERT INTO "Order Items" VALUES (1, 2.50), (2, 5.00)')
        connection.execute("CREATE SCHEMA sales")
        connection.execute("CREATE TABLE sales.orders (id int PRIMARY KEY, note text)")
        connection.execute("INSERT INTO sales.orders VALUES (7, 'x')")
    return url


# --- sources


@needs_inputs
@pytest.mark.parametrize("backend", ["sqlalchemy", "pyarrow", "pandas"])
def test_every_table_of_a_postgres_database(told: Told, duck: Any, shop: str, backend: str) -> None:
    from dlt.sources.sql_database import sql_database

    duck().run(sql_database(shop, schema="sales", backend=backend))
    url = urlsplit(shop)
    place = f"postgres://127.0.0.1:{url.port}"
    end = told.end()
    assert names(end["inputs"]) == {(place, f"{url.path[1:]}.sales.orders")}
    assert pairs(end) == {
        ("orders", "id", f"{url.path[1:]}.sales.orders", "id"),
        ("orders", "note", f"{url.path[1:]}.sales.orders", "note"),
    }
    assert end["inputs"][0]["inputFacets"]["inputStatistics"]["rowCount"] == 1
    assert "hidden" not in told.file.read_text()


@needs_inputs
@pytest.mark.parametrize("renamed", [False, True])
def test_one_table_of_postgres_also_under_another_name(
    told: Told, duck: Any, shop: str, renamed: bool
) -> None:
    from dlt.sources.sql_database import sql_table

    table = sql_table(shop, table="Order Items")
    if renamed:
        table = table.with_name("dim_items")
    duck().run(table)
    url = urlsplit(shop)
    source = from_jdbc(shop, '"Order Items"')
    end = told.end()
    assert names(end["inputs"]) == {(source.namespace, source.name)}
    assert (source.namespace, source.name) == (
        f"postgres://127.0.0.1:{url.port}",
        f"{url.path[1:]}.public.Order Items",
    )
    loaded = "dim_items" if renamed else "order_items"
    assert pairs(end) == {
        (loaded, "order_id", source.name, "Order ID"),
        (loaded, "unit_price", source.name, "unitPrice"),
    }
    assert "hidden" not in told.file.read_text()


@needs_inputs
def test_a_query_of_ones_own_names_its_table_all_the_same(told: Told, duck: Any, shop: str) -> None:
    from dlt.sources.sql_database import sql_table

    items = sql_table(
        shop, table="Order Items", query_adapter_callback=lambda query, table: query.where(table.c["Order ID"] > 1)
    )  # fmt: skip
    duck().run(items)
    end = told.end()
    assert [each["name"].rpartition(".")[2] for each in end["inputs"]] == ["Order Items"]
    assert end["inputs"][0]["inputFacets"]["inputStatistics"]["rowCount"] == 1


@needs_inputs
def test_a_file_of_a_database_is_named_by_its_whole_path(
    told: Told, duck: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from dlt.sources.sql_database import sql_table

    monkeypatch.chdir(tmp_path)
    with closing(sqlite3.connect("shop.db")) as base, base:
        base.execute("CREATE TABLE customers (id INTEGER)")
        base.execute("INSERT INTO customers VALUES (1)")
    duck().run(sql_table("sqlite:///shop.db", table="customers"))
    assert names(told.end()["inputs"]) == {(f"sqlite://{tmp_path}/shop.db", "customers")}


@needs_inputs
def test_a_table_of_sqlite_under_another_name(told: Told, duck: Any, tmp_path: Path) -> None:
    from dlt.sources.sql_database import sql_table

    with closing(sqlite3.connect(tmp_path / "shop.db")) as base, base:
        base.execute('CREATE TABLE customers (id INTEGER PRIMARY KEY, "Full Name" TEXT)')
        base.execute("INSERT INTO customers VALUES (1, 'Ann')")
    duck().run(sql_table(f"sqlite:///{tmp_path}/shop.db", table="customers").with_name("dim_customer"))
    end = told.end()
    assert names(end["inputs"]) == {(f"sqlite://{tmp_path}/shop.db", "customers")}
    assert ("dim_customer", "full_name", "customers", "Full Name") in pairs(end)


@needs_inputs
@pytest.mark.parametrize("reader", ["read_csv", "read_jsonl", "read_parquet"])
def test_files_by_their_folder_through_a_reader(told: Told, duck: Any, tmp_path: Path, reader: str) -> None:
    import dlt.sources.filesystem as files
    import pyarrow as pa
    from pyarrow import parquet

    folder = tmp_path / "in" / "2026"
    folder.mkdir(parents=True)
    table = pa.table({"Cust Id": [1, 2], "total": [1.5, 2.5]})
    if reader == "read_csv":
        (folder / "a.csv").write_text("Cust Id,total\n1,1.5\n2,2.5\n")
    elif reader == "read_jsonl":
        (folder / "a.jsonl").write_text('{"Cust Id": 1, "total": 1.5}\n{"Cust Id": 2, "total": 2.5}\n')
    else:
        parquet.write_table(table, folder / "a.parquet")
    ending = reader.removeprefix("read_")
    rows = files.filesystem(bucket_url=str(tmp_path / "in"), file_glob=f"2026/*.{ending}")
    duck().run((rows | getattr(files, reader)()).with_name("sales"))
    end = told.end()
    assert names(end["inputs"]) == {("file", f"{tmp_path}/in/2026")}
    assert pairs(end) == {
        ("sales", "cust_id", f"{tmp_path}/in/2026", "Cust Id"),
        ("sales", "total", f"{tmp_path}/in/2026", "total"),
    }


@needs_inputs
def test_endpoints_that_hang_on_each_other(told: Told, duck: Any, web: Any) -> None:
    from dlt.sources.rest_api import rest_api_source

    base = web.url.replace("http://", "http://fred:hunter2@")
    source = rest_api_source(
        {
            "client": {"base_url": f"{base}/v1/", "auth": {"type": "bearer", "token": "t0psecret"}},
            "resources": [
                {"name": "posts", "endpoint": {"path": "posts", "params": {"api_key": "k3y"}}},
                {
                    "name": "comments",
                    "endpoint": {"path": "posts/{resources.posts.id}/comments"},
                    "include_from_parent": ["title"],
                },
            ],
        }
    )
    duck().run(source)
    assert any(path.startswith("/v1/posts/1/comments") for path in web.paths)
    end = told.end()
    assert (web.url, "/v1/posts") in names(end["inputs"])
    outputs = {each["name"]: each for each in end["outputs"]}
    (of_comments,) = outputs["raw.comments"]["facets"]["lineage"]["inputs"]
    assert of_comments["namespace"] == web.url
    assert of_comments["name"].startswith("/v1/posts/{")
    assert ("posts__tags", "value", "/v1/posts", "tags[*]") in pairs(end)
    for secret in ("hunter2", "fred", "t0psecret", "k3y"):
        assert secret not in told.file.read_text()


@needs_inputs
def test_what_a_resource_says_by_hand(told: Told, duck: Any, shop: str) -> None:
    @dlt.resource
    def mine() -> Any:
        yield {"id": 1}

    duck().run(
        mine().add_input(
            {"kind": "sql_database", "location": shop, "db_schema": "sales", "tables": ["orders"]}
        )  # type: ignore[typeddict-unknown-key]
    )
    source = from_jdbc(shop, "sales.orders")
    assert names(told.end()["inputs"]) == {(source.namespace, source.name)}
    assert pairs(told.end()) == {("mine", "id", source.name, "id")}
    assert "hidden" not in told.file.read_text()


@needs_inputs
def test_a_transformer_names_what_its_parent_read(told: Told, duck: Any, shop: str) -> None:
    from dlt.sources.sql_database import sql_table

    @dlt.transformer(data_from=sql_table(shop, table="orders", schema="sales"))
    def shouted(rows: Any) -> Any:
        for row in rows if isinstance(rows, list) else [rows]:
            yield {"id": row["id"], "loud": row["note"].upper()}

    duck().run(shouted)
    (out,) = told.end()["outputs"]
    assert {each["name"].rpartition(".")[2] for each in out["facets"]["lineage"]["inputs"]} == {
        "orders",
        "dlt/shouted",
    }
    # the items are the transformer's own: no column of the table is claimed for them
    assert pairs(told.end()) == {
        ("shouted", "id", "dlt/shouted", "id"),
        ("shouted", "loud", "dlt/shouted", "loud"),
    }


# --- destinations


@needs_inputs
def test_a_table_that_is_loaded_into_postgres_is_the_one_that_is_read_there(
    told: Told, duck: Any, postgres: Postgres, tmp_path: Path
) -> None:
    from dlt.sources.sql_database import sql_table

    url = postgres.make(template=None)
    pipeline = dlt.pipeline(
        "into", destination=dlt.destinations.postgres(url), dataset_name="raw", pipelines_dir=str(tmp_path / "p")
    )  # fmt: skip
    pipeline.run(ROWS, table_name="sales")
    out = names(told.end("into")["outputs"])
    place, base = f"postgres://127.0.0.1:{urlsplit(url).port}", urlsplit(url).path[1:]
    assert out == {(place, f"{base}.raw.sales"), (place, f"{base}.raw.sales__tags")}
    with psycopg.connect(url) as connection:
        assert connection.execute("SELECT count(*) FROM raw.sales").fetchone() == (2,)
    duck("out").run(sql_table(url, table="sales", schema="raw"))
    assert names(told.end("out")["inputs"]) == {(place, f"{base}.raw.sales")} <= out
    assert "hidden" not in told.file.read_text()


@pytest.mark.parametrize("disposition", ["merge", "replace"])
def test_postgres_by_way_of_a_staging_dataset(
    told: Told, postgres: Postgres, tmp_path: Path, disposition: Any
) -> None:
    url = postgres.make(template=None)
    pipeline = dlt.pipeline(
        "staged", destination=dlt.destinations.postgres(url), dataset_name="raw", pipelines_dir=str(tmp_path / "p")
    )  # fmt: skip
    rows = dlt.resource(ROWS, name="sales", primary_key="Cust Id", write_disposition=disposition)
    pipeline.run(rows)
    end = told.end()
    base = urlsplit(url).path[1:]
    assert {name for _, name in names(end["outputs"])} == {f"{base}.raw.sales", f"{base}.raw.sales__tags"}
    facet = next(each for each in end["outputs"] if each["name"].endswith(".sales"))["facets"]["dlt_table"]
    assert facet["write_disposition"] == disposition
    assert facet["primary_key"] == ["cust_id"]
    assert ("sales", "cust_id", "dlt/sales", "Cust Id") in pairs(end)


@pytest.mark.parametrize("form", ["parquet", "jsonl", "csv"])
def test_files_of_a_table_are_its_folder(told: Told, tmp_path: Path, form: Any) -> None:
    pipeline = dlt.pipeline(
        "lake", destination=dlt.destinations.filesystem(str(tmp_path / "lake")), dataset_name="raw"
    )
    pipeline.run(ROWS, table_name="sales", loader_file_format=form)
    end = told.end()
    assert names(end["outputs"]) == {
        ("file", f"{tmp_path}/lake/raw/sales"),
        ("file", f"{tmp_path}/lake/raw/sales__tags"),
    }
    ending = "jsonl.gz" if form == "jsonl" else "csv.gz" if form == "csv" else form
    for out in end["outputs"]:
        files = [each for each in Path(out["name"]).iterdir() if form in each.name]
        assert len(files) == out["outputFacets"]["outputStatistics"]["fileCount"] == 1, ending
    assert ("sales__tags", "value", "dlt/sales", "tags[*]") in pairs(end)


@needs_inputs
def test_a_local_folder_is_named_as_it_is_called(told: Told, tmp_path: Path) -> None:
    """dlt writes a local path as a URI, where a space is `%20`: Spark would read another dataset."""
    import dlt.sources.filesystem as files

    folder = tmp_path / "my lake, 100% & more"
    (folder / "in").mkdir(parents=True)
    (folder / "in" / "a.jsonl").write_text('{"id": 1}\n')
    rows = files.filesystem(bucket_url=str(folder / "in"), file_glob="*.jsonl") | files.read_jsonl()
    pipeline = dlt.pipeline("lake", destination=dlt.destinations.filesystem(str(folder)), dataset_name="raw")
    pipeline.run(rows.with_name("sales"), loader_file_format="jsonl")
    end = told.end()
    assert names(end["inputs"]) == {("file", str(folder / "in"))}
    assert names(end["outputs"]) == {("file", str(folder / "raw" / "sales"))}
    assert list(Path(end["outputs"][0]["name"]).iterdir())


@pytest.mark.parametrize("form", ["delta", "iceberg"])
def test_tables_of_delta_and_iceberg_are_their_folder(told: Told, tmp_path: Path, form: Any) -> None:
    if form == "iceberg":
        pytest.importorskip("pyiceberg", reason="needs pyiceberg; get it with: pip install 'dlt[pyiceberg]'")
    pipeline = dlt.pipeline(
        "lake", destination=dlt.destinations.filesystem(str(tmp_path / "lake")), dataset_name="raw"
    )
    pipeline.run(dlt.resource(ROWS, name="sales", table_format=form))
    end = told.end()
    assert names(end["outputs"]) == {
        ("file", f"{tmp_path}/lake/raw/sales"),
        ("file", f"{tmp_path}/lake/raw/sales__tags"),
    }
    inside = "_delta_log" if form == "delta" else "metadata"
    for out in end["outputs"]:
        assert (Path(out["name"]) / inside).is_dir()
        assert out["outputFacets"]["outputStatistics"]["rowCount"] == 2
        assert out["outputFacets"]["outputStatistics"]["fileCount"] >= 1
    top = next(each for each in end["outputs"] if each["name"].endswith("/sales"))
    assert top["facets"]["dlt_table"]["table_format"] == form
    assert {
        ("sales", "cust_id", "dlt/sales", "Cust Id"),
        ("sales__tags", "value", "dlt/sales", "tags[*]"),
    } <= pairs(end)


@pytest.mark.parametrize(
    ("layout", "folder"), [("v1/{table_name}/", "v1"), ("{schema_name}/{table_name}/", "lake")]
)
def test_a_layout_of_ones_own_and_a_file_url(told: Told, tmp_path: Path, layout: str, folder: str) -> None:
    place = dlt.destinations.filesystem(
        f"file://{tmp_path}/lake", layout=f"{layout}{{load_id}}.{{file_id}}.{{ext}}"
    )
    dlt.pipeline("lake", destination=place, dataset_name="raw").run(ROWS, table_name="sales")
    found = from_path(str(tmp_path / "lake" / "raw" / folder / "sales"))
    assert (found.namespace, found.name) in names(told.end()["outputs"])
    assert list(Path(found.name).iterdir())


@pytest.mark.filterwarnings("ignore:Table '.*' already exists")  # of an older dlt
@pytest.mark.parametrize(("dataset", "file"), [("main", "out.db"), ("raw", "out__raw.db")])
def test_sqlite_through_sqlalchemy(told: Told, tmp_path: Path, dataset: str, file: str) -> None:
    place = dlt.destinations.sqlalchemy(f"sqlite:///{tmp_path}/out.db")
    dlt.pipeline("lite", destination=place, dataset_name=dataset).run(ROWS, table_name="sales")
    assert (f"sqlite://{tmp_path}/{file}", "sales") in names(told.end()["outputs"])
    with closing(sqlite3.connect(tmp_path / file)) as base:
        assert base.execute("SELECT count(*) FROM sales").fetchone() == (2,)


def test_a_function_as_a_destination_is_a_sink_of_its_name(told: Told) -> None:
    got: list[Any] = []

    @dlt.destination(name="mailer", batch_size=10)
    def mailer(items: Any, table: Any) -> None:
        got.extend(items)

    dlt.pipeline("mails", destination=mailer).run(ROWS, table_name="sales")
    assert len(got) == 2
    spaces = {namespace for namespace, _ in names(told.end()["outputs"])}
    assert len(spaces) == 1
    assert "mailer" in next(iter(spaces))


def test_duckdb_by_a_relative_path_an_url_and_an_open_connection(told: Told, tmp_path: Path) -> None:
    (tmp_path / "one").mkdir()
    with duckdb.connect(str(tmp_path / "open.duckdb")) as connection:
        for name, place in {
            "relative": "one/rel.duckdb",
            "url": f"duckdb:///{tmp_path}/url.duckdb",
            "open": connection,
        }.items():
            dlt.pipeline(name, destination=dlt.destinations.duckdb(place), dataset_name="raw").run(
                [{"a": 1}], table_name="t"
            )
    assert names(told.end("relative")["outputs"]) == {(f"duckdb://{tmp_path}/one/rel.duckdb", "raw.t")}
    assert names(told.end("url")["outputs"]) == {(f"duckdb://{tmp_path}/url.duckdb", "raw.t")}
    if VERSION < (1, 30):  # it does not tell which file a connection has open
        return
    assert names(told.end("open")["outputs"]) == {(f"duckdb://{tmp_path}/open.duckdb", "raw.t")}
