"""Jars -> two real workers with real connectors, and an eye on them: the events of each connector as lines to compare."""

from __future__ import annotations

import os
import subprocess
import time
import zipfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx

import services
from headwater.connect import Cluster
from headwater.connect._watching import Source, Watcher
from headwater.event import TERMINAL, of

STUBS = Path(__file__).with_name("stubs")
TRANSFORMS = "org.apache.kafka.connect.transforms."
GRACE = 6.0
"""Longer than a rebalance leaves a task without a worker here."""

Line = tuple[str, str, str]
"""What kind of event, of which job, and what matters of it: why, and what it reads and writes, or the error."""

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


@dataclass
class Eye:
    """A watcher that looks three times a second, and what it told."""

    watcher: Watcher
    events: list[dict[str, Any]] = field(default_factory=list)

    def saw(self, name: str) -> list[Line]:
        """The lines of one connector, in their order."""
        return [line(each) for each in self.events if each["job"]["name"] == name]

    def until(self, name: str, *expected: Line, seconds: float = 90.0) -> None:
        """Look until exactly this was told of a connector, and fail as soon as something else is."""
        wanted = list(expected)
        end = time.monotonic() + seconds
        while (seen := self.saw(name)) != wanted:
            assert seen == wanted[: len(seen)], _differ(seen, wanted)
            assert time.monotonic() < end, _differ(seen, wanted)
            self.round()

    def still(self, name: str, *expected: Line, seconds: float) -> None:
        """Look for a while: nothing else is told."""
        self.for_a_while(seconds)
        assert self.saw(name) == list(expected), _differ(self.saw(name), list(expected))

    def for_a_while(self, seconds: float) -> None:
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            self.round()

    def when(self, condition: Callable[[], bool], seconds: float = 60.0) -> None:
        end = time.monotonic() + seconds
        while not condition():
            assert time.monotonic() < end, [line(each) for each in self.events]
            self.round()

    def round(self) -> None:
        self.watcher.round(time.time())
        time.sleep(0.3)

    def runs(self, name: str) -> int:
        return len({each["run"]["runId"] for each in self.events if each["job"]["name"] == name})


def _differ(seen: Sequence[Line], wanted: Sequence[Line]) -> str:
    return "\n".join(["told:", *map(str, seen), "expected:", *map(str, wanted)])


@contextmanager
def eye(
    workers: Workers, *, source: Callable[[Cluster], Source] | None = None, **options: Any
) -> Iterator[Eye]:
    """An eye on the cluster; whatever it told is valid OpenLineage."""
    events: list[dict[str, Any]] = []
    usual = {"url": ",".join(workers.urls), "bootstrap": workers.bootstrap, "schemas": "none", "grace": GRACE, "refresh": 1.0}  # fmt: skip
    cluster = Cluster(**{"name": "live", **usual, **options})
    watcher = Watcher(cluster, events.extend, source=source(cluster) if source is not None else None)
    try:
        yield Eye(watcher, events)
    finally:
        watcher.close()
    for each in events:
        of(each)


def line(event: dict[str, Any]) -> Line:
    """One event as a line: `RUNNING`, `orders-sink`, `datasets known: orders -> orders.out`."""
    facets = event["run"]["facets"]
    reason = facets["kafkaConnect"].get("reason", "")
    if event["eventType"] in TERMINAL:
        what = facets["errorMessage"]["message"] if "errorMessage" in facets else ""
    else:
        inputs, outputs = ([_short(each) for each in event[half]] for half in ("inputs", "outputs"))
        what = f"{', '.join(inputs)} -> {', '.join(outputs)}"
    return event["eventType"], event["job"]["name"], ": ".join(part for part in (reason, what) if part)


def _short(dataset: dict[str, Any]) -> str:
    name: str = dataset["name"].rpartition("/")[2]
    version = dataset["facets"].get("version", {}).get("datasetVersion", "")
    return f"{name}@{version}" if version else name
