"""connect: 1,000 connectors behind a local HTTP server -> how long a round takes, what it costs, and whether memory grows.

    python bench/connect.py [--full]      --full: 10,000 rounds for the memory; else 500

Beside it, in the same run, the floor: the same answer fetched and read as JSON, with nothing understood of it.
"""

from __future__ import annotations

import json
import resource
import statistics
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import httpx

from headwater.connect import Cluster
from headwater.connect._watching import Watcher

MANY = 1000
INTERVAL = 10.0


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


def main() -> None:
    full = "--full" in sys.argv
    known = connectors()
    for half in ("info", "status"):
        Handler.answers[f"/connectors?expand={half}"] = json.dumps(
            {name: {half: each[half]} for name, each in known.items()}
        ).encode()
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    url = f"http://127.0.0.1:{server.server_address[1]}"
    told: list[object] = []
    watcher = Watcher(Cluster(name="bench", url=url, bootstrap="b:9092", schemas="none"), told.extend)

    began = time.perf_counter()
    watcher.round(0.0)
    first = time.perf_counter() - began
    print(f"first round, {MANY:,} connectors understood: {first * 1000:,.0f} ms, {len(told):,} events")

    def rounds(count: int, start: float) -> tuple[float, float]:
        times, used = [], time.process_time()
        for at in range(count):
            began = time.perf_counter()
            watcher.round(start + at * 0.001)
            times.append(time.perf_counter() - began)
        return statistics.median(times), (time.process_time() - used) / count

    median, processor = rounds(50, 1.0)
    with httpx.Client() as client:
        began = time.perf_counter()
        for _ in range(50):
            json.loads(client.get(f"{url}/connectors?expand=status").content)
        floor = (time.perf_counter() - began) / 50
    print(f"a status round: {median * 1000:.1f} ms (fetching and reading alone: {floor * 1000:.1f} ms)")
    print(
        f"processor: {processor * 1000:.1f} ms a round with the server's own share, {processor / INTERVAL:.2%} of one core"
    )

    watcher_rounds = 10_000 if full else 500
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    rounds(watcher_rounds, 2.0)
    after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print(
        f"memory after {watcher_rounds:,} more rounds: {after / 1024:.0f} MB, {(after - before) / 1024:+.1f} MB"
    )
    assert len(told) == 2 * MANY, "a round without a change must tell nothing"
    watcher.close()
    server.shutdown()


if __name__ == "__main__":
    main()
