"""living: hosts, their spools and a server -> processes that can be watched, waited for, and killed at work.

What `month` lives through: every process is started here and ended by its number.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from headwater.transport.spool import backlog, drainer
from headwater.transport.spool.place import Place, places
from sending import ask, cpu_of, memory_of, own_memory_of

HERE = Path(__file__).resolve().parent
sys.path.append(str(HERE.parent / "tests"))

from services import free_port  # noqa: E402


class Spent(NamedTuple):
    """What a process had taken when it was looked at last, or at most."""

    cpu: float = 0.0
    """Seconds."""
    mb: float = 0.0
    """Resident, with the pages of files that it has mapped (SQLite maps its file, once for each connection)."""
    own: float = 0.0
    """Megabytes without those."""


class Accounts:
    """CPU and peak memory of processes by their role, those that were killed included."""

    def __init__(self) -> None:
        self._seen: dict[tuple[str, int], Spent] = {}
        self._lock = threading.Lock()

    def look(self, role: str, pid: int) -> None:
        """Take note of a process, if it is still there."""
        with suppress(OSError, IndexError), self._lock:
            now = Spent(cpu_of(pid), memory_of(pid), own_memory_of(pid))
            before = self._seen.get((role, pid), Spent())
            self._seen[role, pid] = Spent(*map(max, now, before))

    def cpu(self, role: str) -> float:
        """CPU-seconds of all that had the role."""
        with self._lock:
            return sum(spent.cpu for (name, _), spent in self._seen.items() if name == role)

    def peak(self, role: str) -> Spent:
        """The most of each that a process of the role took."""
        with self._lock:
            had = [spent for (name, _), spent in self._seen.items() if name == role]
        return Spent(*map(max, zip(Spent(), *had, strict=True)))


class Server:
    """A `headwater serve` that can be killed and comes back at the same port."""

    def __init__(self, store: str, folder: Path) -> None:
        self.store, self.port, self._log = store, free_port(), folder / "server.log"
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        command = [sys.executable, "-m", "headwater", "serve", "--store", self.store, "--port", str(self.port)]  # fmt: skip
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(command, stdout=log, stderr=log)
        until = time.monotonic() + 120
        while True:
            with suppress(OSError, AssertionError):
                ask(self.port, "/ready")
                return
            assert self._process.poll() is None, self._log.read_text()[-2000:]
            assert time.monotonic() < until, "the server does not get ready"
            time.sleep(0.05)

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    def kill(self) -> None:
        assert self._process is not None
        os.kill(self.pid, signal.SIGKILL)
        self._process.wait(20)

    def stop(self) -> None:
        if self._process is not None and self._process.poll() is None:
            self._process.terminate()
            self._process.wait(120)


class Host:
    """A process of `hosting`."""

    def __init__(self, number: int, of: int, events: int, seed: int, spool: Path, url: str, archive: Path) -> None:  # fmt: skip
        words = [str(each) for each in (number, of, events, seed, spool, url, archive)]
        self._process = subprocess.Popen(
            [sys.executable, str(HERE / "hosting.py"), *words],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={key: value for key, value in os.environ.items() if not key.startswith(("HEADWATER_", "OPENLINEAGE_"))},
        )  # fmt: skip

    def begin(self, tenth: int) -> None:
        assert self._process.stdin is not None
        print(f"tenth {tenth}", file=self._process.stdin, flush=True)

    def ended(self) -> dict[str, float]:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        assert line, "a host has ended before its month"
        told: dict[str, float] = json.loads(line)
        return told

    def end(self) -> None:
        assert self._process.stdin is not None
        print("end", file=self._process.stdin, flush=True)
        self._process.stdin.close()
        assert self._process.wait(60) == 0, "a host failed"

    def stop(self) -> None:
        if self._process.poll() is None:
            self._process.kill()
            self._process.wait(20)


def waits(spools: list[Path]) -> list[Place]:
    """The places in which events still wait; what little is left is read, to tell events from headers."""
    found = []
    for place in (each for spool in spools for each in places(spool)):
        size = backlog.total_bytes(place)
        if size > 1 << 20 or (size and next(backlog.waiting_events(place), None) is not None):
            found.append(place)
    return found


@dataclass
class Way:
    """From the hosts to the server: what is running, and what was seen of it."""

    server: Server
    spools: list[Path]
    hosts: list[Host]
    accounts: Accounts = field(default_factory=Accounts)
    killed: dict[str, Any] = field(default_factory=dict)
    helped: int = 0

    def look(self) -> None:
        """Take note of every process."""
        self.accounts.look("server", self.server.pid)
        for place in (each for spool in self.spools for each in places(spool)):
            told = drainer.state(place)
            if told is not None and drainer.drained(place):
                self.accounts.look("drainer", told.writer.pid)

    def deliver(self) -> None:
        """Wait until nothing waits. Who emits starts a drainer; where nobody does any more, an operator would."""
        alone = 0.0
        while left := waits(self.spools):
            self.look()
            busy = all(drainer.drained(place) for place in left)
            alone = 0.0 if busy else alone + 0.2
            if alone > 5:  # the last was killed after the last emit
                for place in left:
                    command = [sys.executable, "-m", "headwater", "spool", "drain", "--dir", str(place.folder.parent)]  # fmt: skip
                    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
                    self.helped += 1
                alone = 0.0
            time.sleep(0.2)

    def drainers(self) -> list[int]:
        """The drainers that are at work."""
        found = [each for spool in self.spools for each in places(spool) if drainer.drained(each)]
        return [told.writer.pid for each in found if (told := drainer.state(each)) is not None]

    def kill(self, what: str, after: float) -> threading.Thread:
        """Kill the server or a drainer after so many seconds, at work."""

        def do() -> None:
            time.sleep(after)
            self.look()
            if what == "server":
                self.server.kill()
                time.sleep(random.SystemRandom().uniform(0.2, 2))
                self.server.start()
                self.killed[what] = round(after, 2)
            elif pids := self.drainers():
                with suppress(ProcessLookupError):
                    os.kill(random.SystemRandom().choice(pids), signal.SIGKILL)
                    self.killed[what] = round(after, 2)

        thread = threading.Thread(target=do)
        thread.start()
        return thread

    def end(self) -> None:
        """End the drainers, which would wait for more."""
        pids = self.drainers()
        for pid in pids:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGTERM)
        until = time.monotonic() + 30
        while any(Path(f"/proc/{pid}").exists() for pid in pids) and time.monotonic() < until:
            time.sleep(0.05)
