"""Many pipelines at once, in threads and in processes: every run has its own id, inputs, outputs, columns and counts."""

from __future__ import annotations

import multiprocessing
import os
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from telling import TELLS_INPUTS, VERSION, Told, pairs

import dlt
import headwater.dlt
from headwater.capture.dlt.events import run_id

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning:dlt")  # of its own older options

THREADS, PROCESSES = 16, 4


def shop(folder: Path, at: int) -> str:
    """A database of its own, with a table of its own and `at + 1` rows."""
    file = folder / f"shop{at}.db"
    with closing(sqlite3.connect(file)) as base, base:
        base.execute(f'CREATE TABLE "Orders {at}" ("Order ID" INTEGER PRIMARY KEY, "field{at}" TEXT)')
        base.executemany(f'INSERT INTO "Orders {at}" VALUES (?, ?)', [(n, f"v{n}") for n in range(at + 1)])
    return f"sqlite:///{file}"


def load(folder: Path, at: int) -> tuple[str, str]:
    """A pipeline that reads the database and code, and loads both -> what its trace is called."""
    from dlt.sources.sql_database import sql_database

    @dlt.resource(name=f"clicks_{at}")
    def clicks() -> Any:
        yield [{"n": n, "tags": ["a"] * at} for n in range(2 * at + 1)]

    pipeline = dlt.pipeline(
        f"p{at}",
        destination=dlt.destinations.duckdb(str(folder / f"out{at}.duckdb")),
        dataset_name=f"raw{at}",
        pipelines_dir=str(folder / "pipelines"),
    )
    source = sql_database(str(shop(folder, at)))
    pipeline.run([source, clicks()])
    trace = pipeline.last_trace
    return trace.transaction_id, trace.started_at.isoformat(timespec="milliseconds")


def assert_right(told: Told, folder: Path, at: int) -> None:
    """Everything that run `at` tells is of run `at`."""
    assert [each["eventType"] for each in told(job=f"p{at}")] == ["START", "RUNNING", "COMPLETE"]
    end = told.end(f"p{at}")
    table = f"Orders {at}" if TELLS_INPUTS else f"dlt/Orders {at}"
    assert {(each["namespace"], each["name"]) for each in end["inputs"]} == {
        (f"sqlite://{folder}/shop{at}.db" if TELLS_INPUTS else "dlt", table),
        ("dlt", f"dlt/clicks_{at}"),
    }
    counts = {
        (each["namespace"], each["name"]): each["outputFacets"]["outputStatistics"]["rowCount"]
        for each in end["outputs"]
    }
    place = f"duckdb://{folder}/out{at}.duckdb"
    expected = {(place, f"raw{at}.orders_{at}"): at + 1, (place, f"raw{at}.clicks_{at}"): 2 * at + 1}
    if at:
        expected[place, f"raw{at}.clicks_{at}__tags"] = (2 * at + 1) * at
    assert counts == expected
    assert {each for each in pairs(end) if each[0] == f"orders_{at}"} == {
        (f"orders_{at}", "order_id", table, "Order ID"),
        (f"orders_{at}", f"field{at}", table, f"field{at}"),
    }
    sources = {
        out["name"]: [each["name"] for each in out["facets"]["lineage"]["inputs"]] for out in end["outputs"]
    }
    assert sources[f"raw{at}.orders_{at}"] == [table]
    assert sources[f"raw{at}.clicks_{at}"] == [f"dlt/clicks_{at}"]


def test_sixteen_pipelines_in_threads_never_mix(told: Told, tmp_path: Path) -> None:
    traces: dict[int, tuple[str, str]] = {}
    faults: list[BaseException] = []
    together = threading.Barrier(THREADS)

    def one(at: int) -> None:
        try:
            together.wait(60)
            traces[at] = load(tmp_path, at)
        except BaseException as fault:
            faults.append(fault)
            raise

    threads = [threading.Thread(target=one, args=(at,)) for at in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not faults
    for at in range(THREADS):
        assert_right(told, tmp_path, at)
        assert {each["run"]["runId"] for each in told(job=f"p{at}")} == {run_id(*traces[at])}
    assert len({each["run"]["runId"] for each in told()}) == THREADS


def _forked(folder: Path, at: int) -> None:
    load(folder, at)


def test_a_process_that_was_forked_after_the_start_tells_of_its_own_pipelines(
    told: Told, tmp_path: Path
) -> None:
    load(tmp_path, 0)  # the parent has run one, so that everything is open when it forks
    context = multiprocessing.get_context("fork")
    processes = [context.Process(target=_forked, args=(tmp_path, at)) for at in range(1, PROCESSES + 1)]
    for process in processes:
        process.start()
    for process in processes:
        process.join(120)
        assert process.exitcode == 0
    for at in range(PROCESSES + 1):
        assert_right(told, tmp_path, at)
    assert len({each["run"]["runId"] for each in told()}) == PROCESSES + 1


SCRIPT = """
import sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
import test_dlt_parallel
test_dlt_parallel.load(Path(sys.argv[2]), int(sys.argv[3]))
"""


def test_four_programs_at_once_without_any_code(
    tmp_path: Path, environment: Callable[..., dict[str, str]]
) -> None:
    file = tmp_path / "events.jsonl"
    command = [sys.executable, "-c", SCRIPT, str(Path(__file__).parent), str(tmp_path)]
    if VERSION < (1, 27):  # it loads no plugin of others
        command = [sys.executable, "-m", "headwater", "run", "--transport", f"file://{file}", "--", *command]
    env = environment(HEADWATER_TRANSPORT=f"file://{file}")
    running = [subprocess.Popen([*command, str(at)], env=env, cwd=tmp_path) for at in range(PROCESSES)]
    assert [each.wait(120) for each in running] == [0] * PROCESSES
    for at in range(PROCESSES):
        assert_right(Told(file), tmp_path, at)


def test_two_who_listen_tell_of_a_run_once(told: Told, tmp_path: Path) -> None:
    one = headwater.dlt.tracker(transport=f"file://{tmp_path}/own.jsonl")
    dlt.pipeline(
        "both", destination=dlt.destinations.duckdb(str(tmp_path / "x.duckdb")), progress=one
    ).run([{"a": 1}], table_name="t")  # fmt: skip
    events = [*told(), *Told(tmp_path / "own.jsonl")()]
    assert sorted(each["eventType"] for each in events) == ["COMPLETE", "RUNNING", "START"]


def test_a_tracker_tells_of_its_own_pipeline_only(tmp_path: Path) -> None:
    one = headwater.dlt.tracker(transport=f"file://{tmp_path}/own.jsonl")
    for name, progress in (("mine", one), ("other", None)):
        place = dlt.destinations.duckdb(str(tmp_path / f"{name}.duckdb"))
        dlt.pipeline(name, destination=place, progress=progress).run([{"a": 1}], table_name="t")
    told = Told(tmp_path / "own.jsonl")
    assert {each["job"]["name"] for each in told()} == {"mine"}
    assert told.end()["eventType"] == "COMPLETE"


@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")  # of Python 3.12: it has threads
def test_a_fork_in_the_middle_of_another_threads_event_does_not_hang_the_child(told: Told) -> None:
    from headwater.dlt import _tracking

    held, over = threading.Event(), threading.Event()

    def hold() -> None:
        with _tracking._LOCK:
            held.set()
            over.wait()

    thread = threading.Thread(target=hold)
    thread.start()
    held.wait()
    child = os.fork()
    if not child:
        os._exit(0 if _tracking._LOCK.acquire(timeout=5) else 1)
    over.set()
    thread.join()
    assert os.waitpid(child, 0)[1] == 0
