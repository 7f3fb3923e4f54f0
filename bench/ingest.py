"""ingest: events of 2 KB and 13 KB into SQLite -> events a second and CPU-seconds per thousand, beside a floor.

    python bench/ingest.py [--full]

Ways in: direct (one process, batches of 500), HTTP in batches of 500 over four connections, HTTP with one event
a request over 32 connections. The store is a file with `synchronous = full`: an event is on disk when it is
acknowledged. The floor, in the same run, decodes each event with msgspec and appends it to a file.
CPU counts the writing process alone (over HTTP the server's), wall-clock everything.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time

import msgspec

from headwater.ingest import ingest_all
from headwater.store import open_store
from sending import cpu_of, ingest_requests, send, serving
from stream import Shape, events


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
    with serving(url) as (port, pid):
        send(port, ingest_requests(lines[:1], 1))
        before = cpu_of(pid)
        took = send(port, ingest_requests(lines, batch), connections), cpu_of(pid) - before
    store = open_store(url)
    assert store.counts()["log"] == len(lines), store.counts()["log"]
    store.close()
    return took


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
