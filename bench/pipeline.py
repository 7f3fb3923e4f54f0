"""pipeline: events -> tables on Spark, in plain Python and in DuckDB, by turns in one run; wall, CPU, memory, growth.

    python bench/pipeline.py [--full] [--rounds N] [--json FILE]

Each contestant is a process of its own, reads the same file of JSON lines and writes folded tables as Parquet. Python is
the house's own derivation and fold (`facts`), settled, in one process: the same work. DuckDB makes the same rows as far
as SQL does, on two threads; `duck` says what it leaves out. All three must count the same rows. The pipeline runs on
`local[2]` and is measured twice in one session: with its start, and warm; `compact` is counted in. CPU and memory are
those of the whole process tree. Of several rounds the one with the least CPU counts, for each contestant.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Sequence
from pathlib import Path

import duck
from noting import Notes
from stream import Shape, events
from watch import Watch, adopt

Figures = dict[str, float]
BEGAN = time.perf_counter()
COMPARED = (
    "jobs", "runs", "datasets", "inputs", "outputs", "edges", "schemas", "column_edges", "column_sources",
    "run_facets", "dataset_facets", "contents",
)  # fmt: skip


def tell(text: str) -> None:
    """How far it is."""
    print(f"[{time.perf_counter() - BEGAN:6.0f} s] {text}", file=sys.stderr, flush=True)


# --- the contestants: each a function of (source, folder), run in a process of its own


def python(source: str, folder: str) -> list[Figures]:
    import pyarrow as pa
    import pyarrow.parquet as parquet

    from headwater.event import parse
    from headwater.facts import TABLES, derive, fold, settle
    from headwater.naming import DEFAULT_RULES, Aliases
    from headwater.pipeline._columns import to_arrow

    watch = Watch()
    tables = fold(())
    with open(source, "rb") as lines:
        met: set[bytes] = set()
        for line in lines:
            event = parse(line)
            if event.digest not in met:
                met.add(event.digest)
                fold(derive(event), tables)
    settled = settle(tables, Aliases(DEFAULT_RULES))
    for name in TABLES:
        if settled[name]:
            rows = pa.Table.from_batches([to_arrow(name, settled[name])])
            parquet.write_table(rows, f"{folder}/{name}.parquet", compression="zstd")
    return [watch.stop() | {name: len(settled[name]) for name in COMPARED}]


def spark(source: str, folder: str) -> list[Figures]:
    from headwater import pipeline

    found = []
    watch = Watch()
    session = pipeline.open_session("local[2]")
    for turn in ("cold", "warm"):
        if turn == "warm":
            watch = Watch()
        sink = f"parquet://{folder}/{turn}"
        pipeline.run(session, source, sink)
        rows = pipeline.compact(session, sink)
        found.append(watch.stop() | {name: rows[name] for name in COMPARED})
    session.stop()
    return found


def duckdb(source: str, folder: str) -> list[Figures]:
    watch = Watch()
    rows = duck.make(source, folder)
    return [watch.stop() | {name: rows[name] for name in COMPARED}]


CONTESTANTS = {"python": python, "spark": spark, "duckdb": duckdb}
LABELS = {
    "python": ("plain Python",),
    "spark": ("Spark, with its start", "Spark, warm"),
    "duckdb": ("DuckDB",),
}


def measure(name: str, source: str, folder: str) -> list[Figures]:
    """One contestant, and all that it started, until the last has ended; the kernel's account is the check."""
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as faults:
        command = [sys.executable, __file__, "--contestant", name, source, folder]
        child = subprocess.Popen(command, stdout=out, stderr=faults)
        code, charged = 0, 0.0
        while True:
            try:
                pid, status, usage = os.wait4(-1, 0)
            except ChildProcessError:
                break
            charged += usage.ru_utime + usage.ru_stime
            code = os.waitstatus_to_exitcode(status) if pid == child.pid else code
        child.returncode = code
        out.seek(0)
        faults.seek(0)
        assert code == 0, faults.read().decode()[-2000:]
        found: list[Figures] = json.loads(out.read().splitlines()[-1])
    counted = sum(each["cpu"] for each in found)
    charged += found[-1]["disowned"]
    # what is outside of the measurement: importing, and, of Spark, its end; in which its Python workers may outlive their
    # parent, which ignores them, or not, and the kernel charges them only if they do
    assert counted <= charged + found[-1]["living"] + 0.5, (
        f"{name}: counted {counted:.1f} CPU-s, but the kernel charged {charged:.1f}"
    )
    assert counted >= 0.8 * charged - 5, (
        f"{name}: counted {counted:.1f} CPU-s of {charged:.1f} that were charged"
    )
    return found


def write(source: str, lines: Iterable[bytes], count: int) -> int:
    total = 0
    with open(source, "wb") as out:
        for line in lines:
            if total >= count:
                break
            out.write(line + b"\n")
            total += 1
    return total


def compare(count: int, size: int, rounds: int, base: str, notes: Notes) -> dict[str, Figures]:
    """All contestants by turns over the same events; the best round of each."""
    source, jobs = f"{base}/events.jsonl", 2_000 if count >= 10_000 else 100
    shape = Shape(jobs=jobs, runs=-(-count // (2 * jobs)), bytes=size)
    total = write(source, events(shape), count)
    each_size = os.path.getsize(source) / total / 1024
    best: dict[str, Figures] = {}
    for turn in range(rounds):
        for name in CONTESTANTS:
            for label, each in zip(LABELS[name], measure(name, source, f"{base}/{name}"), strict=True):
                tell(
                    f"{total:,} x {each_size:.1f} KB, round {turn + 1}: {label} {each['wall']:.1f} s, {each['cpu']:.1f} CPU-s"
                )
                if label not in best or each["cpu"] < best[label]["cpu"]:
                    best[label] = each
    rows = {label: [each[name] for name in COMPARED] for label, each in best.items()}
    assert len(set(map(tuple, rows.values()))) == 1, f"not the same rows of {COMPARED}: {rows}"
    plain, sql = best["plain Python"], best["DuckDB"]
    notes.table(
        f"{'wide' if size > 10_000 else 'narrow'} {count}",
        ("", "events/s", "wall s", "CPU-s", "peak MB", "wall / Python", "CPU / Python", "CPU / DuckDB"),
        (
            (
                label,
                f"{total / each['wall']:,.0f}",
                f"{each['wall']:.1f}",
                f"{each['cpu']:.1f}",
                f"{each['mb']:,.0f}",
                f"{each['wall'] / plain['wall']:.2f}",
                f"{each['cpu'] / plain['cpu']:.2f}",
                f"{each['cpu'] / sql['cpu']:.2f}",
            )
            for label, each in best.items()
        ),
        f"{total:,} events of {each_size:.1f} KB, {sum(rows['DuckDB']):,.0f} rows, the best of {rounds}:",
    )
    return best


def growth(sizes: Sequence[int], found: Sequence[dict[str, Figures]], notes: Notes) -> None:
    few, many = found[-2:]
    factor = sizes[-1] / sizes[-2]
    notes.table(
        "growth",
        ("", "wall", "CPU", "wall / linear", "CPU / linear", "peak memory"),
        (
            (
                label,
                *(f"{many[label][each] / few[label][each]:.2f} times" for each in ("wall", "cpu")),
                *(f"{many[label][each] / few[label][each] / factor:.2f}" for each in ("wall", "cpu")),
                f"{few[label]['mb']:,.0f} -> {many[label]['mb']:,.0f} MB",
            )
            for label in many
        ),
        f"From {sizes[-2]:,} to {sizes[-1]:,} events, {factor:.0f} times as many:",
    )
    plain, sql = many["plain Python"], many["DuckDB"]
    for label in ("Spark, warm", "Spark, with its start"):
        ours = many[label]
        notes.aim(f"{label}: at most 1.5 times plain Python's CPU", f"{ours['cpu'] / plain['cpu']:.2f} times", ours["cpu"] <= 1.5 * plain["cpu"])  # fmt: skip
        notes.aim(f"{label}: at most 3 times DuckDB's CPU", f"{ours['cpu'] / sql['cpu']:.2f} times", ours["cpu"] <= 3 * sql["cpu"])  # fmt: skip
        notes.aim(f"{label}: wall at most 0.9 of plain Python's", f"{ours['wall'] / plain['wall']:.2f}", ours["wall"] <= 0.9 * plain["wall"])  # fmt: skip
        steep = max(ours[each] / few[label][each] / factor for each in ("wall", "cpu"))
        notes.aim(f"{label}: growth at most 1.15 times linear", f"{steep:.2f}", steep <= 1.15)
    flat = many["Spark, warm"]["mb"] / few["Spark, warm"]["mb"]
    notes.aim("flat memory where the others grow", f"{flat:.2f} times, {factor:.0f} times the events", flat <= 1.1)  # fmt: skip
    notes.ratio("DuckDB, which does less", f"wall time of {sizes[-1]:,} events, warm", sql["wall"] / many["Spark, warm"]["wall"])  # fmt: skip
    notes.ratio("plain Python, the same work", f"wall time of {sizes[-1]:,} events, warm", plain["wall"] / many["Spark, warm"]["wall"])  # fmt: skip
    for name, each, y in (("cpu", "cpu", "CPU-seconds"), ("memory", "mb", "MB")):
        lines = {label: [(size, one[label][each]) for size, one in zip(sizes, found, strict=True)] for label in many}  # fmt: skip
        notes.plot(name, "line", f"Pipeline: {y} as events grow", "events of 2 KB", y, lines, log=True)


APPEND = """
import sys, time
began = time.perf_counter()
from headwater import pipeline
spark = pipeline.open_session("local[2]")
times = [time.perf_counter()]
pipeline.run(spark, sys.argv[1], sys.argv[2])
times.append(time.perf_counter())
pipeline.compact(spark, sys.argv[2])
times.append(time.perf_counter())
print(*(each - began for each in times))
"""


def append(base: str, history: int, notes: Notes) -> None:
    """1,000 new events on the tables that were made last: start, pass and write; then compaction, apart."""
    later = Shape(jobs=500, runs=1)
    write(f"{base}/new.jsonl", events(later), 1_000)
    sink = f"{base}/spark/warm"
    nothing = f"{base}/nothing"
    found = []
    for where in (sink, nothing):
        command = [sys.executable, "-c", APPEND, f"{base}/new.jsonl", f"parquet://{where}"]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        found.append([float(each) for each in done.stdout.split()])
    assert len(list(Path(sink, "_batches").glob("compact-*"))) == 1
    notes.table(
        "append",
        ("onto", "Spark's start s", "with the append s", "compaction, apart, s"),
        (
            (label, f"{start:.1f}", f"{whole:.1f}", f"{after - whole:.1f}")
            for label, (start, whole, after) in zip((f"{history:,} events", "nothing"), found, strict=True)
        ),
        "1,000 new events:",
    )
    notes.aim(f"1,000 new events onto {history:,} under 15 s with Spark's start", f"{found[0][1]:.1f} s", found[0][1] < 15)  # fmt: skip


def reach(edges: int, notes: Notes) -> None:
    """Reach up and down of every node of a layered graph."""
    import numpy as np
    import pyarrow as pa

    from headwater import pipeline
    from headwater.pipeline.measures import compute

    dice = np.random.default_rng(1)
    jobs = edges // 5
    per = max(1, jobs // 20)
    layer = np.arange(jobs) // per
    low, high = np.maximum(0, layer - 2) * per, (layer + 1) * per
    ins = (low[:, None] + dice.random((jobs, 4)) * (high - low)[:, None]).astype(np.int64).ravel()
    owner = np.repeat(np.arange(jobs), 4)
    table = pa.table(
        {
            "job": [f"j{i}" for i in [*owner, *range(jobs)]],
            "direction": ["in"] * len(ins) + ["out"] * jobs,
            "canonical": [f"d{i}" for i in [*ins, *(per + np.arange(jobs))]],
            "at": np.zeros(len(ins) + jobs, np.int64),
        }
    )
    session = pipeline.open_session("local[2]")
    watch = Watch()
    empty = pa.array([], pa.string())
    found = compute(session, table, empty, empty, 0)
    took = watch.stop()
    session.stop()
    deepest = max(found.column("reach_down").to_pylist())
    notes.say(
        f"Reach and impact of {found.num_rows:,} nodes over {table.num_rows:,} edges: {took['wall']:.1f} s,"
        f" {took['cpu']:.1f} CPU-s, {took['mb']:,.0f} MB (largest reach {deepest:,})."
    )
    notes.aim(f"reach over {edges:,} edges under 60 s", f"{took['wall']:.1f} s", took["wall"] < 60)


def main() -> None:
    adopt()
    if "--contestant" in sys.argv:
        name, source, folder = sys.argv[sys.argv.index("--contestant") + 1 :]
        print(json.dumps(CONTESTANTS[name](source, folder)))
        return
    notes = Notes("pipeline", packages=("pyspark", "duckdb", "pyarrow"))
    full = "--full" in sys.argv
    rounds = int(sys.argv[sys.argv.index("--rounds") + 1]) if "--rounds" in sys.argv else (3 if full else 1)
    wide, sizes = (50_000, (10_000, 200_000, 1_000_000)) if full else (2_000, (2_000, 20_000))
    with tempfile.TemporaryDirectory() as base:
        compare(wide, 13_312, min(rounds, 2), base, notes)
        found = [
            compare(size, 2048, min(rounds, 2) if size > 500_000 else rounds, base, notes) for size in sizes
        ]
        growth(sizes, found, notes)
        append(base, sizes[-1], notes)
    reach(1_000_000 if full else 50_000, notes)
    notes.keep()
    tell("done")


if __name__ == "__main__":
    main()
