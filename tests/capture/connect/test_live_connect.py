"""A real broker and two real workers: each thing done to a connector gives exactly the events it should, and no other.

A line is (kind of event, job, what matters of it); the lines of a connector are compared as a whole, in their order. The eye
looks three times a second, so what flickers in between is seen: a task that fails for a moment, tasks that come one by one.
"""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable
from pathlib import Path

import pytest
from live import GRACE, TRANSFORMS, Eye, Line
from live import eye as open_eye

import services
from connect_workers import Workers
from headwater.connect._topics import TopicSource

pytestmark = pytest.mark.live

STRICT = {
    "value.converter": "org.apache.kafka.connect.json.JsonConverter",
    "value.converter.schemas.enable": "false",
}


def sink(workers: Workers, topic: str, **more: str) -> dict[str, str]:
    return {"connector.class": "FileStreamSink", "topics": topic, "file": str(workers.folder / f"{topic}.out"), "tasks.max": "1", **more}  # fmt: skip


def stub(topic: str, **more: str) -> dict[str, str]:
    return {"connector.class": "io.confluent.connect.s3.S3SinkConnector", "topics": topic, "s3.bucket.name": "lake", **more}  # fmt: skip


def begun(name: str, flow: str) -> list[Line]:
    return [("START", name, flow), ("RUNNING", name, f"datasets known: {flow}")]


def test_the_life_of_a_sink(workers: Workers, eye: Eye) -> None:
    flow = "life -> life.out"
    config = sink(workers, "life")
    workers.create("life", 2)
    told = begun("life", flow)
    workers.put("life", config)
    eye.until("life", *told)

    workers.put("life", {**config, "tasks.max": "2"})  # reconfigured
    told += [("COMPLETE", "life", "reconfigured"), *begun("life", flow)]
    eye.until("life", *told)
    eye.still("life", *told, seconds=8)  # tasks come and go, and one may fail for a moment

    workers.ask("PUT", "/connectors/life/pause")
    told += [("OTHER", "life", f"paused: {flow}")]
    eye.until("life", *told)
    workers.ask("PUT", "/connectors/life/resume")
    told += [("RUNNING", "life", f"resumed: {flow}")]
    eye.until("life", *told)

    workers.ask(
        "POST", "/connectors/life/restart?includeTasks=true"
    )  # healthy all the time: not the end of a run
    eye.still("life", *told, seconds=8)

    workers.ask("PUT", "/connectors/life/stop")
    told += [("ABORT", "life", "stopped")]
    eye.until("life", *told)
    workers.ask("PUT", "/connectors/life/resume")
    told += begun("life", flow)
    eye.until("life", *told)

    workers.ask("DELETE", "/connectors/life")
    told += [("ABORT", "life", "deleted")]
    eye.until("life", *told)
    eye.still("life", *told, seconds=3)
    assert eye.runs("life") == 3


def test_its_own_topics_tell_the_same_life(workers: Workers) -> None:
    """Read from the beginning, after what happened above: each change at its own time, and the restart too."""
    flow = "life -> life.out"
    expected: list[Line] = [
        *begun("life", flow),
        ("COMPLETE", "life", "reconfigured"),
        *begun("life", flow),
        ("OTHER", "life", f"paused: {flow}"),
        ("RUNNING", "life", f"resumed: {flow}"),
        ("COMPLETE", "life", "restarted"),
        *begun("life", flow),
        ("ABORT", "life", "stopped"),
        *begun("life", flow),
        ("ABORT", "life", "deleted"),
    ]
    ids = []
    for _ in range(2):
        with open_eye(workers, mode="topics", source=TopicSource) as eye:
            eye.round()
            assert eye.saw("life") == expected
            ids.append([(each["eventType"], each["run"]["runId"], each["eventTime"]) for each in eye.events])
    assert ids[0] == ids[1]  # two watchers that know nothing of each other


def test_a_task_that_fails_at_work_and_recovers(workers: Workers, eye: Eye) -> None:
    flow = "poison -> poison.out"
    workers.create("poison")
    config = sink(workers, "poison", **STRICT)
    told = begun("poison", flow)
    workers.put("poison", config)
    eye.until("poison", *told)
    workers.send("poison", "this is no JSON")
    told += [("FAIL", "poison", "failed: task 0: org.apache.kafka.connect.errors.ConnectException: Tolerance exceeded in error handler")]  # fmt: skip
    eye.until("poison", *told)
    fail = eye.events[-1]["run"]["facets"]
    assert (
        "Caused by: org.apache.kafka.common.errors.SerializationException"
        in fail["errorMessage"]["stackTrace"]
    )
    assert [task["state"] for task in fail["kafkaConnect"]["tasks"]] == ["FAILED"]
    workers.ask(
        "POST", "/connectors/poison/restart?includeTasks=true&onlyFailed=true"
    )  # it runs, and fails again
    eye.still("poison", *told, seconds=GRACE + 4)
    workers.put("poison", {**config, "errors.tolerance": "all"})  # what failed is over already
    told += begun("poison", flow)
    eye.until("poison", *told)
    workers.ask("DELETE", "/connectors/poison")
    told += [("ABORT", "poison", "deleted")]
    eye.until("poison", *told)


def test_a_connector_that_fails_as_it_starts(workers: Workers, eye: Eye) -> None:
    workers.put("early", stub("early", **{"stub.fail": "connector"}))
    told: list[Line] = [
        ("START", "early", "early -> early"),
        ("FAIL", "early", "failed: org.apache.kafka.connect.errors.ConnectException: stub: the connector cannot start"),
    ]  # fmt: skip
    eye.until("early", *told)
    workers.ask("DELETE", "/connectors/early")
    eye.still("early", *told, seconds=3)  # its run has ended


def test_a_task_that_fails_before_the_first_record(workers: Workers, eye: Eye) -> None:
    workers.create("start")
    workers.put("start", sink(workers, "start", file=str(workers.folder / "no" / "such" / "folder" / "f")))
    told: list[Line] = [
        ("START", "start", "start -> f"),
        ("FAIL", "start", f"failed: task 0: org.apache.kafka.connect.errors.ConnectException: Couldn't find or create file '{workers.folder}/no/such/folder/f' for FileStreamSinkTask"),
    ]  # fmt: skip
    eye.until("start", *told)


def test_one_of_three_tasks_fails(workers: Workers, eye: Eye) -> None:
    workers.create("three", 3)
    workers.put("three", stub("three", **{"stub.fail": "task1", "tasks.max": "3"}))
    error = "org.apache.kafka.connect.errors.ConnectException: stub: task1 cannot start"
    flow = "three -> three"
    with (
        open_eye(workers, name="majority", fail_on="majority") as lenient,
        open_eye(workers, name="tasks", fail_on="all", tasks=True) as each,
    ):
        eye.until("three", ("START", "three", flow), ("FAIL", "three", f"failed: task 1: {error}"))
        states = [task["state"] for task in eye.events[-1]["run"]["facets"]["kafkaConnect"]["tasks"]]
        assert states == ["RUNNING", "FAILED", "RUNNING"]
        lenient.until("three", *begun("three", flow))
        lenient.still("three", *begun("three", flow), seconds=GRACE + 2)
        each.until("three", *begun("three", flow))
        each.until("three.1", ("START", "three.1", " -> "), ("FAIL", "three.1", error))
        for task in ("three.0", "three.2"):
            each.until(task, ("START", task, " -> "), ("RUNNING", task, " -> "))


def test_topics_by_a_regular_expression(workers: Workers, eye: Eye) -> None:
    config = {"connector.class": "FileStreamSink", "topics.regex": "raw\\..*", "file": str(workers.folder / "all.out"), "tasks.max": "1"}  # fmt: skip
    workers.put("all", config)
    told = begun("all", " -> ")
    eye.until("all", *told)
    file = workers.folder / "lines.txt"
    file.write_text("one\ntwo\n")
    source = {"connector.class": "FileStreamSource", "file": str(file), "topic": "lines", "tasks.max": "1", "transforms": "r",
              "transforms.r.type": f"{TRANSFORMS}RegexRouter", "transforms.r.regex": "(.*)", "transforms.r.replacement": "raw.$1"}  # fmt: skip
    workers.put("src", source)
    told += [("RUNNING", "all", "datasets changed: raw.lines -> all.out")]
    eye.until("all", *told)
    eye.until("src", *begun("src", "lines.txt -> raw.lines"))
    (workers.folder / "more.txt").write_text("three\n")
    more = {**source, "topic": "more", "file": str(workers.folder / "more.txt")}
    workers.put("more", more)
    told += [("RUNNING", "all", "datasets changed: raw.lines, raw.more -> all.out")]
    eye.until("all", *told)
    eye.when(lambda: (workers.folder / "all.out").read_text() == "one\ntwo\nthree\n")


def test_mirror_maker(workers: Workers, eye: Eye) -> None:
    raw = "org.apache.kafka.connect.converters.ByteArrayConverter"
    config = {
        "connector.class": "org.apache.kafka.connect.mirror.MirrorSourceConnector", "tasks.max": "1", "topics": "mm\\..*",
        "source.cluster.alias": "a", "target.cluster.alias": "b", "replication.factor": "1", "offset-syncs.topic.replication.factor": "1",
        "source.cluster.bootstrap.servers": workers.bootstrap, "target.cluster.bootstrap.servers": workers.bootstrap,
        "sync.topic.acls.enabled": "false", "refresh.topics.interval.seconds": "2", "key.converter": raw, "value.converter": raw,
    }  # fmt: skip
    workers.put("mirror", config)
    told = begun("mirror", " -> ")  # no topic, no task: it runs all the same
    eye.until("mirror", *told)
    workers.create("mm.lines")
    workers.send("mm.lines", "one")
    told += [("RUNNING", "mirror", "datasets changed: mm.lines -> a.mm.lines")]
    eye.until("mirror", *told)
    workers.ask("DELETE", "/connectors/mirror")
    eye.until("mirror", *told, ("ABORT", "mirror", "deleted"))


def test_brokers_that_hang_and_brokers_that_are_killed_end_nothing(
    workers: Workers, eye: Eye, jars: Callable[[str], list[Path]]
) -> None:
    def holds(seconds: float) -> None:
        """Nothing ends. That no worker ran it for longer than the grace, may be told: on a slow machine it is so."""
        eye.for_a_while(seconds)
        saw = eye.saw("calm")
        assert saw[: len(told)] == told
        assert {kind for kind, *_ in saw[len(told) :]} <= {"OTHER", "RUNNING"}, saw

    workers.create("calm", 2)
    workers.put("calm", sink(workers, "calm", **{"tasks.max": "2"}))
    told = begun("calm", "calm -> calm.out")
    eye.until("calm", *told)
    os.kill(workers.broker, signal.SIGSTOP)
    try:
        eye.for_a_while(6)
    finally:
        os.kill(workers.broker, signal.SIGCONT)
    holds(10)
    os.kill(workers.broker, signal.SIGKILL)
    eye.for_a_while(5)
    again = services.kafka_again(jars("broker"), workers.folder / "kafka")
    workers.broker = workers.stack.enter_context(again)
    holds(15)
    workers.send("calm", "x")
    eye.when(lambda: (workers.folder / "calm.out").read_text() == "x\n")  # and it works
    holds(1)


def test_a_worker_that_is_killed_and_one_that_joins_end_nothing(workers: Workers, eye: Eye) -> None:
    workers.create("moved", 2)
    workers.put("moved", sink(workers, "moved", **{"tasks.max": "2"}))
    told = begun("moved", "moved -> moved.out")
    eye.until("moved", *told)

    def places() -> set[str]:
        status = workers.ask("GET", "/connectors/moved/status")
        return {task["worker_id"] for task in status["tasks"] if task["state"] == "RUNNING"}

    eye.when(lambda: len(places()) == 2)
    workers.running[1].kill()
    eye.when(lambda: len(places()) == 1, 60)
    eye.still("moved", *told, seconds=GRACE + 2)
    workers.start(wait=False)
    eye.when(lambda: len(places()) == 2, 90)  # a rebalance: one of its tasks moves
    eye.still("moved", *told, seconds=GRACE + 2)


def test_records_that_carry_their_schema(workers: Workers) -> None:
    schema = {"type": "struct", "fields": [{"field": "id", "type": "int64", "optional": False}]}
    workers.send("carried", json.dumps({"schema": schema, "payload": {"id": 1}}))
    config = sink(workers, "carried", **{"value.converter": "org.apache.kafka.connect.json.JsonConverter"})
    workers.put("carried", config)
    try:
        with open_eye(workers, sample=True, schemas="value") as eye:
            eye.when(lambda: [each[0] for each in eye.saw("carried")] == ["START", "RUNNING"])
            (topic,) = eye.events[-1]["inputs"]
            assert [each["name"] for each in topic["facets"]["schema"]["fields"]] == ["id"]
    finally:
        workers.ask("DELETE", "/connectors/carried")
