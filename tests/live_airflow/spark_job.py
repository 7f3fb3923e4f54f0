"""A Spark job as a task starts it: it says nothing of Airflow, its lineage finds the task by itself."""

import os

from pyspark.sql import SparkSession

import headwater.spark

spark = (
    SparkSession.builder.master("local[1]")
    .appName("from_airflow")
    .config("spark.ui.enabled", "false")
    .getOrCreate()
)
lineage = headwater.spark.install(spark, transport=os.environ["HEADWATER_SPARK_EVENTS"])
spark.range(3).write.mode("overwrite").parquet(
    os.environ["HEADWATER_SPARK_EVENTS"].removeprefix("file:") + ".out"
)
lineage.flush()
spark.stop()
