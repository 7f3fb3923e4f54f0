"""A real Kafka broker -> its topics made and read back."""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import services


@dataclass
class Record:
    partition: int
    key: bytes | None
    event: Any


@dataclass
class Broker:
    servers: str
    pid: int

    def topic(self, partitions: int = 1, **config: str) -> str:
        from confluent_kafka.admin import AdminClient, NewTopic

        name = f"lineage-{uuid.uuid4().hex[:8]}"
        admin = AdminClient({"bootstrap.servers": self.servers})
        made = admin.create_topics(
            [NewTopic(name, num_partitions=partitions, replication_factor=1, config=config)]
        )
        made[name].result(30)
        return name

    def read(self, topic: str) -> list[Record]:
        """Every record of a topic, partition by partition in its order."""
        from confluent_kafka import Consumer, TopicPartition

        consumer = Consumer(
            {"bootstrap.servers": self.servers, "group.id": uuid.uuid4().hex, "enable.auto.commit": False}
        )
        try:
            known = consumer.list_topics(topic, 30).topics[topic].partitions
            ends = {p: consumer.get_watermark_offsets(TopicPartition(topic, p), 30)[1] for p in known}
            consumer.assign([TopicPartition(topic, p, 0) for p in ends])
            out: list[Record] = []
            until = time.monotonic() + 60
            while len(out) < sum(ends.values()):
                assert time.monotonic() < until, f"{len(out)} of {sum(ends.values())} records came"
                if (message := consumer.poll(1.0)) is not None and message.error() is None:
                    out.append(Record(message.partition(), message.key(), json.loads(message.value())))
            return sorted(out, key=lambda record: record.partition)
        finally:
            consumer.close()


@contextmanager
def running(jars: list[Path], folder: Path) -> Iterator[Broker]:
    """A broker that is ready, until it is no longer wanted."""
    with services.kafka(jars, folder, topics_by_hand=True) as (servers, pid):
        yield Broker(servers, pid)
