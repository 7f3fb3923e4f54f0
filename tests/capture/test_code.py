"""A line of a file -> where its source is kept, read from a checkout that git itself made."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from headwater.capture.code import place_of


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A repository with a file, a commit and a remote that names who may push."""
    if shutil.which("git") is None:
        pytest.skip("needs git; get it with: apt install git")
    (tmp_path / "jobs").mkdir()
    (tmp_path / "jobs" / "load it.py").write_text("run()\n")
    for command in (
        "init -q -b trunk",
        "add -A",
        "-c user.name=a -c user.email=a@example.org commit -q -m first",
        "remote add origin https://fred:hunter2@example.org/team/jobs.git",
    ):
        subprocess.run(["git", *command.split()], cwd=tmp_path, check=True)
    return tmp_path


def test_a_file_of_a_checkout(checkout: Path) -> None:
    head = subprocess.run(
        ["git", "rev-parse", "HEAD"], cwd=checkout, capture_output=True, text=True, check=True
    )
    commit = head.stdout.strip()
    told = place_of(str(checkout / "jobs" / "load it.py"), 1)
    assert told == {
        "type": "git",
        "url": f"https://example.org/team/jobs/blob/{commit}/jobs/load%20it.py#L1",
        "path": "jobs/load it.py",
        "branch": "trunk",
        "version": commit,
        "repoUrl": "https://example.org/team/jobs",
    }


def test_a_file_that_no_git_knows(tmp_path: Path) -> None:
    file = tmp_path / "load.py"
    file.write_text("run()\n")
    assert place_of(str(file), 7) == {"type": "file", "url": f"file://{file}#L7", "path": str(file)}
