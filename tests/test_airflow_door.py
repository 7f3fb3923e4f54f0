"""Airflow's transport, without Airflow: what the provider does with it, done by hand; `make live-airflow` has the real ones."""

from __future__ import annotations

import json
import logging
import os
import subprocess
import sys
import types
from pathlib import Path
from typing import Any

import pytest
from openlineage.client import OpenLineageClient
from openlineage.client.event_v2 import Job, Run, RunEvent, RunState
from openlineage.client.serde import Serde

from headwater import airflow
from headwater.errors import ConfigError, TransportError
from headwater.guard import guard
from headwater.transport.spool import dead
from headwater.transport.spool.drainer import Drainer
from headwater.transport.spool.place import places

sys.path.append(str(Path(__file__).parent / "transport"))
from lineage_server import Answer, Request, Server, running

RUN = "0192c3a4-0000-7000-8000-00000000000{}"


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Any:
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)
    yield from running()


@pytest.fixture
def in_airflow(monkeypatch: pytest.MonkeyPatch) -> None:
    """What tells our transport that it is in a process of Airflow's."""
    monkeypatch.setitem(sys.modules, "airflow", types.ModuleType("airflow"))


def event(n: int = 1, state: RunState = RunState.START, job: str = "dag.task") -> RunEvent:
    return RunEvent(
        eventTime="2026-01-01T00:00:00+00:00",
        eventType=state,
        run=Run(RUN.format(n)),
        job=Job("live", job),
        producer="https://example.com",
    )


def client(**table: Any) -> OpenLineageClient:
    return OpenLineageClient(config={"transport": {"type": airflow.TYPE, **table}})


def emitted_as_airflow_does(table: dict[str, Any], made: RunEvent) -> int:
    """In a forked child, with a client of its own, ended without closing it -> its exit code."""
    child = os.fork()
    if not child:
        code = 1
        try:
            client(**table).emit(made)
            code = 0
        finally:
            os._exit(code)
    return os.waitpid(child, 0)[1]


def test_what_a_forked_child_emits_survives_its_end(server: Server, tmp_path: Path) -> None:
    table = {"url": server.url, "spool": {"dir": str(tmp_path / "s"), "drain": "off"}}
    for n in range(1, 6):
        assert emitted_as_airflow_does(table, event(n)) == 0
    assert server.requests == []
    (place,) = places(tmp_path / "s")
    Drainer(place).run()
    assert [each["run"]["runId"] for each in server.events] == [RUN.format(n) for n in range(1, 6)]


def test_the_drainer_is_started_by_the_first_event_and_outlives_the_child(
    server: Server, tmp_path: Path
) -> None:
    table = {"url": server.url, "spool": {"dir": str(tmp_path / "s"), "linger": 0}}
    assert emitted_as_airflow_does(table, event()) == 0
    for _ in range(600):
        if server.requests:
            break
        subprocess.run(["sleep", "0.1"], check=True)
    assert [each["run"]["runId"] for each in server.events] == [RUN.format(1)]


def test_inline_delivers_though_nobody_closes(server: Server, tmp_path: Path) -> None:
    spool = {"dir": str(tmp_path / "s"), "drain": "inline", "budget": 20}
    assert emitted_as_airflow_does({"url": server.url, "spool": spool}, event()) == 0
    assert len(server.events) == 1


def test_inline_delivers_to_each_target_of_a_fanout(
    server: Server, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", logger="headwater")
    several = {"url": "fanout:", "to": [server.url, (tmp_path / "e.jsonl").as_uri()]}
    spool = {"dir": str(tmp_path / "s"), "drain": "inline", "budget": 10}
    assert emitted_as_airflow_does({**several, "spool": spool}, event()) == 0
    assert [e["run"]["runId"] for e in server.events] == [RUN.format(1)]
    server.always = Answer(403, {"message": "who are you"})
    made = client(**several, spool=spool)
    made.emit(event(2))
    made.close()
    told = [each.getMessage() for each in caplog.records]
    assert any(line.endswith(f"is kept for {server.url}") for line in told)
    assert any("was taken by FileTransport" in line for line in told)
    assert any("answered 403 who are you" in line for line in told)


@pytest.mark.parametrize("direct", [True, False])
def test_success_is_a_line_at_info(
    server: Server, tmp_path: Path, caplog: pytest.LogCaptureFixture, direct: bool
) -> None:
    made = client(url=server.url, direct=direct, spool={"dir": str(tmp_path / "s"), "drain": "off"})
    with caplog.at_level(logging.INFO, "headwater"):
        made.emit(event())
    made.close()
    (line,) = [each for each in caplog.records if each.name == "headwater"]
    assert line.levelno == logging.INFO
    assert "START of live/dag.task" in line.getMessage()
    assert server.url in line.getMessage()


def refuse(request: Request) -> Answer:
    failed = [{"index": at, "reason": "not you", "retriable": False} for at in range(len(request.json))]
    return Answer(207, {"failed_events": failed})


def test_a_207_is_a_warning_for_each_event_that_was_refused(
    server: Server, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    server.rule = refuse
    made = client(url=server.url, direct=True, profile="correlator")
    made.emit(event())
    made.close()
    assert [
        each.getMessage().endswith("not you") for each in caplog.records if each.levelname == "WARNING"
    ] == [True]


def test_what_the_drainer_met_is_told_with_the_next_event_and_once(
    server: Server, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    server.rule = refuse
    table = {
        "url": server.url,
        "profile": "correlator",
        "spool": {"dir": str(tmp_path / "s"), "drain": "off"},
    }

    def next_event(n: int) -> list[str]:
        caplog.clear()
        made = client(**table)  # a process of its own, as far as our transport can tell
        made.emit(event(n))
        made.close()
        return [each.getMessage() for each in caplog.records if each.levelname == "WARNING"]

    assert next_event(1) == []
    assert next_event(2) == []
    (place,) = places(tmp_path / "s")
    Drainer(place).run()
    told = next_event(3)
    assert [line.split(" refused ")[1] for line in told] == [
        "START of live/dag.task at 2026-01-01T00:00:00+00:00: not you"
    ] * 2
    assert next_event(4) == []
    assert dead.replay(place) == 2
    assert next_event(4) == []
    server.rule, server.always = None, Answer(403, {"message": "who are you"})
    Drainer(place, patience=0).run()
    (line,) = next_event(5)
    assert "answered 403 who are you" in line
    assert next_event(6) == []
    server.always = Answer(201)
    Drainer(place).run()
    assert next_event(7) == []


def test_an_error_never_reaches_the_task(caplog: pytest.LogCaptureFixture) -> None:
    made = client(url="http://127.0.0.1:9", direct=True, retries=0)
    before = sum(guard.counts().values())
    for n in range(1, 4):
        made.emit(event(n))
    made.close()
    assert sum(guard.counts().values()) == before + 3
    assert sum("no answer from http://127.0.0.1:9" in each.getMessage() for each in caplog.records) == 1


BAD = [
    ({"url": "http://h", "timeoutt": 3}, "'timeoutt'"),
    ({"url": "http://h", "timeout": "soon"}, "timeout: 'soon' is no number"),
    ({"url": "https://h", "verify_ssl": "/no/such/file"}, "verify: '/no/such/file'"),
    ({"url": "http://h", "spool": "/proc/nothing/here"}, "the spool /proc/nothing/here cannot be written"),
    ({"url": "http://h", "api_key": "${NOT_SET}"}, "${NOT_SET} is not set"),
    ({"url": "http://[::1"}, "its host cannot be read"),
    ({"url": "http://me:pw/x@h"}, "names no port"),
]


@pytest.mark.parametrize(("table", "message"), BAD)
def test_bad_settings_are_errors_where_they_are_made(table: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        client(**table)
    assert message in str(caught.value)


@pytest.mark.parametrize(("table", "message"), BAD)
@pytest.mark.usefixtures("in_airflow")
def test_in_airflow_they_are_logged_and_nothing_is_sent(
    table: dict[str, Any], message: str, caplog: pytest.LogCaptureFixture
) -> None:
    made = client(**table)
    made.emit(event())
    made.close()
    (line,) = [each for each in caplog.records if each.levelname == "ERROR"]
    assert message in line.getMessage()
    assert "headwater airflow check" in line.getMessage()
    assert made.transport.kind != "http"  # then the provider hands nothing on to Spark


@pytest.mark.usefixtures("in_airflow")
def test_where_headwater_is_disabled_nothing_is_sent_nor_handed_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEADWATER_DISABLED", "1")
    made = client(url="http://h", timeout="soon")
    made.emit(event())
    made.close()
    assert made.transport.kind != "http"


@pytest.mark.parametrize(
    ("package", "found", "refused"),
    [
        ("apache-airflow", "2.10.5", True),
        ("apache-airflow", "1.10", True),
        ("apache-airflow", "2.11.0", False),
        ("apache-airflow", "3.3.2", False),
        ("apache-airflow", "3.0.0rc1", False),
        ("apache-airflow", "somebody's own", False),
        ("apache-airflow-providers-openlineage", "1.14.0", True),
        ("apache-airflow-providers-openlineage", "2.0.0", False),
    ],
)
def test_an_older_airflow_is_refused_with_its_version_named(
    monkeypatch: pytest.MonkeyPatch, package: str, found: str, refused: bool
) -> None:
    real = airflow.version
    monkeypatch.setattr(airflow, "version", lambda name: found if name == package else real(name))
    if refused:
        with pytest.raises(ConfigError, match=f"{package} {found} is too old"):
            client(url="memory:")
    else:
        client(url="memory:").close()


# --- what the provider needs to hand the transport on to Spark


def spark_properties(transport: Any) -> dict[str, str]:
    """As `_get_transport_information` of the provider does it (2.20)."""
    properties = {
        "type": transport.kind,
        "url": transport.url,
        "endpoint": transport.endpoint,
        "timeoutInMillis": str(int(transport.timeout) * 1000),
    }
    if hasattr(transport, "compression") and transport.compression:
        properties["compression"] = str(transport.compression)
    if hasattr(transport.config.auth, "api_key") and transport.config.auth.get_bearer():
        properties["auth.type"] = "api_key"
        properties["auth.apiKey"] = transport.config.auth.get_bearer()
    if hasattr(transport.config, "custom_headers") and transport.config.custom_headers:
        for key, value in transport.config.custom_headers.items():
            properties[f"headers.{key}"] = value
    return properties


def test_spark_gets_a_transport_that_leads_to_the_same_server(tmp_path: Path) -> None:
    from headwater import config
    from headwater.capture.spark.settings import read

    made = client(url="http://h:5000", api_key="k", headers={"X-Team": "a"}, spool=str(tmp_path / "s"), compression="gzip")  # fmt: skip
    properties = spark_properties(made.transport)
    made.close()
    conf = {f"spark.openlineage.transport.{name}": value for name, value in properties.items()}
    settings = config.load(between=read(conf).layers, environ={}, cwd=tmp_path, home=tmp_path)
    assert settings.transport == "http://h:5000"
    assert settings.rooms["transport"] == {
        "api_key": "k",
        "endpoint": "api/v1/lineage",
        "timeout": 5.0,
        "headers": {"X-Team": "a"},
        "compression": "gzip",
    }


def test_a_file_is_nothing_that_spark_could_be_given(tmp_path: Path) -> None:
    made = client(url=(tmp_path / "e.jsonl").as_uri())
    assert made.transport.kind == "headwater"
    made.emit(event())
    assert json.loads((tmp_path / "e.jsonl").read_text())["run"]["runId"] == json.loads(Serde.to_json(event()))["run"]["runId"]  # fmt: skip


# --- check


def test_check_says_who_took_the_event(server: Server, tmp_path: Path) -> None:
    said = airflow.check({"type": airflow.TYPE, "url": server.url, "spool": str(tmp_path / "s")})
    assert server.url in said
    assert str(tmp_path / "s") in said
    (seen,) = server.events
    assert (seen["job"]["namespace"], seen["job"]["name"]) == airflow.TEST_JOB


@pytest.mark.parametrize(("table", "message"), BAD)
@pytest.mark.usefixtures("in_airflow")
def test_check_raises_what_airflow_only_logs(table: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        airflow.check({"type": airflow.TYPE, **table})
    assert message in str(caught.value)


@pytest.mark.parametrize("status", [401, 403, 422, 500])
def test_check_says_what_the_server_answered(server: Server, tmp_path: Path, status: int) -> None:
    server.always = Answer(status, {"message": "because"})
    with pytest.raises(TransportError, match="because"):
        airflow.check({"type": airflow.TYPE, "url": server.url, "spool": str(tmp_path / "s")})


@pytest.mark.parametrize("members", ["x", [1], {"a": "http://h"}])
def test_a_composite_of_what_is_no_table_is_refused(members: object) -> None:
    with pytest.raises(ConfigError, match="a composite lists tables"):
        airflow.of_ours({"type": "composite", "transports": members})


def test_check_asks_each_target_of_a_fanout(server: Server, tmp_path: Path) -> None:
    table = {"type": airflow.TYPE, "url": "fanout:", "spool": str(tmp_path / "s")}
    file = (tmp_path / "e.jsonl").as_uri()
    said = airflow.check({**table, "to": [server.url, file]})
    assert f"{server.url}') took a test event, after the spool" in said
    assert "FileTransport" in said
    assert len(server.events) == 1
    with pytest.raises(TransportError, match=r"no answer from http://127.0.0.1:9"):
        airflow.check({**table, "to": [file, "http://127.0.0.1:9"]})


def command(*words: str, **environ: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "headwater", "airflow", *words],
        env={**os.environ, **environ},
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_command(server: Server, tmp_path: Path) -> None:
    spool = {"HEADWATER_SPOOL": str(tmp_path / "s")}
    said = command("--version")
    assert said.returncode == 0
    assert "openlineage-python " in said.stdout
    good = json.dumps({"type": airflow.TYPE, "url": server.url})
    said = command("check", AIRFLOW__OPENLINEAGE__TRANSPORT=good, **spool)
    assert (said.returncode, len(server.events)) == (0, 1), said.stderr
    file = tmp_path / "openlineage.yml"
    several = {"type": "composite", "transports": {"a": {"type": airflow.TYPE, "url": server.url}}}
    file.write_text(json.dumps({"transport": several}))
    said = command("check", "--json", AIRFLOW__OPENLINEAGE__CONFIG_PATH=str(file), **spool)
    assert (said.returncode, json.loads(said.stdout)["from"]) == (0, str(file)), said.stderr
    said = command("check", "--transport", "http://127.0.0.1:9", **spool)
    assert said.returncode == 4
    assert "no answer from http://127.0.0.1:9" in said.stderr
    said = command("check", "--transport", '{"type": "correlator", "url": "http://h"}', **spool)
    assert said.returncode == 2
    assert "by its dotted name" in said.stderr
    said = command("check", "--transport", '{"type": "console"}', **spool)
    assert said.returncode == 2
    assert "not ours" in said.stderr
    said = command("check", **spool)
    assert said.returncode == 2
    assert "no transport is set" in said.stderr


def test_doctor_tells_of_a_setting_that_airflow_could_not_use(tmp_path: Path) -> None:
    bad = json.dumps({"type": airflow.TYPE, "url": "http://h", "timeoutt": 1})
    environ = {**os.environ, "AIRFLOW__OPENLINEAGE__TRANSPORT": bad, "HEADWATER_SPOOL": str(tmp_path / "s")}
    said = subprocess.run(
        [sys.executable, "-m", "headwater", "doctor", "--json", "--store", "memory:"],
        env=environ,
        capture_output=True,
        text=True,
        check=False,
    )
    (found,) = [each for each in json.loads(said.stdout) if each["what"] == "airflow"]
    assert found["state"] == "broken"
    assert "timeoutt" in found["detail"]
