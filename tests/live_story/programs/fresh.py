"""A stream that knows nothing of Headwater: the orders of a topic, decoded, into a Delta table."""

import json
import sys
import urllib.request

from pyspark.sql import SparkSession
from pyspark.sql.avro.functions import from_avro
from pyspark.sql.functions import expr

brokers, registry, lake = sys.argv[1:]
topic = "shop.public.orders"
with urllib.request.urlopen(f"{registry}/subjects/{topic}-value/versions/latest") as answer:
    schema = json.load(answer)["schema"]
spark = SparkSession.builder.appName("fresh").getOrCreate()
records = spark.readStream.format("kafka").option("kafka.bootstrap.servers", brokers)
orders = records.option("subscribe", topic).option("startingOffsets", "earliest").load()
orders = orders.select(from_avro(expr("substring(value, 6)"), schema).alias("row")).select("row.*")
query = (
    orders.selectExpr("id", "city", "total * 100 AS cents")
    .writeStream.format("delta")
    .option("checkpointLocation", f"{lake}/checkpoints/fresh")
    .trigger(availableNow=True)
    .start(f"{lake}/fresh")
)
query.awaitTermination()
spark.stop()
