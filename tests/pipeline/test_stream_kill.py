"""kill -9 of the driver at any moment of a stream: the tables are those of one clean run, from files and from Kafka."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import live_jars
import msgspec
import pytest
from dumping import dumped, in_memory, same

import services
from headwater import pipeline
from headwater.store import open_store
from streams import facet, run_id

BAD = b'{"eventTime": "never"}'


def event(number: int) -> bytes:
    return msgspec.json.encode(
        {
            "eventTime": f"2026-01-01T{number // 3600 % 24:02d}:{number // 60 % 60:02d}:{number % 60:02d}Z",
            "eventType": "COMPLETE" if number % 2 else "START",
            "run": {"runId": run_id(number // 2), "facets": {"custom": facet(number=number)}},
            "job": {"namespace": "etl", "name": f"job {number % 7}"},
            "inputs": [{"namespace": "s3a://lake", "name": f"in {number % 5}"}],
            "outputs": [{"namespace": "s3://lake", "name": f"out {number % 3}"}],
        }
    )


class Driver:
    """`headwater pipeline stream` in a process group of its own, so that a kill takes Spark's JVM too."""

    def __init__(self, log: Path, *arguments: str) -> None:
        environ = {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
        self._out = log.open("ab")
        command = [
            sys.executable,
            "-m",
            "headwater",
            "pipeline",
            "stream",
            *arguments,
            "--master",
            "local[2]",
        ]
        self.process = subprocess.Popen(
            command, env=environ, stdout=self._out, stderr=self._out, start_new_session=True
        )

    def kill(self) -> None:
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait(30)
        self._out.close()

    def wait(self, seconds: float) -> int:
        try:
            return self.process.wait(seconds)
        finally:
            self._out.close()


def survive(
    kills: int, source: str, folder: Path, grow: Callable[[int], None], conf: list[str], dice: random.Random
) -> tuple[str, str]:
    """Kill the driver again and again while the source grows, then let it end; the two sinks."""
    table, store = f"parquet://{folder}/tables", f"sqlite:///{folder}/x.db"
    arguments = [
        "--source", source, "--sink", table, "--sink", store, "--checkpoint", str(folder / "checkpoint"), *conf,
    ]  # fmt: skip
    log = folder / "driver.log"
    began = folder / "checkpoint"
    for turn in range(kills):
        grow(turn)
        driver = Driver(log, *arguments)
        patience = time.monotonic() + 120
        commits = len(list(began.glob("offsets/[0-9]*")))
        while (  # the moments that matter are those after a batch has begun
            driver.process.poll() is None
            and len(list(began.glob("offsets/[0-9]*"))) <= commits
            and time.monotonic() < patience
        ):
            time.sleep(0.05)
        time.sleep(dice.uniform(0.0, 8.0))
        driver.kill()
    grow(kills)
    code = Driver(log, *arguments).wait(300)
    assert code in (0, 5), log.read_text()[-3000:]
    return table, store


def check(spark: Any, sent: list[bytes], table: str, store: str) -> None:
    expected = in_memory(sent)
    same(expected, dumped(spark, table))
    opened = open_store(store)
    same(expected, opened.dump())
    counts = opened.counts()
    assert counts["log"] == len(set(sent)) - 1
    assert opened.check() == []
    (refused,) = {row["payload"] for row in opened.rejected(1000)}
    assert refused == BAD.decode()
    opened.close()
    quarantined = pipeline.read(spark, table, "quarantine").count()
    assert quarantined == sent.count(BAD)


def test_files(spark: Any, tmp_path: Path, repeats: Callable[[int], int]) -> None:
    dice = random.Random(7)
    sent: list[bytes] = []
    folder = tmp_path / "in"
    folder.mkdir()

    def grow(turn: int) -> None:
        for part in range(3):
            lines = [event(turn * 300 + part * 100 + i) for i in range(120)] + [BAD]
            sent.extend(lines)
            (tmp_path / "beside").write_bytes(b"\n".join(lines))
            (tmp_path / "beside").rename(folder / f"{turn:04d}-{part}.jsonl")

    sinks = survive(repeats(10), f"{folder}", tmp_path, grow, [], dice)
    check(spark, sent, *sinks)


@pytest.mark.live
def test_kafka(spark: Any, tmp_path: Path, repeats: Callable[[int], int], need: Any) -> None:
    jars, broker = live_jars.have("spark-4.1"), live_jars.have("broker")
    if not jars or not broker:
        need("the jars of spark-4.1 and broker", "make live-jars")
    dice = random.Random(8)
    sent: list[bytes] = []
    conf = ["--conf", f"spark.jars={','.join(map(str, jars))}"]
    with services.kafka(broker, tmp_path / "broker", partitions=2) as (address, _):

        def grow(turn: int) -> None:
            lines = [event(turn * 300 + i) for i in range(360)] + [BAD]
            sent.extend(lines)
            produce(lines, address)

        sinks = survive(repeats(10), f"kafka://{address}/lineage?per_batch=150", tmp_path, grow, conf, dice)
    check(spark, sent, *sinks)


def produce(lines: list[bytes], address: str) -> None:
    from confluent_kafka import Producer

    producer = Producer({"bootstrap.servers": address})
    for line in lines:
        producer.produce("lineage", line)
    assert producer.flush(60) == 0


@pytest.mark.live
def test_without_end(spark: Any, tmp_path: Path) -> None:
    """It goes on as files come, and ends well when it is told to."""
    folder = tmp_path / "in"
    folder.mkdir()
    sink = f"parquet://{tmp_path}/tables"
    sent: list[bytes] = []

    def grow(turn: int) -> None:
        lines = [event(turn * 50 + i) for i in range(60)]
        sent.extend(lines)
        (tmp_path / "beside").write_bytes(b"\n".join(lines))
        (tmp_path / "beside").rename(folder / f"{turn}.jsonl")

    def committed() -> int:
        return len(list((tmp_path / "tables" / "_batches").glob("*.json")))

    log = tmp_path / "driver.log"
    checkpoint = str(tmp_path / "checkpoint")
    driver = Driver(log, "--source", str(folder), "--sink", sink, "--checkpoint", checkpoint, "--every", "1")
    for turn in range(3):
        grow(turn)
        patience = time.monotonic() + 180
        while committed() <= turn:
            assert driver.process.poll() is None, log.read_text()[-3000:]
            assert time.monotonic() < patience, log.read_text()[-3000:]
            time.sleep(0.1)
    driver.process.terminate()
    assert driver.wait(120) == 0, log.read_text()[-3000:]
    same(in_memory(sent), dumped(spark, sink))
