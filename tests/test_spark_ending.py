"""How a driver program ends, by real processes: what it says to the system is what its application's run says."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

WATCH = """
import json, sys
from headwater.spark._ending import Ending

told = []
def last():
    with open(sys.argv[1], "w") as file:
        json.dump(told, file)
def tell(error, *, aborted=False):
    told.append([error, aborted])

def install():
    Ending(tell).watch(last)
install()
"""
CODE = "SystemExit: the program ended with exit code"


def program(tmp_path: Path, body: str, *how: str) -> tuple[int, list[list[object]]]:
    (tmp_path / "job.py").write_text(WATCH + body)
    done = subprocess.run(
        [sys.executable, *(how or ("job.py",)), str(tmp_path / "told.json")],
        cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    return done.returncode, json.loads((tmp_path / "told.json").read_text())


@pytest.mark.parametrize("how", [("job.py",), ("-m", "job")], ids=" ".join)
@pytest.mark.parametrize(
    ("body", "code", "told"),
    [
        ("pass", 0, None),
        ("sys.exit()", 0, None),
        ("sys.exit(0)", 0, None),
        ("sys.exit(3)", 3, f"{CODE} 3"),
        ("sys.exit('no input')", 1, f"{CODE} 1: no input"),
        ("exit(4)", 4, f"{CODE} 4"),
        ("def main():\n    sys.exit(5)\nmain()", 5, f"{CODE} 5"),
        ("def main():\n    return 6\nsys.exit(main())", 6, f"{CODE} 6"),
        ("try:\n    sys.exit(7)\nexcept SystemExit:\n    pass", 0, None),
        (
            "def tried():\n    try:\n        sys.exit(7)\n    except SystemExit:\n        pass\ntried()\nx = 1",
            0,
            None,
        ),
        ("try:\n    sys.exit(7)\nexcept SystemExit:\n    pass\nsys.exit(0)", 0, None),
        ("import argparse\nargparse.ArgumentParser().error('wrong use')", 2, f"{CODE} 2"),
        ("raise ValueError('no')", 1, "ValueError: no"),
    ],
)
def test_an_end(tmp_path: Path, body: str, code: int, told: str | None, how: tuple[str, ...]) -> None:
    assert program(tmp_path, body, *how) == (code, [[told, False]] if told else [])


@pytest.mark.parametrize(
    ("body", "code"), [("raise SystemExit(3)", 3), ("raise SystemExit(0)", 0), ("raise SystemExit", 0)]
)
def test_a_raise_in_the_program_itself(tmp_path: Path, body: str, code: int) -> None:
    assert program(tmp_path, body) == (code, [[f"{CODE} {code}", False]] if code else [])


@pytest.mark.skipif(os.name == "nt", reason="no such signals there")
def test_an_interrupt_is_an_abort(tmp_path: Path) -> None:
    (tmp_path / "job.py").write_text(WATCH + "import time\nprint('ready', flush=True)\ntime.sleep(600)\n")
    running = subprocess.Popen(
        [sys.executable, "job.py", str(tmp_path / "told.json")],
        cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
    )  # fmt: skip
    with running:
        assert running.stdout
        assert running.stdout.readline() == "ready\n"
        running.send_signal(signal.SIGINT)
        running.wait(60)
    assert json.loads((tmp_path / "told.json").read_text()) == [["KeyboardInterrupt: ", True]]


def test_exit_functions_that_run_early_end_nothing(tmp_path: Path) -> None:
    assert program(tmp_path, "import atexit\natexit._run_exitfuncs()\n") == (0, [])
