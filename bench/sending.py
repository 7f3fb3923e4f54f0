"""sending: events -> HTTP requests -> how long a server took for them; what the benches of servers share.

Sockets by hand: a client library would cost more than the server does.
"""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

TICKS = os.sysconf("SC_CLK_TCK")
_LENGTH = re.compile(rb"content-length: (\d+)", re.IGNORECASE)


@contextmanager
def serving(store: str, *options: str) -> Iterator[tuple[int, int]]:
    """A `headwater serve` in a process of its own -> its port and pid."""
    command = [sys.executable, "-m", "headwater", "serve", "--store", store, "--port", "0", *options]
    server = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    try:
        assert server.stderr is not None
        first = server.stderr.readline()
        found = re.search(r":(\d+) ", first)
        assert found, first
        threading.Thread(target=server.stderr.read, daemon=True).start()  # so that it never waits for us
        port = int(found.group(1))
        ask(port, "/ready")  # it listens before it has started
        yield port, server.pid
    finally:
        server.terminate()
        server.wait(60)


def request_of(path: str, body: bytes) -> bytes:
    """A POST of JSON, ready to be sent."""
    head = f"POST {path} HTTP/1.1\r\nHost: bench\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    return head.encode() + body


def ingest_requests(lines: list[bytes], batch: int) -> list[bytes]:
    """One event a request, or arrays of `batch`."""
    if batch == 1:
        return [request_of("/api/v1/lineage", line) for line in lines]
    return [
        request_of("/api/v1/lineage/batch", b"[" + b",".join(lines[at : at + batch]) + b"]")
        for at in range(0, len(lines), batch)
    ]


def send(port: int, requests: list[bytes], connections: int = 1) -> float:
    """Send all of them, each connection its share, one after another; the seconds it took."""
    threads = [
        threading.Thread(target=_send, args=(port, requests[at::connections])) for at in range(connections)
    ]
    began = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return time.perf_counter() - began


def _send(port: int, requests: list[bytes]) -> None:
    with _connected(port) as sock:
        for request in requests:
            sock.sendall(request)
            status, _ = _answer(sock)
            assert status in (200, 201), status


class Asking:
    """One connection that is kept: GET after GET."""

    def __init__(self, port: int) -> None:
        self._sock = _connected(port)

    def get(self, path: str) -> bytes:
        """The body of what a path answers; anything but 200 is a fault."""
        self._sock.sendall(f"GET {path} HTTP/1.1\r\nHost: bench\r\n\r\n".encode())
        status, body = _answer(self._sock)
        assert status == 200, (path, status, body[:300])
        return body

    def close(self) -> None:
        self._sock.close()


def ask(port: int, path: str) -> bytes:
    """What one GET answers."""
    asking = Asking(port)
    try:
        return asking.get(path)
    finally:
        asking.close()


def _connected(port: int) -> socket.socket:
    sock = socket.create_connection(("127.0.0.1", port))
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return sock


def _answer(sock: socket.socket) -> tuple[int, bytes]:
    answer = b""
    while b"\r\n\r\n" not in answer:
        part = sock.recv(65536)
        assert part, "the server hung up"
        answer += part
    head, _, body = answer.partition(b"\r\n\r\n")
    found = _LENGTH.search(head)
    assert found, head
    left, parts = int(found.group(1)) - len(body), [body]
    while left > 0:
        part = sock.recv(min(left, 1 << 20))
        assert part, "the server hung up"
        parts.append(part)
        left -= len(part)
    return int(head.split(b" ", 2)[1]), b"".join(parts)


def cpu_of(*pids: int) -> float:
    """CPU-seconds of processes, those of their children that ended included."""
    return sum(_cpu(pid) for pid in pids)


def _cpu(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return sum(int(each) for each in fields[11:15]) / TICKS


def tree_of(pid: int) -> list[int]:
    """A process and its children that live: a Postgres makes one for each connection."""
    found = [pid]
    for each in Path(f"/proc/{pid}/task").iterdir():
        found += [below for child in (each / "children").read_text().split() for below in tree_of(int(child))]
    return found


def memory_of(pid: int) -> float:
    """Resident megabytes of a process, at most so far."""
    said = Path(f"/proc/{pid}/status").read_text()
    found = re.search(r"VmHWM:\s+(\d+)", said)
    return int(found.group(1)) / 1024 if found else 0.0


def own_memory_of(pid: int) -> float:
    """Megabytes that are a process's own now: without pages of files, which the kernel takes back when others need the room."""
    said = Path(f"/proc/{pid}/status").read_text()
    return sum(int(each) for each in re.findall(r"Rss(?:Anon|Shmem):\s+(\d+)", said)) / 1024
