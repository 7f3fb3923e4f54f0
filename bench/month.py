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
import threading
import time
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

from company import DAYS, TENTHS, Size
from headwater.store import open_store
from headwater.transport.spool import backlog, dead, drainer
from headwater.transport.spool.place import Place, places
from ledger import Ledger, joined
from noting import Notes
from sending import Asking, ask, cpu_of, memory_of

HERE = Path(__file__).resolve().parent
FULL = 3_000_000
BYTES = 8_000
"""What an event may take on disk at most, all copies together."""
BEGAN = time.perf_counter()


def say(text: str) -> None:
    """How far it is."""
    print(f"[{time.perf_counter() - BEGAN:6.0f} s] {text}", file=sys.stderr, flush=True)


# --- processes


class Accounts:
    """CPU and peak memory of processes by their role, those that were killed included."""

    def __init__(self) -> None:
        self._seen: dict[tuple[str, int], tuple[float, float]] = {}
        self._lock = threading.Lock()

    def look(self, role: str, pid: int) -> None:
        """Take note of a process, if it is still there."""
        with suppress(OSError, IndexError), self._lock:
            cpu, mb = cpu_of(pid), memory_of(pid)
            before = self._seen.get((role, pid), (0.0, 0.0))
            self._seen[role, pid] = (max(cpu, before[0]), max(mb, before[1]))

    def cpu(self, role: str) -> float:
        """CPU-seconds of all that had the role."""
        with self._lock:
            return sum(cpu for (name, _), (cpu, _) in self._seen.items() if name == role)

    def peak(self, role: str) -> float:
        """Megabytes of the largest that had the role."""
        with self._lock:
            return max((mb for (name, _), (_, mb) in self._seen.items() if name == role), default=0.0)


class Server:
    """A `headwater serve` that can be killed and comes back at the same port."""

    def __init__(self, store: str, folder: Path) -> None:
        from services import free_port  # of the tests

        self.store, self.port, self._log = store, free_port(), folder / "server.log"
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        command = [sys.executable, "-m", "headwater", "serve", "--store", self.store, "--port", str(self.port)]  # fmt: skip
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(command, stdout=log, stderr=log)
        until = time.monotonic() + 120
        while True:
            with suppress(OSError, AssertionError):
                ask(self.port, "/ready")
                return
            assert self._process.poll() is None, self._log.read_text()[-2000:]
            assert time.monotonic() < until, "the server does not get ready"
            time.sleep(0.05)

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    def kill(self) -> None:
        assert self._process is not None
        os.kill(self.pid, signal.SIGKILL)
        self._process.wait(20)

    def stop(self) -> None:
        if self._process is not None and self._process.poll() is None:
            self._process.terminate()
            self._process.wait(120)


class Host:
    """A process of `hosting`."""

    def __init__(self, number: int, of: int, events: int, seed: int, spool: Path, url: str, archive: Path) -> None:  # fmt: skip
        words = [str(each) for each in (number, of, events, seed, spool, url, archive)]
        self._process = subprocess.Popen(
            [sys.executable, str(HERE / "hosting.py"), *words],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={key: value for key, value in os.environ.items() if not key.startswith(("HEADWATER_", "OPENLINEAGE_"))},
        )  # fmt: skip

    def begin(self, tenth: int) -> None:
        assert self._process.stdin is not None
        print(f"tenth {tenth}", file=self._process.stdin, flush=True)

    def ended(self) -> dict[str, float]:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        assert line, "a host has ended before its month"
        told: dict[str, float] = json.loads(line)
        return told

    def end(self) -> None:
        assert self._process.stdin is not None
        print("end", file=self._process.stdin, flush=True)
        self._process.stdin.close()
        assert self._process.wait(60) == 0, "a host failed"

    def stop(self) -> None:
        if self._process.poll() is None:
            self._process.kill()
            self._process.wait(20)


def waits(spools: list[Path]) -> list[Place]:
    """The places in which events still wait; what little is left is read, to tell events from headers."""
    found = []
    for place in (each for spool in spools for each in places(spool)):
        size = backlog.total_bytes(place)
        if size > 1 << 20 or (size and next(backlog.waiting_events(place), None) is not None):
            found.append(place)
    return found


@dataclass
class Way:
    """From the hosts to the server: what is running, and what was seen of it."""

    server: Server
    spools: list[Path]
    hosts: list[Host]
    accounts: Accounts = field(default_factory=Accounts)
    killed: dict[str, Any] = field(default_factory=dict)
    helped: int = 0

    def look(self) -> None:
        """Take note of every process."""
        self.accounts.look("server", self.server.pid)
        for place in (each for spool in self.spools for each in places(spool)):
            told = drainer.state(place)
            if told is not None and drainer.drained(place):
                self.accounts.look("drainer", told.writer.pid)

    def deliver(self) -> None:
        """Wait until nothing waits. Who emits starts a drainer; where nobody does any more, an operator would."""
        alone = 0.0
        while left := waits(self.spools):
            self.look()
            busy = all(drainer.drained(place) for place in left)
            alone = 0.0 if busy else alone + 0.2
            if alone > 5:  # the last was killed after the last emit
                for place in left:
                    command = [sys.executable, "-m", "headwater", "spool", "drain", "--dir", str(place.folder.parent)]  # fmt: skip
                    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
                    self.helped += 1
                alone = 0.0
            time.sleep(0.2)

    def drainers(self) -> list[int]:
        """The drainers that are at work."""
        found = [each for spool in self.spools for each in places(spool) if drainer.drained(each)]
        return [told.writer.pid for each in found if (told := drainer.state(each)) is not None]

    def kill(self, what: str, after: float) -> threading.Thread:
        """Kill the server or a drainer after so many seconds, at work."""

        def do() -> None:
            time.sleep(after)
            self.look()
            if what == "server":
                self.server.kill()
                time.sleep(random.SystemRandom().uniform(0.2, 2))
                self.server.start()
                self.killed[what] = round(after, 2)
            elif pids := self.drainers():
                with suppress(ProcessLookupError):
                    os.kill(random.SystemRandom().choice(pids), signal.SIGKILL)
                    self.killed[what] = round(after, 2)

        thread = threading.Thread(target=do)
        thread.start()
        return thread

    def end(self) -> None:
        """End the drainers, which would wait for more."""
        pids = self.drainers()
        for pid in pids:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGTERM)
        until = time.monotonic() + 30
        while any(Path(f"/proc/{pid}").exists() for pid in pids) and time.monotonic() < until:
            time.sleep(0.05)


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
            "emit_rate": count / max(1e-9, sum(each["emitting"] for each in told)) ,
            "p50": median(each["p50"] for each in told),
            "p99": max(each["p99"] for each in told),
            "emit_cpu": 1000 * sum(each["cpu"] for each in told) / max(1, count),
            "host_mb": max(each["mb"] for each in told),
            **{f"{role}_cpu": 1000 * (way.accounts.cpu(role) - cpu[role]) / max(1, count) for role in cpu},
            "disk": disk_of(way.server.store),
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
    archive.mkdir()
    server = Server(url, folder)
    way = Way(server, spools, [])
    try:
        server.start()
        target = f"http://127.0.0.1:{server.port}"
        way.hosts += [Host(at, hosts, events, seed, spools[at % len(spools)], target, archive) for at in range(hosts)]  # fmt: skip
        say(f"{size.departments * 50:,} jobs of {size.departments} departments, {size.cycles} cycles in the month, {hosts} hosts")  # fmt: skip
        rows, ledger = live(way, size, archive)
        told = ledger.told
        say(f"{told['sent']:,} sent, {ledger.events.count:,} of them distinct, {told['late']:,} late, {told['disordered']:,} out of order; proving")  # fmt: skip
        letters = sum(1 for spool in spools for place in places(spool) for _ in dead.letters(place))
        wrong = [f"{letters} dead letters"] if letters else []
        more, incidents = proving.incidents(server.port, ledger)
        wrong += more
        way.look()
    finally:
        for host in way.hosts:
            host.stop()
        way.end()
        server.stop()
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
    cpu = {role: 1000 * way.accounts.cpu(role) / sent for role in ("drainer", "server")}
    emit = sent / sum(row["emitting"] for row in rows)
    notes.table(
        "stages",
        ("stage", "events/s", "CPU-s per 1,000", "peak MB of a process", "bytes on disk an event"),
        [
            ("emit, of one host", f"{emit:,.0f}", f"{sum(r['emit_cpu'] * r['events'] for r in rows) / sent:.3f}", f"{max(r['host_mb'] for r in rows):,.0f}", ""),
            ("drainer", "", f"{cpu['drainer']:.3f}", f"{way.accounts.peak('drainer'):,.0f}", ""),
            (f"server, {kind}", "", f"{cpu['server']:.3f}", f"{way.accounts.peak('server'):,.0f}", f"{disk / distinct:,.0f}"),
            ("hosts, drainers and server together", f"{sent / wall:,.0f}", "", "", ""),
            ("pipeline, Spark's start included", f"{sent / spark['wall']:,.0f}", f"{1000 * spark['cpu'] / sent:.3f}", f"{spark['mb']:,.0f} (all)", f"{tables / distinct:,.0f}"),
        ],
    )  # fmt: skip
    notes.table(
        "growth",
        ("after day", "events in all", "events/s", "server's CPU-s per 1,000", "emit p50, p99", "jobs", "graph, depth 20", "search", "incidents", "store"),
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
    notes = Notes("month", packages=("msgspec", "sqlalchemy", "pyspark", "zstandard"))
    given = parser.parse_args()
    events = FULL if given.full else given.events
    sys.path.append(str(HERE.parent / "tests"))
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
