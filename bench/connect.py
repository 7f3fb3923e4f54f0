"""connect: 1,000 connectors behind a server of their own -> how long a round takes, what it costs, and whether memory grows.

    python bench/connect.py [--full]      --full: 10,000 rounds for the memory; else 500

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


def measure(url: str, *, full: bool) -> None:
    told: list[object] = []
    cluster = Cluster(name="bench", url=url, bootstrap="b:9092", schemas="none")
    watcher = Watcher(cluster, told.extend)
    now = 0.0
    began = time.perf_counter()
    watcher.round(now)
    first = time.perf_counter() - began
    print(f"first round, {MANY:,} connectors understood: {first * 1000:,.0f} ms, {len(told):,} events")

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
    print(f"load of the machine: {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    print(f"a status round: {quick * 1000:.1f} ms, {quick_used * 1000:.1f} ms of the processor")
    print(
        f"its answer fetched and read alone: {floor * 1000:.1f} ms, {floor_used * 1000:.1f} ms of the processor"
    )
    print(f"one in {every}, which asks for the configurations too: {slow * 1000:.1f} ms, {slow_used * 1000:.1f} ms of the processor")  # fmt: skip
    print(f"processor, over both kinds: {processor * 1000:.1f} ms a round, {processor / cluster.interval:.2%} of one core")  # fmt: skip

    count = 10_000 if full else 500
    rounds(200)
    marks = [resident()]
    for _ in range(5):
        rounds(count // 5)
        marks.append(resident())
    print(f"memory over {count:,} more rounds: {' '.join(f'{each:.1f}' for each in marks)} MB")
    assert len(told) == 2 * MANY, "a round without a change must tell nothing"
    watcher.close()


def main() -> None:
    if "--serve" in sys.argv:
        serve()
        return
    with subprocess.Popen([sys.executable, __file__, "--serve"], stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        try:
            measure(f"http://127.0.0.1:{server.stdout.readline().strip()}", full="--full" in sys.argv)
        finally:
            server.terminate()


if __name__ == "__main__":
    main()
