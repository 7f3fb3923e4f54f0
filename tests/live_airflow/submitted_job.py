"""A Spark job that knows neither Airflow nor Headwater: it reads a file and writes a table."""

import sys

from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
spark.read.json(sys.argv[1]).groupBy("city").count().write.mode("overwrite").parquet(sys.argv[2])
spark.stop()
