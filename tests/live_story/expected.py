"""The story's lineage, written by hand from its programs and settings; nothing here is taken from what Headwater told.

`{postgres}`, `{kafka}` and `{root}` are places that are known only when it runs.
"""

from __future__ import annotations

DATASETS = {
    "table": ("postgres://127.0.0.1:{postgres}", "shop.public.orders"),
    "topic": ("kafka://{kafka}", "shop.public.orders"),
    "sink": ("file", "{root}/warehouse/sales/orders"),
    "fresh": ("file", "{root}/lake/fresh"),
    "gold": ("file", "{root}/lake/gold"),
    "mart": ("duckdb://{root}/lake/shop.duckdb", "mart.orders"),
}
"""Short name -> namespace and name, as docs/naming.md has them."""

JOBS = {
    "cdc": ("shop", "cdc"),
    "lake": ("shop", "lake"),
    "stream": ("shop", "fresh.write_to_micro_batch_data_source_v1.lake_fresh"),
    "batch": ("shop", "gold.save_into_data_source_command.lake_gold"),
    "load": ("shop", "mart"),
}
"""What reads and writes; DAG, tasks and applications do so only by these."""

ABOVE = ("nightly", "nightly.gold", "nightly.mart", "gold", "fresh")
"""All other jobs: a DAG, its tasks, and applications of Spark."""

EDGES = {
    ("table", "cdc"),
    ("cdc", "topic"),
    ("topic", "lake"),
    ("lake", "sink"),
    ("topic", "stream"),
    ("stream", "fresh"),
    ("sink", "batch"),
    ("fresh", "batch"),
    ("batch", "gold"),
    ("gold", "load"),
    ("load", "mart"),
}
"""With the data: from what is read to the job, from the job to what it writes."""

COLUMNS = ("id", "customer", "city", "total", "note")
"""Of the table in Postgres; nobody downstream of the lake takes the note."""

FIELDS = {
    "table": [],
    "topic": ["id", "customer", "city", "total", "note"],
    "sink": ["id", "customer", "city", "amount", "note"],
    "fresh": ["id", "city", "cents"],
    "gold": ["id", "customerName", "city", "amount", "cents", "label"],
    "mart": ["id", "customer_name", "city", "amount", "cents", "label"],
}
"""What each really has, the sink's after its transform. Of the table in Postgres nobody tells a schema: Debezium does not show it, and the
topic need not have all of it; which of its columns are read is told."""

IDENTITY = {
    ("id", "id"),
    ("customer", "customer_name"),
    ("city", "city"),
    ("total", "amount"),
}
"""Column of Postgres, column of DuckDB: the value itself, so a value that occurs nowhere else is found again."""

DERIVED = {
    ("total", "cents"),
    ("customer", "label"),
    ("city", "label"),
}
"""Made of the value."""

DECIDED = {("id", each) for each in ("customer_name", "city", "amount", "cents", "label")}
"""The join is on the id: it decides on every row, and so on every column."""

TREE = {
    "nightly": None,
    "nightly.gold": "nightly",
    "nightly.mart": "nightly",
    "gold": "nightly.gold",
    "gold.save_into_data_source_command.lake_gold": "gold",
    "mart": "nightly.mart",
}
"""Job -> the job of its run's parent, of every run that a DAG run began."""

URNS = {
    "table": "urn:li:dataset:(urn:li:dataPlatform:postgres,shop.public.orders,PROD)",
    "topic": "urn:li:dataset:(urn:li:dataPlatform:kafka,shop.public.orders,PROD)",
    "sink": "urn:li:dataset:(urn:li:dataPlatform:iceberg,sales.orders,PROD)",
    "fresh": "urn:li:dataset:(urn:li:dataPlatform:file,{root}/lake/fresh,PROD)",
    "gold": "urn:li:dataset:(urn:li:dataPlatform:file,{root}/lake/gold,PROD)",
    "mart": "urn:li:dataset:(urn:li:dataPlatform:duckdb,mart.orders,PROD)",
}
"""What DataHub calls them."""

DATAJOBS = {
    "cdc": "urn:li:dataJob:(urn:li:dataFlow:(kafka-connect,cdc,shop),cdc)",
    "lake": "urn:li:dataJob:(urn:li:dataFlow:(kafka-connect,lake,shop),lake)",
    "stream": "urn:li:dataJob:(urn:li:dataFlow:(spark,fresh,shop),fresh)",
    "batch": "urn:li:dataJob:(urn:li:dataFlow:(spark,gold,shop),gold)",
    "load": "urn:li:dataJob:(urn:li:dataFlow:(dlt,mart,shop),mart)",
}
"""And the jobs: an application of Spark is one."""
