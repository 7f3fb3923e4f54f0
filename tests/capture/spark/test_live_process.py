"""Python stays Python: restarts, forks, sessions, threads, clusters and very deep plans, each in a process of its own."""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from checking import ends, identity, lifecycle

import services

Event = dict[str, Any]
pytestmark = pytest.mark.live
BEGIN = """
import os, sys
from pathlib import Path
from sessions import Session
root = Path(sys.argv[1])
"""


@pytest.fixture
def told(tmp_path: Path, need: Callable[[str, str], None]) -> Callable[..., list[Event]]:
    """A program -> the events it told."""
    if importlib.util.find_spec("pyspark") is None:
        need("pyspark", "pip install 'headwater[spark]'")
    if shutil.which("java") is None:
        need("Java", "apt install openjdk-17-jre-headless")

    def run(code: str, *arguments: str) -> list[Event]:
        env = {**os.environ, "PYTHONPATH": os.pathsep.join([str(Path(__file__).parent), *sys.path])}
        command = [sys.executable, "-c", BEGIN + code, str(tmp_path), *arguments]
        ran = subprocess.run(command, timeout=1500, capture_output=True, text=True, env=env, cwd=tmp_path)
        assert ran.returncode == 0, ran.stderr[-4000:]
        lines = (tmp_path / "events.jsonl").read_text().splitlines()
        events = [json.loads(line) for line in lines]
        assert not list(lifecycle(events))
        return events

    return run


def _outputs(events: list[Event]) -> set[str]:
    return {Path(out["name"]).name for event in ends(events) for out in event["outputs"]}


def test_stopping_and_starting_again(told: Callable[..., list[Event]]) -> None:
    events = told("""
for number in range(3):
    session = Session(root)
    session.spark.range(3).write.parquet(str(root / f"out{number}"))
    session.stop()
""")
    applications = [e for e in events if e["job"]["facets"]["jobType"]["jobType"] == "APPLICATION"]
    assert [each["eventType"] for each in applications] == ["START", "COMPLETE"] * 3
    assert len({each["run"]["runId"] for each in applications}) == 3
    assert _outputs(events) == {"out0", "out1", "out2"}


def test_sessions_of_one_application(told: Callable[..., list[Event]]) -> None:
    events = told("""
import headwater.spark
session = Session(root)
for number in range(3):
    other = session.spark.newSession()
    assert headwater.spark.install(other) is session.capture
    other.range(3).createOrReplaceTempView("mine")
    other.sql(f"SELECT id + {number} AS id FROM mine").write.parquet(str(root / f"out{number}"))
session.stop()
""")
    assert _outputs(events) == {"out0", "out1", "out2"}
    assert len({each["run"]["facets"]["parent"]["run"]["runId"] for each in ends(events)}) == 1


def test_a_fork_leaves_the_parent_alone(told: Callable[..., list[Event]]) -> None:
    events = told("""
session = Session(root)
session.spark.range(3).write.parquet(str(root / "before"))
for number in range(5):
    child = os.fork()
    if child == 0:
        assert session.capture.flush(1)
        session.capture.close()
        os._exit(7)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
    session.spark.range(3).write.parquet(str(root / f"after{number}"))
session.stop()
""")
    assert _outputs(events) == {"before", *(f"after{number}" for number in range(5))}


def test_a_connection_that_is_shut_in_the_middle(told: Callable[..., list[Event]]) -> None:
    """As a forked child does when it drops what the threads of its parent held: an answer may be lost on its way."""
    events = told("""
import contextlib, gc, socket
from py4j.clientserver import ClientServerConnection
session = Session(root)
mine = session.spark._jvm._gateway_client.get_thread_connection()
for number in range(20):
    session.spark.range(3).write.parquet(str(root / f"out{number}"))
    for each in gc.get_objects():
        if type(each) is ClientServerConnection and each is not mine and each.socket:
            with contextlib.suppress(OSError):
                each.socket.shutdown(socket.SHUT_RDWR)
del each, mine
session.stop()
""")
    assert _outputs(events) == {f"out{number}" for number in range(20)}
    assert [e["eventType"] for e in events if "." not in e["job"]["name"]] == ["START", "COMPLETE"]


def test_threads_with_tables_of_their_own(told: Callable[..., list[Event]]) -> None:
    """Each thread copies its own table column by column; no edge may cross from one thread to another."""
    threads, rounds = 6, 4
    events = told(f"""
import threading
session = Session(root, **{{"spark.scheduler.mode": "FAIR"}})
spark = session.spark
for t in range({threads}):
    spark.range(4).selectExpr(*(f"id AS c{{t}}_{{r}}" for r in range({rounds}))).write.saveAsTable(f"source{{t}}")
session.take()
faults = []
def work(t):
    try:
        for r in range({rounds}):
            spark.table(f"source{{t}}").select(f"c{{t}}_{{r}}").where(f"c{{t}}_{{r}} > 0").write.saveAsTable(f"copy{{t}}_{{r}}")
    except BaseException as fault:
        faults.append(fault)
running = [threading.Thread(target=work, args=(t,)) for t in range({threads})]
[each.start() for each in running]
[each.join() for each in running]
assert not faults, faults
session.stop()
""")
    found = {}
    for event in ends(events):
        for out in event["outputs"]:
            if "copy" in out["name"]:
                lineage = out["facets"]["columnLineage"]
                told_of = [each for f in lineage["fields"].values() for each in f["inputFields"]] + lineage[
                    "dataset"
                ]
                sources = {(Path(each["name"]).name, each["field"]) for each in told_of}
                inputs = {Path(each["name"]).name for each in event["inputs"]}
                rows = out["outputFacets"]["outputStatistics"]["rowCount"]
                found[Path(out["name"]).name] = (sources, inputs, rows)
    assert found == {
        f"copy{t}_{r}": ({(f"source{t}", f"c{t}_{r}")}, {f"source{t}"}, 3)
        for t in range(threads)
        for r in range(rounds)
    }


_CLUSTER = """
session = Session(root, **{"spark.master": sys.argv[2], "spark.executor.memory": "512m"})
spark = session.spark
spark.range(100).selectExpr("id", "id % 7 AS k").write.parquet(str(root / "in"))
spark.read.parquet(str(root / "in")).groupBy("k").count().write.parquet(str(root / "out"))
spark.sparkContext.parallelize(range(10), 2).map(str).saveAsTextFile(str(root / "text"))
session.stop()
"""


def _clustered(events: list[Event]) -> None:
    assert {"in", "out", "text"} <= _outputs(events)
    (out,) = [o for e in ends(events) for o in e["outputs"] if o["name"].endswith("/out")]
    assert {f["field"] for f in out["facets"]["columnLineage"]["fields"]["k"]["inputFields"]} == {"k"}
    assert out["outputFacets"]["outputStatistics"]["rowCount"] == 7


def test_a_local_cluster(told: Callable[..., list[Event]]) -> None:
    _clustered(told(_CLUSTER, "local-cluster[2,1,1024]"))


@pytest.fixture
def standalone(tmp_path: Path) -> Iterator[str]:
    """A master and a worker from pyspark's own jars."""
    import pyspark

    home = Path(pyspark.__file__).parent
    port, ui = services.free_port(), services.free_port()
    java = ["java", "-Xmx256m", "-cp", str(home / "jars" / "*")]
    core = next(
        (home / "jars").glob("spark-core_*.jar")
    ).name  # the launcher cannot tell in a package from PyPI
    scala = core.removeprefix("spark-core_").partition("-")[0]
    env = {
        "SPARK_SCALA_VERSION": scala,
        "SPARK_HOME": str(home),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "PYSPARK_PYTHON": sys.executable,
    }
    url = f"spark://127.0.0.1:{port}"
    with ExitStack() as stack:
        master = [*java, "org.apache.spark.deploy.master.Master", "--host", "127.0.0.1"]
        master += ["--port", str(port), "--webui-port", str(ui)]
        stack.enter_context(
            services.process(master, tmp_path / "master.log", lambda: services.listens(port), env)
        )
        worker = [*java, "org.apache.spark.deploy.worker.Worker", "--host", "127.0.0.1", "--cores", "2"]
        worker += ["--memory", "1g", "--webui-port", str(services.free_port())]
        worker += ["--work-dir", str(tmp_path / "work"), url]
        log = tmp_path / "worker.log"
        joined = lambda: b"Successfully registered" in log.read_bytes()  # noqa: E731
        stack.enter_context(services.process(worker, log, joined, env))
        yield url


def test_a_standalone_cluster(told: Callable[..., list[Event]], standalone: str) -> None:
    _clustered(told(_CLUSTER, standalone))


def test_plans_as_deep_as_spark_will_analyse(
    told: Callable[..., list[Event]], repeats: Callable[[int], int]
) -> None:
    """Columns in a chain, unions in a heap, an expression in a tower: told, and told right, or not run by Spark at all."""
    # Spark's time grows with the square of it; a third is as deep yet as makes anything recursive fail
    depth = 300 if repeats(20) == 20 else 100
    events = told(
        f"depth = {depth}"
        + """
from functools import reduce
from pyspark.sql import functions as f
from sessions import PLAIN
session = Session(root, **{"spark.driver.extraJavaOptions": "-Xss64m"}, **PLAIN)
spark = session.spark
spark.range(3).selectExpr("id AS a", "id AS b").write.parquet(str(root / "in"))
frame = spark.read.parquet(str(root / "in"))
chain = reduce(lambda fr, n: fr.withColumn("a", f.col("a") + 1), range(2 * depth), frame)
chain.select("a").write.parquet(str(root / "chain"))
heap = reduce(lambda x, y: x.union(y), [frame.select("b")] * depth)
heap.coalesce(1).write.parquet(str(root / "heap"))
tower = reduce(lambda e, n: e + f.col("b"), range(5 * depth), f.col("a"))
frame.select(tower.alias("t")).write.parquet(str(root / "tower"))
session.stop()
"""
    )
    found = {
        Path(out["name"]).name: {
            name: {each["field"] for each in told_of["inputFields"]}
            for name, told_of in out["facets"]["columnLineage"]["fields"].items()
        }
        for event in ends(events)
        for out in event["outputs"]
        if "columnLineage" in out["facets"]
    }
    assert found == {"chain": {"a": {"a"}}, "heap": {"b": {"b"}}, "tower": {"t": {"a", "b"}}}
    assert {identity(each)[1].rsplit("/", 1)[1] for e in ends(events) for each in e["inputs"]} == {"in"}


def test_catalogs_that_a_session_learns_of_later(told: Callable[..., list[Event]]) -> None:
    """A catalog may be configured at any time before its first use, and otherwise in another session."""
    events = told("""
session = Session(root)
spark = session.spark
kind = "org.apache.spark.sql.execution.datasources.v2.jdbc.JDBCTableCatalog"
for one, name in ((spark, "first"), (spark.newSession(), "second"), (spark, "first")):
    one.conf.set("spark.sql.catalog.shop", kind)
    one.conf.set("spark.sql.catalog.shop.url", f"jdbc:derby:memory:{name};create=true")
    one.conf.set("spark.sql.catalog.shop.driver", "org.apache.derby.jdbc.EmbeddedDriver")
    one.sql("CREATE SCHEMA IF NOT EXISTS shop.S")
    one.range(2).writeTo("shop.S.T" if one.sql("SHOW TABLES IN shop.S").isEmpty() else "shop.S.U").create()
session.stop()
""")
    made = [identity(out) for e in ends(events) for out in e["outputs"] if out["name"].split(".")[-1] in "TU"]
    assert [place.rpartition(":")[2].split(";")[0] for place, _ in made] == ["first", "second", "first"]


def test_a_probe_that_was_kept_damaged_is_compiled_again(
    told: Callable[..., list[Event]], tmp_path: Path
) -> None:
    program = "session = Session(root)\nsession.spark.range(1).write.parquet(str(root / sys.argv[2]))\nsession.stop()"
    os.environ["XDG_CACHE_HOME"] = str(tmp_path / "cache")
    try:
        told(program, "one")
        (kept,) = (tmp_path / "cache" / "headwater" / "probe").iterdir()
        whole = kept.read_bytes()
        kept.write_bytes(whole[:-1])
        told(program, "two")
        assert kept.read_bytes() == whole
        assert _outputs(told(program, "three")) == {"one", "two", "three"}
    finally:
        del os.environ["XDG_CACHE_HOME"]


def test_a_spark_without_janino(tmp_path: Path, told: Callable[..., list[Event]]) -> None:
    """It says what is missing, and the job goes on."""
    import pyspark

    home, own = Path(pyspark.__file__).parent, tmp_path / "home"
    shutil.copytree(
        home, own, symlinks=True, copy_function=os.symlink, ignore=shutil.ignore_patterns("*.py", "janino*")
    )
    code = """
import headwater.spark
from headwater.errors import ConfigError
from pyspark.sql import SparkSession
spark = SparkSession.builder.master("local[1]").config("spark.sql.codegen.wholeStage", "false").config(
    "spark.sql.codegen.factoryMode", "NO_CODEGEN").getOrCreate()
try:
    headwater.spark.install(spark, transport=f"file://{root}/events.jsonl")
except ConfigError as fault:
    (root / "said").write_text(str(fault))
assert spark.sparkContext.parallelize(range(3)).sum() == 3
(root / "events.jsonl").touch()
"""
    os.environ["SPARK_HOME"] = str(own)
    try:
        assert told(code) == []
    finally:
        del os.environ["SPARK_HOME"]
    assert "has no Janino" in (tmp_path / "said").read_text()


def test_a_connect_session_is_refused_plainly_and_works_on(
    told: Callable[..., list[Event]], tmp_path: Path
) -> None:
    pytest.importorskip(
        "grpc", reason="the client of Spark Connect needs grpcio: pip install 'pyspark[connect]'"
    )
    code = """
import headwater.spark
from headwater.errors import ConfigError
from pyspark.sql import SparkSession
(root / "events.jsonl").touch()
spark = SparkSession.builder.remote("local[1]").getOrCreate()
try:
    headwater.spark.install(spark, transport=f"file://{root}/events.jsonl")
except ConfigError as fault:
    (root / "said").write_text(str(fault))
assert spark.range(3).count() == 3
spark.stop()
"""
    assert told(code) == []
    assert "gives no access to the driver" in (tmp_path / "said").read_text()
