"""transport.spool.detached: a place -> a drainer process that outlives this one and costs it a few milliseconds.

A shell starts the drainer in the background and ends at once. So the drainer is nobody's child to wait for, holds
none of the host's files, pipes or terminal, and goes on when the host dies.
"""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
from collections.abc import Mapping
from pathlib import Path

from headwater.errors import TransportError
from headwater.transport.spool.drainer import Drainer, locked
from headwater.transport.spool.place import Place
from headwater.transport.spool.segment import OWNER_ONLY

PATIENCE = 900.0  # seconds without success after which it ends; the next emit starts another
_LOG_BYTES = 1 << 20
_PROGRAM = "from headwater.transport.spool.detached import main; main()"  # loads no command line
_START = '"$@" </dev/null >/dev/null 2>>"$_HEADWATER_LOG" &'


def start(place: Place, linger: float) -> None:
    """Start a drainer.

    Raises:
        TransportError: it cannot be started here; events wait in the spool meanwhile.

    """
    if not sys.executable:
        raise TransportError(f"this Python does not know its own path, {_ADVICE}", retryable=False)
    log = place / "drainer.log"
    command = [sys.executable, "-c", _PROGRAM, str(place.folder), f"{linger:g}"]
    try:
        flags = (
            os.O_CREAT | os.O_WRONLY | (os.O_TRUNC if log.exists() and log.stat().st_size > _LOG_BYTES else 0)
        )
        os.close(os.open(log, flags, OWNER_ONLY))
        subprocess.run(
            ["/bin/sh", "-c", _START, "headwater", *command],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd="/",
            env={**environment(os.environ), "_HEADWATER_LOG": str(log)},
            start_new_session=True,
            check=True,
        )
    except (OSError, subprocess.CalledProcessError) as fault:
        raise TransportError(f"no drainer can be started ({fault}), {_ADVICE}", retryable=True) from fault


_ADVICE = "so events wait in the spool: run `headwater spool drain --follow`, or set the option drain=inline"


def environment(environ: Mapping[str, str]) -> dict[str, str]:
    """The host's environment, without what would make a host of the drainer: it is not to be captured itself."""
    package = str(Path(__file__).parents[3])
    kept = {name: value for name, value in environ.items() if name not in ("_HEADWATER_RUN", "PYTHONINSPECT")}
    ours = os.path.join("headwater", "cli", "_sitecustomize")
    paths = [os.path.abspath(each) for each in environ.get("PYTHONPATH", "").split(os.pathsep) if each]
    paths = [each for each in paths if not each.endswith(ours)]
    if package not in (*paths, sysconfig.get_path("purelib"), sysconfig.get_path("platlib")):
        paths.append(package)  # this process found it some other way
    return {**kept, "PYTHONPATH": os.pathsep.join(paths), "PYTHONSAFEPATH": "1"}


def main() -> None:
    """Drain the place that the arguments name until it has been empty for long enough."""
    place, linger = Place(Path(sys.argv[1])), float(sys.argv[2])
    with locked(place, 2.0) as mine:  # one that ends may hold it for a moment yet
        if mine:
            Drainer(place, patience=PATIENCE).run(linger=linger)
