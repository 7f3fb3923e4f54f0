"""transport: events of 1, 13 and 62 KB from a host to a server -> latency of emit, events a second, CPU, beside OpenLineage's client.

    python bench/transport.py [--full] [--only 'up'|'62 KB'|'down'|'drain'] [--json FILE]

Both sides are given ready objects: theirs `RunEvent`, ours the same event as a mapping. Latency is that of the call
`emit`, what the host waits. End to end is from the first emit until the server has all. CPU is of the host and, with us,
of the drainer. The server is a process that counts and answers 201. Down: nobody listens. Hanging: it accepts and never
answers. All with default settings; each way runs in a process of its own, after one event to warm up. The ways take
turns, three times at full size; rates and CPU are of the median round, latencies of all rounds together.

At full size a spool of 1,000,000 events of 1 KB that waited for a day is drained, with the drainer's memory on the way.
Tables go to stdout; progress to stderr.
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

from noting import Notes

SIZES = {"1 KB": (1, 4), "13 KB": (4, 50), "62 KB": (20, 50)}  # datasets, columns of each
COUNTS = {"1 KB": 2_000, "13 KB": 1_000, "62 KB": 1_000}
WAITING = 1_000_000  # events of 1 KB
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

    made = events(size, count + 1 if way != "headwater" else 1)
    text = str(Serde.to_json(made[0]))
    told = [
        json.loads(text.replace("job_0", f"job_{n}")) for n in range(count + 1 if way == "headwater" else 1)
    ]
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
    size_of = len(text)
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


def ms(told: list[dict[str, Any]], share: float) -> str:
    return f"{1000 * quantile([each for one in told for each in one['latencies']], share):,.2f} ms"


def say(text: str) -> None:
    print(f"  {time.strftime('%H:%M:%S')} {text}", file=sys.stderr, flush=True)


def serving() -> subprocess.Popen[str]:
    return subprocess.Popen([sys.executable, __file__, "--serve"], stdout=subprocess.PIPE, text=True)


def measure_up(size: str, count: int, rounds: int, kept: Kept) -> None:
    told: dict[str, list[dict[str, Any]]] = {way: [] for way in WAYS}
    for number in range(rounds):
        for way in WAYS:
            with serving() as server:
                assert server.stdout
                url = f"http://127.0.0.1:{int(server.stdout.readline())}"
                one = run(way, url, size, count)
                seen = stats(url)
                server.terminate()
            one["came"] = seen["count"] - 1
            one["rate"] = one["came"] / (seen["last"] - one["begun"])
            told[way].append(one)
            say(
                f"{size}, round {number + 1} of {rounds}, {way}: {one['rate']:,.0f} events/s, p99 {ms([one], 0.99)}"
            )
    rates = {}
    for way, ones in told.items():
        middle = sorted(ones, key=lambda one: one["rate"])[len(ones) // 2]
        rates[way] = middle["rate"]
        came = f"{sum(one['came'] for one in ones):,.0f} of {count * len(ones):,}"
        cost = f"{1000 * middle['cpu'] / count:.2f}"
        name = f"{size}: {way}" if way == WAYS[0] else way
        kept.rows.append((name, ms(ones, 0.5), ms(ones, 0.99), f"{middle['rate']:,.0f}", cost, came))
        if way == WAYS[0]:
            kept.tail.append(max(quantile(one["latencies"], 0.99) for one in ones))
    kept.rates[size] = rates
    ours, http, threads = (rates[way] for way in WAYS)
    say(f"{size}: {ours / http:.1f} times http, {ours / threads:.1f} times async_http")


def measure_down(size: str, count: int, notes: Notes, kept: Kept) -> None:
    with socket.socket() as closed, socket.socket() as hanging:
        closed.bind(("127.0.0.1", 0))
        hanging.bind(("127.0.0.1", 0))
        hanging.listen(100)
        rows = []
        for what, sock in (("down", closed), ("hanging", hanging)):
            for way in WAYS:
                # theirs waits 9 s when it is down, 39 s when it hangs
                many = 1 if way.endswith(" http") else count
                told = [run(way, f"http://127.0.0.1:{sock.getsockname()[1]}", size, many)]
                rows.append((what, way, ms(told, 0.5), ms(told, 0.99), f"{many}"))
                if way == WAYS[0]:
                    kept.tail.append(quantile(told[0]["latencies"], 0.99))
                say(f"{size}, {what}, {way}: p99 {ms(told, 0.99)}")

    notes.table("down", (f"{size}, the server is", "way", "p50 of emit", "p99 of emit", "emits"), rows)


def measure_drain(count: int, notes: Notes) -> None:
    """A spool that waited for a day -> how long its drainer takes, and its memory on the way."""
    from headwater.transport.spool import SpoolTransport, identity

    with tempfile.TemporaryDirectory() as folder, serving() as server:
        assert server.stdout
        url = f"http://127.0.0.1:{int(server.stdout.readline())}"
        now = time.time
        identity.clock.wall = lambda: now() - 86400  # type: ignore[method-assign]
        spool = SpoolTransport(f"spool://{folder}", to=url, drain="off", fsync="never", max_bytes=4 << 30)
        ready = json.dumps(json.loads(_one())).encode()
        for start in range(0, count, 1000):
            spool.send([ready.replace(b"job_0", b"job_%d" % (start + n)) for n in range(1000)])
        spool.close()
        identity.clock.wall = now  # type: ignore[method-assign]
        for path in spool.place.folder.iterdir():
            os.utime(path, (now() - 86400, now() - 86400))
        size = sum(path.stat().st_size for path in spool.place.folder.iterdir())
        say(f"{count:,} events, {size / 1e6:,.0f} MB, wait")
        program = "from headwater.transport.spool.detached import main; main()"
        begun, rows, peak = time.monotonic(), [], 0
        with subprocess.Popen([sys.executable, "-c", program, str(spool.place.folder), "0"]) as drainer:
            while drainer.poll() is None:
                came, memory = stats(url)["count"], _memory(drainer.pid)
                peak = max(peak, memory)
                if came >= count * (len(rows) + 1) / 10:
                    rows.append((came, time.monotonic() - begun, memory, cpu_of(drainer.pid)))
                    say(f"{came:,.0f} came, the drainer has {memory / 1024:.0f} MB")
                time.sleep(0.05)
        seen = stats(url)
        server.terminate()
    notes.table(
        "drain",
        ("delivered", "seconds", "memory of the drainer", "its CPU"),
        [(f"{c:,.0f}", f"{t:.1f}", f"{m / 1024:.1f} MB", f"{u:.1f} s") for c, t, m, u in rows],
    )
    took = seen["last"] - begun
    notes.say(
        f"{seen['count']:,.0f} of {count:,} events that had waited for a day came in {took:.1f} s, {count / took:,.0f} a second; the"
        f" drainer never had more than {peak / 1024:.1f} MB."
    )
    notes.plot("drain", "line", "Transport: memory of a drainer", "events delivered", "MB", {"drainer": [(c, m / 1024) for c, _, m, _ in rows]})  # fmt: skip


def _one() -> str:
    from openlineage.client.serde import Serde

    return str(Serde.to_json(events("1 KB", 1)[0]))


def _memory(pid: int) -> int:
    """Kilobytes; 0 once it has ended."""
    with suppress(OSError):
        if found := re.search(r"VmRSS:\s+(\d+)", Path(f"/proc/{pid}/status").read_text()):
            return int(found.group(1))
    return 0


class Kept:
    """What the parts of the bench tell together."""

    def __init__(self) -> None:
        self.rows: list[tuple[str, ...]] = []
        self.rates: dict[str, dict[str, float]] = {}
        self.tail: list[float] = []

    def tell(self, notes: Notes) -> None:
        """The table of a server that is up, and the aims."""
        if self.rows:
            notes.table("up", ("the server is up", "p50 of emit", "p99 of emit", "events/s", "CPU-ms an event", "came"), self.rows)  # fmt: skip
            lines = {way: [(size, rates[way]) for size, rates in self.rates.items()] for way in WAYS}
            notes.plot("rates", "bar", "Transport: events a second from a host to a server", "size of an event", "events/s", lines, log=True)  # fmt: skip
        for size, rates in self.rates.items():
            for way in WAYS[1:]:
                notes.ratio(f"openlineage-python, {way.split()[1]}", f"events/s of {size}", rates[WAYS[0]] / rates[way])  # fmt: skip
        if "62 KB" in self.rates:
            ours, *theirs = (self.rates["62 KB"][way] for way in WAYS)
            notes.aim("at least 20 times their rate at 62 KB", " and ".join(f"{ours / each:.1f}" for each in theirs) + " times http and async_http", ours >= 20 * max(theirs))  # fmt: skip
        if self.tail:
            worst = 1000 * max(self.tail)
            notes.aim("p99 of emit under 10 ms in every state of the server", f"at most {worst:.2f} ms", worst < 10)  # fmt: skip


def main() -> None:
    notes, kept = Notes("transport", packages=("openlineage-python", "msgspec")), Kept()
    full = "--full" in sys.argv
    only = sys.argv[sys.argv.index("--only") + 1] if "--only" in sys.argv else None
    if only in (None, "up", *COUNTS):
        for size, most in COUNTS.items():
            if only in (None, "up", size):
                measure_up(size, most if full else most // 5, 3 if full else 1, kept)
    if only in (None, "down"):
        measure_down("62 KB" if full else "13 KB", 500 if full else 200, notes, kept)
    if only == "drain" or (full and only is None):
        measure_drain(WAITING if full else WAITING // 20, notes)
    kept.tell(notes)
    notes.keep()


if "--serve" in sys.argv:
    asyncio.run(serve())
elif "--host" in sys.argv:
    host(sys.argv[2], sys.argv[3], sys.argv[4], int(sys.argv[5]), sys.argv[6])
else:
    main()
