"""Jars -> a real Kafka broker for tests, without docker; it listens on 127.0.0.1 and is ended by its pid."""

from __future__ import annotations

import base64
import json
import os
import socket
import subprocess
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_JVM = ["java", "-Xmx384m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"]
_LOG4J = "appender.c.type=Console\nappender.c.name=C\nrootLogger.level=info\nrootLogger.appenderRef.c.ref=C\n"


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


def _free_port() -> int:
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port: int = s.getsockname()[1]
        return port


@contextmanager
def running(jars: list[Path], folder: Path) -> Iterator[Broker]:
    """A broker that is ready, until it is no longer wanted."""
    port, controller = _free_port(), _free_port()
    settings = {
        "process.roles": "broker,controller",
        "node.id": 1,
        "listeners": f"PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller}",
        "advertised.listeners": f"PLAINTEXT://127.0.0.1:{port}",
        "controller.listener.names": "CONTROLLER",
        "controller.quorum.bootstrap.servers": f"127.0.0.1:{controller}",
        "log.dirs": folder / "data",
        "offsets.topic.replication.factor": 1,
        "offsets.topic.num.partitions": 1,
        "group.initial.rebalance.delay.ms": 0,
        "auto.create.topics.enable": "false",
        "log.cleaner.dedupe.buffer.size": 16777216,
    }
    conf, log = folder / "broker.properties", folder / "broker.log"
    conf.write_text("".join(f"{key}={value}\n" for key, value in settings.items()))
    (folder / "log4j2.properties").write_text(_LOG4J)
    run = [*_JVM, f"-Dlog4j2.configurationFile={folder}/log4j2.properties"]
    run += ["-cp", os.pathsep.join(map(str, jars))]
    cluster = "A" + base64.urlsafe_b64encode(uuid.uuid4().bytes).decode()[1:22]  # may not begin with a dash
    form = ["kafka.tools.StorageTool", "format", "--standalone", "-t", cluster, "-c", str(conf)]
    subprocess.run([*run, *form], check=True, capture_output=True)
    with log.open("wb") as out:
        process = subprocess.Popen(
            [*run, "kafka.Kafka", str(conf)], stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT
        )
    try:
        until = time.monotonic() + 180
        while b"Kafka Server started" not in log.read_bytes():
            assert process.poll() is None, log.read_text()[-3000:]
            assert time.monotonic() < until, f"the broker did not start:\n{log.read_text()[-3000:]}"
            time.sleep(0.2)
        yield Broker(f"127.0.0.1:{port}", process.pid)
    finally:
        process.terminate()
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait(10)
