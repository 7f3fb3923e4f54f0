"""live: targets of the Makefile -> each run by make, some side by side; what each took, what failed, what was left running.

    python scripts/live.py [--lanes 2] live-backend live-kafka …

A suite waits much of its time for servers to start, and its last test keeps one core. So several run side by side, in as many
lanes, in the order given: the longest first. What a suite says stands in `.live/TARGET.log`; once a minute it is told how far
each is. At the end nothing that was started may be there any more, however it was started.
"""

from __future__ import annotations

import argparse
import os
import re
import signal
import subprocess
import sys
import time
import uuid
from collections import deque
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from marked import carrying

ROOT = Path(__file__).resolve().parents[1]
MARK = "LIVE_RUN"
"""In the environment of everything that a run starts, so that it is known by it."""
_MINUTE = 60


@dataclass
class Suite:
    """A target that runs."""

    target: str
    log: Path
    process: subprocess.Popen[bytes]
    began: float
    cpu: float = 0.0
    """Seconds of the processor, once it has ended: its own and of all that it waited for."""

    def ended(self) -> bool:
        """Whether it has, and then what it took."""
        pid, status, used = os.wait4(self.process.pid, os.WNOHANG)
        if not pid:
            return False
        self.process.returncode = os.waitstatus_to_exitcode(status)
        self.cpu = used.ru_utime + used.ru_stime
        return True

    def said(self, pattern: str) -> list[str]:
        """What its log has of a kind."""
        return re.findall(pattern, self.log.read_text(errors="replace"))


def main() -> int:
    """Run them; 1 where one failed or left something behind."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("targets", nargs="+")
    parser.add_argument("--lanes", type=int, default=1)
    parser.add_argument("--folder", type=Path, default=ROOT, help="Where the Makefile is.")
    # a drainer ends by itself when its spool was empty for a minute
    parser.add_argument("--grace", type=float, default=90, help="Seconds for what ends by itself.")
    asked = parser.parse_args()
    run, began = uuid.uuid4().hex, time.monotonic()
    waiting, running, failed = deque(asked.targets), list[Suite](), list[str]()
    told = began
    for number in (signal.SIGINT, signal.SIGTERM):  # a background job ignores Ctrl-C, unless told otherwise
        signal.signal(number, lambda *_: sys.exit("stopped"))
    try:
        while waiting or running:
            while waiting and len(running) < asked.lanes:
                running.append(start(waiting.popleft(), run, asked.folder))
            time.sleep(0.5)
            for suite in [each for each in running if each.ended()]:
                running.remove(suite)
                failed += [suite.target] if suite.process.returncode else []
                print(ending(suite), flush=True)
            if time.monotonic() - told > _MINUTE:
                told = time.monotonic()
                print(f"  {minutes(told - began)}: {', '.join(map(progress, running))}", flush=True)
    finally:
        if running:  # it was stopped; who asks again must not stop that
            for number in (signal.SIGINT, signal.SIGTERM):
                signal.signal(number, signal.SIG_IGN)
            stop(run)
    left = list(wait_for_end(run, asked.grace))
    for line in left:
        print(f"left running: {line}")
    print(
        f"{'failed: ' + ', '.join(failed) if failed else 'all passed'}, in {minutes(time.monotonic() - began)}"
    )
    return 1 if failed or left else 0


def start(target: str, run: str, folder: Path) -> Suite:
    """Begin a suite, in a session of its own."""
    log = folder / ".live" / f"{target}.log"
    log.parent.mkdir(exist_ok=True)
    with log.open("wb") as out:
        process = subprocess.Popen(
            ["make", target],
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=subprocess.STDOUT,
            env={**os.environ, MARK: run, "MAKEFLAGS": ""},
            start_new_session=True,
        )
    return Suite(target, log, process, time.monotonic())


def progress(suite: Suite) -> str:
    """How many tests it has run of those that pytest found; of a suite of several parts, of those so far."""
    found = sum(map(int, suite.said(r"(?:\[|collected )(\d+) items?")))
    run = sum(map(len, suite.said(r"(?m)^([.sxXFE]+)(?: +\[ *\d+%\])?$")))
    return f"{suite.target} {run:,} of {found:,}"


def ending(suite: Suite) -> str:
    """How it ended."""
    counts = suite.said(r"\d+ (?:passed|failed|skipped|error)[^\n]*? in [\d.]+s")
    outcome = "ok" if suite.process.returncode == 0 else f"FAILED, see {suite.log}"
    took = f"{minutes(time.monotonic() - suite.began)}, {minutes(suite.cpu)} of CPU"
    return f"{suite.target}: {outcome}, {took}; {'; '.join(counts)}"


def stop(run: str, patience: float = 10) -> None:
    """End all that a run has started: kindly, then at once."""
    for number, seconds in ((signal.SIGTERM, patience), (signal.SIGKILL, 1)):
        for pid, _ in started_by(run):
            with suppress(OSError):
                os.kill(pid, number)
        list(wait_for_end(run, seconds))


def wait_for_end(run: str, grace: float) -> Iterator[str]:
    """What a run has started and is there yet, after those had time to go that go by themselves."""
    until = time.monotonic() + grace
    while (found := list(started_by(run))) and time.monotonic() < until:
        time.sleep(0.5)
    yield from (f"{pid} {command}" for pid, command in found)


def started_by(run: str) -> Iterator[tuple[int, str]]:
    """The processes that have its mark."""
    return carrying(f"{MARK}={run}")


def minutes(seconds: float) -> str:
    """125 -> 2:05"""
    return f"{int(seconds) // 60}:{int(seconds) % 60:02d}"


if __name__ == "__main__":
    sys.exit(main())
