"""month: a month of a large company, through spools, server and pipeline -> that nothing is lost, and what each stage costs.

    python bench/month.py [--events 10000] [--full] [--store URL] [--hosts 4] [--seed 1] [--json FILE]

At full size 3,000,000 events of 5,000 jobs, of Spark, Kafka Connect, dlt and Airflow (`company` says what happens in it). Hosts in
processes of their own emit one event at a time into two spools; the drainers that this starts deliver to a `headwater serve`; `headwater
pipeline run` makes tables of the same lines. On the way the server and a drainer are killed (-9), each at a moment that no seed knows.

Proven at the end, or the exit code is 1: each distinct event is in the log once (a count and a sum of digests, against the generator's
own ledger); runs by their last state, jobs, datasets, edges, tests and incidents are those that the generator says; and every table of
the server is that of the pipeline. After each tenth of the month: how fast it went, and how long a list of jobs, a graph of depth
20, a search and the incidents take. Tables go to stdout, progress to stderr.
"""

from __future__ import annotations

import argparse
import json
import os
import pickle
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path
from statistics import median
from typing import Any

from company import DAYS, TENTHS, Size
from headwater.store import open_store
from headwater.transport.spool import dead
from headwater.transport.spool.place import places
from ledger import Ledger, joined
from living import HERE, Host, Server, Way
from noting import Notes
from sending import Asking, own_memory_of

FULL = 3_000_000
BYTES = 5_000
"""What an event may take on disk at most, all copies together."""
BEGAN = time.perf_counter()


def say(text: str) -> None:
    """How far it is."""
    print(f"[{time.perf_counter() - BEGAN:6.0f} s] {text}", file=sys.stderr, flush=True)


# --- what is measured after each tenth


def asked(server: Server, size: Size) -> dict[str, float]:
    """Milliseconds at the median of what people ask."""
    import proving

    dice = random.Random(7)
    paths = {
        "jobs": lambda: "/api/v1/namespaces/spark/jobs?limit=25&offset=0",
        "graph": lambda: f"/hw/v1/graph?node={proving.node(dice.randrange(size.departments))}&depth=20",
        "search": lambda: f"/hw/v1/search?q=d{dice.randrange(size.departments):03d}_t{dice.randrange(6)}2",
        "incidents": lambda: "/hw/v1/incidents?limit=25",
    }
    asking = Asking(server.port)
    found = {}
    try:
        for name, path in paths.items():
            times = []
            for number in range(23 if name != "incidents" else 8):
                wanted = path()
                began = time.perf_counter()
                asking.get(wanted)
                if number >= 3:
                    times.append(1000 * (time.perf_counter() - began))
            found[name] = median(times)
    finally:
        asking.close()
    return found


def disk_of(url: str) -> int:
    """Bytes that a store takes."""
    if url.startswith("sqlite:///"):
        file = Path(url.removeprefix("sqlite:///").partition("?")[0])
        return sum(each.stat().st_size for each in file.parent.glob(f"{file.name}*"))
    import psycopg

    with psycopg.connect(url.partition("?")[0], autocommit=True) as admin:
        admin.execute("CHECKPOINT")
        return int(admin.execute("SELECT pg_database_size(current_database())").fetchone()[0])  # type: ignore[index]


def live(way: Way, size: Size, archive: Path) -> tuple[list[dict[str, float]], Ledger]:
    """The month, tenth by tenth; two of them with a death in them."""
    chance = random.SystemRandom()
    deaths = dict(zip(chance.sample(range(1, TENTHS), 2), ("server", "drainer"), strict=True))
    rows: list[dict[str, float]] = []
    sent = 0
    for tenth in range(TENTHS):
        way.look()  # what was asked after the last is no part of this one
        began, cpu = time.perf_counter(), {role: way.accounts.cpu(role) for role in ("server", "drainer")}
        for host in way.hosts:
            host.begin(tenth)
        killing = None
        if tenth in deaths:
            usual = median(row["seconds"] for row in rows if not row["died"])
            killing = way.kill(deaths[tenth], usual * chance.uniform(0.05, 0.7))
        told = []
        for host in way.hosts:
            told.append(host.ended())
            way.look()
        emitted = time.perf_counter() - began
        if killing is not None:
            killing.join()
        way.deliver()
        took = time.perf_counter() - began
        way.look()
        count = sum(int(each["sent"]) for each in told)
        sent += count
        row = {
            "tenth": tenth + 1,
            "sent": sent,
            "events": count,
            "seconds": took,
            "emitted": emitted,
            "rate": count / took,
            "emitting": sum(each["emitting"] for each in told),
            "p50": median(each["p50"] for each in told),
            "p99": max(each["p99"] for each in told),
            "emit_cpu": 1000 * sum(each["cpu"] for each in told) / max(1, count),
            "host_mb": max(each["mb"] for each in told),
            **{f"{role}_cpu": 1000 * (way.accounts.cpu(role) - cpu[role]) / max(1, count) for role in cpu},
            "disk": disk_of(way.server.store),
            "server_mb": own_memory_of(way.server.pid),
            "died": deaths.get(tenth, ""),
            **asked(way.server, size),
        }  # fmt: skip
        rows.append(row)
        died = f", the {deaths[tenth]} was killed" if tenth in deaths else ""
        say(
            f"day {DAYS * (tenth + 1) // TENTHS}: {count:,} events in {took:.1f} s, {count / took:,.0f}/s{died};"
            f" jobs {row['jobs']:.0f} ms, graph {row['graph']:.0f} ms, search {row['search']:.0f} ms"
        )
    for host in way.hosts:
        host.end()
    way.deliver()
    for what in deaths.values():
        assert what in way.killed, f"the {what} was never killed at work"
    return rows, joined(pickle.loads(each.read_bytes()) for each in sorted(archive.parent.glob("*.ledger")))


# --- the pipeline


PIPED = """
import json, subprocess, sys
from watch import Watch, adopt
adopt()
watch = Watch()
done = subprocess.run([sys.executable, "-m", "headwater", "pipeline", "run", "--source", sys.argv[1], "--sink", sys.argv[2],
                       "--master", "local[2]", "--json"], stdout=subprocess.PIPE, check=False)
assert done.returncode == 0, done.returncode
print(json.dumps(watch.stop() | {"report": json.loads(done.stdout)}))
"""


def piped(archive: Path, folder: Path) -> tuple[str, dict[str, Any]]:
    """Tables of the same lines, by the command; where they are, and what it took with Spark's start."""
    sink = f"parquet://{folder}/tables"
    command = [sys.executable, "-c", PIPED, str(archive), sink]
    paths = os.pathsep.join([str(HERE), *filter(None, [os.environ.get("PYTHONPATH")])])
    done = subprocess.run(command, stdout=subprocess.PIPE, check=False, env={**os.environ, "PYTHONPATH": paths})  # fmt: skip
    assert done.returncode == 0, "the pipeline failed"
    told: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return sink, told


# --- the whole


def month(events: int, hosts: int, seed: int, store: str | None, folder: Path, notes: Notes) -> list[str]:
    """Everything; what is wrong."""
    import proving
    from headwater import pipeline

    size = Size.of(events, seed)
    url, hosts = store or f"sqlite:///{folder}/month.db", min(hosts, size.departments)
    opened = open_store(url)
    assert opened.counts()["log"] == 0, f"the store is not empty: {url}"
    opened.close()
    empty = disk_of(url)
    archive, spools = folder / "archive", [folder / "spool-0", folder / "spool-1"][: min(2, hosts)]
    for each in (archive, *spools):
        each.mkdir()
    server = Server(url, folder)
    way = Way(server, spools, [])
    with ExitStack() as ends:  # each is done, whatever became of the others
        ends.callback(server.stop)
        ends.callback(way.end)
        server.start()
        target = f"http://127.0.0.1:{server.port}"
        way.hosts += [Host(at, hosts, events, seed, spools[at % len(spools)], target, archive) for at in range(hosts)]  # fmt: skip
        for host in way.hosts:
            ends.callback(host.stop)
        say(f"{size.departments * 50:,} jobs of {size.departments} departments, {size.cycles} cycles in the month, {hosts} hosts")  # fmt: skip
        rows, ledger = live(way, size, archive)
        told = ledger.told
        say(f"{told['sent']:,} sent, {ledger.events.count:,} of them distinct, {told['late']:,} late, {told['disordered']:,} out of order; proving")  # fmt: skip
        letters = sum(1 for spool in spools for place in places(spool) for _ in dead.letters(place))
        wrong = [f"{letters} dead letters"] if letters else []
        more, incidents = proving.incidents(proving.over_http(server.port), ledger)
        wrong += more
    disk = disk_of(url) - empty
    opened = open_store(url)
    more, found = proving.against(opened, ledger)
    opened.close()
    wrong += more
    say("what the server holds is what the generator says" if not wrong else "; ".join(wrong))
    sink, spark = piped(archive, folder)
    say(f"pipeline: {told['sent'] / spark['wall']:,.0f} events/s with Spark's start; comparing tables")
    small = ledger.told["sent"] < 100_000
    session = pipeline.open_session("local[2]", {"spark.sql.shuffle.partitions": "2"} if small else {})
    try:
        more, compared = proving.equal(url, session, sink, whole=small)
    finally:
        session.stop()
    wrong += more
    tables = sum(each.stat().st_size for each in Path(sink.removeprefix("parquet://")).rglob("*") if each.is_file())  # fmt: skip
    tell(notes, way, size, rows, ledger, found | {"incidents": incidents}, disk, spark, tables, compared, store)  # fmt: skip
    return wrong


def tell(notes: Notes, way: Way, size: Size, rows: list[dict[str, float]], ledger: Ledger, found: dict[str, Any], disk: int, spark: dict[str, Any], tables: int, compared: int, store: str | None) -> None:  # fmt: skip
    """The tables, the curves and the aims."""
    told, distinct = ledger.told, ledger.events.count
    sent, wall = told["sent"], sum(row["seconds"] for row in rows)
    mean = told["bytes"] / sent / 1000
    kind = "Postgres" if store else "SQLite"
    states, incidents = found["states"], found["incidents"]
    notes.say(
        f"{sent:,} events of {mean:.1f} KB at the mean, {distinct:,} of them distinct ({told['repeats']:,} came twice,"
        f" {told['late']:,} hours to days late, {told['disordered']:,} behind a younger one); {found['jobs']:,} jobs, {ledger.runs.count:,} runs"
        f" ({', '.join(f'{count:,} {state}' for state, count in states.items())}), {found['datasets']:,} datasets, {found['edges']:,} edges,"
        f" {sum(incidents.values()):,} incidents ({', '.join(f'{count:,} {what}' for what, count in incidents.items())})."
        f" Killed on the way: {' and '.join(f'the {what}' for what in sorted(way.killed))}."
    )
    cpu = {role: sum(row[f"{role}_cpu"] * row["events"] for row in rows) / sent for role in ("drainer", "server")}  # fmt: skip
    emit = sent / sum(row["emitting"] for row in rows)

    def memory(role: str) -> str:
        peak = way.accounts.peak(role)
        return f"{peak.own:,.0f} ({peak.mb:,.0f})"

    notes.table(
        "stages",
        ("stage", "events/s", "CPU-s per 1,000", "peak MB of a process (with pages of files)", "bytes on disk an event"),
        [
            ("emit, of one host", f"{emit:,.0f}", f"{sum(r['emit_cpu'] * r['events'] for r in rows) / sent:.3f}", f"{max(r['host_mb'] for r in rows):,.0f}", ""),
            ("drainer", f"{1000 / max(cpu['drainer'], 0.001):,.0f} a CPU-second", f"{cpu['drainer']:.3f}", memory("drainer"), ""),
            (f"server, {kind}", f"{1000 / max(cpu['server'], 0.001):,.0f} a CPU-second", f"{cpu['server']:.3f}", memory("server"), f"{disk / distinct:,.0f}"),
            ("hosts, drainers and server together", f"{sent / wall:,.0f}", "", "", ""),
            ("pipeline, Spark's start included", f"{sent / spark['wall']:,.0f}", f"{1000 * spark['cpu'] / sent:.3f}", f"{spark['mb']:,.0f} (all)", f"{tables / distinct:,.0f}"),
        ],
    )  # fmt: skip
    notes.table(
        "growth",
        ("after day", "events in all", "events/s", "server's CPU-s per 1,000", "emit p50, p99", "jobs", "graph, depth 20", "search", "incidents", "server's own memory", "store"),
        [
            (
                f"{DAYS * int(r['tenth']) // TENTHS}" + (f" ({r['died']} killed)" if r["died"] else ""),
                f"{r['sent']:,}",
                f"{r['rate']:,.0f}",
                f"{r['server_cpu']:.3f}",
                f"{1000 * r['p50']:.2f}, {1000 * r['p99']:.2f} ms",
                f"{r['jobs']:.1f} ms",
                f"{r['graph']:.1f} ms",
                f"{r['search']:.1f} ms",
                f"{r['incidents']:.1f} ms",
                f"{r['server_mb']:,.0f} MB",
                f"{r['disk'] / 1e6:,.0f} MB",
            )
            for r in rows
        ],
    )  # fmt: skip
    notes.say(f"{compared:,} rows of the server's tables were compared with the pipeline's.")
    days = [DAYS * int(r["tenth"]) / TENTHS for r in rows]
    notes.plot(
        "rate", "line", "A month: events a second, hosts to store", "day", "events/s",
        {"whole way": list(zip(days, (r["rate"] for r in rows), strict=True))},
    )  # fmt: skip
    notes.plot(
        "reads", "line", "A month: milliseconds of an answer, as the store grows", "day", "ms",
        {name: list(zip(days, (r[name] for r in rows), strict=True)) for name in ("jobs", "graph", "search", "incidents")},
    )  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog="--json FILE writes the figures there, too",
    )
    parser.add_argument("--events", type=int, default=10_000, help="about how many (10,000)")
    parser.add_argument("--full", action="store_true", help=f"{FULL:,} events")
    parser.add_argument("--store", help="the url of an empty Postgres; else SQLite in a file of its own")
    parser.add_argument("--hosts", type=int, default=4, help="processes that emit (4)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--folder", type=Path, help="where it may write; else a temporary directory")
    notes = Notes(
        "month", packages=("msgspec", "sqlalchemy", "pyspark", "zstandard"), untold=("--folder", "--store")
    )
    given = parser.parse_args()
    events = FULL if given.full else given.events
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # then what was started is ended, too
    with tempfile.TemporaryDirectory(prefix="headwater-month-", dir=given.folder) as text:
        free = shutil.disk_usage(text).free
        if free < BYTES * events:
            sys.exit(f"{text} has room for {free / 1e9:.1f} GB, and {BYTES * events / 1e9:.1f} may be needed: name another --folder")  # fmt: skip
        wrong = month(events, given.hosts, given.seed, given.store, Path(text), notes)
    notes.aim("each distinct event in the log once, after kill -9 of server and drainer", "none lost, none twice" if not wrong else "see the bench's output", not wrong)  # fmt: skip
    for each in wrong:
        print(f"WRONG: {each}", file=sys.stderr)
    if wrong:
        sys.exit(1)
    print("\nNothing is lost, and all agree.")
    notes.keep()


if __name__ == "__main__":
    main()
