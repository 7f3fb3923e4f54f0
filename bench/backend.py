"""backend: the server on SQLite and on Postgres -> what taking and asking cost, beside data-rentgen and Marquez.

    python bench/backend.py [--full] [--only ingest reads incidents] [--stores sqlite postgres] [--marquez URL] [--json FILE]

ingest     events of 2 and 13 KB, one a request with one and with four clients, and in batches of 100. Beside it, on the
           same Postgres, data-rentgen's consumer in an environment of its own (Python 3.12 or newer, else it is skipped
           and says so), and a Marquez where its url is given; else Marquez stands with what was once measured.
reads      a catalogue of 1,000, 5,000 and 20,000 jobs with 20 runs each: graph, columns, lists, search; medians over HTTP
incidents  the list and one incident, with 1, 10 and 100 runs for each job

Postgres keeps its promises here (fsync on). CPU is that of the server and of its database. Tables go to stdout;
progress to stderr.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from urllib.parse import quote

ROOT = Path(__file__).resolve().parents[1]
sys.path += [str(ROOT / "tests"), str(ROOT / "scripts")]

import pythons  # noqa: E402

from headwater.ingest import ingest_all  # noqa: E402
from headwater.store import open_store  # noqa: E402
from noting import Notes  # noqa: E402
from sending import Asking, cpu_of, ingest_requests, memory_of, send, serving, tree_of  # noqa: E402
from services import PostgresServer, postgres_bin  # noqa: E402
from stream import FACETS, PRODUCER, START, Shape, events, run_id  # noqa: E402

MARQUEZ = {(2, 1): (37.6, 24.5), (2, 4): (61.0, 28.0), (13, 1): (11.0, 76.0), (13, 4): (14.7, 98.0)}
"""Marquez 0.51 on PostgreSQL 15, measured once on two quiet cores: (KB, clients) -> events/s, CPU-s per 1,000."""
RENTGEN = "data-rentgen[server,consumer,postgres]==0.7.2"


@dataclass(frozen=True)
class Place:
    """Where a store is: its url, the processes behind it, and what it takes on disk."""

    url: str
    pids: Callable[[], list[int]]
    size: Callable[[], int]


@contextmanager
def place(kind: str, folder: Path) -> Iterator[Place]:
    """An empty store of a kind."""
    if kind == "sqlite":
        with tempfile.TemporaryDirectory(dir=folder) as own:
            file = Path(own, "x.db")
            yield Place(
                f"sqlite:///{file}", list, lambda: sum(each.stat().st_size for each in file.parent.iterdir())
            )
        return
    with tempfile.TemporaryDirectory(prefix="hwpg") as own:  # short, for the socket
        server = PostgresServer(Path(own), durable=True)
        with server.running():
            yield from _database(server)


def _database(server: PostgresServer) -> Iterator[Place]:
    import psycopg

    url = f"postgresql://postgres@127.0.0.1:{server.port}"
    with psycopg.connect(f"{url}/postgres", autocommit=True) as admin:
        admin.execute("CREATE DATABASE bench")

        def size() -> int:
            admin.execute("CHECKPOINT")
            return int(admin.execute("SELECT pg_database_size('bench')").fetchone()[0])  # type: ignore[index]

        yield Place(f"{url}/bench", lambda: tree_of(server.pid), size)


# --- taking


def measure_ingest(kinds: list[str], scale: float, marquez: str | None, folder: Path, notes: Notes) -> None:
    """Tables of what an event costs on its way in."""
    disks: dict[str, float] = {}
    lines_drawn: dict[str, list[tuple[str, float]]] = {}
    for kilobytes, count in ((2, 8_000), (13, 4_000)):
        shape = Shape(jobs=100, runs=max(1, int(count * scale) // 200), bytes=kilobytes * 1024)
        lines = list(events(shape))
        raw = sum(map(len, lines))
        rates: dict[tuple[str, int, int], float] = {}
        costs: dict[tuple[str, int, int], float] = {}
        table: list[tuple[str, ...]] = []
        for kind in kinds:
            for clients, batch in ((1, 1), (4, 1), (1, 100), (4, 100)):
                say(f"{kind}, {clients} clients, batches of {batch}")
                sent = lines if batch > 1 else lines[: max(400, len(lines) // 4)]
                with place(kind, folder) as where:
                    with serving(where.url) as (port, pid):
                        send(port, ingest_requests(lines[:2], 1))
                        empty, before = where.size(), cpu_of(pid, *where.pids())
                        took = send(port, ingest_requests(sent, batch), clients)
                        cpu, memory = cpu_of(pid, *where.pids()) - before, memory_of(pid)
                    size = where.size() - empty  # the server is gone: its log of writes is in the file
                rates[kind, clients, batch] = len(sent) / took
                costs[kind, clients, batch] = 1000 * cpu / len(sent)
                weight = sum(map(len, sent)) / 1024
                if batch > 1 and clients == 1:
                    disks[f"{kind}, {kilobytes} KB"] = size / weight
                name = f"{kind}, {clients} client{'s'[: clients > 1]}, {'one a request' if batch == 1 else f'batches of {batch}'}"  # fmt: skip
                disk = f"{size / weight:,.0f} bytes" if batch > 1 else ""
                table.append((name, f"{len(sent) / took:,.0f}", f"{1000 * cpu / len(sent):.2f}", f"{memory:,.0f} MB", disk))  # fmt: skip
        peer = measure_rentgen(lines[: max(400, len(lines) // 4)], folder) if "postgres" in kinds else None
        label = f"{kilobytes} KB"
        for kind in kinds:
            lines_drawn.setdefault(f"{kind}, batches", []).append((label, rates[kind, 1, 100]))
            lines_drawn.setdefault(f"{kind}, one a request", []).append((label, rates[kind, 1, 1]))
        if peer is not None:
            table.append(("data-rentgen 0.7.2, batches of 100", f"{peer['rate']:,.0f}", f"{peer['cpu']:.2f}", "", f"{peer['disk']:,.0f} bytes"))  # fmt: skip
            lines_drawn.setdefault("data-rentgen, batches", []).append((label, peer["rate"]))
            for kind in kinds:
                times = rates[kind, 1, 100] / peer["rate"]
                notes.ratio("data-rentgen 0.7.2", f"events/s of {label} in batches, {kind}", times)
                if kilobytes == 13:
                    wanted = 10 if kind == "postgres" else 20
                    notes.aim(f"{wanted} times data-rentgen's rate at 13 KB, {kind}", f"{times:.1f} times", times >= wanted)  # fmt: skip
        notes.table(f"in {kilobytes} KB", (f"events of {raw / len(lines) / 1024:.1f} KB", "events/s", "CPU-s per 1,000", "memory of the server", "disk per KB of event"), table)  # fmt: skip
        if "sqlite" in kinds:
            most = max(costs["sqlite", clients, 1] for clients in (1, 4))
            notes.aim(f"at most 2 CPU-s per 1,000 events of {label}, one a request, SQLite", f"at most {most:.2f}", most <= 2)  # fmt: skip
        for clients in (1, 4):
            if marquez is not None:
                part = lines[:200]
                port = int(marquez.rsplit(":", 1)[1].strip("/"))
                theirs, how = len(part) / send(port, ingest_requests(part, 1), clients), "in this run"
            else:
                theirs, how = MARQUEZ[kilobytes, clients][0], "as once measured"
            for kind in kinds:
                times = rates[kind, clients, 1] / theirs
                notes.ratio(f"Marquez 0.51, {how}", f"events/s of {label} one a request, {clients} client(s), {kind}", times)  # fmt: skip
                wanted = 20 if kilobytes == 2 else 50
                if clients == 1 and kind == "sqlite":
                    notes.aim(f"{wanted} times Marquez' rate at {label}, one a request, SQLite", f"{times:.0f} times", times >= wanted)  # fmt: skip
    most = max(disks.values(), default=0.0)
    notes.aim("at most 600 bytes of disk per KB of event", ", ".join(f"{each:,.0f} ({name})" for name, each in disks.items()), most <= 600)  # fmt: skip
    notes.plot("in", "bar", "Backend: events a second, one client", "size of an event", "events/s", lines_drawn, log=True)  # fmt: skip


def measure_rentgen(lines: list[bytes], folder: Path) -> dict[str, float] | None:
    """The same events through data-rentgen's consumer; nothing, with the reason said, where it cannot run."""
    python = rentgen_python()
    if python is None:
        return None
    file = folder / "events.jsonl"
    file.write_bytes(b"\n".join(lines))
    with place("postgres", folder) as where:
        dsn = where.url.replace("postgresql://postgres@", "postgresql+asyncpg://postgres:x@")
        environment = {**os.environ, "RENTGEN_DSN": dsn, "DATA_RENTGEN__DATABASE__URL": dsn}

        def run(*words: str) -> str:
            done = subprocess.run(
                [python, *words], env=environment, capture_output=True, text=True, check=False
            )
            assert done.returncode == 0, done.stderr[-2000:]
            return done.stdout

        run("-m", "data_rentgen.db.migrations", "upgrade", "head")
        run("-m", "data_rentgen.db.scripts.create_partitions", "--start", "2025-12-01", "--end", "2028-01-01")
        empty, before = where.size(), cpu_of(*where.pids())
        say("data-rentgen")
        said = json.loads(
            run(str(ROOT / "bench" / "peers" / "rentgen.py"), str(file), "100").splitlines()[-1]
        )
        database, size = cpu_of(*where.pids()) - before, where.size() - empty
    return {
        "rate": said["events"] / said["seconds"],
        "cpu": 1000 * (said["cpu"] + database) / said["events"],
        "disk": size / (sum(map(len, lines)) / 1024),
    }


def rentgen_python() -> str | None:
    """The interpreter of data-rentgen's own environment, made where it is missing."""
    home = ROOT / ".venvs" / "rentgen"
    python = home / "bin" / "python"
    if not python.exists():
        uv = shutil.which("uv") or str(ROOT / ".tools" / "bin" / "uv")
        here = pythons.found(uv) if Path(uv).exists() else {}
        newest = next((here[each] for each in ("3.12", "3.13", "3.14") if each in here), None)
        if newest is None:
            say(f"data-rentgen is skipped: it needs Python 3.12 or newer and uv (found {newest}, {uv})")
            return None
        made = subprocess.run(
            [uv, "venv", "--quiet", "--no-project", "--python", str(newest), str(home)],
            capture_output=True,
            text=True,
            check=False,
        )
        if made.returncode:
            say(f"data-rentgen is skipped: {made.stderr.strip()[-300:]}")
            return None
        done = subprocess.run(
            [uv, "pip", "install", "--quiet", RENTGEN],
            env={**os.environ, "VIRTUAL_ENV": str(home)},
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            shutil.rmtree(home)
            say(f"data-rentgen is skipped: {done.stderr.strip()[-300:]}")
            return None
    return str(python)


# --- asking


def questions(shape: Shape, pick: random.Random) -> dict[str, Callable[[], str]]:
    """What is asked, each time of another node."""

    def dataset(layer: int) -> str:
        return shape.table(pick.randrange(shape.jobs // 100), layer, pick.randrange(5))

    def node(layer: int) -> str:
        return quote(f"dataset:postgres://warehouse:5432:{dataset(layer)}", safe="")

    def job() -> str:
        component, layer, position = shape.place(pick.randrange(shape.jobs))
        return f"pipeline_{component:04d}.load_{layer:02d}_{position:02d}"

    space = quote("postgres://warehouse:5432", safe="")
    return {
        "graph, depth 20, /hw/v1": lambda: f"/hw/v1/graph?node={node(10)}&depth=20",
        "lineage, depth 20, Marquez": lambda: f"/api/v1/lineage?nodeId={node(10)}&depth=20",
        "lineage of a job, depth 2": lambda: (
            f"/api/v1/lineage?nodeId={quote(f'job:bench:{job()}', safe='')}&depth=2"
        ),
        "column lineage": lambda: f"/api/v1/column-lineage?nodeId={node(10)}&depth=20&withDownstream=true",
        "impact of a dataset": lambda: f"/hw/v1/impact?node={node(10)}",
        "jobs, 25": lambda: "/api/v1/namespaces/bench/jobs?limit=25&offset=0",
        "jobs, a deep page": lambda: f"/api/v1/namespaces/bench/jobs?limit=25&offset={shape.jobs - 50}",
        "jobs, 100": lambda: "/api/v1/jobs?limit=100",
        "jobs by state": lambda: "/api/v1/jobs?lastRunStates=COMPLETED&limit=25",
        "job": lambda: f"/api/v1/namespaces/bench/jobs/{quote(job(), safe='')}",
        "runs of a job": lambda: f"/api/v1/namespaces/bench/jobs/{quote(job(), safe='')}/runs?limit=20",
        "datasets, 20": lambda: f"/api/v1/namespaces/{space}/datasets?limit=20",
        "dataset": lambda: f"/api/v1/namespaces/{space}/datasets/{dataset(5)}",
        "dataset versions": lambda: f"/api/v1/namespaces/{space}/datasets/{dataset(5)}/versions?limit=10",
        "search, found": lambda: f"/hw/v1/search?q={quote(dataset(5), safe='')}",
        "search, not found": lambda: f"/hw/v1/search?q=zzz{pick.randrange(10**6)}",
        "search, Marquez": lambda: f"/api/v1/search?q={quote(job()[-10:], safe='')}&limit=100",
        "events, 20": lambda: "/api/v1/events/lineage?limit=20",
        "namespaces": lambda: "/api/v1/namespaces",
        "stats": lambda: "/api/v1/stats/lineage-events?period=DAY&timezone=UTC",
    }


def measure_reads(kinds: list[str], sizes: list[int], folder: Path, notes: Notes) -> None:
    """A table per store: medians of what is asked, size by size."""
    for kind in kinds:
        found: dict[str, list[float]] = {}
        for jobs in sizes:
            shape = Shape(jobs=jobs, runs=20, bytes=1500, starts=False)
            with place(kind, folder) as where:
                load(where.url, events(shape), f"{kind}, {jobs:,} jobs")
                with serving(where.url) as (port, pid):
                    asking = Asking(port)
                    for name, path in questions(shape, random.Random(7)).items():
                        found.setdefault(name, []).append(timed(asking, path))
                    asking.close()
                    found.setdefault("memory of the server", []).append(memory_of(pid))
        rows = []
        for name, values in found.items():
            unit = " MB" if name.startswith("memory") else ""
            rows.append((name, *(f"{each:,.1f}{unit}" for each in values)))
        notes.table(f"reads {kind}", (f"{kind}, milliseconds at the median", *(f"{each:,} jobs" for each in sizes)), rows)  # fmt: skip
        some = ("graph, depth 20, /hw/v1", "jobs, 25", "search, found", "column lineage")
        lines = {name: list(zip(sizes, found[name], strict=True)) for name in some}
        notes.plot(
            f"reads-{kind}", "line", f"Backend: milliseconds of an answer, {kind}", "jobs", "ms", lines
        )
        graph = found["graph, depth 20, /hw/v1"][-1]
        notes.aim(f"a graph of depth 20 under 20 ms at {sizes[-1]:,} jobs, {kind}", f"{graph:.1f} ms", graph < 20)  # fmt: skip
        slow = {name: each[-1] for name, each in found.items() if name.startswith(("jobs", "datasets", "search", "events", "namespaces")) and each[-1] >= 50}  # fmt: skip
        told = ", ".join(f"{name} {each:.0f} ms" for name, each in slow.items())
        notes.aim(f"every list and search under 50 ms, {kind}", f"all but: {told}" if slow else "all", not slow)  # fmt: skip


def load(url: str, lines: Iterator[bytes], what: str) -> None:
    store = open_store(url)
    began, done = time.perf_counter(), 0
    for outcome in ingest_all(store, lines, size=2_000):
        done += outcome.received
        if done % 50_000 == 0:
            say(f"{what}: {done:,} events in {time.perf_counter() - began:,.0f} s")
    store.close()
    if url.startswith("postgresql"):
        import psycopg

        with psycopg.connect(url, autocommit=True) as admin:
            admin.execute("ANALYZE")  # as autovacuum would within a minute


def timed(asking: Asking, path: Callable[[], str], times: int = 30) -> float:
    for _ in range(3):
        asking.get(path())
    took = []
    for _ in range(times):
        wanted = path()
        began = time.perf_counter()
        asking.get(wanted)
        took.append(1000 * (time.perf_counter() - began))
    return median(took)


# --- incidents


def tested(shape: Shape) -> Iterator[bytes]:
    """The stream, and after each run of the last layer a test of its table that fails."""
    yield from events(shape)
    for run in range(shape.runs):
        for component in range(shape.jobs // (shape.layers * shape.width)):
            table = shape.table(component, shape.layers, 0)
            assertion = {"assertion": "not_null", "success": False, "column": "column_000"}
            facet = {
                "_producer": PRODUCER,
                "_schemaURL": f"{FACETS}/1-0-1/DataQualityAssertionsDatasetFacet.json",
                "assertions": [assertion],
            }
            body = {
                "eventType": "COMPLETE",
                "eventTime": START.replace(minute=30)
                .isoformat()
                .replace("T00", f"T{run % 24:02d}")
                .replace("01-01", f"01-{1 + run // 24:02d}"),
                "producer": PRODUCER,
                "schemaURL": "https://openlineage.io/spec/2-0-2/OpenLineage.json#/$defs/RunEvent",
                "run": {"runId": run_id(run, f"test {component} {run}")},
                "job": {"namespace": "bench", "name": f"tests.{component}"},
                "inputs": [
                    {
                        "namespace": "postgres://warehouse:5432",
                        "name": table,
                        "inputFacets": {"dataQualityAssertions": facet},
                    }
                ],
            }
            yield json.dumps(body).encode()


def measure_incidents(kinds: list[str], folder: Path, notes: Notes) -> None:
    """A table: what the list and one incident cost, as runs grow."""
    steps = (1, 10, 100)
    rows = []
    for kind in kinds:
        lists, details = [], []
        for runs in steps:
            with place(kind, folder) as where:
                load(
                    where.url,
                    tested(Shape(jobs=500, runs=runs, bytes=1500, starts=False)),
                    f"{kind}, {runs} runs",
                )
                with serving(where.url) as (port, _):
                    asking = Asking(port)
                    path = "/api/v1/incidents?status=all&since=2026-01-01T00:00:00Z&limit=20"
                    ids = [each["id"] for each in json.loads(asking.get(path))["incidents"]]
                    assert ids, "no incident was found"
                    lists.append(timed(asking, lambda: path))  # noqa: B023 - called at once
                    details.append(timed(asking, lambda: f"/api/v1/incidents/{ids[0]}"))  # noqa: B023
                    asking.close()
        for what, values in (("the list", lists), ("one of them", details)):
            rows.append((f"{kind}: {what}", *(f"{each:,.1f}" for each in values)))
        most = max(values[-1] / values[0] for values in (lists, details))
        notes.aim(f"incidents flat from 1 to 100 runs a job, {kind}", f"{most:.1f} times", most <= 1.5)
    head = ("incidents, milliseconds at the median", *(f"{each} runs a job" for each in steps))
    notes.table("incidents", head, rows)


def say(text: str) -> None:
    print(f"  {time.strftime('%H:%M:%S')} {text}", file=sys.stderr, flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--full", action="store_true")
    parser.add_argument("--only", nargs="*", default=["ingest", "reads", "incidents"])
    parser.add_argument("--stores", nargs="*", default=["sqlite", "postgres"])
    parser.add_argument("--marquez", help="the url of a Marquez server, to be measured in the same run")
    notes = Notes(
        "backend", packages=("litestar", "uvicorn", "sqlalchemy", "psycopg", "msgspec"), untold=("--marquez",)
    )
    asked = parser.parse_args()
    if "postgres" in asked.stores and postgres_bin() is None:
        say("Postgres is skipped: it is not here (apt install postgresql)")
        asked.stores.remove("postgres")
    with tempfile.TemporaryDirectory(prefix="hwbench") as text:
        folder = Path(text)
        if "ingest" in asked.only:
            measure_ingest(asked.stores, 1 if asked.full else 0.2, asked.marquez, folder, notes)
        if "reads" in asked.only:
            measure_reads(asked.stores, [1_000, 5_000, 20_000] if asked.full else [500, 1_000], folder, notes)
        if "incidents" in asked.only:
            measure_incidents(asked.stores, folder, notes)
    notes.keep()


if __name__ == "__main__":
    main()
