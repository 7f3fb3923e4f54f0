"""The door of Spark: settings in Spark's own words, one capture per application, and a host that never notices."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from queue import Empty, Queue
from random import Random
from types import SimpleNamespace
from typing import Any

import pytest

from headwater import config
from headwater import spark as door
from headwater.capture.spark import State
from headwater.capture.spark.agents import listeners, setting, without, without_arguments
from headwater.capture.spark.settings import Ancestor, SparkSettings, Tag, read
from headwater.emitter import Emitter
from headwater.errors import ConfigError
from headwater.guard import guard
from headwater.spark import _capture, _compiled
from headwater.transport.memory import MemoryTransport

TERMINAL = ("COMPLETE", "FAIL", "ABORT")
RUN = "0192c3a4-0000-7000-8000-000000000001"
ROOT = "0192c3a4-0000-7000-8000-000000000002"
OL = "spark.openlineage."
AGENT = "io.openlineage.spark.agent.OpenLineageSparkListener"


def loaded(conf: dict[str, str], arguments: dict[str, Any] | None = None, **environ: str) -> config.Settings:
    return config.load(arguments, between=read(conf, arguments).layers, environ=environ)


# --- where events go


@pytest.mark.parametrize(
    ("conf", "transport", "options"),
    [
        ({"spark.headwater.transport": "file:///e.jsonl"}, "file:///e.jsonl", {}),
        (
            {"spark.headwater.transport": "http://h", "spark.headwater.transport.timeout": "3"},
            "http://h",
            {"timeout": "3"},
        ),
        (
            {"spark.headwater.transport.url": "http://h", "spark.headwater.transport.headers.X-Team": "shop"},
            "http://h",
            {"headers": {"X-Team": "shop"}},
        ),
        (
            {
                f"{OL}transport.type": "http",
                f"{OL}transport.url": "http://h:5000",
                f"{OL}transport.endpoint": "/in",
                f"{OL}transport.timeoutInMillis": "2500",
                f"{OL}transport.auth.type": "api_key",
                f"{OL}transport.auth.apiKey": "k",
                f"{OL}transport.headers.X-Team": "shop",
                f"{OL}transport.compression": "gzip",
            },
            "http://h:5000",
            {
                "endpoint": "/in",
                "timeout": 2.5,
                "api_key": "k",
                "headers": {"X-Team": "shop"},
                "compression": "gzip",
            },
        ),
        ({f"{OL}transport.url": "http://h"}, "http://h", {}),
        (
            {f"{OL}transport.type": "file", f"{OL}transport.location": "/tmp/a b.jsonl"},
            "file:///tmp/a%20b.jsonl",
            {},
        ),
        ({f"{OL}transport.type": "console"}, "console:", {}),
        (
            {
                f"{OL}transport.type": "kafka",
                f"{OL}transport.topicName": "lineage",
                f"{OL}transport.properties.bootstrap.servers": "b:9092",
            },
            "kafka://b:9092/lineage",
            {},
        ),
        (  # as Airflow's provider hands a composite on, the key as its header
            {
                f"{OL}transport.type": "composite",
                f"{OL}transport.continueOnFailure": "False",
                f"{OL}transport.transports.a.type": "http",
                f"{OL}transport.transports.a.url": "http://a",
                f"{OL}transport.transports.a.timeoutInMillis": "5000",
                f"{OL}transport.transports.a.auth.type": "api_key",
                f"{OL}transport.transports.a.auth.apiKey": "Bearer k",
                f"{OL}transport.transports.b.url": "http://b",
                f"{OL}transport.transports.b.type": "http",
            },
            "fanout:",
            {
                "to": [{"url": "http://a", "timeout": 5.0, "api_key": "k"}, {"url": "http://b"}],
                "policy": "required",
            },
        ),
        ({f"{OL}host": "http://h:1", f"{OL}version": "1"}, "http://h:1", {"endpoint": "api/v1/lineage"}),
        ({f"{OL}host": "h:1"}, "http://h:1", {"endpoint": "api/v1/lineage"}),
    ],
)
def test_transports(conf: dict[str, str], transport: str, options: dict[str, Any]) -> None:
    settings = loaded(conf)
    assert (settings.transport, settings.rooms.get("transport", {})) == (transport, options)
    assert read(conf).unsupported == ()


@pytest.mark.parametrize(
    ("path", "namespace", "parent", "warned"),
    [
        ("/api/v1/namespaces/shop", "shop", None, False),
        ("/api/v1/namespaces/shop/", "shop", None, False),
        ("/api/v2/namespaces/my%20shop/job/daily", "my shop", None, True),
        (f"/api/v1/namespaces/shop/job/daily/runs/{RUN}", "shop", Ancestor(RUN, "daily", "shop"), False),
        (f"/api/v1/namespaces/shop/jobs/daily/runs/{RUN}/", "shop", Ancestor(RUN, "daily", "shop"), False),
        ("/api/v1/namespaces/shop/jobs/daily/runs/7", "shop", None, True),
        ("/lineage", "default", None, True),
        ("", "default", None, False),
    ],
)
def test_a_url_names_host_namespace_and_parent(
    path: str, namespace: str, parent: Ancestor | None, warned: bool
) -> None:
    conf = {f"{OL}url": f"http://h:5000{path}?api_key=k&xyz=1"}
    said, settings = read(conf), loaded(conf)
    assert (settings.transport, settings.namespace, settings.api_key) == ("http://h:5000", namespace, "k")
    assert said.parent == parent
    assert settings.rooms["transport"]["params"] == {"xyz": "1"}
    assert said.unsupported == ()
    assert bool(said.warnings) is warned
    assert "/api/v2/" not in path or settings.rooms["transport"]["endpoint"] == "api/v2/lineage"


def test_the_nearer_source_wins() -> None:
    conf = {"spark.headwater.namespace": "ours", f"{OL}namespace": "theirs"}
    assert loaded(conf, {"namespace": "argument"}).namespace == "argument"
    assert loaded(conf, HEADWATER_NAMESPACE="environment").namespace == "ours"
    assert loaded({f"{OL}namespace": "theirs"}, HEADWATER_NAMESPACE="environment").namespace == "theirs"
    both = {f"{OL}namespace": "key", f"{OL}url": "http://h/api/v1/namespaces/url"}
    assert loaded(both).namespace == "key"
    assert read({f"{OL}appName": "a", "spark.headwater.appName": "b"}).app_name == "b"
    assert read({"spark.headwater.appName": "b"}, {"app_name": "c"}).app_name == "c"


def test_a_transport_that_has_no_say_is_not_read() -> None:
    conf = {f"{OL}transport.type": "s3"}
    assert loaded(conf, {"transport": "console:"}).transport == "console:"
    assert loaded({**conf, "spark.headwater.transport": "memory:"}).transport == "memory:"
    with pytest.raises(ConfigError, match=r"transport\.type: unknown transport 's3'"):
        read(conf)


def test_it_can_be_switched_off() -> None:
    assert loaded({f"{OL}disabled": "true"}).disabled
    assert loaded({"spark.headwater.disabled": "1"}).disabled


# --- what is told


def test_parents_and_roots() -> None:
    said = read(
        {
            f"{OL}parentRunId": RUN,
            f"{OL}parentJobName": "dag.task",
            f"{OL}parentJobNamespace": "airflow",
            f"{OL}rootParentRunId": ROOT,
            f"{OL}rootParentJobName": "dag",
        }
    )
    assert said.parent
    assert said.root
    assert said.parent.told("mine") == {"run": RUN, "namespace": "airflow", "name": "dag.task"}
    assert said.root.told("mine") == {"run": ROOT, "namespace": "mine", "name": "dag"}


@pytest.mark.parametrize("given", [True, False])
def test_a_task_of_airflow_is_the_parent_unless_another_is_given(
    monkeypatch: pytest.MonkeyPatch, given: bool
) -> None:
    monkeypatch.setenv("OPENLINEAGE_PARENT_ID", f"airflow/dag.task/{RUN}")
    monkeypatch.setenv("OPENLINEAGE_ROOT_PARENT_ID", f"airflow/dag/{ROOT}")
    conf = {f"{OL}parentRunId": ROOT, f"{OL}parentJobName": "mine"} if given else {}
    spark = SimpleNamespace(version="4.1.0", conf={})
    context = SimpleNamespace(appName="app", startTime=0)
    state = door._state(spark, context, conf, loaded(conf), read(conf))
    if given:
        assert (state.parent, state.root) == ({"run": ROOT, "namespace": "default", "name": "mine"}, None)
    else:
        assert state.parent == {"run": RUN, "namespace": "airflow", "name": "dag.task"}
        assert state.root == {"run": ROOT, "namespace": "airflow", "name": "dag"}


def test_a_context_goes_before_the_separate_keys() -> None:
    told = {
        "parent": {
            "run": {"runId": RUN},
            "job": {"namespace": "n", "name": "j"},
            "root": {"run": {"runId": ROOT}, "job": {"namespace": "n", "name": "r"}},
        }
    }
    said = read({f"{OL}context": json.dumps(told), f"{OL}parentRunId": ROOT, f"{OL}parentJobName": "x"})
    assert (said.parent, said.root) == (Ancestor(RUN, "j", "n"), Ancestor(ROOT, "r", "n"))
    assert said.context == told["parent"]


def test_half_a_parent_is_told_of() -> None:
    assert read({f"{OL}parentJobName": "x"}).warnings == (
        "parentJobName without parentRunId: no parent is told",
    )


def test_facets_tags_owners_and_properties() -> None:
    said = read(
        {
            f"{OL}facets.spark.logicalPlan.disabled": "false",
            f"{OL}facets.schema.disabled": "true",
            f"{OL}facets.disabled": "[debug;spark_unknown]",
            f"{OL}job.tags": r"env:prod;pii;a\:b:c:team",
            f"{OL}run.tags": "adhoc",
            f"{OL}job.owners.team": "shop",
            f"{OL}capturedProperties": "spark.master, spark.executor.memory",
            f"{OL}appName": "shop",
            f"{OL}applicationRunId": RUN,
        }
    )
    assert said.disabled_facets == {"schema", "debug", "spark_unknown"}
    assert said.facets["spark.logicalPlan"] is False
    assert said.job_tags == (Tag("env", "prod"), Tag("pii"), Tag("a:b", "c", "team"))
    assert said.run_tags == (Tag("adhoc"),)
    assert said.owners == {"team": "shop"}
    assert said.captured_properties == ("spark.master", "spark.executor.memory")
    assert (said.app_name, said.run_id) == ("shop", RUN)
    assert read({}).captured_properties == ("spark.master", "spark.app.name")


def test_what_has_no_effect_is_named() -> None:
    conf = {f"{OL}circuitBreaker.type": "simple", f"{OL}debug.smart": "true", f"{OL}namespace": "x"}
    assert read(conf).unsupported == (f"{OL}circuitBreaker.type", f"{OL}debug.smart")


@pytest.mark.parametrize(
    ("conf", "match"),
    [
        ({"spark.headwater.transprot": "x"}, "did you mean 'transport'"),
        ({"spark.headwater.disabled": "perhaps"}, "neither true nor false"),
        ({f"{OL}url": "nowhere"}, "names no host"),
        ({f"{OL}applicationRunId": "7"}, "no UUID"),
        ({f"{OL}parentRunId": "{{ run_id }}", f"{OL}parentJobName": "x"}, "no UUID"),
        ({f"{OL}context": "{"}, "must be JSON"),
        ({f"{OL}job.tags": "a:b:c:d"}, "key:value:source"),
        ({f"{OL}dataset.removePath.pattern": "("}, "no regular expression"),
        ({f"{OL}columnLineage.schemaSizeLimit": "many"}, "no whole number"),
        ({f"{OL}transport.type": "http"}, "transport.url: is missing"),
        ({f"{OL}transport.url": "http://h", f"{OL}transport.timeoutInMillis": "soon"}, "no whole number"),
    ],
)
def test_a_wrong_setting_is_refused(conf: dict[str, str], match: str) -> None:
    with pytest.raises(ConfigError, match=match):
        read(conf)


# --- other agents


def test_agents_are_recognised_and_told_once(caplog: pytest.LogCaptureFixture) -> None:
    conf = {"spark.extraListeners": f"my.Listener,{AGENT},datahub.spark.DatahubSparkListener"}
    assert listeners(conf) == [AGENT, "datahub.spark.DatahubSparkListener"]
    _capture._SAID.clear()
    for _ in range(2):
        door._tell(SparkSettings(unsupported=("spark.openlineage.a", "spark.openlineage.b")), conf)
    assert [("told twice" in r.message, "no effect" in r.message) for r in caplog.records] == [
        (False, True),
        (True, False),
    ]


@pytest.mark.parametrize(
    ("key", "value", "kept"),
    [
        ("spark.extraListeners", f"my.Listener,{AGENT}", "my.Listener"),
        ("spark.extraListeners", "my.Listener", "my.Listener"),
        ("spark.jars.packages", "io.acryl:acryl-spark-lineage_2.13:0.2.18", ""),
        ("spark.jars", "/j/openlineage-spark_2.13-1.53.0.jar,/j/mine.jar", "/j/mine.jar"),
        ("spark.driver.extraClassPath", "/j/mine.jar:/j/datahub-spark-lineage.jar", "/j/mine.jar"),
        ("spark.app.name", AGENT, AGENT),
    ],
)
def test_agents_are_taken_out(key: str, value: str, kept: str) -> None:
    assert without(key, value) == kept


def test_agents_are_taken_out_of_arguments() -> None:
    given = [
        "--verbose", "--packages", "io.openlineage:openlineage-spark_2.13:1.53.0,a:b:1",
        "--conf", f"spark.extraListeners={AGENT}", "-c", "spark.x=y", f"--conf=spark.extraListeners={AGENT},m.L",
        "--jars=/j/openlineage-spark.jar", "--master=local", "job.py", "--jars", "openlineage-spark",
    ]  # fmt: skip
    assert without_arguments(given) == [
        "--verbose", "--packages", "a:b:1", "-c", "spark.x=y", "--conf", "spark.extraListeners=m.L",
        "--master=local", "job.py", "--jars", "openlineage-spark",
    ]  # fmt: skip
    assert setting(["--deploy-mode=cluster"], "spark.submit.deployMode", "--deploy-mode") == "cluster"
    assert setting(["job.py", "--deploy-mode", "cluster"], "k", "--deploy-mode") is None


# --- a capture, with a probe that is played


class Probe:
    def __init__(self) -> None:
        self.queue: Queue[str] = Queue()
        self.gone = False
        self.cut: Callable[[], bool] = lambda: False
        """Whether the next answer is lost on its way."""
        self._given, self._number = "", 0

    def take(self, millis: int, got: int) -> str | None:
        if self.gone:
            raise ConnectionRefusedError
        if not self._given or got == self._number:
            try:
                record = self.queue.get(timeout=millis / 1000) if millis else self.queue.get_nowait()
            except Empty:
                return None
            self._number += 1
            self._given = f"{self._number}\n{record}"
        if self.cut():
            raise ConnectionResetError
        return self._given

    def mark(self, number: int) -> None:
        if self.gone:
            raise ConnectionRefusedError
        self.put({"kind": "mark", "id": number})

    def put(self, record: dict[str, Any]) -> None:
        self.queue.put(json.dumps(record))


class Blocked(MemoryTransport):
    """A server that hangs."""

    def __init__(self) -> None:
        super().__init__()
        self.free = threading.Event()

    def send(self, events: Any) -> None:
        self.free.wait(60)
        super().send(events)


class Failing(MemoryTransport):
    def send(self, events: Any) -> None:
        raise OSError("no")


BUS = SimpleNamespace(waitUntilEmpty=lambda millis: None, removeListener=lambda probe: None)


def started(transport: MemoryTransport) -> tuple[door.Capture, Probe]:
    probe = Probe()
    capture = door.Capture(probe, BUS, object(), State("n", "app", RUN), Emitter(transport))
    capture.start({"kind": "app_start", "time": 1000})
    return capture, probe


def told(transport: MemoryTransport) -> list[str]:
    return [json.loads(event)["eventType"] for event in transport.events]


def test_close_ends_the_application_once() -> None:
    transport = MemoryTransport()
    capture, _ = started(transport)
    assert capture.live
    assert capture.flush()
    for _ in range(3):
        capture.close()
    assert told(transport) == ["START", "COMPLETE"]
    assert not capture.live
    assert capture.flush(0)
    assert (capture.stats.sent, capture.stats.failed) == (2, 0)


@pytest.mark.parametrize("seed", range(5))
def test_answers_that_are_lost_on_their_way_are_given_again(seed: int) -> None:
    """Never twice in a row: then the JVM is gone."""
    dice, last = Random(seed), [False]

    def cut() -> bool:
        last[0] = not last[0] and dice.random() < 0.5
        return last[0]

    transport = MemoryTransport()
    capture, probe = started(transport)
    assert capture.flush()
    probe.cut = cut
    for number in range(50):
        probe.put({"kind": "refused", "time": 2000 + number, "error": f"no table {number}", "command": "sql"})
    assert capture.flush()
    probe.cut = lambda: False
    capture.close()
    said = [
        json.loads(each)["run"]["facets"].get("errorMessage", {}).get("message") for each in transport.events
    ]
    assert [each for each in said if each] == [f"no table {number}" for number in range(50)]
    assert told(transport)[-1] == "COMPLETE"


def test_a_stopped_application_ends_its_capture() -> None:
    transport = MemoryTransport()
    capture, probe = started(transport)
    probe.put({"kind": "app_end", "time": 2000})
    assert capture.flush()
    assert told(transport) == ["START", "COMPLETE"]


def test_an_error_that_leaves_the_program_after_the_stop_is_a_failure() -> None:
    transport = MemoryTransport()
    capture, probe = started(transport)
    probe.put({"kind": "app_end", "time": 2000})
    while capture.live:
        time.sleep(0.01)
    capture.fatal("ValueError: no")
    capture.close()
    assert told(transport) == ["START", "FAIL"]


def test_a_jvm_that_is_gone_fails_the_application() -> None:
    transport = MemoryTransport()
    capture, probe = started(transport)
    probe.gone = True
    assert capture.flush(30)
    assert told(transport) == ["START", "FAIL"]


def test_a_server_that_hangs_keeps_nobody(caplog: pytest.LogCaptureFixture) -> None:
    transport = Blocked()
    capture, _ = started(transport)
    _capture._SAID.clear()
    assert capture.flush(0.05) is False
    capture.close(0.05)
    assert "not sent within" in caplog.text
    transport.free.set()
    assert capture._finished.wait(30)


def test_what_cannot_be_sent_is_counted(caplog: pytest.LogCaptureFixture) -> None:
    before = sum(guard.counts().values())
    capture, _ = started(Failing())
    capture.close()
    assert (capture.stats.sent, capture.stats.failed) == (0, 2)
    assert sum(guard.counts().values()) >= before + 2


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_forked_child_leaves_the_parents_gateway_alone() -> None:
    transport = MemoryTransport()
    capture, probe = started(transport)
    _capture.CAPTURES["forked"] = capture
    child = os.fork()
    if child == 0:
        probe.take = probe.mark = None  # type: ignore[assignment]
        capture.close()
        session = SimpleNamespace(_sc=SimpleNamespace(_gateway=capture._gateway, _jsc=object()), _jvm=1)
        try:
            door.install(session)
        except ConfigError as fault:
            good = "forked" in str(fault) and capture.flush() and not capture.live and not _capture.CAPTURES
            os._exit(0 if good else 1)
        os._exit(2)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert capture.live
    capture.close()
    assert told(transport) == ["START", "COMPLETE"]


def test_sessions_that_cannot_be_captured_are_refused_plainly() -> None:
    remote = type("SparkSession", (), {"__module__": "pyspark.sql.connect.session"})()
    with pytest.raises(ConfigError, match="Spark Connect gives no access to the driver"):
        door.install(remote)
    with pytest.raises(ConfigError, match="takes a SparkSession, not int"):
        door.install(5)
    stopped = SimpleNamespace(_sc=SimpleNamespace(_gateway=object(), _jsc=None), _jvm=1)
    with pytest.raises(ConfigError, match="is stopped"):
        door.install(stopped)


def test_a_jvm_without_janino_is_refused_plainly() -> None:
    from py4j.java_gateway import JavaPackage

    janino = SimpleNamespace(SimpleCompiler=JavaPackage("org.codehaus.janino.SimpleCompiler", None))
    jvm = SimpleNamespace(org=SimpleNamespace(codehaus=SimpleNamespace(janino=janino)))
    with pytest.raises(ConfigError, match=r"has no Janino.*SPARK_HOME/jars"):
        _compiled.load_probe(SimpleNamespace(_jvm=jvm))


def test_compiled_classes_are_kept_for_their_owner_alone(tmp_path: Path) -> None:
    place = tmp_path / "probe" / "0f"
    code = {"headwater.Probe": b"\xca\xfe", "headwater.Probe$1": b""}
    assert _compiled._read(place) is None
    _compiled._write(place, code)
    assert _compiled._read(place) == code
    assert [oct(each.stat().st_mode)[-3:] for each in (place.parent, place)] == ["700", "600"]
    whole = place.read_bytes()
    for at in range(len(whole)):  # one bit anywhere: never another class than was kept
        place.write_bytes(bytes([*whole[:at], whole[at] ^ 1, *whole[at + 1 :]]))
        assert _compiled._read(place) is None, at
        place.write_bytes(whole[:at])
        assert _compiled._read(place) is None, at
    place.write_bytes(whole)
    for each in (place, place.parent):
        mode = each.stat().st_mode
        each.chmod(mode | 0o020)
        assert _compiled._read(place) is None
        each.chmod(mode)
    assert _compiled._read(place) == code
    for number in range(40):
        _compiled._write(place.with_name(f"{number:02x}"), code)
    assert len(list(place.parent.iterdir())) == 16


# --- with a Spark that runs: one program, in a process of its own

PROGRAM = """
import json, os, sys
import headwater.spark
from headwater.errors import ConfigError
from pyspark.errors.exceptions import captured
from pyspark.sql import SparkSession

folder = sys.argv[1]

def session(name):
    builder = SparkSession.builder.master("local[1]").appName(name).config("spark.ui.enabled", "false")
    return builder.config("spark.sql.warehouse.dir", folder + "/w").getOrCreate()

one = session("First App")
seen = {}
try:
    headwater.spark.install(one, transport="nonsense:")
except ConfigError as fault:
    seen["refused"] = str(fault)
first = headwater.spark.install(one)
hooks = captured.convert_exception, sys.excepthook
seen["same"] = headwater.spark.install(one) is first and headwater.spark.install(one.newSession()) is first
one.range(3).write.parquet(folder + "/first")
seen["flushed"] = first.flush()
seen["sent"] = first.stats.sent
one.stop()
seen["after"] = first.flush()
two = session("Second App")
second = headwater.spark.install(two)
seen["new"] = second is not first and not first.live
seen["hooked once"] = hooks == (captured.convert_exception, sys.excepthook)
two.range(3).write.parquet(folder + "/second")
print(json.dumps(seen))
try:
    raise ValueError("the program fails")
finally:
    two.stop()
"""


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, Any], list[dict[str, Any]], str]:
    folder = tmp_path_factory.mktemp("program")
    (folder / "conf").mkdir()
    (folder / "conf" / "spark-defaults.conf").write_text(
        f"spark.openlineage.transport.type file\nspark.openlineage.transport.location {folder}/events.jsonl\n"
        f"spark.openlineage.namespace shop\nspark.openlineage.debug.smart true\n"
        f"spark.openlineage.parentRunId {RUN}\nspark.openlineage.parentJobName dag\n"
        f"spark.openlineage.capturedProperties spark.master,spark.my.password,spark.my.size\n"
        f"spark.my.password hush\nspark.my.size 7\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(folder)],
        capture_output=True,
        text=True,
        cwd=folder,
        env={**os.environ, "SPARK_CONF_DIR": str(folder / "conf"), "HOME": str(folder)},
        timeout=600,
        check=False,
    )
    assert done.returncode == 1, done.stderr
    events = [json.loads(line) for line in (folder / "events.jsonl").read_text().splitlines()]
    return json.loads(done.stdout), events, done.stderr


def test_one_application_has_one_capture_and_the_next_its_own(program: Any) -> None:
    seen, _, _ = program
    assert seen.pop("sent") >= 3
    assert "nonsense" in seen.pop("refused")
    assert seen == {"same": True, "flushed": True, "after": True, "new": True, "hooked once": True}


def test_each_application_ends_once(program: Any) -> None:
    _, events, err = program
    ends = [(e["job"]["name"], e["eventType"]) for e in events if "." not in e["job"]["name"]]
    assert ends == [
        ("first_app", "START"),
        ("first_app", "COMPLETE"),
        ("second_app", "START"),
        ("second_app", "FAIL"),
    ]
    assert "the program fails" in err
    assert "the program fails" in json.dumps(events[-1]["run"]["facets"]["errorMessage"])


def test_settings_of_spark_are_followed(program: Any) -> None:
    _, events, err = program
    assert {e["job"]["namespace"] for e in events} == {"shop"}
    assert events[0]["run"]["facets"]["parent"]["run"]["runId"] == RUN
    assert events[0]["run"]["facets"]["parent"]["job"] == {"namespace": "shop", "name": "dag"}
    assert err.count("have no effect on Headwater: spark.openlineage.debug.smart\n") == 1
    assert "hush" not in json.dumps(events)


DYING = """
import os, signal, sys, threading, time
import headwater.spark
from pyspark.sql import SparkSession
from pyspark.sql.functions import udf

folder = sys.argv[1]
builder = SparkSession.builder.master("local[2]").appName("Doomed").config("spark.ui.enabled", "false")
spark = builder.config("spark.sql.warehouse.dir", folder + "/w").getOrCreate()
lineage = headwater.spark.install(
    spark, transport=f"spool://{folder}/spool?to=file://{folder}/events.jsonl&drain=off", namespace="shop"
)
spark.range(3).write.parquet(folder + "/a")
stream = spark.readStream.schema("id long").parquet(folder + "/a").writeStream.format("parquet")
query = stream.option("checkpointLocation", folder + "/c").start(folder + "/b")
query.processAllAvailable()
lineage.flush()
if sys.argv[2] == "die":
    slow = spark.read.parquet(folder + "/a").coalesce(1).select(udf(lambda n: time.sleep(600))("id").alias("n"))
    threading.Thread(target=slow.write.parquet, args=(folder + "/slow",), daemon=True).start()
    while not lineage._wills - {lineage._state.run, *(each.run for each in lineage._state.streams.values())}:
        time.sleep(0.1)
    os.kill(os.getpid(), signal.SIGKILL)
query.stop()
spark.stop()
"""


@pytest.mark.parametrize("end", ["die", "stop"])
def test_an_application_that_is_killed_is_closed_by_its_will(end: str, tmp_path: Path) -> None:
    """No line of Python runs after the kill; the drainer tells the end of what was still open."""
    command = [sys.executable, "-c", DYING, str(tmp_path), end]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == (-9 if end == "die" else 0), done.stderr
    drain = [sys.executable, "-m", "headwater", "spool", "drain", "--dir", str(tmp_path / "spool")]
    subprocess.run(drain, check=True, capture_output=True, timeout=600)
    events = [json.loads(line) for line in (tmp_path / "events.jsonl").read_text().splitlines()]
    runs: dict[str, list[str]] = {}
    for event in events:
        runs.setdefault(event["run"]["runId"], []).append(event["eventType"])
    assert all(told[0] == "START" and sum(each in TERMINAL for each in told) == 1 for told in runs.values())
    ends = {e["job"]["name"]: e for e in events if e["eventType"] in TERMINAL}
    application, streams = ends["doomed"], [e for n, e in ends.items() if "write" in n and "_b" in n]
    assert [e["eventType"] for e in (application, *streams)] == ["ABORT" if end == "die" else "COMPLETE"] * 2
    assert ("died" in json.dumps(application["run"])) == (end == "die")
    running = [e["eventType"] for n, e in ends.items() if n.endswith("_slow")]
    assert running == (["ABORT"] if end == "die" else [])


def test_the_start_of_an_application_tells_its_details(monkeypatch: pytest.MonkeyPatch) -> None:
    context = SimpleNamespace(
        master="local",
        appName="a",
        applicationId="local-1",
        sparkUser=lambda: "fred",
        uiWebUrl=None,
        startTime=5,
    )
    conf = {"spark.driver.host": "h", "spark.my.password": "hush", "spark.my.size": "7"}
    said = SparkSettings(captured_properties=("spark.my.password", "spark.my.size", "spark.none"))
    assert door._app_start(context, conf, said) == {
        "kind": "app_start",
        "time": 5,
        "details": {
            "master": "local",
            "appName": "a",
            "applicationId": "local-1",
            "deployMode": "client",
            "driverHost": "h",
            "userName": "fred",
        },
        "properties": {"spark.my.password": "***", "spark.my.size": "7"},
    }
