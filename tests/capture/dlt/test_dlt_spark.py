"""dlt loads files and tables, Spark reads them -> one graph: a path from the field of the source to the column Spark wrote."""

from __future__ import annotations

import importlib.util
import json
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import live_jars
import pytest
from telling import Told, needs_inputs

import dlt
from databases import Postgres

pytestmark = [
    pytest.mark.live,
    needs_inputs,
    pytest.mark.filterwarnings("ignore::DeprecationWarning:dlt"),  # of its own older options
]

JOB = """
import json, sys
from pyspark.sql import SparkSession

said = json.loads(sys.argv[1])
builder = SparkSession.builder.master("local[1]").appName("reports")
for key, value in said["conf"].items():
    builder = builder.config(key, value)
spark = builder.getOrCreate()
spark.sparkContext.setLogLevel("OFF")
files = spark.read.parquet(said["files"]).selectExpr("order_id", "unit_price")
delta = spark.read.format("delta").load(said["delta"]).selectExpr("order_id", "unit_price AS of_delta")
table = spark.read.jdbc(said["jdbc"], "raw.order_items", properties={"driver": "org.postgresql.Driver"})
table = table.selectExpr("order_id", "unit_price AS of_table")
both = files.join(delta, "order_id").join(table, "order_id")
both.selectExpr("order_id", "unit_price * 2 AS twice", "of_delta", "of_table").write.parquet(said["out"])
spark.stop()
"""


@pytest.fixture
def jars(need: Callable[[str, str], None]) -> list[Path]:
    if importlib.util.find_spec("pyspark") is None:
        need("pyspark", "pip install 'headwater[spark]'")
    if shutil.which("java") is None:
        need("Java", "apt install openjdk-17-jre-headless")
    import pyspark

    profile = f"spark-{'.'.join(pyspark.__version__.split('.')[:2])}"
    if not (found := live_jars.have(profile)):
        need(f"the jars of {profile}", f"make live-jars (or python scripts/live_jars.py {profile})")
    return found


def test_a_field_of_the_source_is_found_from_the_column_that_spark_wrote(
    told: Told, tmp_path: Path, postgres: Postgres, jars: list[Path], environment: Any
) -> None:
    from dlt.sources.sql_database import sql_database

    with closing(sqlite3.connect(tmp_path / "shop.db")) as base, base:
        base.execute('CREATE TABLE "Order Items" ("Order ID" INTEGER PRIMARY KEY, "unitPrice" REAL)')
        base.execute('INSERT INTO "Order Items" VALUES (1, 2.5)')
    url = postgres.make(template=None)
    places: dict[str, tuple[Any, dict[str, Any]]] = {
        "files": (dlt.destinations.filesystem(str(tmp_path / "lake")), {"loader_file_format": "parquet"}),
        "delta": (dlt.destinations.filesystem(str(tmp_path / "delta")), {"table_format": "delta"}),
        "table": (dlt.destinations.postgres(url), {}),
    }
    for name, (place, options) in places.items():
        pipeline = dlt.pipeline(
            name, destination=place, dataset_name="raw", pipelines_dir=str(tmp_path / "p")
        )
        pipeline.run(sql_database(f"sqlite:///{tmp_path}/shop.db"), **options)
    asked = {
        "files": f"{tmp_path}/lake/raw/order_items",
        "delta": f"{tmp_path}/delta/raw/order_items",
        "jdbc": f"jdbc:{url.replace('postgres:hidden@', '')}?user=postgres&password=hidden",
        "out": f"{tmp_path}/out",
        "conf": {
            "spark.jars": ",".join(map(str, jars)),
            "spark.ui.enabled": "false",
            "spark.driver.host": "127.0.0.1",
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
            "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
            "spark.sql.warehouse.dir": f"{tmp_path}/warehouse",
        },
    }
    (tmp_path / "job.py").write_text(JOB)
    run = [sys.executable, "-m", "headwater", "run", "--transport", f"file://{told.file}", "--"]
    subprocess.run(
        [*run, sys.executable, str(tmp_path / "job.py"), json.dumps(asked)],
        env=environment(SPARK_LOCAL_IP="127.0.0.1", PYSPARK_PYTHON=sys.executable),
        cwd=tmp_path,
        check=True,
        capture_output=True,
        timeout=300,
    )
    store = f"sqlite:///{tmp_path}/store.db"
    ours = [sys.executable, "-m", "headwater"]
    subprocess.run([*ours, "ingest", str(told.file), "--store", store], env=environment(), check=True)
    done = subprocess.run(
        [
            *ours,
            "graph",
            f"dataset:file:{tmp_path}/out",
            "--direction",
            "up",
            "--columns",
            "--json",
            "--store",
            store,
        ],
        env=environment(),
        check=True,
        capture_output=True,
        text=True,
    )
    graph = json.loads(done.stdout)
    edges: dict[tuple[str, str], set[tuple[str, str]]] = {}
    for each in graph["columns"]:
        target = (each["to"]["dataset"], each["to"]["field"])
        edges.setdefault(target, set()).add((each["from"]["dataset"], each["from"]["field"]))
    out, source = f"dataset:file:{tmp_path}/out", f"dataset:sqlite://{tmp_path}/shop.db:Order Items"
    for column, field, through in (
        ("twice", "unitPrice", f"dataset:file:{tmp_path}/lake/raw/order_items"),
        ("of_delta", "unitPrice", f"dataset:file:{tmp_path}/delta/raw/order_items"),
        ("of_table", "unitPrice", f"dataset:{_place(url)}.raw.order_items"),
    ):
        assert (through, "unit_price") in edges[out, column], sorted(edges)
        assert edges[through, "unit_price"] == {(source, field)}
    assert "hidden" not in told.file.read_text()


def _place(url: str) -> str:
    """`postgres://host:port:database` of a url with a password."""
    return "postgres://" + url.rpartition("@")[2].replace("/", ":", 1)
