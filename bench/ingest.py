"""ingest: events of 2 KB and 13 KB into SQLite -> events a second and CPU-seconds per thousand, beside a floor.

    python bench/ingest.py [--full]

Ways in: direct (one process, batches of 500), HTTP in batches of 500 over four connections, HTTP with one event
a request over 32 connections. The store is a file with `synchronous = full`: an event is on disk when it is
acknowledged. The floor, in the same run, decodes each event with msgspec and appends it to a file.
CPU counts the writing process alone (over HTTP the server's), wall-clock everything.
"""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import msgspec

from headwater.ingest import ingest_all
from headwater.store import open_store
from stream import Shape, events

TICKS = os.sysconf("SC_CLK_TCK")


def floor(lines: list[bytes], folder: str) -> tuple[float, float]:
    wall, cpu = time.perf_counter(), time.process_time()
    with open(f"{folder}/floor.jsonl", "wb") as out:
        for start in range(0, len(lines), 500):
            for line in lines[start : start + 500]:
                msgspec.json.decode(line)
                out.write(line + b"\n")
            out.flush()
            os.fsync(out.fileno())
    return time.perf_counter() - wall, time.process_time() - cpu


def direct(lines: list[bytes], folder: str) -> tuple[float, float]:
    store = open_store(f"sqlite:///{folder}/direct.db")
    wall, cpu = time.perf_counter(), time.process_time()
    for outcome in ingest_all(store, lines, size=500):
        assert not outcome.rejected
    took = time.perf_counter() - wall, time.process_time() - cpu
    assert store.counts()["log"] == len(lines)
    store.close()
    return took


def over_http(lines: list[bytes], folder: str, *, batch: int, connections: int) -> tuple[float, float]:
    """As many events as there are lines, through a server in a process of its own."""
    url = f"sqlite:///{folder}/http{batch}.db"
    command = [sys.executable, "-m", "headwater", "serve", "--store", url, "--port", "0"]
    server = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    try:
        assert server.stderr is not None
        port = int(re.search(r":(\d+) ", server.stderr.readline()).group(1))  # type: ignore[union-attr]
        bodies = [lines[start : start + batch] for start in range(0, len(lines), batch)]
        path = "/api/v1/lineage/batch" if batch > 1 else "/api/v1/lineage"
        requests = [
            _request(path, b"[" + b",".join(body) + b"]" if batch > 1 else body[0]) for body in bodies
        ]
        _send(port, [_request("/api/v1/lineage", lines[0])])  # it listens before it has started
        before, wall = cpu_of(server.pid), time.perf_counter()
        parts = [requests[i::connections] for i in range(connections)]
        threads = [threading.Thread(target=_send, args=(port, part)) for part in parts]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        took = time.perf_counter() - wall, cpu_of(server.pid) - before
    finally:
        server.terminate()
        server.wait(30)
    store = open_store(url)
    assert store.counts()["log"] == len(lines), store.counts()["log"]
    store.close()
    return took


def _request(path: str, body: bytes) -> bytes:
    head = f"POST {path} HTTP/1.1\r\nHost: bench\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    return head.encode() + body


def _send(port: int, requests: list[bytes]) -> None:
    with socket.create_connection(("127.0.0.1", port)) as sock:
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for request in requests:
            sock.sendall(request)
            answer = b""
            while b"\r\n\r\n" not in answer:
                answer += sock.recv(65536)
            head, _, body = answer.partition(b"\r\n\r\n")
            assert head.split(b" ", 2)[1] in (b"200", b"201"), answer
            left = int(re.search(rb"content-length: (\d+)", head).group(1)) - len(body)  # type: ignore[union-attr]
            while left > 0:
                left -= len(sock.recv(65536))


def cpu_of(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def main() -> None:
    scale = 1.0 if "--full" in sys.argv else 0.2
    for size, count in ((2048, 40_000), (13_312, 12_000)):
        runs = max(2, int(count * scale) // 200)
        lines = list(events(Shape(jobs=100, runs=runs, bytes=size)))
        mean = sum(map(len, lines)) / len(lines)
        singles = lines[: max(1_000, len(lines) // 4)]
        print(f"\n{len(lines):,} events of {mean / 1024:.1f} KB")
        with tempfile.TemporaryDirectory() as folder:
            least, _ = floor(lines, folder)
            rows = {
                "floor: decode and append": (lines, floor(lines, folder)),
                "direct, batches of 500": (lines, direct(lines, folder)),
                "HTTP, batches of 500": (lines, over_http(lines, folder, batch=500, connections=4)),
                "HTTP, one a request": (singles, over_http(singles, folder, batch=1, connections=32)),
            }
            least = rows["floor: decode and append"][1][0] / len(lines)
            for name, (sent, (wall, cpu)) in rows.items():
                print(
                    f"  {name:26} {len(sent) / wall:>9,.0f} events/s  {1000 * cpu / len(sent):6.3f} CPU-s per 1,000"
                    f"  {wall / len(sent) / least:6.1f} times the floor"
                )


main()
