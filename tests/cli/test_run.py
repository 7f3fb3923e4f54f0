"""`headwater run`: a command as it was, and the lineage of its Spark sessions."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import sysconfig
import time
from pathlib import Path
from typing import Any

import httpx
import pytest

from headwater.transport.spool.place import places
from serving import serving

SCRIPTS = sysconfig.get_path("scripts")
AGENT = "io.openlineage.spark.agent.OpenLineageSparkListener"
PACKAGE = "io.openlineage:openlineage-spark_2.13:1.53.0"


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", f"{SCRIPTS}{os.pathsep}{os.environ['PATH']}")
    for name in ("PYTHONPATH", "PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON", "PYSPARK_SUBMIT_ARGS"):
        monkeypatch.delenv(name, raising=False)


def run(*arguments: str, **environ: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["headwater", "run", *arguments],
        capture_output=True,
        text=True,
        env={**os.environ, **environ},
        timeout=600,
        check=False,
    )


def events(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


# --- the command stays as it was


def test_exit_code_and_output_are_the_commands_own() -> None:
    done = run("--", sys.executable, "-c", "import sys; print('out'); sys.exit(7)")
    assert (done.returncode, done.stdout, done.stderr) == (7, "out\n", "")
    assert run("python", "-c", "print(1)", "--transport").stdout == "1\n"  # behind the command all is its own


@pytest.mark.skipif(os.name == "nt", reason="no such signals there")
def test_signals_reach_the_command() -> None:
    code = "import time; print('ready', flush=True); time.sleep(600)"
    running = subprocess.Popen(
        ["headwater", "run", "--", sys.executable, "-c", code], stdout=subprocess.PIPE, text=True
    )
    with running:
        assert running.stdout
        assert running.stdout.readline() == "ready\n"
        running.send_signal(signal.SIGTERM)
        assert running.wait(60) == -signal.SIGTERM


def test_the_sitecustomize_that_was_there_is_imported(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "sitecustomize.py").write_text("import sys\nMARK = 'mine'\nsys.marked = MARK\n")
    code = "import sitecustomize, sys; print(sitecustomize.MARK, sys.marked)"
    done = run("--", sys.executable, "-c", code, PYTHONPATH=str(tmp_path / "mine"))
    assert (done.stdout, done.stderr) == ("mine mine\n", "")


def test_nothing_of_ours_is_loaded_before_a_session() -> None:
    code = "import sys; print([m for m in sys.modules if m.startswith(('headwater', 'msgspec'))])"
    assert run("--", sys.executable, "-c", code).stdout == "[]\n"


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--", "no-such-command"], "cannot run 'no-such-command'"),
        (["--transport", "nonsense:", "--", "python"], "unknown transport 'nonsense'"),
        ([], "Missing argument"),
    ],
)
def test_wrong_use(arguments: list[str], told: str) -> None:
    done = run(*arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert told in done.stderr


# --- cluster deploy mode


@pytest.mark.parametrize(
    "arguments",
    [
        ["--deploy-mode", "cluster", "job.py"],
        ["--deploy-mode=cluster", "job.py"],
        ["--conf", "spark.submit.deployMode=cluster", "job.py"],
        ["--properties-file", "my.conf", "job.py"],
    ],
)
def test_cluster_mode_is_refused_with_what_to_paste(arguments: list[str], tmp_path: Path) -> None:
    (tmp_path / "my.conf").write_text("spark.submit.deployMode   cluster\n")
    done = run("--transport", "http://lineage:5000", "--", "spark-submit", *arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert "--conf spark.headwater.transport=http://lineage:5000\n" in done.stderr
    assert "--deploy-mode client" in done.stderr


# --- what starts Spark, played

SUBMIT = '#!/bin/sh\nfor each in "$@"; do echo "$each"; done\necho "$PYSPARK_SUBMIT_ARGS"\n'


def test_agents_are_taken_out_of_the_arguments_where_asked(tmp_path: Path) -> None:
    (tmp_path / "spark-submit").write_text(SUBMIT)
    (tmp_path / "spark-submit").chmod(0o755)
    given = [
        "./spark-submit",
        "--packages",
        f"{PACKAGE},a:b:1",
        "--conf",
        f"spark.extraListeners={AGENT}",
        "j.py",
    ]
    inherited = f"--conf spark.extraListeners={AGENT} pyspark-shell"
    assert run("--", *given).stdout.split("\n") == [*given[1:], "", ""]
    done = run("--replace-agents", "--", *given, PYSPARK_SUBMIT_ARGS=inherited)
    assert done.stdout.split("\n") == ["--packages", "a:b:1", "j.py", "pyspark-shell", ""]


def test_agents_of_a_file_of_defaults_are_overridden(tmp_path: Path) -> None:
    """The file itself is the user's: it is not written to."""
    (tmp_path / "spark-submit").write_text(SUBMIT)
    (tmp_path / "spark-submit").chmod(0o755)
    (tmp_path / "conf").mkdir()
    text = f"# agents\nspark.extraListeners  my.Own,{AGENT}\nspark.jars.packages={PACKAGE}\nspark.x: y\n"
    (tmp_path / "conf" / "spark-defaults.conf").write_text(text)
    (tmp_path / "other.conf").write_text(f"spark.extraListeners={AGENT}\n")
    conf = {"SPARK_CONF_DIR": str(tmp_path / "conf")}
    listener = ["--conf", "spark.extraListeners=my.Own"]
    packages = ["--conf", "spark.jars.packages="]
    for given, instead in [
        (["j.py"], [*listener, *packages, "j.py"]),
        (["--packages", "a:b:1", "j.py"], [*listener, "--packages", "a:b:1", "j.py"]),
        (
            ["--conf", "spark.extraListeners=a.B", "j.py"],
            [*packages, "--conf", "spark.extraListeners=a.B", "j.py"],
        ),
        (
            ["--properties-file", "other.conf", "j.py"],
            ["--conf", "spark.extraListeners=", "--properties-file", "other.conf", "j.py"],
        ),
    ]:
        done = run("--replace-agents", "--", "./spark-submit", *given, **conf)
        assert done.stdout.split("\n")[:-2] == instead
        assert run("--", "./spark-submit", *given, **conf).stdout.split("\n")[:-2] == given
    assert (tmp_path / "conf" / "spark-defaults.conf").read_text() == text


def play_spark(folder: Path) -> None:
    """A pyspark that is none: enough for the hooks."""
    (folder / "pyspark" / "sql").mkdir(parents=True)
    for name in ("pyspark/__init__.py", "pyspark/sql/__init__.py"):
        (folder / name).write_text("")
    (folder / "pyspark" / "sql" / "session.py").write_text(
        "class SparkSession:\n    def __init__(self, name):\n        self.name = name\n"
    )


JOB = "from pyspark.sql.session import SparkSession\nfor n in 'ab':\n    print(SparkSession(n).name)\n"


def test_a_capture_that_cannot_start_leaves_the_program_alone(tmp_path: Path) -> None:
    play_spark(tmp_path)
    (tmp_path / "job.py").write_text(JOB)
    done = run("--", sys.executable, "job.py")
    assert (done.returncode, done.stdout) == (0, "a\nb\n")
    assert done.stderr.count("takes a SparkSession") == 1
    assert "Traceback" not in done.stderr


def test_a_python_without_headwater_says_so_once(tmp_path: Path) -> None:
    play_spark(tmp_path)
    (tmp_path / "job.py").write_text(f"import sys\nsys.modules['headwater'] = None\n{JOB}")
    done = run("--", sys.executable, "job.py")
    assert (done.returncode, done.stdout) == (0, "a\nb\n")
    assert done.stderr.count("pip install 'headwater[spark]'") == 1


# --- a Spark that runs

SPARK = """
import sys
from pyspark.sql import SparkSession

builder = SparkSession.builder.master("local[1]").appName("Job").config("spark.ui.enabled", "false")
builder = builder.config("spark.sql.warehouse.dir", "w")
for pair in sys.argv[1:]:
    builder = builder.config(*pair.split("=", 1))
spark = builder.getOrCreate()
spark.range(3).write.parquet("out")
print("done", spark.conf.get("spark.app.name"), spark.sparkContext.getConf().get("spark.extraListeners", "none") or "none")
sys.exit(3)
"""


def test_a_python_program_is_captured_and_its_agent_replaced(tmp_path: Path) -> None:
    (tmp_path / "job.py").write_text(SPARK)
    done = run(
        "--replace-agents", "--transport", f"file://{tmp_path}/events.jsonl", "--",
        "python", "-m", "job", f"spark.extraListeners={AGENT}", f"spark.jars.packages={PACKAGE}",
        "spark.headwater.transport=file:///nowhere/else.jsonl",
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (3, "done Job none\n"), done.stderr
    seen = events(tmp_path / "events.jsonl")
    assert [e["eventType"] for e in seen] == ["START", "START", "COMPLETE", "FAIL"]
    assert [o["name"] for o in seen[2]["outputs"]] == [f"{tmp_path}/out"]


def test_spark_submit_is_captured(tmp_path: Path) -> None:
    (tmp_path / "job.py").write_text(SPARK)
    done = run(
        "--", "spark-submit", "--conf", f"spark.headwater.transport=file://{tmp_path}/e.jsonl", "job.py"
    )
    assert (done.returncode, done.stdout) == (3, "done Job none\n"), done.stderr
    assert [e["eventType"] for e in events(tmp_path / "e.jsonl")] == [
        "START",
        "START",
        "COMPLETE",
        "FAIL",
    ]


@pytest.mark.parametrize(
    "command", [["python", "job.py"], ["spark-submit", "job.py"]], ids=["python", "submit"]
)
def test_an_agent_in_the_file_of_defaults_is_replaced(tmp_path: Path, command: list[str]) -> None:
    """Without its jar the listener cannot be made: only a session that never hears of it starts."""
    (tmp_path / "job.py").write_text(SPARK)
    (tmp_path / "conf").mkdir()
    (tmp_path / "conf" / "spark-defaults.conf").write_text(
        f"spark.extraListeners {AGENT}\nspark.headwater.transport file://{tmp_path}/e.jsonl\n"
        "spark.driver.extraClassPath /j/openlineage-spark_2.13-1.53.0.jar\n"
    )
    done = run("--replace-agents", "--", *command, SPARK_CONF_DIR=str(tmp_path / "conf"))
    assert (done.returncode, done.stdout) == (3, "done Job none\n"), done.stderr
    assert [e["eventType"] for e in events(tmp_path / "e.jsonl")] == ["START", "START", "COMPLETE", "FAIL"]


def test_a_server_has_the_lineage_though_the_program_did_not_wait_for_it(tmp_path: Path) -> None:
    """It goes through the spool; the drainer that the program left behind is not captured itself."""
    (tmp_path / "job.py").write_text(SPARK)
    with serving(f"sqlite:///{tmp_path}/x.db") as server:
        done = run("--transport", server.url, "--", "python", "job.py", HEADWATER_SPOOL__LINGER="1")
        assert (done.returncode, done.stdout) == (3, "done Job none\n"), done.stderr
        until, answer = time.monotonic() + 60, {}
        while answer.get("events", 0) < 4 and time.monotonic() < until:
            answer = httpx.get(f"{server.url}/hw/v1/status").json()
        assert answer["events"] == 4
        assert httpx.get(f"{server.url}/hw/v1/show", params={"node": f"file/{tmp_path}/out"}).is_success
    (place,) = places(Path(os.environ["HOME"]) / ".local" / "state" / "headwater" / "spool")
    assert (place / "drainer.log").read_text() == ""


def test_a_bad_setting_switches_the_capture_off(tmp_path: Path) -> None:
    (tmp_path / "job.py").write_text(SPARK)
    done = run("--", "python", "job.py", "spark.headwater.transprot=console:")
    assert (done.returncode, done.stdout) == (3, "done Job none\n"), done.stderr
    assert done.stderr.count("did you mean 'transport'?") == 1
