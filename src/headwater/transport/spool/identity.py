"""transport.spool.identity: this process, or one that wrote -> who it is, and whether it is gone.

A process id alone says little: it is given anew, and means nothing in another container or after a restart. Host,
boot, pid namespace and start time make it one process for ever.
"""

from __future__ import annotations

import os
import socket
import time
from hashlib import blake2b
from pathlib import Path

import msgspec

UNKNOWN = "unknown"


class Writer(msgspec.Struct, frozen=True):
    """One process, as no other before or after it."""

    host: str
    boot: str
    space: str
    """The pid namespace: containers of one machine count their processes apart."""
    pid: int
    start: str


class Clock:
    """Two clocks: `wall` may jump; `steady` never does, and all processes of one boot share it."""

    @staticmethod
    def wall() -> float:
        """Seconds since 1970."""
        return time.time()

    @staticmethod
    def steady() -> int:
        """Nanoseconds since some moment of this boot."""
        return time.monotonic_ns()


clock = Clock()


def me() -> Writer:
    """This process.

    >>> me().pid == os.getpid(), gone(me())
    (True, False)
    """
    pid = os.getpid()
    known = _ME.get(pid)
    if known is None:
        _ME.clear()  # those of the process that this one was forked from
        known = _ME[pid] = Writer(_host(), _boot(), _space(), pid, _start(pid) or UNKNOWN)
    return known


def gone(writer: Writer) -> bool | None:
    """Whether that process has ended; None where that cannot be known from here."""
    here = me()
    if writer.host != here.host:
        return None
    if writer.boot != here.boot:
        return True  # this machine has been started anew since
    if writer.space != here.space:
        return None
    return _start(writer.pid) != writer.start


_ME: dict[int, Writer] = {}


def _start(pid: int) -> str | None:
    """When a process started; None where there is none, or only its remains."""
    try:
        state, *rest = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:  # no such process, no /proc, or one that shows us only our own
        return _signalled(pid)
    return None if state in "ZX" else rest[18]


def _signalled(pid: int) -> str | None:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return None
    except OSError:
        pass
    return UNKNOWN


def _host() -> str:
    machine = _read("/etc/machine-id")
    return f"{socket.gethostname()}/{blake2b(machine.encode(), digest_size=4).hexdigest()}"


def _boot() -> str:
    return _read("/proc/sys/kernel/random/boot_id")


def _space() -> str:
    try:
        return os.readlink("/proc/self/ns/pid")
    except OSError:
        return UNKNOWN


def _read(path: str) -> str:
    try:
        return Path(path).read_text().strip() or UNKNOWN
    except OSError:
        return UNKNOWN
