"""A real broker and two real workers: each thing done to a connector gives exactly the events it should, and no other."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import live_jars
import pytest

import services
from headwater.connect import Cluster
from headwater.connect._topics import TopicSource
from headwater.connect._watching import Watcher
from headwater.event import of

pytestmark = pytest.mark.live

TRANSFORMS = "org.apache.kafka.connect.transforms."
GRACE = 3.0


@dataclass
class Workers:
    """Two workers of one cluster."""

    bootstrap: str
    broker: int
    urls: list[str]
    running: list[subprocess.Popen[bytes]]
    folder: Path

    def ask(self, method: str, path: str, body: Any = None) -> Any:
        """Of the first worker, which no test kills; a rebalance in between is waited out."""
        until = time.monotonic() + 60
        while True:
            answer = httpx.request(method, f"{self.urls[0]}{path}", json=body, timeout=60)
            if answer.status_code not in (409, 500, 503) or time.monotonic() > until:
                assert answer.is_success, f"{method} {path}: {answer.status_code} {answer.text[:500]}"
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


@pytest.fixture(scope="module")
def workers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workers]:
    broker_jars, jars = live_jars.have("broker"), live_jars.have("connect")
    if not broker_jars or not jars:
        pytest.skip("no jars of Kafka and Connect: python scripts/live_jars.py broker connect")
    folder = tmp_path_factory.mktemp("connect")
    with ExitStack() as stack:
        bootstrap, pid = stack.enter_context(services.kafka(broker_jars, folder / "kafka"))
        ports = [services.free_port() for _ in range(2)]
        running = []
        for at, port in enumerate(ports):
            running.append(stack.enter_context(_worker(jars, folder, bootstrap, at, port)))
        yield Workers(bootstrap, pid, [f"http://127.0.0.1:{port}" for port in ports], running, folder)


def _worker(jars: list[Path], folder: Path, bootstrap: str, at: int, port: int) -> Any:
    plugins = folder / "plugins"
    plugins.mkdir(exist_ok=True)
    settings = {
        "bootstrap.servers": bootstrap,
        "group.id": "live",
        "listeners": f"http://127.0.0.1:{port}",
        "rest.advertised.host.name": "127.0.0.1",
        "rest.advertised.port": port,
        "key.converter": "org.apache.kafka.connect.storage.StringConverter",
        "value.converter": "org.apache.kafka.connect.storage.StringConverter",
        "plugin.path": plugins,
        "plugin.discovery": "service_load",
        "offset.flush.interval.ms": 1000,
        "session.timeout.ms": 6000,
        "heartbeat.interval.ms": 1000,
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
    (folder / "log4j2.properties").write_text(
        "appender.c.type=Console\nappender.c.name=C\nrootLogger.level=warn\nrootLogger.appenderRef.c.ref=C\n"
    )
    command = ["java", "-Xmx384m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"]
    command += [f"-Dlog4j2.configurationFile={folder}/log4j2.properties"]
    command += [
        "-cp",
        os.pathsep.join(map(str, jars)),
        "org.apache.kafka.connect.cli.ConnectDistributed",
        str(conf),
    ]

    def ready() -> bool:
        try:
            return httpx.get(f"http://127.0.0.1:{port}/health", timeout=2).status_code == 200
        except httpx.HTTPError:
            return False

    return services.process(command, folder / f"worker{at}.log", ready)


@dataclass
class Eye:
    """A watcher that looks twice a second, and what it told of one connector."""

    watcher: Watcher
    events: list[dict[str, Any]] = field(default_factory=list)

    def told(self, name: str) -> list[str]:
        return [each["eventType"] for each in self.events if each["job"]["name"] == name]

    def until(self, condition: Callable[[], bool], seconds: float = 60.0) -> None:
        end = time.monotonic() + seconds
        while not condition():
            assert time.monotonic() < end, [(e["job"]["name"], e["eventType"]) for e in self.events]
            self.watcher.round(time.time())
            time.sleep(0.5)

    def for_a_while(self, seconds: float) -> None:
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            self.watcher.round(time.time())
            time.sleep(0.5)


@pytest.fixture
def eye(workers: Workers) -> Iterator[Eye]:
    events: list[dict[str, Any]] = []
    cluster = Cluster(
        name="live",
        url=",".join(workers.urls),
        bootstrap=workers.bootstrap,
        schemas="none",
        grace=GRACE,
        refresh=1.0,
    )
    watcher = Watcher(cluster, events.extend)
    yield Eye(watcher, events)
    watcher.close()
    for each in events:
        of(each)
    for name in workers.ask("GET", "/connectors"):
        workers.ask("DELETE", f"/connectors/{name}")


def sink(workers: Workers, topic: str, **more: str) -> dict[str, str]:
    return {"connector.class": "FileStreamSink", "topics": topic, "file": str(workers.folder / f"{topic}.out"), "tasks.max": "1", **more}  # fmt: skip


def test_a_source_with_a_route_and_a_sink_by_regex_meet_in_one_topic(workers: Workers, eye: Eye) -> None:
    file = workers.folder / "lines.txt"
    file.write_text("one\ntwo\n")
    source = {"connector.class": "FileStreamSource", "file": str(file), "topic": "lines", "transforms": "r",
              "transforms.r.type": f"{TRANSFORMS}RegexRouter", "transforms.r.regex": "(.*)", "transforms.r.replacement": "raw.$1"}  # fmt: skip
    workers.put("src", source)
    eye.until(lambda: eye.told("src")[:2] == ["START", "RUNNING"])
    by_regex = {
        "connector.class": "FileStreamSink",
        "topics.regex": "raw\\..*",
        "file": str(workers.folder / "all.out"),
    }
    workers.put("all", by_regex)

    def edges(name: str) -> set[tuple[str, str]]:
        last = [each for each in eye.events if each["job"]["name"] == name][-1]
        return {(i["name"], o["name"]) for i in last["inputs"] for o in last["outputs"]}

    eye.until(
        lambda: bool(eye.told("all")) and ("raw.lines", str(workers.folder / "all.out")) in edges("all")
    )
    assert edges("src") == {(str(file), "raw.lines")}
    assert (workers.folder / "all.out").read_text() == "one\ntwo\n"


def test_the_life_of_a_sink(workers: Workers, eye: Eye) -> None:
    config = sink(workers, "life")
    workers.send("life", "x")
    workers.put("life", config)
    eye.until(lambda: eye.told("life") == ["START", "RUNNING"])
    workers.put("life", {**config, "tasks.max": "2"})
    eye.until(lambda: eye.told("life")[2:] == ["COMPLETE", "START", "RUNNING"])
    eye.for_a_while(8)  # tasks come and go, and one may fail for a moment
    assert len(eye.told("life")) == 5
    workers.ask("PUT", "/connectors/life/pause")
    eye.until(lambda: eye.told("life")[5:] == ["OTHER"])
    workers.ask("PUT", "/connectors/life/resume")
    eye.until(lambda: eye.told("life")[6:] == ["RUNNING"])
    workers.ask("POST", "/connectors/life/restart?includeTasks=true")
    eye.for_a_while(8)
    assert len(eye.told("life")) == 7
    workers.ask("PUT", "/connectors/life/stop")
    eye.until(lambda: eye.told("life")[7:] == ["ABORT"])
    workers.ask("PUT", "/connectors/life/resume")
    eye.until(lambda: eye.told("life")[8:] == ["START", "RUNNING"])
    workers.ask("DELETE", "/connectors/life")
    eye.until(lambda: eye.told("life")[10:] == ["ABORT"])
    eye.for_a_while(3)
    assert len(eye.told("life")) == 11
    assert len({each["run"]["runId"] for each in eye.events if each["job"]["name"] == "life"}) == 3


def test_one_of_three_tasks_fails(workers: Workers, eye: Eye) -> None:
    from confluent_kafka.admin import AdminClient, NewTopic

    admin = AdminClient({"bootstrap.servers": workers.bootstrap})
    admin.create_topics([NewTopic("three", num_partitions=3, replication_factor=1)])["three"].result(30)
    strict = {
        "value.converter": "org.apache.kafka.connect.json.JsonConverter",
        "value.converter.schemas.enable": "false",
    }
    workers.put("three", sink(workers, "three", **strict, **{"tasks.max": "3"}))
    eye.until(lambda: eye.told("three") == ["START", "RUNNING"])
    eye.for_a_while(4)
    workers.send("three", "this is no JSON")
    eye.until(lambda: eye.told("three")[2:] == ["FAIL"])
    fail = eye.events[-1]
    assert "Exception" in fail["run"]["facets"]["errorMessage"]["stackTrace"]
    states = [task["state"] for task in fail["run"]["facets"]["kafkaConnect"]["tasks"]]
    assert len(states) == 3
    assert "FAILED" in states  # the partition goes to another task then, which fails too
    eye.for_a_while(4)
    assert len(eye.told("three")) == 3


def test_a_task_that_fails_before_the_first_record(workers: Workers, eye: Eye) -> None:
    workers.put("early", sink(workers, "early", file=str(workers.folder / "no" / "such" / "folder" / "f")))
    eye.until(lambda: eye.told("early")[-1:] == ["FAIL"])
    assert eye.told("early") in (["START", "FAIL"], ["START", "RUNNING", "FAIL"])  # it runs for a moment


def test_records_that_carry_their_schema(workers: Workers) -> None:
    schema = {"type": "struct", "fields": [{"field": "id", "type": "int64", "optional": False}]}
    workers.send("carried", json.dumps({"schema": schema, "payload": {"id": 1}}))
    config = sink(workers, "carried", **{"value.converter": "org.apache.kafka.connect.json.JsonConverter"})
    workers.put("carried", config)
    events: list[dict[str, Any]] = []
    cluster = Cluster(
        name="live", url=workers.urls[0], bootstrap=workers.bootstrap, sample=True, grace=GRACE, refresh=1.0
    )
    eye = Eye(Watcher(cluster, events.extend), events)
    try:
        eye.until(lambda: eye.told("carried")[:2] == ["START", "RUNNING"])
        (topic,) = next(each for each in events if each["eventType"] == "RUNNING")["inputs"]
        assert [each["name"] for each in topic["facets"]["schema"]["fields"]] == ["id"]
    finally:
        eye.watcher.close()
        workers.ask("DELETE", "/connectors/carried")


def test_brokers_that_hang_and_a_worker_that_is_killed_end_nothing(workers: Workers, eye: Eye) -> None:
    workers.send("calm", "x")
    workers.put("calm", sink(workers, "calm", **{"tasks.max": "2"}))
    eye.until(lambda: eye.told("calm") == ["START", "RUNNING"])
    os.kill(workers.broker, signal.SIGSTOP)
    try:
        eye.for_a_while(6)
    finally:
        os.kill(workers.broker, signal.SIGCONT)
    eye.for_a_while(10)
    before = [each for each in eye.told("calm") if each in ("ABORT", "COMPLETE", "FAIL")]
    assert before == []
    workers.running[1].kill()
    eye.for_a_while(20)
    assert [each for each in eye.told("calm") if each in ("ABORT", "COMPLETE", "FAIL", "START")] == ["START"]


def test_its_own_topics_tell_the_same_life(workers: Workers, eye: Eye) -> None:
    """Read from the beginning, after everything above: the sink's whole life, each change at its own time."""
    events: list[dict[str, Any]] = []
    cluster = Cluster(name="live", mode="topics", bootstrap=workers.bootstrap, schemas="none", grace=GRACE)
    watcher = Watcher(cluster, events.extend, source=TopicSource(cluster))
    watcher.round(time.time())
    told = [each["eventType"] for each in events if each["job"]["name"] == "life"]
    ends = [each for each in told if each in ("COMPLETE", "ABORT", "FAIL")]
    assert ends == ["COMPLETE", "COMPLETE", "ABORT", "ABORT"]  # reconfigured, restarted, stopped, deleted
    assert told.count("START") == 4
    again: list[dict[str, Any]] = []
    other = Watcher(cluster, again.extend, source=TopicSource(cluster))
    other.round(time.time())
    ours = {(e["eventType"], e["run"]["runId"]) for e in events}
    assert {(e["eventType"], e["run"]["runId"]) for e in again} == ours
    watcher.close()
    other.close()
    assert json.dumps(events)
