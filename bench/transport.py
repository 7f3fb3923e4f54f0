"""transport: events of 1, 13 and 62 KB from a host to a server -> latency of emit, events a second, CPU, beside OpenLineage's client.

    python bench/transport.py [--full]

Both sides are given ready objects: theirs `RunEvent`, ours the same event as a mapping. Latency is that of the call
`emit`, what the host waits. End to end is from the first emit until the server has all. CPU is of the host and, with us,
of the drainer. The server is a process that counts and answers 201. Down: nobody listens. Hanging: it accepts and never
answers. All with default settings; each way runs in a process of its own, after one event to warm up.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import resource
import socket
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

SIZES = {"1 KB": (1, 4), "13 KB": (4, 50), "62 KB": (20, 50)}  # datasets, columns of each
COUNTS = {"1 KB": 2_000, "13 KB": 1_000, "62 KB": 500}
WAYS = ("headwater", "openlineage http", "openlineage async_http")
TICKS = os.sysconf("SC_CLK_TCK")


# --- the server


async def serve() -> None:
    seen = {"count": 0, "last": 0.0}

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                length = re.search(rb"content-length: (\d+)", head, re.IGNORECASE)
                body = await reader.readexactly(int(length.group(1))) if length else b""
                seen["count"] += body.count(b'"eventTime"')
                seen["last"] = time.monotonic() if body else seen["last"]
                told = json.dumps(seen).encode() if head.startswith(b"GET") else b""
                writer.write(b"HTTP/1.1 201 Created\r\nContent-Length: %d\r\n\r\n%b" % (len(told), told))
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionResetError):
            writer.close()

    server = await asyncio.start_server(talk, "127.0.0.1", 0, limit=1 << 26)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


def stats(url: str) -> dict[str, float]:
    host, port = url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port))) as sock:
        sock.sendall(b"GET / HTTP/1.1\r\n\r\n")
        told: dict[str, float] = json.loads(sock.recv(4096).partition(b"\r\n\r\n")[2])
        return told


# --- a host


def events(size: str, count: int) -> list[Any]:
    from openlineage.client.event_v2 import Job, OutputDataset, Run, RunEvent, RunState
    from openlineage.client.generated.schema_dataset import SchemaDatasetFacet, SchemaDatasetFacetFields
    from openlineage.client.uuid import generate_new_uuid

    datasets, columns = SIZES[size]
    fields = [
        SchemaDatasetFacetFields(name=f"column_{i:03d}", type="string", description="")
        for i in range(columns)
    ]
    return [
        RunEvent(
            eventType=RunState.COMPLETE,
            eventTime="2026-01-01T00:00:00Z",
            run=Run(runId=str(generate_new_uuid())),
            job=Job(namespace="bench", name=f"job_{n}"),
            producer="https://example.org/bench",
            outputs=[
                OutputDataset(
                    "postgres://w:5432", f"t_{n}_{i}", facets={"schema": SchemaDatasetFacet(fields=fields)}
                )
                for i in range(datasets)
            ],
        )
        for n in range(count)
    ]


def host(way: str, url: str, size: str, count: int, folder: str) -> None:
    """Emit; print what it took."""
    from openlineage.client.serde import Serde

    made = events(size, count + 1)
    told = [json.loads(Serde.to_json(event)) for event in made]
    drainer = 0
    if way == "headwater":
        from headwater import config
        from headwater.emitter import Emitter
        from headwater.transport.spool.drainer import state

        ours = Emitter(url, config.load({"spool": {"dir": folder, "linger": 10}}, environ={}))
        emit, close, items = ours.emit, ours.close, told
    else:
        from openlineage.client import OpenLineageClient
        from openlineage.client.transport import get_default_factory

        transport = get_default_factory().create({"type": way.split()[1], "url": url})
        client = OpenLineageClient(transport=transport)
        emit, close, items = client.emit, client.close, made  # type: ignore[assignment]
    latencies: list[float] = []
    up = bool(stats_or_none(url))
    if up:  # connections are made, a drainer is started
        emit(items.pop())  # type: ignore[arg-type]
        until = time.monotonic() + 20
        while not stats(url)["count"] and time.monotonic() < until:
            time.sleep(0.02)
    before = cpu()
    if way == "headwater" and up:
        drainer = state(_place(folder)).writer.pid  # type: ignore[union-attr]
        before += cpu_of(drainer)
    begun = time.monotonic()
    for event in items[:count]:
        start = time.perf_counter()
        with suppress(Exception):  # a server that is down makes their http raise, after its retries
            emit(event)
        latencies.append(time.perf_counter() - start)
    if up and way != "headwater":
        close()
    until = time.monotonic() + 120
    while up and stats(url)["count"] < count + 1 and time.monotonic() < until:
        time.sleep(0.02)
    spent = cpu() + (cpu_of(drainer) if drainer else 0.0) - before
    size_of = sum(len(json.dumps(each)) for each in told[:10]) / min(10, len(told))
    print(
        json.dumps({"latencies": latencies, "begun": begun, "cpu": spent, "bytes": size_of, "up": up}),
        flush=True,
    )
    os._exit(0)  # theirs would go on trying


def _place(folder: str) -> Any:
    from headwater.transport.spool.place import places

    return places(Path(folder))[0]


def stats_or_none(url: str) -> dict[str, float] | None:
    try:
        with socket.create_connection(("127.0.0.1", int(url.rpartition(":")[2])), 1) as sock:
            sock.settimeout(1)
            sock.sendall(b"GET / HTTP/1.1\r\n\r\n")
            return {"up": 1.0} if sock.recv(10) else None
    except OSError:
        return None


def cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def cpu_of(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


# --- the comparison


def run(way: str, url: str, size: str, count: int) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, __file__, "--host", way, url, size, str(count), folder]
        done = subprocess.run(
            command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=True
        )
        for pid in re.findall(
            r'"pid":(\d+)', "".join(p.read_text() for p in Path(folder).glob("*/drainer.json"))
        ):
            with suppress(ProcessLookupError):
                os.kill(int(pid), 15)  # ours: it would wait for a server that never comes
        told: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
        return told


def quantile(values: list[float], share: float) -> float:
    return sorted(values)[min(len(values) - 1, int(share * len(values)))]


def line(way: str, told: dict[str, Any], rate: float | None) -> str:
    slow = [1000 * quantile(told["latencies"], share) for share in (0.5, 0.99)]
    count = len(told["latencies"])
    rest = f"{rate:>9,.0f} events/s  {1000 * told['cpu'] / count:7.2f} CPU-ms an event" if rate else ""
    return f"  {way:24} emit p50 {slow[0]:10.3f} ms  p99 {slow[1]:10.3f} ms ({count} emits)  {rest}"


def main() -> None:
    full = "--full" in sys.argv
    for size, most in COUNTS.items():
        count = most if full else most // 5
        rates = {}
        print(f"\n{size}, the server is up")
        for way in WAYS:
            with subprocess.Popen(
                [sys.executable, __file__, "--serve"], stdout=subprocess.PIPE, text=True
            ) as server:
                assert server.stdout
                url = f"http://127.0.0.1:{int(server.stdout.readline())}"
                told = run(way, url, size, count)
                seen = stats(url)
                server.terminate()
            arrived = seen["count"] - 1
            rates[way] = arrived / (seen["last"] - told["begun"])
            missing = "" if arrived >= count else f"  {count - arrived:.0f} never came"
            print(line(way, told, rates[way]) + missing)
        print(
            f"  {rates[WAYS[0]] / rates[WAYS[1]]:.1f} times http, {rates[WAYS[0]] / rates[WAYS[2]]:.1f} times async_http"
        )
    size = "62 KB" if full else "13 KB"
    with socket.socket() as closed, socket.socket() as hanging:
        closed.bind(("127.0.0.1", 0))
        hanging.bind(("127.0.0.1", 0))
        hanging.listen(100)
        for what, sock in (("down", closed), ("hanging", hanging)):
            print(f"\n{size}, the server is {what}")
            for way in WAYS:
                count = (
                    1 if way.endswith(" http") else 200
                )  # theirs waits 9 s when it is down, 39 s when it hangs
                told = run(way, f"http://127.0.0.1:{sock.getsockname()[1]}", size, count)
                print(line(way, told, None))


if "--serve" in sys.argv:
    asyncio.run(serve())
elif "--host" in sys.argv:
    host(sys.argv[2], sys.argv[3], sys.argv[4], int(sys.argv[5]), sys.argv[6])
else:
    main()
