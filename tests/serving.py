"""serving: a store's url -> a real server in a process of its own, stopped by its pid."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass


@dataclass
class Server:
    url: str
    process: subprocess.Popen[str]

    def kill(self) -> None:
        """As a power cut would: no goodbye."""
        os.kill(self.process.pid, signal.SIGKILL)
        self.process.wait(10)


@contextmanager
def serving(store: str, *arguments: str, environment: dict[str, str] | None = None) -> Iterator[Server]:
    command = [sys.executable, "-m", "headwater", "serve", "--store", store, "--port", "0", *arguments]
    process = subprocess.Popen(
        command,
        stderr=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        text=True,
        env={**os.environ, **(environment or {})},
    )
    assert process.stderr is not None
    try:
        first = process.stderr.readline()
        found = re.search(r"at (http://\S+)", first)
        assert found, first + process.stderr.read()
        yield Server(found.group(1), process)
    finally:
        if process.poll() is None:
            process.terminate()
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait(10)
        process.stderr.close()
