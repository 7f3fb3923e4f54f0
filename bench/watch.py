"""watch: a process and all below it -> the wall time, CPU and memory that something took."""

from __future__ import annotations

import ctypes
import os
import signal
import threading
import time
from pathlib import Path
from typing import NamedTuple

TICKS = os.sysconf("SC_CLK_TCK")
_SUBREAPER = 36  # PR_SET_CHILD_SUBREAPER


def adopt() -> None:
    """From now on what loses its parent stays below this process, so its CPU cannot leave the count."""
    ctypes.CDLL(None).prctl(_SUBREAPER, 1, 0, 0, 0)


class Seen(NamedTuple):
    """A process at a moment."""

    parent: int
    own: int
    """Ticks of CPU."""
    ended: int
    """Ticks of its children that have ended, and of theirs."""


def _seen(pid: int) -> tuple[tuple[int, int], Seen] | None:
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    except OSError:
        return None
    numbers = [int(each) for each in fields[1:20]]
    own, ended = sum(numbers[10:12]), sum(numbers[12:14])
    return (pid, numbers[18]), Seen(numbers[0], own, ended)  # a number comes again, but not at the same start


def tree(pid: int) -> dict[tuple[int, int], Seen]:
    """A process and all below it, each by its number and start."""
    every = dict(filter(None, (_seen(int(each.name)) for each in Path("/proc").glob("[0-9]*"))))
    below: dict[int, list[tuple[int, int]]] = {}
    for key, each in every.items():
        below.setdefault(each.parent, []).append(key)
    found: dict[tuple[int, int], Seen] = {key: every[key] for key in every if key[0] == pid}
    left = [pid]
    while left:
        for key in below.get(left.pop(), ()):
            found[key] = every[key]
            left.append(key[0])
    return found


def _disowns(pid: int) -> bool:
    """Whether it ignores the end of its children: then their CPU is nobody's (PySpark's daemon does so)."""
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return False
    mask = next(line for line in status.splitlines() if line.startswith("SigIgn:")).split()[1]
    return bool(int(mask, 16) >> (signal.SIGCHLD - 1) & 1)


class Account:
    """CPU of this process and all below it, those that have ended included.

    A process that ends hands its count to its parent when that one takes note. A parent that ignores its children never
    does: what such a child had when it was seen last is kept here, so the tree is looked at all the time.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._disowned: dict[tuple[int, int], int] = {}
        threading.Thread(target=self._watch, daemon=True).start()

    def _watch(self) -> None:
        while True:
            self.spent()
            time.sleep(1)

    def spent(self) -> tuple[float, float, float]:
        """CPU seconds since each began; how many of them the kernel hands to nobody, of those that have ended and of those that live.

        Those that live may yet outlive the parent that ignores them, and then are somebody's.
        """
        with self._lock:
            seen = tree(os.getpid())
            while (
                again := tree(os.getpid())
            ).keys() < seen.keys():  # one ended: is it in its parent's count?
                seen = again
            parents = {each.parent for each in seen.values()}
            ignoring = {parent for parent in parents if _disowns(parent)}
            known = living = 0
            for key, each in seen.items():
                if each.parent in ignoring:
                    self._disowned[key] = each.own
                    known += each.ended
                    living += each.own
                else:
                    known += each.own + each.ended
            disowned = sum(self._disowned.values())
            return (known + disowned) / TICKS, (disowned - living) / TICKS, living / TICKS


def held() -> int:
    """Bytes of memory of this process and all below it; what they share is counted once."""
    total = 0
    for pid, _ in tree(os.getpid()):
        try:
            for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
                if line.startswith("Pss:"):
                    total += int(line.split()[1]) * 1024
        except OSError:
            continue
    return total


class Watch:
    """What is taken from now until `stop`."""

    account: Account | None = None

    def __init__(self) -> None:
        Watch.account = Watch.account or Account()
        self._peak, self._done = 0, threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)
        self._cpu, self._began = Watch.account.spent()[0], time.perf_counter()
        self._thread.start()

    def _look(self) -> None:
        while not self._done.wait(1):
            self._peak = max(self._peak, held())

    def stop(self) -> dict[str, float]:
        """Wall and CPU seconds, the peak of memory; and the CPU so far that the kernel hands to nobody, or may not."""
        assert Watch.account is not None
        wall = time.perf_counter() - self._began
        cpu, disowned, living = Watch.account.spent()
        self._done.set()
        self._thread.join()
        peak = max(self._peak, held()) / (1 << 20)
        return {"wall": wall, "cpu": cpu - self._cpu, "mb": peak, "disowned": disowned, "living": living}
