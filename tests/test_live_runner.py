"""How the live suites are run: side by side, each failure and each process left behind told."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from uuid import uuid4

import marked

SCRIPT = Path(__file__).resolve().parents[1] / "scripts" / "live.py"
MAKEFILE = """
good:
	@echo "[ 50%]"; echo "== 3 passed, 1 skipped in 0.10s =="
bad:
	@echo "== 1 failed in 0.10s =="; exit 1
endless:
	@trap '' TERM; setsid sleep 300 & echo begun; while true; do sleep 0.1; done
leaver:
	@setsid sleep 300 >/dev/null 2>&1 & echo "$$!" > left.pid
"""


def run(folder: Path, *targets: str) -> tuple[int, str]:
    (folder / "Makefile").write_text(MAKEFILE)
    command = [sys.executable, str(SCRIPT), "--folder", str(folder), "--grace", "1", "--lanes", "2", *targets]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.stderr == ""
    return done.returncode, done.stdout


def test_what_passes_is_told_with_its_counts(tmp_path: Path) -> None:
    code, out = run(tmp_path, "good")
    assert (
        code,
        bool(re.search(r"good: ok, 0:0\d, 0:0\d of CPU;", out)),
        "3 passed, 1 skipped in 0.10s" in out,
    ) == (0, True, True), out


def test_a_failure_does_not_stop_the_others_and_is_named(tmp_path: Path) -> None:
    code, out = run(tmp_path, "bad", "good")
    assert code == 1
    assert f"bad: FAILED, see {tmp_path}/.live/bad.log" in out
    assert "good: ok" in out
    assert "failed: bad, in " in out


def test_more_leaves_out_what_is_the_same_at_any_scale(tmp_path: Path) -> None:
    """But neither what is live nor what repeats, by itself or through a fixture of its own."""
    (tmp_path / "test_some.py").write_text("""
import pytest
from hypothesis import given, strategies

@pytest.fixture
def often(repeats):
    return repeats(100)

def test_as_before(): ...
def test_repeats(repeats): ...
def test_repeats_by_a_fixture(often): ...
@pytest.mark.live
def test_live(): ...
@given(strategies.integers())
def test_property(number): ...
""")
    found = {}
    for each in ("1", "more"):
        listed = outcome_of(tmp_path, "--collect-only", HEADWATER_LIVE=each)
        found[each] = set(re.findall(r"::(test_\w+)", listed))
    assert found["more"] == {"test_repeats", "test_repeats_by_a_fixture", "test_live", "test_property"}
    assert found["1"] == {*found["more"], "test_as_before"}


def test_a_drainer_that_waits_for_its_server_ends_with_the_tests(tmp_path: Path) -> None:
    (tmp_path / "test_host.py").write_text("""
import time
import conftest
import marked
from headwater.emitter import Emitter

def test_host(tmp_path):
    event = {"eventTime": "2026-01-31T12:00:00Z", "run": {"runId": "r"}, "job": {"namespace": "n", "name": "j"}}
    Emitter(f"spool://{tmp_path}?to=http://127.0.0.1:9").emit(event)
    until = time.monotonic() + 30
    while not any("spool.detached" in command for _, command in marked.carrying(conftest.TESTED_BY)):
        assert time.monotonic() < until
""")
    run = uuid4().hex
    assert "1 passed" in outcome_of(tmp_path, STARTED_IN=run)
    until = time.monotonic() + 30
    while left := list(marked.carrying(f"STARTED_IN={run}")):
        assert time.monotonic() < until, left
        time.sleep(0.1)


def outcome_of(folder: Path, *options: str, **environment: str) -> str:
    """What pytest says of the tests in a folder, under the rules of this one."""
    here = Path(__file__).parent
    command = [sys.executable, "-m", "pytest", "-p", "conftest", "-q", *options, str(folder)]
    command += ["-c", str(here.parent / "pyproject.toml"), "-o", "addopts=", "--rootdir", str(folder)]
    return subprocess.run(
        command,
        env={**os.environ, **environment, "PYTHONPATH": os.pathsep.join([str(here), *sys.path])},
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
        cwd=folder,
    ).stdout


def test_what_is_left_running_is_a_failure(tmp_path: Path) -> None:
    code, out = run(tmp_path, "leaver", "good")
    left = next(line for line in out.splitlines() if line.startswith("left running: "))
    os.kill(int(left.split()[2]), signal.SIGKILL)
    assert code == 1
    assert "sleep 300" in left


def test_what_is_stopped_takes_all_with_it(tmp_path: Path) -> None:
    """What another session holds and what does not listen, too."""
    (tmp_path / "Makefile").write_text(MAKEFILE)
    begun = tmp_path / ".live" / "endless.log"
    process = subprocess.Popen(
        [sys.executable, str(SCRIPT), "--folder", str(tmp_path), "endless"], stderr=subprocess.PIPE, text=True
    )
    until = time.monotonic() + 30
    while not (begun.exists() and "begun" in begun.read_text()):
        assert time.monotonic() < until
        time.sleep(0.05)
    process.terminate()
    assert process.communicate(timeout=60)[1] == "stopped\n"
    assert process.returncode == 1
    here = {link.parent.name for link in Path("/proc").glob("[0-9]*/cwd") if points_to(link, tmp_path)}
    assert here == set()


def points_to(link: Path, folder: Path) -> bool:
    try:
        return link.readlink() == folder
    except OSError:  # it has ended meanwhile, or is another's
        return False
