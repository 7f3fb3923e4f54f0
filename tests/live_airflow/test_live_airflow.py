"""Real Airflows: every event that the provider makes arrives, whatever the server does, and everything is one tree."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

sys.path.append(str(Path(__file__).parents[1] / "transport"))
import airflow_stack
from airflow_stack import DAGS, STATES, States

from airflow_home import VERSIONS, Airflow, lines, python_of
from headwater.transport.spool import dead
from headwater.transport.spool.drainer import Drainer
from headwater.transport.spool.place import places

pytestmark = pytest.mark.live
OURS = "headwater.airflow.Transport"


@pytest.fixture(scope="module", params=VERSIONS)
def airflow(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, need: Callable[[str, str], None]
) -> Airflow:
    if not python_of(request.param).exists():
        need(f"Airflow {request.param}", f"make .venvs/airflow-{request.param}/.ready")
    made = Airflow(request.param, tmp_path_factory.mktemp(f"airflow-{request.param}"), DAGS)
    made.migrate()
    return made


def key(event: dict[str, Any]) -> str:
    return json.dumps(event, sort_keys=True)


@pytest.fixture(scope="module")
def states(airflow: Airflow) -> Iterator[States]:  # each Airflow meets them as they are at first
    with airflow_stack.states() as made:
        yield made


class Run:
    """One run of the DAG with a server in every state, beside the client's own file transport as the oracle."""

    def __init__(self, airflow: Airflow, states: States, folder: Path) -> None:
        self.states, self.folder, self.oracle = states, folder, folder / "oracle.jsonl"
        self.seen, self.spark, self.dlt = (folder / f"{each}.jsonl" for each in ("seen", "spark", "dlt"))
        transports: dict[str, Any] = {
            "oracle": {"type": "file", "log_file_path": str(self.oracle), "append": True}
        }
        for state in STATES:
            spool = {"dir": str(self.spool(state)), "linger": 2}
            transports[state] = {"type": OURS, "url": states.urls[state], "timeout": 2, "api_key": "${KEY}", "spool": spool}  # fmt: skip
        config = folder / "openlineage.yml"
        config.write_text(json.dumps({"transport": {"type": "composite", "transports": transports}}))
        job = spark_python()
        self.log = airflow.test(
            "headwater_live",
            "2026-01-03",
            AIRFLOW__OPENLINEAGE__CONFIG_PATH=str(config),
            KEY="secret-of-ours",
            HEADWATER_SEEN=str(self.seen),
            HEADWATER_PYTHON=str(python_of(airflow.version)),
            HEADWATER_SPARK_PYTHON=str(job or ""),
            HEADWATER_SPARK_EVENTS=f"file:{self.spark}",
            HEADWATER_DLT_PYTHON=str(dlt_python() or ""),
            HEADWATER_DLT_EVENTS=f"file:{self.dlt}",
        )
        self.made = lines(self.oracle)

    def spool(self, state: str) -> Path:
        return self.folder / "spools" / state


def spark_python() -> Path | None:
    """The Python that runs the Spark job: the one of these tests, where it has Spark and Java."""
    try:
        import pyspark  # noqa: F401
    except ImportError:
        return None
    return Path(sys.executable) if shutil.which("java") else None


def dlt_python() -> Path | None:
    """The Python that runs the pipeline: the one of these tests, where it has dlt."""
    return Path(sys.executable) if find_spec("dlt") else None


@pytest.fixture(scope="module")
def run(airflow: Airflow, states: States, tmp_path_factory: pytest.TempPathFactory) -> Run:
    return Run(airflow, states, tmp_path_factory.mktemp("run"))


def test_the_dag_makes_every_kind_of_event(run: Run) -> None:
    told = Counter(
        (each["eventType"], each["job"]["name"].removeprefix("headwater_live.")) for each in run.made
    )
    expected = {
        ("START", "succeed"): 1,
        ("COMPLETE", "succeed"): 1,
        ("START", "mapped"): 3,
        ("COMPLETE", "mapped"): 3,
        ("START", "flaky"): 2,
        ("FAIL", "flaky"): 1,
        ("COMPLETE", "flaky"): 1,
        ("START", "fail"): 1,
        ("FAIL", "fail"): 1,
        ("START", "shell"): 1,
        ("COMPLETE", "shell"): 1,
        ("FAIL", "headwater_live"): 1,
    }
    if spark_python():
        expected |= {("START", "spark"): 1, ("COMPLETE", "spark"): 1}
    if dlt_python():
        expected |= {("START", "dlt"): 1, ("COMPLETE", "dlt"): 1}
    assert told == expected, run.log[-6000:]
    assert "secret-of-ours" not in run.log


@pytest.mark.parametrize("state", STATES)
def test_every_event_arrives_whatever_the_server_does(run: Run, state: str) -> None:
    (place,) = places(run.spool(state))
    if state == "up":  # by the drainer that Airflow's first event started; nobody helps it
        for _ in range(300):
            if len(run.states.servers[state].events) >= len(run.made):
                break
            subprocess.run(["sleep", "0.1"], check=True)
    elif state == "207":
        Drainer(place, patience=60).run()
    else:
        run.states.mend(state)
        with _the_one_drainer(place):
            Drainer(place, patience=60).run()
    came = {key(each) for each in run.states.servers[state].events}
    made = {key(each) for each in run.made}
    assert came == made
    letters = [json.loads(each.event) for each in dead.letters(place)]
    refused = [each for each in run.made if each["eventType"] == "FAIL"] if state == "207" else []
    assert sorted(map(key, letters)) == sorted(map(key, refused))


def _the_one_drainer(place: Any) -> Any:
    """Wait until the one that Airflow's event started has given up, or has its turn."""
    from headwater.transport.spool.drainer import locked

    return locked(place, 60)


def test_the_order_of_a_run_is_kept(run: Run) -> None:
    came: dict[str, list[str]] = {}
    for each in run.states.servers["up"].events:
        came.setdefault(each["run"]["runId"], []).append(each["eventType"])
    assert all(told[0] == "START" for told in came.values() if len(told) > 1)


def test_a_capture_finds_the_task_that_runs_it(run: Run) -> None:
    runs = {each["run"]["runId"]: each for each in run.made}
    (dag,) = (each for each in run.made if each["job"]["name"] == "headwater_live")
    seen = lines(run.seen)
    # succeed, mapped three times, flaky twice, spark, dlt
    assert len(seen) == 6 + bool(spark_python()) + bool(dlt_python())
    for each in seen:
        started = runs[each["parent"]["run"]]  # a run that Airflow itself told of
        assert started["job"] == {**started["job"], "namespace": each["parent"]["namespace"], "name": each["parent"]["name"]}  # fmt: skip
        assert each["root"]["run"] == dag["run"]["runId"]
    assert len({each["parent"]["run"] for each in seen}) == len(seen)
    parent, root = (eval(part) for part in (run.folder / "seen.jsonl.shell").read_text().strip().split("|"))
    assert runs[parent["run"]]["job"]["name"] == parent["name"] == "headwater_live.shell"
    assert root["run"] == dag["run"]["runId"]


def test_dag_run_task_application_and_query_are_one_tree(run: Run, need: Callable[[str, str], None]) -> None:
    if not spark_python():
        need("pyspark and Java", "pip install 'headwater[spark]', apt install openjdk-17-jre-headless")
    above = {
        each["run"]["runId"]: each["run"]["facets"]["parent"]["run"]["runId"]
        for each in [*run.made, *lines(run.spark)]
        if "parent" in each["run"].get("facets", {})
    }
    (query,) = {
        each["run"]["runId"]
        for each in lines(run.spark)
        if each.get("outputs") and each["eventType"] == "COMPLETE"
    }
    names = {each["run"]["runId"]: each["job"]["name"] for each in [*run.made, *lines(run.spark)]}
    climb = [query]
    while climb[-1] in above:
        climb.append(above[climb[-1]])
    told = [names[each] for each in climb]
    assert told[1:] == ["from_airflow", "headwater_live.spark", "headwater_live"], told
    roots = {each["run"]["facets"]["parent"]["root"]["run"]["runId"] for each in lines(run.spark)}
    assert roots == {climb[-1]}


def test_a_pipeline_of_dlt_is_below_its_task(run: Run, need: Callable[[str, str], None]) -> None:
    if not dlt_python():
        need("dlt", "pip install 'headwater[dlt]'")
    told = lines(run.dlt)
    assert [each["eventType"] for each in told] == ["START", "RUNNING", "COMPLETE"], told
    (task,) = (
        each for each in run.made if each["job"]["name"].endswith(".dlt") and each["eventType"] == "START"
    )
    (dag,) = (each for each in run.made if each["job"]["name"] == "headwater_live")
    for each in told:
        parent = each["run"]["facets"]["parent"]
        assert parent["job"] == {"namespace": task["job"]["namespace"], "name": "headwater_live.dlt"}
        assert parent["run"]["runId"] == task["run"]["runId"]
        assert parent["root"]["run"]["runId"] == dag["run"]["runId"]


def test_by_a_variable_by_a_connection_and_for_spark(airflow: Airflow, tmp_path: Path) -> None:
    """The other two ways to set it, and what the provider makes of it for a Spark job that it submits."""
    there = {"HEADWATER_SEEN": str(tmp_path / "seen"), "HEADWATER_PYTHON": str(python_of(airflow.version))}
    events = tmp_path / "variable.jsonl"
    table = {"type": OURS, "url": events.as_uri()}
    airflow.test("headwater_live", "2026-01-04", AIRFLOW__OPENLINEAGE__TRANSPORT=json.dumps(table), **there)
    by_variable = lines(events)
    extra = json.dumps({"transport": {"type": OURS, "url": "http://h:5000", "api_key": "k7-of-ours", "headers": {"X-Team": "a-team", "X-Auth-Token": "t9-of-ours"}, "spool": str(tmp_path / "s")}})  # fmt: skip
    code = (
        "from airflow.providers.openlineage.utils.spark import _get_transport_information_as_spark_properties as f;"
        "import json, sys; told = json.dumps(f()); print('PROPERTIES' + told);"
        "m = sys.modules.get('airflow.sdk._shared.secrets_masker') or sys.modules['airflow.utils.log.secrets_masker'];"
        "print('LOGGED' + m.redact(told))"  # as the log of a task shows the command that submits
    )
    done = subprocess.run(
        [str(python_of(airflow.version)), "-c", code],
        env=airflow.environment(
            AIRFLOW__OPENLINEAGE__CONFIG_CONN_ID="lineage",
            AIRFLOW_CONN_LINEAGE=json.dumps({"conn_type": "generic", "extra": extra}),
        ),
        cwd=airflow.home,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert "PROPERTIES" in done.stdout, done.stderr[-3000:]
    assert json.loads(done.stdout.split("PROPERTIES")[1].splitlines()[0]) == {
        "spark.openlineage.transport.type": "http",
        "spark.openlineage.transport.url": "http://h:5000",
        "spark.openlineage.transport.endpoint": "api/v1/lineage",
        "spark.openlineage.transport.timeoutInMillis": "5000",
        "spark.openlineage.transport.auth.type": "api_key",
        "spark.openlineage.transport.auth.apiKey": "k7-of-ours",
        "spark.openlineage.transport.headers.X-Team": "a-team",
        "spark.openlineage.transport.headers.X-Auth-Token": "t9-of-ours",
    }
    logged = done.stdout.split("LOGGED")[1].splitlines()[0]
    assert "a-team" in logged
    assert "k7-of-ours" not in logged
    assert "t9-of-ours" not in logged
    assert Counter(each["eventType"] for each in by_variable) == {"START": 8, "COMPLETE": 6, "FAIL": 3}


def test_bad_settings_fail_no_task_and_are_told(airflow: Airflow, tmp_path: Path) -> None:
    table = {"type": OURS, "url": "http://h", "timeoutt": 3}
    log = airflow.test(
        "headwater_live",
        "2026-01-05",
        AIRFLOW__OPENLINEAGE__TRANSPORT=json.dumps(table),
        HEADWATER_SEEN=str(tmp_path / "seen"),
        HEADWATER_PYTHON=str(python_of(airflow.version)),
    )
    assert len(lines(tmp_path / "seen")) == 6  # every task ran
    assert "timeoutt" in log
    assert "lineage is not sent" in log


def _check(airflow: Airflow, extra: dict[str, Any]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(python_of(airflow.version)), "-m", "headwater", "airflow", "check"],
        env=airflow.environment(
            AIRFLOW__OPENLINEAGE__CONFIG_CONN_ID="lineage",
            AIRFLOW_CONN_LINEAGE=json.dumps({"conn_type": "generic", "extra": json.dumps(extra)}),
        ),
        cwd=airflow.home,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )


def test_check_asks_airflow_itself(airflow: Airflow, states: States, tmp_path: Path) -> None:
    done = _check(
        airflow, {"transport": {"type": OURS, "url": states.urls["up"], "spool": str(tmp_path / "s")}}
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert "took a test event" in done.stdout
    bad = {"transport": {"type": OURS, "url": states.urls["up"], "timeoutt": 3}}
    done = _check(airflow, bad)
    assert done.returncode == 2, done.stderr[-3000:]
    assert "timeoutt" in done.stderr
