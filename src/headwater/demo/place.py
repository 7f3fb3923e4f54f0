"""demo.place: a folder -> an environment and processes of the demo's own, which nothing of the user's disturbs.

Programs run below the folder, with a home of their own there. Of the user's environment they get only what finds Python,
Java and a language: no setting of Headwater, OpenLineage, dlt, Spark or a proxy reaches them.
"""

from __future__ import annotations

import os
import shutil
import signal
import site
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

from headwater.demo.means import folder_of
from headwater.errors import HeadwaterError
from headwater.transport.spool import drainer
from headwater.transport.spool.identity import Writer, gone
from headwater.transport.spool.place import places
from headwater.transport.spool.report import in_words, report

KEPT = ("PATH", "JAVA_HOME", "LANG", "LANGUAGE", "LC_ALL", "LC_CTYPE", "TZ", "LD_LIBRARY_PATH", "VIRTUAL_ENV")
NAMESPACE = "shop"
PATIENCE = 600.0
"""Seconds that a program may take."""
DELIVERY = 120.0
"""Seconds that its events may take to reach the server."""
Tick = Callable[[], None]


@dataclass(frozen=True, slots=True)
class Place:
    """Where the demo is played: all that it makes lies in `folder`; `server` is where events go."""

    folder: Path
    server: str
    environ: Mapping[str, str]

    @property
    def lake(self) -> Path:
        """Where the tables lie."""
        return self.folder / "lake"

    @property
    def spool(self) -> Path:
        """Where events wait for the server."""
        return self.folder / "spool"

    def environment(self) -> dict[str, str]:
        """What a program gets to know."""
        home = self.folder / "home"
        home.mkdir(exist_ok=True)
        kept = {name: self.environ[name] for name in KEPT if self.environ.get(name)}
        paths = [
            os.path.abspath(each) for each in self.environ.get("PYTHONPATH", "").split(os.pathsep) if each
        ]
        pyspark = folder_of("pyspark")
        bundled = pyspark is not None and (pyspark / "jars").is_dir()
        if "SPARK_HOME" in self.environ and not bundled:  # a pyspark that came with a release of Spark
            kept["SPARK_HOME"] = self.environ["SPARK_HOME"]
        return {
            **kept,
            "HOME": str(home),
            "TMPDIR": str(home),
            "PYTHONUSERBASE": site.getuserbase(),  # a home of one's own hides what is installed in the user's
            "PYTHONPATH": os.pathsep.join(paths),
            "PYSPARK_PYTHON": sys.executable,
            "SPARK_LOCAL_IP": "127.0.0.1",
            "SPARK_LOCAL_DIRS": str(home),
            "JDK_JAVA_OPTIONS": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",  # half the time of so short a program
            "DLT_DATA_DIR": str(home / "dlt"),
            "RUNTIME__DLTHUB_TELEMETRY": "false",
            "HEADWATER_TRANSPORT": self.server,
            "HEADWATER_SPOOL": str(self.spool),
            "HEADWATER_NAMESPACE": NAMESPACE,
        }

    def run(self, program: str, *arguments: str, captured: bool = True, tick: Tick = lambda: None) -> None:
        """Run one of the programs to its end, as `headwater run -- python program.py` does; `tick` is called meanwhile.

        Raises:
            HeadwaterError: it failed; with the last lines that it said.

        """
        path = files("headwater.demo.programs").joinpath(f"{program}.py")
        command = [sys.executable, str(path), *arguments]
        if captured:
            command = [sys.executable, "-m", "headwater", "run", "--", *command]
        log = self.folder / f"{program}.log"
        with log.open("wb") as said:
            process = subprocess.Popen(
                command,
                cwd=self.folder,
                env=self.environment(),
                stdin=subprocess.DEVNULL,
                stdout=said,
                stderr=subprocess.STDOUT,
                start_new_session=True,  # so that it ends with all that it started, the JVM too
            )
            try:
                ended = _wait(lambda: process.poll() is not None, PATIENCE, tick)
            finally:
                _end(process)
        if not ended or process.returncode != 0:
            why = f"failed with exit code {process.returncode}" if ended else f"took more than {PATIENCE:g} s"
            raise HeadwaterError(f"{program}.py {why}. The last that it said:\n{_tail(log)}")

    def delivered(self, tick: Tick = lambda: None) -> None:
        """Wait until every event that was written to the spool is with the server.

        Raises:
            HeadwaterError: some are not, after a time that is long enough; or the server refused some.

        """
        _wait(lambda: not any(each["waiting"]["events"] for each in self._reports()), DELIVERY, tick)
        for each in self._reports():
            if each["waiting"]["events"] or each["dead"]["events"]:
                raise HeadwaterError(f"events did not reach the demo's server: {in_words(each)}")

    def _reports(self) -> list[dict[str, Any]]:
        return [report(each) for each in places(self.spool)] if self.spool.is_dir() else []

    def leave(self) -> None:
        """End the drainer that delivered: it would wait a minute for more."""
        for each in places(self.spool) if self.spool.is_dir() else ():
            told = drainer.state(each)
            if told is not None and drainer.drained(each):
                _end_drainer(told.writer)


def _end_drainer(writer: Writer) -> None:
    with suppress(ProcessLookupError):
        os.kill(writer.pid, signal.SIGTERM)  # it may be killed at any moment
    _wait(lambda: gone(writer) is not False, 10.0, lambda: None)


@contextmanager
def own_folder() -> Iterator[Path]:
    """A temporary folder; in the end it is gone, though a process that was ended may write there for a moment yet."""
    # without links, as /tmp and /var are on macOS: dlt follows them in the paths that it tells, Spark does not
    folder = Path(tempfile.mkdtemp(prefix="headwater-demo-")).resolve()
    try:
        yield folder
    finally:
        _wait(lambda: _removed(folder), 10.0, lambda: None)


def _removed(folder: Path) -> bool:
    shutil.rmtree(folder, ignore_errors=True)
    return not folder.exists()


def _wait(done: Callable[[], bool], seconds: float, tick: Tick) -> bool:
    until = time.monotonic() + seconds
    while not (over := done()) and time.monotonic() < until:
        tick()
        time.sleep(0.05)
    return over


def _end(process: subprocess.Popen[bytes]) -> None:
    """See to it that nothing of a process is left."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        if process.poll() is not None:
            break
        with suppress(ProcessLookupError):
            os.killpg(process.pid, number)
        with suppress(subprocess.TimeoutExpired):
            process.wait(10)


def _tail(log: Path, lines: int = 15) -> str:
    text = log.read_text(encoding="utf-8", errors="replace").splitlines()
    return "\n".join(f"  {line}" for line in text[-lines:])
