"""questions: catalogues of growing size -> how long graph, impact, search, diff and the graph of runs take, and how they grow.

    python bench/questions.py [--full] [--sizes 1000,5000] [--runs 20] [--postgres URL] [--json FILE]

--full: 20,000 jobs, too

Ratios are to the smallest size; a hub of 5,000 readers is asked for, too, with the memory that takes.
"""

from __future__ import annotations

import argparse
import random
import statistics
import tempfile
import time
import tracemalloc
from collections.abc import Callable
from typing import Any

import msgspec

from headwater.ingest import ingest_all
from headwater.query.diff import diff
from headwater.query.impact import impact
from headwater.query.lineage import lineage
from headwater.query.nodes import moment
from headwater.query.runs import run_graph, runs
from headwater.query.search import search
from headwater.store import Store, open_store
from noting import Notes
from stream import Shape, events

SPACE = "postgres://warehouse:5432"


def median(ask: Callable[[Any], Any], given: list[Any]) -> float:
    ask(given[0])
    times = []
    for each in given:
        began = time.perf_counter()
        ask(each)
        times.append(time.perf_counter() - began)
    return statistics.median(times) * 1000


def measure(store: Store, shape: Shape) -> dict[str, float]:
    pick = random.Random(7)
    components = max(1, shape.jobs // (shape.layers * shape.width))
    tables = [
        f"{SPACE}/" + shape.table(pick.randrange(components), pick.randrange(shape.layers), pick.randrange(5))
        for _ in range(20)
    ]
    names = [shape.table(pick.randrange(components), pick.randrange(20), 1) for _ in range(10)]
    words = [
        *names,
        *(name[: len(name) - 3] for name in names),
        "load_07",
        "column_00",
        "t1",
        "pipeline",
        "dw",
        "ipeline_00",
    ]
    late = moment("2026-01-01T19:00:00Z")
    newest = [each["id"] for each in runs(store, limit=20)]
    return {
        "graph, depth 20": median(lambda name: lineage(store, name, depth=20), tables),
        "graph of applications": median(lambda name: lineage(store, name, granularity="application"), tables),
        "impact": median(lambda name: impact(store, name), tables),
        "impact of a column": median(lambda name: impact(store, name, column="column_000"), tables),
        "search": median(lambda word: search(store, word), words),
        "runs": median(lambda _: runs(store, limit=50), list(range(10))),
        "graph of runs, up": median(lambda run: run_graph(store, run, direction="up"), newest[:5]),
        "diff of an hour around a node": median(lambda name: diff(store, late, late + 3600_000000, node=name), tables[:5]),
        "diff of an hour, everything": median(lambda _: diff(store, late, late + 3600_000000), [0, 1]),
    }  # fmt: skip


def hub(url: str, notes: Notes, readers: int = 5_000) -> None:
    def read(number: int) -> bytes:
        return msgspec.json.encode(
            {
                "eventType": "COMPLETE",
                "eventTime": "2026-01-01T00:00:00Z",
                "run": {"runId": f"00000000-0000-7000-8000-{number:012d}"},
                "job": {"namespace": "hub", "name": f"reader_{number}"},
                "inputs": [{"namespace": "hub", "name": "centre"}],
                "outputs": [{"namespace": "hub", "name": f"out_{number}"}],
            }
        )

    store = open_store(url)
    for _ in ingest_all(store, map(read, range(readers))):
        pass
    asks: dict[str, Callable[[Any], Any]] = {
        "as it is asked for": lambda _: lineage(store, "hub/centre"),
        "whole": lambda _: lineage(store, "hub/centre", fan=None, limit=100_000),
        "impact": lambda _: impact(store, "hub/centre"),
    }
    rows = []
    for name, ask in asks.items():
        took = median(ask, [0, 1, 2])
        tracemalloc.start()
        ask(0)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        rows.append((name, f"{took:,.0f} ms", f"{peak / 1e6:.1f} MB"))
    notes.table("hub", (f"a hub of {readers:,} readers", "time", "memory"), rows)
    store.close()


def main() -> None:
    notes = Notes("questions", packages=("sqlalchemy",), untold=("--postgres",))
    given = argparse.ArgumentParser()
    given.add_argument("--full", action="store_true")
    given.add_argument("--sizes", default="1000,5000")
    given.add_argument("--runs", type=int, default=20)
    given.add_argument("--postgres", default="", help="the url of an empty database, used in place of SQLite")
    told = given.parse_args()
    if told.full:
        told.sizes = "1000,5000,20000"
    found: dict[str, list[tuple[int, float]]] = {}
    with tempfile.TemporaryDirectory() as folder:
        for jobs in map(int, told.sizes.split(",")):
            shape = Shape(jobs=jobs, runs=told.runs, bytes=1500, starts=False)
            url = told.postgres or f"sqlite:///{folder}/{jobs}.db?synchronous=off"
            store = open_store(url)
            began = time.perf_counter()
            for _ in ingest_all(store, events(shape), size=2_000):
                pass
            print(f"{jobs:,} jobs with {told.runs} runs each, loaded in {time.perf_counter() - began:,.0f} s")
            for name, took in measure(store, shape).items():
                found.setdefault(name, []).append((jobs, took))
            store.close()
            if told.postgres:
                break  # one database holds one size
        sizes = [jobs for jobs, _ in next(iter(found.values()))]
        notes.table(
            "growth",
            ("milliseconds at the median", *(f"{jobs:,} jobs" for jobs in sizes), "last to first"),
            [
                (name, *(f"{took:.1f}" for _, took in points), f"{points[-1][1] / points[0][1]:.1f} times")
                for name, points in found.items()
            ],
        )
        hub(told.postgres or f"sqlite:///{folder}/hub.db?synchronous=off", notes)
    some = ("graph, depth 20", "impact", "search", "graph of runs, up")
    notes.plot("growth", "line", "Questions, as the catalogue grows", "jobs", "ms", {name: found[name] for name in some})  # fmt: skip
    notes.keep()


main()
