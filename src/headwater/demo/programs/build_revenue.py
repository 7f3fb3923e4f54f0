"""demo.programs.build_revenue: the files that dlt loaded -> sales, revenue and the board's report, by Spark.

    headwater run -- python build_revenue.py /data/lake

Nothing in here knows of lineage: `headwater run` captures the session. Each table is written and read again, as it
would be by three jobs: sales are joined and cleaned (a UDF reads prices), revenue is summed up by ROLLUP, the report is
made of revenue.
"""

from __future__ import annotations

import sys
from decimal import Decimal, InvalidOperation

from pyspark.sql import SparkSession
from pyspark.sql.functions import col, count, sum, udf, when
from pyspark.sql.types import DecimalType


def read_price(text: str | None) -> Decimal | None:
    """The price in a text, `12.50`; none where it cannot be read, which is the fault that this demo is about."""
    try:
        return Decimal(text) if text else None
    except InvalidOperation:
        return None


def build(spark: SparkSession, lake: str) -> None:
    """Make every table anew."""
    build_sales(spark, lake)
    build_revenue(spark, lake)
    build_report(spark, lake)


def build_sales(spark: SparkSession, lake: str) -> None:
    """One row for each line of a paid order: who bought it, what it is, what it brought in."""
    orders = spark.read.parquet(f"{lake}/raw/orders").where(col("status") == "paid")
    lines = spark.read.parquet(f"{lake}/raw/orders__lines")
    customers = spark.read.parquet(f"{lake}/raw/customers").withColumnRenamed("id", "customer__id")
    products = spark.read.parquet(f"{lake}/raw/products")
    price = udf(read_price, DecimalType(10, 2), useArrow=False)
    sales = (
        orders.join(lines, orders["_dlt_id"] == lines["_dlt_parent_id"])
        .join(customers, "customer__id")
        .join(products, "sku")
        .select(
            orders["id"].alias("order_id"),
            "country",
            "category",
            (price("price") * col("quantity")).alias("amount"),
        )
    )
    sales.write.mode("overwrite").parquet(f"{lake}/silver/sales")


def build_revenue(spark: SparkSession, lake: str) -> None:
    """Revenue by country and category, by country, and in all."""
    sales = spark.read.parquet(f"{lake}/silver/sales")
    revenue = sales.rollup("country", "category").agg(
        count("order_id").alias("lines"), sum("amount").alias("revenue")
    )
    revenue.write.mode("overwrite").parquet(f"{lake}/gold/revenue")


def build_report(spark: SparkSession, lake: str) -> None:
    """What the board reads: each country, and whether it did well."""
    revenue = spark.read.parquet(f"{lake}/gold/revenue")
    countries = revenue.where(col("category").isNull() & col("country").isNotNull())
    verdict = when(col("revenue") >= 500, "good").otherwise("poor")
    report = countries.select("country", "revenue", verdict.alias("verdict"))
    report.write.mode("overwrite").parquet(f"{lake}/gold/board_report")


if __name__ == "__main__":
    session = (
        SparkSession.builder.appName("build_revenue")
        .master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.sql.shuffle.partitions", 2)
        .getOrCreate()
    )
    build(session, sys.argv[1])
    session.stop()
