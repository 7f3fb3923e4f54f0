"""serving: a store's url -> a real server in a process of its own, stopped by its pid."""

from __future__ import annotations

import multiprocessing
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import IO, Protocol

_FORKING = multiprocessing.get_context("forkserver")
# To import them is four fifths of a start: one process does it, of which each server is a fork before it has done anything else.
_FORKING.set_forkserver_preload(
    [
        "headwater.cli.serve",
        "headwater.serve.app",
        "headwater.serve.wire",
        "headwater.deliver.datahub.settings",
        "headwater.store.sqlite",
        "headwater.store.postgres",
        "alembic.command",
        "psycopg",
        "uvicorn",
    ]
)


class Running(Protocol):
    """What tests ask of a process, as `subprocess.Popen` answers it."""

    @property
    def pid(self) -> int: ...
    def poll(self) -> int | None: ...
    def wait(self, timeout: float | None = None) -> int: ...
    def terminate(self) -> None: ...
    def kill(self) -> None: ...


@dataclass
class Server:
    url: str
    process: Running

    def kill(self) -> None:
        """As a power cut would: no goodbye."""
        os.kill(self.process.pid, signal.SIGKILL)
        self.process.wait(10)


@contextmanager
def serving(
    store: str, *arguments: str, environment: dict[str, str] | None = None, fresh: bool = False
) -> Iterator[Server]:
    """`headwater serve`; `fresh`: by a Python of its own, where its start or its memory is what is looked at."""
    environ = {**os.environ, **(environment or {})}
    command = ["serve", "--store", store, "--port", "0", *arguments]
    process, told = (_started if fresh or "PYTHONPATH" in (environment or {}) else _forked)(command, environ)
    try:
        first = told.readline()
        found = re.search(r"at (http://\S+)", first)
        assert found, first + told.read()
        yield Server(found.group(1), process)
    finally:
        if process.poll() is None:
            process.terminate()
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait(10)
        told.close()


def _started(command: list[str], environ: dict[str, str]) -> tuple[Running, IO[str]]:
    process = subprocess.Popen(
        [sys.executable, "-m", "headwater", *command],
        stderr=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        text=True,
        env=environ,
    )
    assert process.stderr is not None
    return process, process.stderr


def _forked(command: list[str], environ: dict[str, str]) -> tuple[Running, IO[str]]:
    reader, writer = _FORKING.Pipe(duplex=False)
    process = _FORKING.Process(target=_run, args=(command, environ, os.getcwd(), writer))
    process.start()
    writer.close()
    with reader:
        return _Fork(process), os.fdopen(os.dup(reader.fileno()))


@dataclass
class _Fork:
    """A process of `multiprocessing`, with the manners of one of `subprocess`."""

    process: multiprocessing.context.ForkServerProcess

    @property
    def pid(self) -> int:
        assert self.process.pid is not None
        return self.process.pid

    def poll(self) -> int | None:
        return self.process.exitcode

    def wait(self, timeout: float | None = None) -> int:
        self.process.join(timeout)
        if self.process.exitcode is None:
            raise subprocess.TimeoutExpired("headwater serve", timeout or 0)
        return self.process.exitcode

    def terminate(self) -> None:
        self.process.terminate()

    def kill(self) -> None:
        self.process.kill()


def _run(command: list[str], environ: dict[str, str], folder: str, stderr: Connection) -> None:
    """In the fork: what a Python of its own would have been given, then the command."""
    from headwater.cli import main

    os.environ.clear()
    os.environ.update(environ)
    os.chdir(folder)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    os.dup2(stderr.fileno(), 2)
    stderr.close()
    sys.argv = ["headwater", *command]
    main()
