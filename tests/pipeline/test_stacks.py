"""Real stacks: Delta and Iceberg tables, a standalone cluster, and the pipeline's own lineage; same tables in each."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import live_jars
import pytest
from dumping import in_memory, same

import services
from headwater.cli.demo import recorded

LINES = list(recorded())
ENVIRON = {
    **os.environ,
    "PYTHONPATH": os.pathsep.join(p for p in sys.path if p),
    "SPARK_LOCAL_IP": "127.0.0.1",
}

DUMP = """
import pickle, sys
sys.path[:0] = {path!r}
from headwater import pipeline
from dumping import dumped
spark = pipeline.open_session({master!r}, dict({conf!r}), alone=True)
for part in {parts!r}:
    report = pipeline.run(spark, part, {sink!r})
pipeline.compact(spark, {sink!r})
found = dumped(spark, {sink!r})
quarantine = [tuple(row)[:2] + (row.reason, bytes(row.payload)) for row in pipeline.read(spark, {sink!r}, "quarantine").collect()]
pickle.dump((found, quarantine, report.to_dict(), spark.sparkContext.master), open({out!r}, "wb"))
spark.stop()
"""


def made(tmp_path: Path, sink: str, conf: dict[str, str], master: str = "local[2]") -> Any:
    """Two batches, of which one was there before, in a process with a session of its own."""
    import pickle

    (tmp_path / "a.jsonl").write_bytes(b"\n".join([*LINES[:9], b"{"]))
    (tmp_path / "b.jsonl").write_bytes(b"\n".join([*LINES[5:], b"{"]))
    parts = [str(tmp_path / name) for name in ("a.jsonl", "b.jsonl", "a.jsonl")]
    path = [p for p in sys.path if p]
    code = DUMP.format(
        path=path, master=master, conf=list(conf.items()), parts=parts, sink=sink, out=str(tmp_path / "out")
    )
    done = subprocess.run(
        [sys.executable, "-c", code], env=ENVIRON, capture_output=True, text=True, timeout=1200
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return pickle.loads((tmp_path / "out").read_bytes())


def needed(need: Any) -> str:
    """The jars of Delta and Iceberg, as Spark takes them."""
    found = live_jars.have("spark-4.1")
    if not found:
        need("the jars of spark-4.1", "make live-jars")
    return ",".join(map(str, found))


# hundreds of statements, each of few rows: to write, compile and load code for each takes longer than to go without
SMALL = {
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}


def delta(jars: str) -> dict[str, str]:
    return {
        **SMALL,
        "spark.jars": jars,
        "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    }


def iceberg(jars: str, warehouse: Path) -> dict[str, str]:
    return {
        **SMALL,
        "spark.jars": jars,
        "spark.sql.extensions": "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
        "spark.sql.catalog.lake": "org.apache.iceberg.spark.SparkCatalog",
        "spark.sql.catalog.lake.type": "hadoop",
        "spark.sql.catalog.lake.warehouse": str(warehouse),
    }


@pytest.mark.live
def test_delta(tmp_path: Path, need: Any) -> None:
    conf = delta(needed(need))
    found, quarantine, _, _ = made(tmp_path, f"delta://{tmp_path}/lake", conf)
    same(in_memory(LINES), found)
    assert [row[3] for row in quarantine] == [b"{", b"{"]


@pytest.mark.live
def test_iceberg(tmp_path: Path, need: Any) -> None:
    conf = iceberg(needed(need), tmp_path / "warehouse")
    found, quarantine, _, _ = made(tmp_path, "iceberg://lake.lineage", conf)
    same(in_memory(LINES), found)
    assert [row[3] for row in quarantine] == [b"{", b"{"]


SOURCE = """
import pickle, sys
sys.path[:0] = {path!r}
from headwater import pipeline
from dumping import dumped
spark = pipeline.open_session("local[2]", dict({conf!r}), alone=True)
lines = pickle.load(open({lines!r}, "rb"))
told = []

def append(part):
    frame = spark.createDataFrame([(n, line.decode()) for n, line in enumerate(part)], "n int, event string").coalesce(1)
    {append}

def take():
    query = pipeline.stream(spark, {source!r}, "parquet://" + {folder!r} + "/stream", checkpoint={folder!r} + "/checkpoint",
                            told=lambda report: told.append((report.events, report.bad)))
    query.awaitTermination()

spark.sql("CREATE NAMESPACE IF NOT EXISTS lake.raw") if {source!r}.startswith("iceberg") else None
for part in (lines[:9], lines[9:]):
    append(part)
    take()
report = pipeline.run(spark, {source!r}, "parquet://" + {folder!r} + "/batch")
found = []
for name in ("stream", "batch"):
    sink = f"{{{folder!r}}}/{{name}}"
    refused = pipeline.read(spark, sink, "quarantine").collect()
    found.append((dumped(spark, sink), [(row.source, row.position, bytes(row.payload)) for row in refused]))
pickle.dump((found, told, report.to_dict()), open({folder!r} + "/out", "wb"))
spark.stop()
"""


@pytest.mark.live
@pytest.mark.parametrize("form", ["delta", "iceberg"])
def test_a_lake_table_of_raw_events_is_a_source(tmp_path: Path, need: Any, form: str) -> None:
    """In a batch, and as a stream that goes on where it was; of a bad row a batch tells file and place."""
    import pickle

    jars = needed(need)
    if form == "delta":
        conf, source = delta(jars), f"delta://{tmp_path}/raw"
        append = f"frame.write.format('delta').mode('append').save('{tmp_path}/raw')"
    else:
        conf, source = iceberg(jars, tmp_path / "warehouse"), "iceberg://lake.raw.events"
        append = (
            "(frame.writeTo('lake.raw.events').append() if spark.catalog.tableExists('lake.raw.events')"
            " else frame.writeTo('lake.raw.events').using('iceberg').create())"
        )
    (tmp_path / "lines").write_bytes(pickle.dumps([*LINES, b"{"]))
    code = SOURCE.format(
        path=[p for p in sys.path if p], conf=list(conf.items()), lines=str(tmp_path / "lines"),
        source=source, folder=str(tmp_path), append=append,
    )  # fmt: skip
    done = subprocess.run(
        [sys.executable, "-c", code], env=ENVIRON, capture_output=True, text=True, timeout=1200
    )
    assert done.returncode == 0, done.stderr[-3000:]
    found, told, report = pickle.loads((tmp_path / "out").read_bytes())
    assert [sum(each) for each in zip(*told, strict=True)] == [len(LINES) + 1, 1]
    assert len(told) >= 2, "the second append was not a batch of its own"
    assert (report["events"], report["bad"]) == (len(LINES) + 1, 1)
    places = []
    for tables, refused in found:
        same(in_memory(LINES), tables)
        ((where, position, payload),) = refused
        assert payload == b"{"
        places.append((where.rpartition(".")[2] == "parquet", position))
    # streams of them tell neither file nor place, and Delta no place at all
    assert places == [(False, -1), (True, len(LINES) - 9 if form == "iceberg" else -1)]


@contextmanager
def cluster(folder: Path) -> Iterator[str]:
    """A master and two workers of the installed pyspark, on loopback; each stopped by its process."""
    import pyspark

    home = Path(pyspark.__file__).parent
    # workers start without our paths: what they need of us must be sent to them
    environ = {**os.environ, "SPARK_HOME": str(home), "SPARK_LOCAL_IP": "127.0.0.1"}
    environ.pop("PYTHONPATH", None)
    port = services.free_port()
    processes: list[subprocess.Popen[bytes]] = []

    def start(name: str, *arguments: str) -> Path:
        log = folder / f"{name}.log"
        with log.open("wb") as out:
            command = [
                str(home / "bin" / "spark-class"),
                f"org.apache.spark.deploy.{arguments[0]}",
                *arguments[1:],
            ]
            processes.append(subprocess.Popen(command, env=environ, stdout=out, stderr=out))
        return log

    def wait(log: Path, words: str, times: int = 1) -> None:
        patience = time.monotonic() + 120
        while log.read_text().count(words) < times:
            assert time.monotonic() < patience, log.read_text()[-2000:]
            time.sleep(0.2)

    try:
        address = f"spark://127.0.0.1:{port}"
        log = start(
            "master",
            "master.Master",
            "--host",
            "127.0.0.1",
            "--port",
            str(port),
            "--webui-port",
            str(services.free_port()),
        )
        wait(log, "I have been elected leader")
        for number in (1, 2):
            start(
                f"worker{number}", "worker.Worker", "--cores", "1", "--memory", "1g", "--host", "127.0.0.1",
                "--webui-port", str(services.free_port()), "-d", str(folder / f"work{number}"), address,
            )  # fmt: skip
        wait(log, "Registering worker", 2)
        yield address
    finally:
        for process in reversed(processes):
            process.terminate()
        for process in processes:
            process.wait(60)


@pytest.mark.live
def test_a_standalone_cluster(tmp_path: Path) -> None:
    with cluster(tmp_path) as master:
        conf = {"spark.executor.memory": "512m", "spark.cores.max": "2", "spark.sql.shuffle.partitions": "2"}
        found, _, report, used = made(tmp_path, f"parquet://{tmp_path}/tables", conf, master)
        assert used == master
        same(in_memory(LINES), found)
        assert report["bad"] == 1
        ran = "".join((tmp_path / f"worker{number}.log").read_text() for number in (1, 2))
    assert ran.count("Asked to launch executor") >= 2


def test_it_watches_itself(tmp_path: Path) -> None:
    """Its own lineage goes where the settings say, and names what it read and wrote."""
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "x.jsonl").write_bytes(b"\n".join(LINES))
    told = tmp_path / "told.jsonl"
    done = subprocess.run(
        [
            sys.executable, "-m", "headwater", "pipeline", "run", "--source", str(tmp_path / "in"),
            "--sink", f"parquet://{tmp_path}/tables", "--master", "local[2]",
        ],
        env={**ENVIRON, "HEADWATER_TRANSPORT": f"file://{told}"}, capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    events = [json.loads(line) for line in told.read_text().splitlines()]
    reads = {each["name"] for event in events for each in event.get("inputs", ())}
    writes = {each["name"] for event in events for each in event.get("outputs", ())}
    assert any(name.startswith(f"{tmp_path}/in") for name in reads), (reads, writes)
    assert f"{tmp_path}/tables" in writes
    joined = {
        each["name"]
        for event in events
        if any(f"{tmp_path}/tables" in out["name"] for out in event.get("outputs", ()))
        for each in event.get("inputs", ())
    }
    assert any(name.startswith(f"{tmp_path}/in") for name in joined), (
        "no edge from what it read to what it wrote"
    )
