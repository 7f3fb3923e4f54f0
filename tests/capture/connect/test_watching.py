"""The watcher asks a cluster over HTTP, tells what happened, and concludes nothing from what it was not told."""

from __future__ import annotations

import json
import logging
import re
import stat
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from cluster import Fake, serving
from typer.testing import CliRunner

from headwater import config
from headwater.capture.connect.catalogue import with_own
from headwater.capture.connect.history import History
from headwater.capture.connect.lifecycle import step
from headwater.capture.connect.remembered import State
from headwater.capture.connect.snapshots import Snapshot
from headwater.cli import build_app
from headwater.connect import Cluster, load
from headwater.connect._watching import Watcher, open_watchers, watch
from headwater.errors import ConfigError, StoreError, TransportError
from headwater.event import of
from openlineage_schemas import SHARED, assert_openlineage

S3 = {
    "connector.class": "io.confluent.connect.s3.S3SinkConnector",
    "topics": "orders",
    "s3.bucket.name": "lake",
    "value.converter": "io.confluent.connect.avro.AvroConverter",
}
ORDERS = {"type": "record", "name": "Order", "fields": [{"name": "id", "type": "long"}]}
WIDER = {"type": "record", "name": "Order", "fields": [*ORDERS["fields"], {"name": "note", "type": "string"}]}  # type: ignore[misc]


@pytest.fixture
def fake() -> Iterator[Fake]:
    with serving() as made:
        yield made


Make = Callable[..., tuple[Watcher, list[dict[str, Any]]]]


@pytest.fixture
def make(fake: Fake) -> Iterator[Make]:
    opened: list[Watcher] = []

    def one(folder: Path | None = None, **options: Any) -> tuple[Watcher, list[dict[str, Any]]]:
        events: list[dict[str, Any]] = []
        settings = {
            "name": "prod",
            "url": fake.url,
            "bootstrap": "b:9092",
            "schema_registry": fake.url,
            **options,
        }
        watcher = Watcher(Cluster(**settings), events.extend, folder=folder)
        opened.append(watcher)
        return watcher, events

    yield one
    for each in opened:
        each.close()


def kinds(events: list[dict[str, Any]]) -> list[str]:
    return [each["eventType"] for each in events]


def test_a_connectors_life(fake: Fake, make: Make) -> None:
    watcher, events = make()
    fake.register("orders-value", ORDERS)
    fake.put("s3", S3)
    watcher.round(0.0)
    assert kinds(events) == ["START", "RUNNING"]
    assert events[1]["job"] | {"facets": {}} == {
        "namespace": "kafka-connect://prod",
        "name": "s3",
        "facets": {},
    }
    assert [field["name"] for field in events[1]["outputs"][0]["facets"]["schema"]["fields"]] == ["id"]
    watcher.round(10.0)
    assert len(events) == 2
    fake.register("orders-value", WIDER)
    watcher.round(50.0)
    assert kinds(events)[2:] == ["RUNNING"]
    assert events[2]["inputs"][0]["facets"]["version"]["datasetVersion"] == "value:2"
    assert [field["name"] for field in events[2]["outputs"][0]["facets"]["schema"]["fields"]] == [
        "id",
        "note",
    ]
    fake.put("s3", {**S3, "flush.size": "7"})
    watcher.round(100.0)
    assert kinds(events)[3:] == ["COMPLETE", "START", "RUNNING"]
    fake.put("s3", {**S3, "flush.size": "7"}, tasks="RF", trace="boom")
    watcher.round(110.0)
    watcher.round(120.0)
    assert kinds(events)[6:] == ["FAIL"]
    assert events[-1]["run"]["facets"]["errorMessage"]["stackTrace"] == "task 1: boom"
    fake.put("s3", {**S3, "flush.size": "7"}, tasks="RR")
    watcher.round(130.0)
    watcher.round(140.0)
    fake.connectors.clear()
    watcher.round(150.0)
    watcher.round(160.0)
    assert kinds(events)[7:] == ["START", "RUNNING", "ABORT"]
    for each in events:
        of(each)
        if SHARED.is_dir():
            assert_openlineage(each, SHARED)


def test_only_what_is_cheap_is_asked_often(fake: Fake, make: Make) -> None:
    watcher, _ = make(schemas="none")
    fake.put("s3", S3)
    fake.put("src", {"connector.class": "FileStreamSource", "file": "/a", "topic": "t"}, "source")
    watcher.round(0.0)
    assert sorted(fake.asked) == [
        "/",
        "/connectors/src/topics",
        "/connectors?expand=info",
        "/connectors?expand=status",
    ]
    fake.asked.clear()
    watcher.round(10.0)
    assert fake.asked == ["/connectors?expand=status"]


BAD: list[tuple[int, str, bytes]] = [
    (401, "application/json", b"{}"),
    (403, "text/plain", b"no"),
    (404, "text/plain", b"no"),
    (429, "text/plain", b""),
    (500, "application/json", b'{"message": "timeout"}'),
    (503, "text/html", b"<html>down</html>"),
    (302, "text/html", b""),
    (200, "text/html", b"<html><body>log in</body></html>"),
    (200, "application/json", b"{"),
    (200, "application/json", b"[]"),
    (200, "application/json", b"null"),
    (200, "application/json", b'["s3"]'),
    (200, "application/json", b'{"s3": {}}'),  # what a comma in `expand` gives
    (200, "application/json", b"[" + b"1," * 3_000_000 + b"1]"),
]


@pytest.mark.parametrize("bad", BAD, ids=lambda bad: f"{bad[0]}-{bad[2][:12]!r}")
def test_nothing_is_concluded_from_what_is_no_answer(
    fake: Fake, make: Make, bad: tuple[int, str, bytes], caplog: pytest.LogCaptureFixture
) -> None:
    watcher, events = make(max_bytes=1_000_000)
    fake.put("s3", S3)
    watcher.round(0.0)
    fake.instead = bad
    for at in range(10, 100, 10):
        watcher.round(float(at))
    assert kinds(events) == ["START", "RUNNING"]
    fake.instead = None
    watcher.round(200.0)
    assert kinds(events) == ["START", "RUNNING"]
    told = [each.getMessage() for each in caplog.records]
    assert len([each for each in told if "nothing is told of it" in each]) == 1
    assert len([each for each in told if "answers again" in each]) == 1


def test_a_registry_that_is_down_changes_nothing(
    fake: Fake, make: Make, caplog: pytest.LogCaptureFixture
) -> None:
    watcher, events = make()
    fake.register("orders-value", ORDERS)
    fake.put("s3", S3)
    watcher.round(0.0)
    for at, bad in enumerate(BAD, 1):
        fake.registry_instead = bad
        watcher.round(at * 100.0)
    assert kinds(events) == ["START", "RUNNING"]


def test_a_registry_that_is_down_is_asked_once_in_a_while(fake: Fake, make: Make) -> None:
    watcher, _ = make()
    for at in range(20):
        fake.put(f"s{at}", {**S3, "topics": f"t{at}"})
    fake.registry_instead = (503, "text/plain", b"")
    watcher.round(0.0)
    watcher.round(10.0)
    assert len([each for each in fake.asked if each.startswith("/subjects")]) == 1
    watcher.round(40.0)
    assert len([each for each in fake.asked if each.startswith("/subjects")]) == 2


def test_an_answer_without_end_is_not_read_to_its_end(
    fake: Fake, make: Make, caplog: pytest.LogCaptureFixture
) -> None:
    watcher, events = make(max_bytes=1000)
    fake.instead = (200, "application/json", b"{" + b" " * 5000 + b"}")
    watcher.round(0.0)
    assert "more than 1000 bytes" in caplog.text
    assert events == []


def test_a_schema_that_is_not_understood_is_told_once(
    fake: Fake, make: Make, caplog: pytest.LogCaptureFixture
) -> None:
    watcher, events = make()
    fake.register("orders-value", "{nonsense")
    fake.put("s3", S3)
    for at in range(0, 200, 40):
        watcher.round(float(at))
    assert kinds(events) == ["START", "RUNNING"]
    assert len([each for each in caplog.records if "orders-value" in each.getMessage()]) == 1


def test_references_are_followed(fake: Fake, make: Make) -> None:
    watcher, events = make()
    fake.register("item", {"type": "record", "name": "Item", "fields": [{"name": "sku", "type": "string"}]})
    order = {"type": "record", "name": "Order", "fields": [{"name": "item", "type": "Item"}]}
    fake.register("orders-value", order, references=[{"name": "Item", "subject": "item", "version": 1}])
    fake.put("s3", S3)
    watcher.round(0.0)
    (field,) = events[1]["inputs"][0]["facets"]["schema"]["fields"]
    assert field["fields"][0]["name"] == "sku"


def test_who_we_are_is_said(fake: Fake, make: Make) -> None:
    from headwater.connect import Auth

    watcher, _ = make(auth=Auth(username="me", password="pw"), registry_auth=Auth(token="tok"))
    fake.put("s3", S3)
    watcher.round(0.0)
    said = dict(zip(fake.asked, fake.headers, strict=True))
    assert said["/connectors?expand=status"]["Authorization"] == "Basic bWU6cHc="
    assert said["/subjects/orders-value/versions/latest"]["Authorization"] == "Bearer tok"
    assert "pw" not in repr(watcher.cluster)
    assert "tok" not in repr(watcher.cluster)


def test_another_worker_is_asked_when_one_is_gone(fake: Fake, make: Make) -> None:
    watcher, events = make(url=f"http://127.0.0.1:9, {fake.url}", timeout=2.0)
    fake.put("s3", S3)
    watcher.round(0.0)
    assert kinds(events) == ["START", "RUNNING"]


def test_what_is_remembered_outlives_the_watcher(fake: Fake, make: Make, tmp_path: Path) -> None:
    first, events = make(tmp_path / "state")
    fake.put("s3", {**S3, "aws.secret.access.key": "hunter2"})
    first.round(0.0)
    second, more = make(tmp_path / "state")
    second.round(10.0)
    assert more == []
    fake.connectors.clear()
    second.round(20.0)
    second.round(30.0)
    assert kinds(more) == ["ABORT"]
    assert more[0]["run"]["runId"] == events[0]["run"]["runId"]
    (kept,) = (tmp_path / "state").iterdir()
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600
    assert b"hunter2" not in kept.read_bytes()
    kept.write_text("nonsense")
    third, _ = make(tmp_path / "state")
    assert third.state.connectors == {}
    assert third.state.epoch not in ("", first.state.epoch)


def test_what_cannot_be_kept_is_not_told_twice(fake: Fake, make: Make, tmp_path: Path) -> None:
    blocked = tmp_path / "state"
    blocked.write_text("a file where the directory should be")
    watcher, events = make(blocked)
    fake.put("s3", S3)
    for at in (0.0, 10.0):
        with pytest.raises(StoreError):
            watcher.round(at)
    assert kinds(events) == ["START", "RUNNING"]
    blocked.unlink()
    watcher.round(20.0)
    after, more = make(blocked)
    after.round(30.0)
    assert more == []


def test_two_watchers_with_one_directory_tell_the_same_runs(fake: Fake, make: Make, tmp_path: Path) -> None:
    one, told = make(tmp_path)
    two, also = make(tmp_path)
    for at, change in enumerate([S3, {**S3, "a": "1"}, {**S3, "a": "2"}]):
        fake.put("s3", change)
        one.round(at * 100.0)
        two.round(at * 100.0 + 4)
    assert [(e["eventType"], e["run"]["runId"]) for e in told] == [
        (e["eventType"], e["run"]["runId"]) for e in also
    ]
    assert len({e["run"]["runId"] for e in told}) == 3


def test_what_cannot_be_sent_is_told_in_the_next_round(fake: Fake, tmp_path: Path) -> None:
    sent: list[dict[str, Any]] = []
    broken = True

    def emit(events: list[dict[str, Any]]) -> None:
        if broken:
            raise TransportError("down", retryable=True)
        sent.extend(events)

    watcher = Watcher(Cluster(name="prod", url=fake.url, schemas="none"), emit)
    fake.put("s3", S3)
    with pytest.raises(TransportError):
        watcher.round(0.0)
    broken = False
    watcher.round(10.0)
    watcher.close()
    assert kinds(sent) == ["START", "RUNNING"]


def test_no_secret_is_logged(fake: Fake, make: Make, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    watcher, events = make(url=fake.url.replace("://", "://me:hunter2@"))
    jdbc = {"connector.class": "io.confluent.connect.jdbc.JdbcSinkConnector", "topics": "t", "connection.password": "hunter2",
            "connection.url": "jdbc:postgresql://u:hunter2@db/x"}  # fmt: skip
    fake.put(
        "j",
        jdbc,
        tasks="F",
        trace="org.x.E: cannot log in to jdbc:postgresql://u:hunter2@db/x password=hunter2",
    )
    watcher.round(0.0)
    watcher.round(60.0)
    fake.instead = (401, "text/plain", b"hunter2")
    watcher.round(70.0)
    ours = [each.getMessage() for each in caplog.records if each.name.startswith("headwater")]
    assert any("401" in each for each in ours)
    assert "hunter2" not in " ".join(ours)
    assert kinds(events) == ["START", "FAIL"]
    assert "hunter2" not in json.dumps(events)


def test_clusters_are_watched_side_by_side(fake: Fake, make: Make) -> None:
    fake.put("s3", S3)
    good, events = make(interval=0.05)
    bad, none = make(name="gone", url="http://127.0.0.1:9", interval=0.05)
    stop = threading.Event()
    thread = threading.Thread(target=watch, args=([bad, good], stop))
    thread.start()
    until = time.monotonic() + 20
    while len(events) < 2 and time.monotonic() < until:
        time.sleep(0.02)
    stop.set()
    thread.join(20)
    assert not thread.is_alive()
    assert kinds(events) == ["START", "RUNNING"]
    assert none == []


# --- connect.toml


def write(folder: Path, text: str) -> Path:
    file = folder / "connect.toml"
    file.write_text(text)
    return file


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("", "no cluster"),
        ("x = ", "cannot be read"),
        ('[[clusters]]\nname = "a"', "url"),
        ('[[clusters]]\nname = "a"\nurl = "connect:8083"', "http://"),
        ('[[clusters]]\nname = "a"\nurl = "http://x"\ncolour = 1', "colour"),
        ('[[clusters]]\nname = "a"\nurl = "http://x"\nnaming = "mine"', "naming"),
        ('[[clusters]]\nname = "a"\nurl = "http://x"\ninterval = 0', "interval"),
        ('[[clusters]]\nname = "a"\nurl = "http://x"\n[[clusters]]\nname = "a"\nurl = "http://y"', "name of its own"),
        ('[[clusters]]\nname = "a"\nurl = "http://x"\nauth = { password = "${NOT_SET}" }', "NOT_SET"),
        ('[[clusters]]\nname = "a"\nmode = "topics"', "bootstrap"),
    ],
)  # fmt: skip
def test_settings_that_are_wrong_are_refused(tmp_path: Path, text: str, word: str) -> None:
    with pytest.raises(ConfigError, match=word):
        load(write(tmp_path, text), {})


def test_settings_take_variables_but_not_in_placeholders(tmp_path: Path) -> None:
    file = write(tmp_path, '[[clusters]]\nname = "a"\nurl = "http://x"\nauth = { username = "u", password = "${PW}" }\n'
                           'resolve = { "${file:/x:y}" = "z", "${env:PW}" = "w" }')  # fmt: skip
    (cluster,) = load(file, {"PW": "s", "CONNECT_BOOTSTRAP_SERVERS": "kafka-1:19092"}).clusters
    assert cluster.auth.password == "s"
    assert cluster.resolve == {"${file:/x:y}": "z", "${env:PW}": "w"}
    assert cluster.bootstrap == "kafka-1:19092"


def test_the_namespace_of_jobs(tmp_path: Path, fake: Fake) -> None:
    watching = load(write(tmp_path, f'[[clusters]]\nname = "a"\nurl = "{fake.url}"'), {})
    fake.put("s3", S3)
    for settings, expected in (
        (config.load(environ={"OPENLINEAGE_NAMESPACE": "fh-local"}), "fh-local"),
        (config.load(environ={}), "kafka-connect://a"),
    ):
        events: list[dict[str, Any]] = []
        (watcher,) = open_watchers(watching, settings, events.extend, keep=False)
        watcher.round(0.0)
        watcher.close()
        assert events[0]["job"]["namespace"] == expected


# --- the commands


def test_the_commands(tmp_path: Path, fake: Fake) -> None:
    fake.register("orders-value", ORDERS)
    fake.put("s3", {**S3, "errors.deadletterqueue.topic.name": "dlq"})
    fake.put("odd", {"connector.class": "com.example.Odd", "topics": "x"})
    file = write(tmp_path, f'state = "state"\n[[clusters]]\nname = "prod"\nurl = "{fake.url}"\nbootstrap = "b:9092"\nschema_registry = "{fake.url}"')  # fmt: skip
    run, app = CliRunner(), build_app()
    shown = run.invoke(app, ["connect", "once", "--config", str(file), "--dry-run"])
    assert shown.exit_code == 0, shown.output
    assert "kafka://b:9092/orders -> s3://lake/topics/orders" in shown.stdout
    assert "kafka://b:9092/orders -> kafka://b:9092/dlq" in shown.stdout
    assert "com.example.Odd is not known" in shown.stdout
    assert not (tmp_path / "state").exists()
    explained = run.invoke(app, ["connect", "explain", "s3", "--config", str(file)])
    assert "id <- orders: id" in explained.stdout
    as_json = run.invoke(app, ["connect", "explain", "s3", "--config", str(file), "--json"])
    assert json.loads(as_json.stdout)["outputs"][0]["name"] == "topics/orders"
    out = tmp_path / "events.jsonl"
    told = run.invoke(app, ["connect", "once", "--config", str(file), "--transport", f"file://{out}"])
    assert told.exit_code == 0, told.output
    assert len(out.read_text().splitlines()) == 4
    again = run.invoke(app, ["connect", "once", "--config", str(file), "--transport", f"file://{out}"])
    assert again.exit_code == 0
    assert len(out.read_text().splitlines()) == 4
    missing = run.invoke(app, ["connect", "explain", "nope", "--config", str(file)])
    assert "nope" in str(missing.exception)
    fake.instead = (503, "text/plain", b"")
    assert run.invoke(app, ["connect", "once", "--config", str(file), "--dry-run"]).exit_code == 4


# --- Connect's own topics


Told = tuple[float, str, str, bytes | None, str]


def records(recorded: Path) -> list[Told]:
    """(time, topic, key, value, position) of what a real cluster wrote into its own topics, by time, as if that were all of it."""
    told = json.loads((recorded / "internal_topics.json").read_text())
    found = []
    for name, kind in (("connect-live-configs", "config"), ("connect-live-status", "status")):
        for each in told[name]["changes"]:
            raw = None if each["value"] is None else json.dumps(each["value"]).encode()
            found.append((each["timestamp"] / 1000, kind, each["key"], raw, each["partition"]))
    found.sort(key=lambda each: each[0])
    counts: Counter[tuple[str, int]] = Counter()
    numbered: list[Told] = []
    for at, kind, key, raw, partition in found:
        numbered.append((at, kind, key, raw, f"{partition}:{counts[kind, partition]}"))
        counts[kind, partition] += 1
    return numbered


class Replayed:
    """What a consumer of those topics gives that begins at their beginning."""

    def __init__(self, given: list[Told]) -> None:
        self.given, self.history = given, History("id")

    def rounds(self, now: float, *, whole: bool = False) -> list[tuple[float, Snapshot]]:
        found = []
        while self.given and self.given[0][0] <= now:
            at, kind, key, raw, position = self.given[0]
            self.given = self.given[1:]
            if self.history.take(kind, key, raw, position):  # type: ignore[arg-type]
                found.append((at, self.history.snapshot()))
        return [*found, (now, self.history.snapshot())]

    def close(self) -> None:
        pass


def test_a_watcher_of_topics_that_begins_anew_tells_nothing_twice(recorded: Path, tmp_path: Path) -> None:
    given = records(recorded)
    cluster = Cluster(name="live", mode="topics", bootstrap="b:9092", schemas="none")

    def watch_until(folder: Path | None, times: list[float]) -> list[tuple[str, str, str, str]]:
        events: list[dict[str, Any]] = []
        for now in times:  # each with a watcher of its own, which reads everything again
            Watcher(cluster, events.extend, folder=folder, source=Replayed(given)).round(now)
        return [(e["job"]["name"], e["eventType"], e["run"]["runId"], e["eventTime"]) for e in events]

    end = given[-1][0] + 60
    at_once = watch_until(None, [end])
    ends = [each for each in at_once if each[1] in ("COMPLETE", "ABORT", "FAIL")]
    assert len(ends) >= 4
    cuts = sorted({given[at][0] + wait for at in range(3, len(given), 5) for wait in (0.0, 4.0, 11.0)})
    bit_by_bit = watch_until(tmp_path / "state", [*(cut for cut in cuts if cut < end), end])
    assert bit_by_bit == at_once
    assert watch_until(None, [end]) == at_once  # two that know nothing of each other
    assert len(at_once) == len(set(at_once))


def test_a_history_that_could_not_be_sent_is_not_lost(recorded: Path) -> None:
    given = records(recorded)
    cluster = Cluster(name="live", mode="topics", bootstrap="b:9092", schemas="none")
    end = given[-1][0] + 60
    sent: list[dict[str, Any]] = []
    again: list[dict[str, Any]] = []
    broken = True

    def emit(events: list[dict[str, Any]]) -> None:
        if broken:
            raise TransportError("down", retryable=True)
        again.extend(events)

    Watcher(cluster, sent.extend, source=Replayed(given)).round(end)
    watcher = Watcher(cluster, emit, source=Replayed(given))
    for now in (given[20][0], given[-1][0]):
        with pytest.raises(TransportError):
            watcher.round(now)
    broken = False
    watcher.round(end)
    assert again == sent


def test_a_history_with_gaps_is_known_for_one() -> None:
    history = History()
    raw = b'{"properties": {"topics": "t"}}'
    history.take("config", "connector-c", raw, "0:0")
    history.take("status", "status-connector-c", b'{"state": "RUNNING"}', "1:0")
    assert history.snapshot().whole
    history.take("status", "status-connector-c", b'{"state": "FAILED"}', "1:2")
    assert not history.snapshot().whole  # what stood at 1:1 may have ended a run


def test_a_failure_counts_by_the_records_times_whenever_they_are_read() -> None:
    running, failed = b'{"state": "RUNNING"}', b'{"state": "FAILED", "trace": "boom"}'
    given: list[Told] = [
        (0.0, "config", "connector-c", b'{"properties": {"topics": "t"}}', "0:0"),
        (0.0, "config", "commit-c", b'{"tasks": 1}', "0:1"),
        (1.0, "status", "status-connector-c", running, "0:0"),
        (1.0, "status", "status-task-c-0", running, "0:1"),
        (100.0, "status", "status-task-c-0", failed, "0:2"),
        (105.0, "status", "status-connector-c", b'{"state": "RUNNING", "worker_id": "w2"}', "0:3"),
        (112.0, "status", "status-task-c-0", running, "0:4"),
        (200.0, "status", "status-task-c-0", failed, "0:5"),
        (205.0, "status", "status-task-c-0", running, "0:6"),
    ]
    cluster = Cluster(name="live", mode="topics", bootstrap="b:9092", schemas="none")
    expected = [("START", 0.0), ("RUNNING", 1.0), ("FAIL", 110.0), ("START", 122.0), ("RUNNING", 122.0)]
    for times in (
        [300.0],
        [2.0, 101.0, 106.0, 111.0, 113.0, 123.0, 201.0, 206.0, 300.0],
        [103.0, 109.0, 300.0],
    ):
        events: list[dict[str, Any]] = []
        watcher = Watcher(
            cluster, events.extend, source=Replayed([(9000.0 + at, *rest) for at, *rest in given])
        )
        for now in times:
            watcher.round(9000.0 + now)
        watcher.close()
        assert [
            (e["eventType"], datetime.fromisoformat(e["eventTime"]).timestamp() - 9000.0) for e in events
        ] == expected


def test_the_history_of_a_real_cluster(recorded: Path) -> None:
    """What really happened to one sink, record by record, as Connect's own topics tell it."""
    history, state, found = History("id"), State("prod"), []
    now = 0.0
    for now, kind, key, raw, position in records(recorded):
        if history.take(kind, key, raw, position):  # type: ignore[arg-type]
            state, moments = step(state, history.snapshot(), now)
            found += [(each.connector, each.kind, each.reason) for each in moments]
    sink = [(kind, reason) for name, kind, reason in found if name == "file-sink"]
    assert sink[0] == ("START", "")
    words = [kind for kind, _ in sink]
    assert ("COMPLETE", "reconfigured") in sink
    assert ("COMPLETE", "restarted") in sink
    assert ("ABORT", "stopped") in sink
    assert ("OTHER", "paused") in sink
    assert words.count("START") - 1 <= sum(words.count(end) for end in ("COMPLETE", "ABORT", "FAIL"))
    assert {name for name, _, _ in found} == {
        "file-src",
        "file-sink",
        "bad-mirror",
    }  # `idle` was never started
    deleted = [name for name, kind, reason in found if reason == "deleted"]
    assert set(deleted).isdisjoint(history.snapshot().connectors)


def test_the_same_configuration_written_again_is_no_other() -> None:
    history = History()
    raw = b'{"properties": {"topics": "t"}}'
    assert history.take("config", "connector-c", raw, "0:1")
    assert not history.take("config", "connector-c", raw, "0:2")
    assert history.snapshot().connectors["c"].opened == "0:1"
    assert history.take("config", "connector-c", b'{"properties": {"topics": "u"}}', "0:3")
    assert history.snapshot().connectors["c"].opened == "0:3"


def test_records_that_are_nothing_change_nothing() -> None:
    history = History()
    for key in ("session-key", "connector-", "task-c-0", "status-task-", "status-topic-x", "commit-c", ""):
        for value in (
            None,
            b"",
            b"[]",
            b"{",
            b'{"properties": 3}',
            b'{"topic": 7}',
            b'{"tasks": "x"}',
            b"\xff",
            b"[" * 100_000,
        ):
            history.take("config", key, value, "0:0")
            history.take("status", key, value, "0:0")
    assert history.snapshot().connectors == {}


def test_every_setting_is_told() -> None:
    page = (Path(__file__).parents[3] / "docs" / "connect.md").read_text()
    missing = [name for name in Cluster.__struct_fields__ if f"`{name}`" not in page]
    assert not missing


def test_the_examples_in_the_docs_can_be_used(tmp_path: Path) -> None:
    page = (Path(__file__).parents[3] / "docs" / "connect.md").read_text()
    examples = re.findall(r"^```toml\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    assert len(examples) == 2
    (cluster,) = load(write(tmp_path, examples[0]), {"CONNECT_PASSWORD": "x"}).clusters
    assert cluster.name == "prod"
    (tmp_path / "own.toml").write_text(examples[1])
    assert "com.example.ShopSink" in with_own(tmp_path / "own.toml")
