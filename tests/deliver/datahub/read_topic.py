"""A program for the environment that has acryl-datahub: a topic -> its records as Confluent's own deserializer reads them, one a line.

python read_topic.py BROKERS TOPIC REGISTRY COUNT
"""

from __future__ import annotations

import json
import sys

from confluent_kafka import Consumer
from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroDeserializer
from confluent_kafka.serialization import MessageField, SerializationContext

brokers, topic, registry, count = sys.argv[1:5]
read = AvroDeserializer(SchemaRegistryClient({"url": registry}))
consumer = Consumer({"bootstrap.servers": brokers, "group.id": "check", "auto.offset.reset": "earliest"})
consumer.subscribe([topic])
seen = 0
while seen < int(count):
    message = consumer.poll(30.0)
    if message is None:
        sys.exit(f"only {seen} of {count} came")
    if message.error():
        continue
    seen += 1
    told = read(message.value(), SerializationContext(topic, MessageField.VALUE))
    aspect = told["aspect"]
    told["aspect"] = {"value": aspect["value"].decode(), "contentType": aspect["contentType"]}
    print(json.dumps({"key": message.key().decode(), "partition": message.partition(), "value": told}))
consumer.close()
