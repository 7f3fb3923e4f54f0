"""ingest: events of 2 KB and 13 KB into SQLite -> events a second and CPU-seconds per thousand, beside a floor.

    python bench/ingest.py [--full] [--json FILE]

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
from noting import Notes
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
    notes = Notes("ingest", packages=("msgspec", "sqlalchemy", "litestar", "uvicorn"))
    scale = 1.0 if "--full" in sys.argv else 0.2
    rates: dict[str, dict[str, float]] = {}
    most = 0.0
    for size, count in ((2048, 40_000), (13_312, 12_000)):
        runs = max(2, int(count * scale) // 200)
        lines = list(events(Shape(jobs=100, runs=runs, bytes=size)))
        mean = sum(map(len, lines)) / len(lines)
        singles = lines[: max(1_000, len(lines) // 4)]
        with tempfile.TemporaryDirectory() as folder:
            floor(lines, folder)  # warm
            rows = {
                "floor: decode with msgspec, append to a file, fsync": (lines, floor(lines, folder)),
                "direct, batches of 500": (lines, direct(lines, folder)),
                "HTTP, batches of 500, four connections": (
                    lines,
                    over_http(lines, folder, batch=500, connections=4),
                ),
                "HTTP, one event a request, 32 connections": (
                    singles,
                    over_http(singles, folder, batch=1, connections=32),
                ),
            }
        label = f"{size // 1024} KB"
        rates[label] = {name: len(sent) / wall for name, (sent, (wall, _)) in rows.items()}
        most = max(most, *(1000 * cpu / len(sent) for sent, (_, cpu) in rows.values()))
        least = next(iter(rates[label].values()))
        notes.table(
            label,
            (f"events of {mean / 1024:.1f} KB", "events/s", "CPU-s per 1,000", "times the floor"),
            [
                (name, f"{len(sent) / wall:,.0f}", f"{1000 * cpu / len(sent):.3f}", f"{least * wall / len(sent):.1f}")
                for name, (sent, (wall, cpu)) in rows.items()
            ],
        )  # fmt: skip
    (_, direct2, batch2, single2), (_, direct13, batch13, single13) = (
        list(each.values()) for each in rates.values()
    )
    notes.aim("at least 6,000 events/s of 2 KB in batches", f"{direct2:,.0f} direct, {batch2:,.0f} over HTTP", min(direct2, batch2) >= 6_000)  # fmt: skip
    notes.aim("at least 2,500 events/s of 13 KB in batches", f"{direct13:,.0f} direct, {batch13:,.0f} over HTTP", min(direct13, batch13) >= 2_500)  # fmt: skip
    notes.aim("at least 1,000 events/s one a request", f"{single2:,.0f} of 2 KB, {single13:,.0f} of 13 KB", min(single2, single13) >= 1_000)  # fmt: skip
    notes.aim("at most 1 CPU-second per 1,000 events", f"{most:.2f}", most <= 1)
    notes.plot(
        "rates", "bar", "Ingest into SQLite: events a second", "", "events/s",
        {label: [(name.partition(":")[0].partition(", four")[0].partition(", 32")[0], rate) for name, rate in each.items()] for label, each in rates.items()},
        log=True,
    )  # fmt: skip
    notes.keep()


main()
