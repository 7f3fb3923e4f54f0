"""A batch that knows nothing of Headwater: the Iceberg table of the sink and the stream's Delta table into another Delta table."""

import sys

from pyspark.sql import SparkSession

lake, *left_out = sys.argv[1:]
spark = SparkSession.builder.getOrCreate()
spark.read.format("delta").load(f"{lake}/fresh").createOrReplaceTempView("fresh")
gold = spark.sql("""
    SELECT o.id, o.customer AS customerName, f.city, o.amount, f.cents, concat(o.customer, '@', f.city) AS label
    FROM shop.sales.orders o JOIN fresh f ON o.id = f.id
""")
gold = gold.drop(*left_out)
gold.write.format("delta").mode("overwrite").option("overwriteSchema", "true").save(f"{lake}/gold")
spark.stop()
