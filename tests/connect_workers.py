"""Jars -> a broker and real workers of Kafka Connect with real connectors, for whichever suite needs them."""

from __future__ import annotations

import os
import subprocess
import time
import zipfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx

import services

STUBS = Path(__file__).parent / "capture" / "connect" / "stubs"

_SHARED = (
    "connect-api-",
    "connect-json-",
    "connect-runtime-",
    "kafka-clients-",
    "slf4j-api-",
)  # the worker has them
_SERVICES = {
    "avro-converter": {
        "org.apache.kafka.connect.storage.Converter": "io.apicurio.registry.utils.converter.AvroConverter"
    }
}
"""Plugins that do not say themselves what they are, which the quick way of finding them needs."""


def plugins(folder: Path, profiles: dict[str, list[Path]], worker: list[Path]) -> Path:
    """A directory for each profile of jars, and one for the stand-ins, which are compiled now; none at all where no profile is wanted."""
    folder.mkdir(parents=True)
    if not profiles:
        return folder
    for name, jars in profiles.items():
        own = folder / name
        own.mkdir()
        for jar in jars:
            if not jar.name.startswith(_SHARED):
                (own / jar.name).symlink_to(jar)
        for interface, kind in _SERVICES.get(name, {}).items():
            _jar(own / "services.jar", None, interface, kind)
    kinds = {"source": "org.apache.kafka.connect.source.SourceConnector", "sink": "org.apache.kafka.connect.sink.SinkConnector"}  # fmt: skip
    stubs = [
        ("stubs", "com.amazonaws.mskdatagen.GeneratorSourceConnector", "source"),
        ("stubs", "io.confluent.connect.s3.S3SinkConnector", "sink"),
    ]
    if "iceberg-sink" in profiles:
        stubs.append(("iceberg-sink", "io.tabular.iceberg.connect.IcebergSinkConnector", "sink"))
    path = os.pathsep.join(str(each) for each in [*worker, *profiles.get("iceberg-sink", [])])
    for place, kind, way in stubs:
        (folder / place).mkdir(exist_ok=True)
        classes = folder.parent / "classes" / kind
        source = STUBS / (kind.replace(".", "/") + ".java")
        subprocess.run(["javac", "-nowarn", "-d", str(classes), "-cp", path, str(source)], check=True)
        _jar(folder / place / f"{kind.rpartition('.')[2]}.jar", classes, kinds[way], kind)
    return folder


def _jar(file: Path, classes: Path | None, interface: str, kind: str) -> None:
    with zipfile.ZipFile(file, "w") as made:
        for each in sorted(classes.rglob("*.class")) if classes is not None else ():
            made.write(each, each.relative_to(classes or each).as_posix())
        made.writestr(f"META-INF/services/{interface}", f"{kind}\n")


@dataclass
class Workers:
    """Workers of one cluster, and its brokers."""

    bootstrap: str
    broker: int
    jars: list[Path]
    folder: Path
    plugins: Path
    stack: ExitStack
    urls: list[str] = field(default_factory=list)
    running: list[subprocess.Popen[bytes]] = field(default_factory=list)

    def ask(self, method: str, path: str, body: Any = None) -> Any:
        """Of the first worker, which no test kills; a rebalance in between is waited out."""
        until = time.monotonic() + 60
        while True:
            answer = httpx.request(method, f"{self.urls[0]}{path}", json=body, timeout=60)
            if answer.status_code not in (409, 500, 503) or time.monotonic() > until:
                assert answer.is_success, f"{method} {path}: {answer.status_code} {answer.text[:1000]}"
                return answer.json() if answer.content else None
            time.sleep(0.5)

    def put(self, name: str, config: dict[str, str]) -> None:
        self.ask("PUT", f"/connectors/{name}/config", config)

    def send(self, topic: str, *lines: str) -> None:
        from confluent_kafka import Producer

        producer = Producer({"bootstrap.servers": self.bootstrap})
        for each in lines:
            producer.produce(topic, each.encode())
        assert producer.flush(30) == 0

    def create(self, topic: str, partitions: int = 1) -> None:
        from confluent_kafka.admin import AdminClient, NewTopic

        admin = AdminClient({"bootstrap.servers": self.bootstrap})
        admin.create_topics([NewTopic(topic, num_partitions=partitions, replication_factor=1)])[topic].result(
            30
        )

    def start(self, *, wait: bool = True) -> None:
        """One worker more."""
        at, port = len(self.running), services.free_port()
        self.urls.append(f"http://127.0.0.1:{port}")
        command = _worker(self, at, port)
        url = self.urls[-1]
        ready = (lambda: _healthy(url)) if wait else (lambda: True)
        log = self.folder / f"worker{at}.log"
        self.running.append(self.stack.enter_context(services.process(command, log, ready)))

    def wait(self) -> None:
        until = time.monotonic() + 120
        while not all(_healthy(url) for url in self.urls):
            assert time.monotonic() < until, "the workers do not start"
            time.sleep(0.2)


def _healthy(url: str) -> bool:
    try:
        return httpx.get(f"{url}/health", timeout=2).status_code == 200
    except httpx.HTTPError:
        return False


def _worker(workers: Workers, at: int, port: int) -> list[str]:
    folder = workers.folder
    settings = {
        "bootstrap.servers": workers.bootstrap,
        "group.id": "live",
        "listeners": f"http://127.0.0.1:{port}",
        "rest.advertised.host.name": "127.0.0.1",
        "rest.advertised.port": port,
        "key.converter": "org.apache.kafka.connect.storage.StringConverter",
        "value.converter": "org.apache.kafka.connect.storage.StringConverter",
        "plugin.path": workers.plugins,
        "plugin.discovery": "service_load",
        "offset.flush.interval.ms": 1000,
        "session.timeout.ms": 6000,
        "heartbeat.interval.ms": 500,
        "rebalance.timeout.ms": 15000,
        "scheduled.rebalance.max.delay.ms": 2000,
        "connector.client.config.override.policy": "All",
        "consumer.metadata.max.age.ms": 2000,
        **{f"{each}.storage.topic": f"connect-{name}" for each, name in (("config", "configs"), ("status", "status"), ("offset", "offsets"))},
        **{f"{each}.storage.replication.factor": 1 for each in ("config", "status", "offset")},
        "status.storage.partitions": 1,
        "offset.storage.partitions": 1,
    }  # fmt: skip
    conf = folder / f"worker{at}.properties"
    conf.write_text("".join(f"{key}={value}\n" for key, value in settings.items()))
    log4j = folder / "log4j2.properties"
    log4j.write_text(
        "appender.c.type=Console\nappender.c.name=C\nrootLogger.level=warn\nrootLogger.appenderRef.c.ref=C\n"
    )
    return [
        "java", "-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", f"-Dlog4j2.configurationFile={log4j}",
        "-cp", os.pathsep.join(map(str, workers.jars)), "org.apache.kafka.connect.cli.ConnectDistributed", str(conf),
    ]  # fmt: skip


@contextmanager
def connect(
    folder: Path, broker: list[Path], jars: list[Path], profiles: dict[str, list[Path]], count: int
) -> Iterator[Workers]:
    """A broker and so many workers."""
    with ExitStack() as stack:
        made = plugins(folder / "plugins", profiles, jars)
        bootstrap, pid = stack.enter_context(services.kafka(broker, folder / "kafka"))
        workers = Workers(bootstrap, pid, jars, folder, made, stack)
        for _ in range(count):
            workers.start(wait=False)
        workers.wait()
        try:
            yield workers
        finally:  # all at once, and before their broker
            for each in workers.running:
                each.terminate()
            for each in workers.running:
                with suppress(subprocess.TimeoutExpired):
                    each.wait(20)
