"""A real SparkSubmitOperator: parent and transport reach the job through the provider, and all of it is one tree at the server."""

from __future__ import annotations

import json
import shutil
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

sys.path.append(str(Path(__file__).parents[1] / "transport"))
from lineage_server import Server, running

from airflow_home import ROOT, VERSIONS, Airflow, python_of

pytestmark = pytest.mark.live
HERE = Path(__file__).parent
KEY, TOKEN = "k7-of-the-lineage-server", "t9-of-the-session"


@pytest.fixture(scope="module", params=VERSIONS)
def airflow(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, need: Callable[[str, str], None]
) -> Airflow:
    python, environment = python_of(request.param), f".venvs/airflow-{request.param}"
    if not python.exists():
        need(f"Airflow {request.param}", f"make {environment}/.ready")
    if not list(python.parents[1].glob("lib/python*/site-packages/airflow/providers/apache/spark")):
        need("Airflow's Spark provider", f"rm -r {environment}/ && make {environment}/.ready")
    if not (Path(sys.executable).parent / "spark-submit").exists() or not shutil.which("java"):
        need("pyspark and Java", "pip install 'headwater[spark]', apt install openjdk-17-jre-headless")
    made = Airflow(request.param, tmp_path_factory.mktemp(f"airflow-{request.param}"), HERE / "submit")
    made.migrate()
    return made


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with contextmanager(running)() as made:
        yield made


class Submitted:
    """One run of the DAG, and all that the server was told of it."""

    def __init__(self, airflow: Airflow, server: Server, folder: Path) -> None:
        read, self.written = folder / "people.json", folder / "cities"
        read.write_text('{"city": "Porto", "age": 3}\n{"city": "Lund", "age": 4}\n')
        table = {
            "type": "headwater.airflow.Transport",
            "url": server.url,
            "api_key": KEY,
            "headers": {"X-Team": "shop", "X-Session-Token": TOKEN},
            "spool": {"dir": str(folder / "spool"), "linger": 2},
        }
        path = airflow.environment()["PATH"]
        self.log = airflow.test(
            "headwater_submit",
            "2026-01-03",
            AIRFLOW__OPENLINEAGE__TRANSPORT=json.dumps(table),
            AIRFLOW__OPENLINEAGE__SPARK_INJECT_PARENT_JOB_INFO="true",
            AIRFLOW__OPENLINEAGE__SPARK_INJECT_TRANSPORT_INFO="true",
            AIRFLOW_CONN_SPARK_LOCAL=json.dumps({"conn_type": "spark", "host": "local[1]"}),
            PATH=f"{path}:{Path(sys.executable).parent}",  # spark-submit: the provider takes no path to it
            PYSPARK_PYTHON=sys.executable,
            HEADWATER_SUBMITTED=str(HERE / "submitted_job.py"),
            HEADWATER_READ=str(read),
            HEADWATER_WRITTEN=str(self.written),
            HEADWATER_SITE=f"{ROOT / 'src/headwater/cli/_sitecustomize'}:{ROOT / 'src'}",
            HEADWATER_SPOOL=str(folder / "spark-spool"),
        )
        self.server = server

    def events(self, enough: Callable[[list[Any]], bool]) -> list[Any]:
        """What arrived, by the drainers that the first events started: nobody helps them."""
        until = time.monotonic() + 60
        while not enough(self.server.events) and time.monotonic() < until:
            time.sleep(0.1)
        return self.server.events


@pytest.fixture(scope="module")
def run(airflow: Airflow, server: Server, tmp_path_factory: pytest.TempPathFactory) -> Submitted:
    server.requests.clear()
    return Submitted(airflow, server, tmp_path_factory.mktemp("submitted"))


def _ended(events: list[Any]) -> bool:
    ends = {each["job"]["name"] for each in events if each["eventType"] in ("COMPLETE", "FAIL")}
    return {"headwater_submit", "headwater_submit.submit", "submitted"} <= ends


def test_dag_run_task_application_and_query_arrive_as_one_tree(run: Submitted) -> None:
    events = run.events(_ended)
    told = Counter((each["eventType"], each["job"]["name"]) for each in events)
    for task in ("prepare", "submit"):
        assert (
            told["START", f"headwater_submit.{task}"] == told["COMPLETE", f"headwater_submit.{task}"] == 1
        ), run.log[-6000:]
    names = {each["run"]["runId"]: each["job"]["name"] for each in events}
    above = {
        each["run"]["runId"]: each["run"]["facets"]["parent"]["run"]["runId"]
        for each in events
        if "parent" in each["run"].get("facets", {})
    }
    (query,) = {
        each["run"]["runId"]
        for each in events
        if any(str(run.written) in output["name"] for output in each.get("outputs", ()))
    }
    climb = [query]
    while climb[-1] in above:
        climb.append(above[climb[-1]])
    assert [names[each] for each in climb[1:]] == ["submitted", "headwater_submit.submit", "headwater_submit"]
    (dag,) = (each["run"]["runId"] for each in events if each["job"]["name"] == "headwater_submit")
    roots = {each["run"]["facets"]["parent"]["root"]["run"]["runId"] for each in events if each["run"]["runId"] in above}  # fmt: skip
    assert roots == {dag}


def test_the_job_has_the_transport_of_airflow_and_nobody_tells_its_key(run: Submitted) -> None:
    run.events(_ended)
    for request in run.server.requests:  # those of Spark's drainer too
        assert request.headers.get("Authorization") == f"Bearer {KEY}"
        assert {name.lower(): value for name, value in request.headers.items()}["x-team"] == "shop"
        assert KEY not in request.body.decode()
        assert TOKEN not in request.body.decode()
