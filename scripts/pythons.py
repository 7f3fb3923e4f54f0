"""pythons: the Pythons of this machine -> an environment each with the light parts and the server, and whether the tests hold there.

    python scripts/pythons.py [--uv uv] [--envs .venvs] [3.10 3.13]

Nothing is downloaded but packages: a Python that is not here is named as not tried, and is a failure only where
HEADWATER_REQUIRE_LIVE is 1.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
PYTHONS = ("3.10", "3.11", "3.12", "3.13", "3.14")
REQUIRED = ("3.10", "3.11", "3.13")
"""What we say that we run on: the oldest, the one most tests run on, and a new one."""

PACKAGES = (
    "pytest>=8.3",
    "pytest-xdist>=3.6",
    "hypothesis>=6.120",
    "jsonschema>=4.23",
    "rfc3339-validator>=0.1.4",
)
TESTS = (
    "tests/test_event.py",
    "tests/facts",
    "tests/test_graph.py",
    "tests/test_config.py",
    "tests/cli/test_native_commands.py",
    "tests/serve/test_serve.py",
)
EXTRAS = "server,postgres,kafka"
UNLIKE = (
    "tests/test_config.py::test_the_reference_in_the_docs_is_the_table",
    "tests/cli/test_native_commands.py::test_a_log_goes_out_and_comes_back",
)
"""Tests that need other extras as well: the settings of S3, Parquet."""


def found(uv: str) -> dict[str, Path]:
    """Version -> program, of the Pythons that are here and answer: on PATH, of pyenv, of uv."""
    places = [Path(each) for name in PYTHONS if (each := shutil.which(f"python{name}"))]
    versions = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv") / "versions"
    places += sorted(versions.glob("3.*/bin/python3"), reverse=True)
    listed = subprocess.run(
        [uv, "python", "list", "--only-installed", "--output-format", "json"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    if listed.returncode == 0:
        places += [Path(each["path"]) for each in json.loads(listed.stdout) if each.get("path")]
    pythons: dict[str, Path] = {}
    for place in places:
        if (version := answers(place)) in PYTHONS:
            pythons.setdefault(version, place)
    return pythons


def answers(program: Path) -> str:
    """What version a program says that it is; empty where it says nothing: a shim without its Python does so."""
    code = "import sys, ssl, sqlite3, ctypes; print('%d.%d %s' % (*sys.version_info[:2], sys.implementation.name))"
    try:
        done = subprocess.run([program, "-c", code], capture_output=True, text=True, check=False, timeout=60)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    told = re.fullmatch(r"(3\.\d+) cpython", done.stdout.strip())
    return told[1] if told and done.returncode == 0 else ""


def prepare(uv: str, python: Path, folder: Path) -> str | None:
    """An environment with what is tried; why there is none, where there is none."""
    commands = [
        [uv, "venv", "--quiet", "--no-project", "--allow-existing", "--python", python, folder],
        [uv, "pip", "install", "--quiet", "--python", folder / "bin" / "python", *PACKAGES, "--editable", f".[{EXTRAS}]"],
    ]  # fmt: skip
    for command in commands:
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
        if done.returncode:
            return done.stderr.strip() or "no reason was told"
    return None


def main() -> int:
    """Try each; 1 where one fails, or is not here and had to be."""
    parser = argparse.ArgumentParser(description="Run the light tests on every Python that is here.")
    parser.add_argument("versions", nargs="*", default=PYTHONS)
    parser.add_argument("--uv", default="uv")
    parser.add_argument("--envs", type=Path, default=ROOT / ".venvs")
    parser.add_argument("--workers", default="2")
    given = parser.parse_args()
    here, outcome, wrong = found(given.uv), {}, False
    for version in given.versions:
        if version not in here:
            outcome[version] = "not tried: it is not here"
            wrong |= version in REQUIRED and os.environ.get("HEADWATER_REQUIRE_LIVE") == "1"
            continue
        print(f"== Python {version}", flush=True)
        folder = given.envs / f"python-{version}"
        if (fault := prepare(given.uv, here[version], folder)) is not None:
            outcome[version], wrong = f"no environment: {fault}", True
            continue
        python = folder / "bin" / "python"
        done = subprocess.run(
            [python, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-n", given.workers, *TESTS, *(f"--deselect={each}" for each in UNLIKE)],
            cwd=ROOT, env={**os.environ, "PYTHONPATH": "", "VIRTUAL_ENV": str(folder)}, check=False,
        )  # fmt: skip
        told = subprocess.run([python, "-V"], capture_output=True, text=True, check=True).stdout.split()[1]
        outcome[version] = f"{told}: {'good' if done.returncode == 0 else 'tests fail'}"
        wrong |= done.returncode != 0
    print("\n".join(f"Python {version:5} {said}" for version, said in outcome.items()))
    return int(wrong)


if __name__ == "__main__":
    sys.exit(main())
