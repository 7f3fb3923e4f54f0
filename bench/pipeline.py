"""pipeline: events -> tables on Spark, in plain Python and in DuckDB, by turns in one run; wall, CPU, memory, growth.

    python bench/pipeline.py [--full] [--rounds N]

Each contestant is a process of its own, reads the same file of JSON lines and writes Parquet. Python is the house's own
derivation and fold (`facts`), settled, so it is the same work. DuckDB does what SQL can of it: runs, edges, column
edges, inputs and outputs of every run; it decodes no facets, keeps no contents and settles nothing, so it does less.
The pipeline is measured warm (second run of a session) and with its start; `compact` folds and is counted in.
CPU counts the whole process tree.
"""

from __future__ import annotations

import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

from stream import Shape, events

TICKS, PAGE = os.sysconf("SC_CLK_TCK"), os.sysconf("SC_PAGE_SIZE")


def tree(pid: int) -> list[int]:
    """A process and all below it."""
    parents: dict[int, list[int]] = {}
    for each in Path("/proc").glob("[0-9]*"):
        try:
            parent = int((each / "stat").read_text().rsplit(")", 1)[1].split()[1])
        except OSError:
            continue
        parents.setdefault(parent, []).append(int(each.name))
    found, left = [], [pid]
    while left:
        found.append(left.pop())
        left += parents.get(found[-1], [])
    return found


class Watch:
    """CPU and memory of this process and all below, from now on."""

    def __init__(self) -> None:
        self.peak, self._done = 0, threading.Event()
        self._began, self._cpu = time.perf_counter(), self.cpu()
        self._thread = threading.Thread(target=self._look, daemon=True)
        self._thread.start()

    @staticmethod
    def cpu() -> float:
        total = 0
        for pid in tree(os.getpid()):
            try:
                fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
            except OSError:
                continue
            total += sum(int(each) for each in fields[11:15])  # its own, and of children that have ended
        return total / TICKS

    def _look(self) -> None:
        while not self._done.wait(0.2):
            memory = 0
            for pid in tree(os.getpid()):
                try:
                    memory += int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * PAGE
                except OSError:
                    continue
            self.peak = max(self.peak, memory)

    def stop(self) -> dict[str, float]:
        self._done.set()
        self._thread.join()
        peak = max(self.peak, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024)
        return {
            "wall": time.perf_counter() - self._began,
            "cpu": self.cpu() - self._cpu,
            "mb": peak / (1 << 20),
        }


# --- the contestants: each a function of (source, folder), run in a process of its own


def python(source: str, folder: str) -> list[dict[str, float]]:
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
            parquet.write_table(
                _table(to_arrow(name, settled[name])), f"{folder}/{name}.parquet", compression="zstd"
            )
    return [watch.stop() | {"runs": len(settled["runs"]), "edges": len(settled["edges"])}]


def _table(batch: object) -> object:
    import pyarrow as pa

    return pa.Table.from_batches([batch])


def spark(source: str, folder: str) -> list[dict[str, float]]:
    from headwater import pipeline

    watch = Watch()
    session = pipeline.open_session("local[2]")
    found = []
    for turn in ("cold", "warm"):
        if turn == "warm":
            watch = Watch()
        sink = f"parquet://{folder}/{turn}"
        pipeline.run(session, source, sink)
        rows = pipeline.compact(session, sink)
        found.append(watch.stop() | {"runs": rows["runs"], "edges": rows["edges"]})
    session.stop()
    return found


def duckdb(source: str, folder: str) -> list[dict[str, float]]:
    import duckdb as engine

    watch = Watch()
    base = engine.connect()
    base.execute("set threads=2; set preserve_insertion_order=false")
    side = '[{"namespace":"VARCHAR","name":"VARCHAR","facets":{"columnLineage":"JSON","schema":"JSON"}}]'
    shape = (
        '{"eventType":"VARCHAR","eventTime":"VARCHAR","run":{"runId":"VARCHAR","facets":"JSON"},'
        '"job":{"namespace":"VARCHAR","name":"VARCHAR"},"inputs":' + side + ',"outputs":' + side + "}"
    )
    lines = (
        f"read_csv('{source}', columns={{'line':'VARCHAR'}}, delim=chr(1), quote='', escape='', header=false,"
        " auto_detect=false, max_line_size=20000000)"
    )
    base.execute(
        f"create table ev as select e.run.runId run, e.job.namespace || chr(10) || e.job.name job, e.eventType kind,"
        f" e.eventTime seen, e.run.facets.parent parent, e.inputs ins, e.outputs outs from"
        f" (select json_transform(line, '{shape}') e from (select distinct line from {lines}) where json_valid(line))"
    )
    state = "max((case when kind in ('COMPLETE','FAIL','ABORT') then 1 else 0 end)::varchar || seen || kind)"
    io = "from (select run, job, seen, unnest({side}) d from ev) group by all"
    name = "d.namespace || chr(10) || d.name"
    statements = {
        "runs": f"select run, max(seen || job) job, min(seen) first_seen, max(seen) last_seen, {state} state,"
        " max(parent::varchar) parent from ev group by run",
        "inputs": f"select run, {name} dataset, min(seen) first_seen, max(seen) last_seen "
        + io.format(side="ins"),
        "outputs": f"select run, {name} dataset, min(seen) first_seen, max(seen) last_seen "
        + io.format(side="outs"),
        "edges": f"select job, 'in' direction, {name} dataset, min(seen) a, max(seen) b "
        + io.format(side="ins")
        + f" union all select job, 'out', {name}, min(seen), max(seen) "
        + io.format(side="outs"),
        "column_edges": f"select job, {name} dataset, md5(d.facets.columnLineage::varchar) fingerprint, min(seen) a, max(seen) b "
        + io.format(side="outs"),
        "schemas": f"select {name} dataset, md5(d.facets.schema::varchar) s, min(seen) a, max(seen) b "
        + io.format(side="ins"),
        "jobs": "select job, min(seen) first_seen, max(seen) last_seen from ev group by job",
    }
    for table, query in statements.items():
        base.execute(f"copy ({query}) to '{folder}/{table}.parquet' (compression zstd)")
    runs, edges = (
        base.execute(f"select count(*) from '{folder}/{table}.parquet'").fetchone()[0]  # type: ignore[index]
        for table in ("runs", "edges")
    )
    return [watch.stop() | {"runs": runs, "edges": edges}]


CONTESTANTS = {"python": python, "spark": spark, "duckdb": duckdb}


def measure(name: str, source: str, folder: str) -> list[dict[str, float]]:
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)
    command = [sys.executable, __file__, "--contestant", name, source, folder]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    found: list[dict[str, float]] = json.loads(done.stdout.splitlines()[-1])
    return found


def compare(count: int, size: int, rounds: int, base: str) -> dict[str, dict[str, float]]:
    source, total = f"{base}/events.jsonl", 0
    with open(source, "wb") as out:
        for line in events(
            Shape(jobs=2_000 if count >= 10_000 else 100, runs=max(1, count // 4_000), bytes=size)
        ):
            if total >= count:
                break
            out.write(line + b"\n")
            total += 1
    print(f"\n{total:,} events, {os.path.getsize(source) / total / 1024:.1f} KB each", flush=True)
    best: dict[str, dict[str, float]] = {}
    for _ in range(rounds):
        for name in CONTESTANTS:
            found = measure(name, source, f"{base}/{name}")
            for label, each in zip((name, f"{name}, warm"), found, strict=False):
                if label not in best or each["wall"] < best[label]["wall"]:
                    best[label] = each
    floor = best["python"]
    for label, each in best.items():
        print(
            f"  {label:14} {total / each['wall']:>9,.0f} events/s  {each['wall']:7.1f} s  {each['cpu']:7.1f} CPU-s"
            f"  {each['mb']:7,.0f} MB   {each['wall'] / floor['wall']:5.2f} x wall  {each['cpu'] / floor['cpu']:5.2f} x CPU"
            f"   {each['runs']:,} runs {each['edges']:,} edges",
            flush=True,
        )
    return best


def append(base: str, history: int) -> None:
    """1,000 new events on a history: start, pass and write, without compaction."""
    with open(f"{base}/new.jsonl", "wb") as out:
        for line in list(events(Shape(jobs=500, runs=1)))[:1000]:
            out.write(line + b"\n")
    code = (
        "import time, sys; began = time.perf_counter()\nfrom headwater import pipeline\n"
        "spark = pipeline.open_session('local[2]')\nstart = time.perf_counter() - began\n"
        "pipeline.run(spark, sys.argv[1], sys.argv[2]); print(start, time.perf_counter() - began)"
    )
    command = [sys.executable, "-c", code, f"{base}/new.jsonl", f"parquet://{base}/spark/warm"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    start, whole = map(float, done.stdout.split())
    print(
        f"\n1,000 events onto a history of {history:,}: {whole:.1f} s, of which Spark's start {start:.1f} s"
    )


def reach(edges: int) -> None:
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
    print(
        f"\nreach and impact of {found.num_rows:,} nodes over {table.num_rows:,} edges: {took['wall']:.1f} s,"
        f" {took['cpu']:.1f} CPU-s, {took['mb']:,.0f} MB (largest reach {deepest:,})"
    )


def main() -> None:
    if "--contestant" in sys.argv:
        name, source, folder = sys.argv[sys.argv.index("--contestant") + 1 :]
        print(json.dumps(CONTESTANTS[name](source, folder)))
        return
    full = "--full" in sys.argv
    rounds = int(sys.argv[sys.argv.index("--rounds") + 1]) if "--rounds" in sys.argv else (2 if full else 1)
    wide, sizes = (50_000, (10_000, 200_000, 1_000_000)) if full else (2_000, (2_000, 20_000))
    with tempfile.TemporaryDirectory() as base:
        compare(wide, 13_312, rounds, base)
        found = [compare(size, 2048, rounds, base) for size in sizes]
        factor = sizes[-1] / sizes[-2]
        for label in found[-1]:
            growth = found[-1][label]["wall"] / found[-2][label]["wall"]
            print(f"  {label:14} {growth:5.2f} times the time for {factor:.0f} times the events")
        append(base, sizes[-1])
    reach(1_000_000 if full else 50_000)


main()
