"""connect: 1,000 connectors behind a server of their own -> how long a round takes, what it costs, and whether memory grows.

    python bench/connect.py [--full] [--json FILE]      --full: 10,000 rounds for the memory; else 500

The clock of the watcher goes on by its default interval with each round, so that all it asks for now and then is asked. Beside it,
in the same run, the floor: the same answer fetched and read as JSON, with nothing understood of it.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import httpx
import msgspec

from headwater.connect import Cluster
from headwater.connect._watching import Watcher
from noting import Notes

MANY = 1000


def connectors() -> dict[str, dict[str, object]]:
    made: dict[str, dict[str, object]] = {}
    for at in range(MANY):
        config = {
            "connector.class": "io.confluent.connect.s3.S3SinkConnector",
            "topics": f"orders_{at},items_{at}",
            "s3.bucket.name": "lake",
            "transforms": "r,m",
            "transforms.r.type": "org.apache.kafka.connect.transforms.RegexRouter",
            "transforms.r.regex": "(.*)",
            "transforms.r.replacement": "raw.$1",
            "transforms.m.type": "org.apache.kafka.connect.transforms.MaskField$Value",
            "transforms.m.fields": "email",
        }
        tasks = [{"id": n, "state": "RUNNING", "worker_id": f"w{n}:8083"} for n in range(2)]
        made[f"sink-{at}"] = {
            "info": {
                "name": f"sink-{at}",
                "config": config,
                "tasks": [{"connector": f"sink-{at}", "task": n} for n in range(2)],
                "type": "sink",
            },
            "status": {
                "connector": {"state": "RUNNING", "worker_id": "w0:8083"},
                "tasks": tasks,
                "type": "sink",
            },
        }
    return made


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    answers: dict[str, bytes] = {}  # noqa: RUF012 - one server, filled before it starts

    def do_GET(self) -> None:
        body = self.answers.get(self.path, b"{}")
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


def serve() -> None:
    """In a process of its own, so that its work is not counted as the watcher's."""
    known = connectors()
    for half in ("info", "status"):
        Handler.answers[f"/connectors?expand={half}"] = json.dumps(
            {name: {half: each[half]} for name, each in known.items()}
        ).encode()
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    print(server.server_address[1], flush=True)
    server.serve_forever()


def resident() -> float:
    """Megabytes of this process in memory, now."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


def measure(url: str, notes: Notes, *, full: bool) -> None:
    told: list[object] = []
    cluster = Cluster(name="bench", url=url, bootstrap="b:9092", schemas="none")
    watcher = Watcher(cluster, told.extend)
    now = 0.0
    began = time.perf_counter()
    watcher.round(now)
    first = time.perf_counter() - began
    events = len(told)

    def rounds(count: int) -> list[tuple[float, float]]:
        """(seconds on the wall, seconds of the processor) of each round."""
        nonlocal now
        times = []
        for _ in range(count):
            now += cluster.interval
            began, used = time.perf_counter(), time.process_time()
            watcher.round(now)
            times.append((time.perf_counter() - began, time.process_time() - used))
        return times

    every = round(cluster.refresh / cluster.interval)
    times = rounds(120)
    processor = statistics.mean(used for _, used in times)
    kinds = {
        "slow": times[every - 1 :: every],
        "quick": [each for at, each in enumerate(times, 1) if at % every],
    }
    (slow, slow_used), (quick, quick_used) = (
        (statistics.median(wall for wall, _ in some), statistics.median(used for _, used in some))
        for some in kinds.values()
    )
    with httpx.Client() as client:
        floors = []
        for _ in range(60):
            began, used = time.perf_counter(), time.process_time()
            msgspec.json.decode(client.get(f"{url}/connectors?expand=status").content)
            floors.append((time.perf_counter() - began, time.process_time() - used))
    floor, floor_used = (statistics.median(each[which] for each in floors) for which in (0, 1))
    rows = [
        (f"first round, {MANY:,} connectors understood, {events:,} events", f"{first:.1f} s"),
        ("a status round, on the wall", f"{quick * 1000:.1f} ms"),
        ("its floor", f"{floor * 1000:.1f} ms"),
        ("a status round, of the processor", f"{quick_used * 1000:.1f} ms"),
        ("its floor", f"{floor_used * 1000:.1f} ms"),
        (f"one in {every}, with configurations, on the wall", f"{slow * 1000:.1f} ms"),
        (f"one in {every}, with configurations, of the processor", f"{slow_used * 1000:.1f} ms"),
        (
            "processor over both kinds, one round every 10 s",
            f"{processor / cluster.interval:.2%} of one core",
        ),
    ]

    count = 10_000 if full else 500
    rounds(200)
    marks = [resident()]
    for _ in range(5):
        rounds(count // 5)
        marks.append(resident())
    tell(notes, rows, quick, processor / cluster.interval, marks, count)
    assert len(told) == 2 * MANY, "a round without a change must tell nothing"
    watcher.close()


def tell(notes: Notes, rows: list[tuple[str, str]], quick: float, share: float, marks: list[float], count: int) -> None:  # fmt: skip
    """The table and the aims."""
    told = " ".join(f"{each:.1f}" for each in marks)
    notes.table("rounds", ("", f"load {os.getloadavg()[0]:.1f}"), [*rows, (f"resident memory before, and five times over {count:,} more rounds", f"{told} MB")])  # fmt: skip
    notes.aim("under 5 % of one core for 1,000 connectors", f"{share:.2%}", share < 0.05)
    notes.aim(f"memory flat over {count:,} rounds", f"{marks[0]:.1f} MB, then {marks[-1]:.1f} MB", marks[-1] <= 1.05 * marks[0])  # fmt: skip
    notes.aim("a status round of 1,000 connectors under 100 ms", f"{quick * 1000:.0f} ms", quick < 0.1)
    steps = [at * count // 5 for at in range(6)]
    notes.plot("memory", "line", "Kafka Connect: memory of the watcher", "rounds", "MB", {"watcher": list(zip(steps, marks, strict=True))})  # fmt: skip


def main() -> None:
    if "--serve" in sys.argv:
        serve()
        return
    notes = Notes("connect", packages=("httpx", "msgspec"))
    with subprocess.Popen([sys.executable, __file__, "--serve"], stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        try:
            measure(f"http://127.0.0.1:{server.stdout.readline().strip()}", notes, full="--full" in sys.argv)
            notes.keep()
        finally:
            server.terminate()


if __name__ == "__main__":
    main()
