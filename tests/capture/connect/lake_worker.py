"""A Spark application that reads what a sink wrote: python lake_worker.py WAREHOUSE OUT EVENTS JARS."""

from __future__ import annotations

import sys

from pyspark.sql import SparkSession

import headwater.spark

warehouse, out, events, jars = sys.argv[1:]
spark = (
    SparkSession.builder.master("local[1]")
    .appName("report")
    .config("spark.ui.enabled", "false")
    .config("spark.jars", jars)
    .config("spark.sql.shuffle.partitions", "1")
    .config("spark.sql.catalog.shop", "org.apache.iceberg.spark.SparkCatalog")
    .config("spark.sql.catalog.shop.type", "hadoop")
    .config("spark.sql.catalog.shop.warehouse", warehouse)
    .getOrCreate()
)
handle = headwater.spark.install(spark, transport=f"file://{events}")
spark.sql("SELECT id, amount * 2 AS twice FROM shop.sales.orders").write.parquet(out)
assert spark.read.parquet(out).count() > 0
handle.close()
spark.stop()
