"""graph: a catalogue of 20,000 jobs -> how long up- and downstream of a dataset take, as runs grow tenfold.

    python bench/graph.py [--full] [--json FILE]      --full: 20,000 jobs with 1 and with 10 runs each; else a tenth of it

The floor, measured in the same run, is a breadth-first walk over the same edges held in Python dictionaries.
"""

from __future__ import annotations

import random
import statistics
import sys
import tempfile
import time
from collections import defaultdict

from headwater.facts.flows import When
from headwater.ingest import ingest_all
from headwater.query.lineage import lineage
from headwater.store import open_store
from noting import Notes
from stream import Shape, events


def load(shape: Shape, folder: str):
    store = open_store(f"sqlite:///{folder}/{shape.jobs}x{shape.runs}.db", synchronous="off")
    began = time.perf_counter()
    for _ in ingest_all(store, events(shape), size=2_000):
        pass
    took = time.perf_counter() - began
    counts = store.counts()
    print(
        f"{counts['jobs']:,} jobs, {counts['runs']:,} runs, {counts['log']:,} events loaded in {took:,.0f} s"
    )
    return store


def floor(shape: Shape):
    """The same edges in dictionaries: what any walk must pay."""
    out, into, reads, writes = (defaultdict(set) for _ in range(4))
    for job in range(shape.jobs):
        c, layer, position = shape.place(job)
        for i in range(2):
            into[shape.table(c, layer, position + i)].add(job)
            reads[job].add(shape.table(c, layer, position + i))
        out[shape.table(c, layer + 1, position)].add(job)
        writes[job].add(shape.table(c, layer + 1, position))

    def walk(name: str) -> int:
        seen = {name}
        for near, far in ((out, reads), (into, writes)):
            edge = {name}
            while edge:
                edge = {d for t in edge for j in near[t] for d in far[j]} - seen
                seen |= edge
        return len(seen)

    return walk


def median(ask, names: list[str]) -> float:
    ask(names[0])
    times = []
    for name in names:
        began = time.perf_counter()
        ask(name)
        times.append(time.perf_counter() - began)
    return statistics.median(times) * 1000


def main() -> None:
    notes = Notes("graph", packages=("sqlalchemy",))
    jobs = 20_000 if "--full" in sys.argv else 2_000
    pick = random.Random(7)
    rows, lines = [], {"now": [], "as of a past time": [], "with columns": []}
    with tempfile.TemporaryDirectory() as folder:
        medians = {}
        for runs in (1, 10):
            shape = Shape(jobs=jobs, runs=runs, bytes=1500, starts=False)
            store = load(shape, folder)
            names = [
                "postgres://warehouse:5432/"
                + shape.table(pick.randrange(shape.jobs // 100), 10, pick.randrange(5))
                for _ in range(50)
            ]
            size = len(lineage(store, names[0])["nodes"])
            now = median(lambda name, store=store: lineage(store, name, depth=20), names)
            past = When(until=1767225600_000000 + 3 * 3600_000000)
            old = median(
                lambda name, store=store, past=past: lineage(store, name, depth=20, when=past), names
            )
            columns = median(
                lambda name, store=store: lineage(store, name, depth=20, columns=True), names[:20]
            )
            least = median(floor(shape), [name.removeprefix("postgres://warehouse:5432/") for name in names])
            medians[runs] = now
            total = shape.jobs * runs
            rows.append(
                (f"{total:,}", *(f"{each:.1f} ms" for each in (now, old, columns)), f"{least:.2f} ms")
            )
            for points, each in zip(lines.values(), (now, old, columns), strict=True):
                points.append((total, each))
            store.close()
    notes.say(f"Depth 20, both ways from a dataset in the middle of {jobs:,} jobs: {size} nodes.")
    notes.table("growth", ("runs", "now", "as of a past time", "with columns", "dictionaries"), rows)
    times = medians[10] / medians[1]
    notes.aim(
        "a graph of depth 20 under 20 ms", f"{max(medians.values()):.1f} ms", max(medians.values()) < 20
    )
    notes.aim("at most 1.5 times the time with tenfold runs", f"{times:.2f} times", times <= 1.5)
    notes.plot("growth", "line", "A graph of depth 20, as runs grow", "runs", "ms", lines)
    notes.keep()


main()
