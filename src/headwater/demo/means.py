"""demo.means: this machine -> what of the demo can be played here, and how to get the rest."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path

INSTALL = "pip install 'headwater[demo]'"
JAVA = "Debian: apt install openjdk-17-jre-headless; macOS: brew install openjdk@17"
_DLT = (1, 30)
"""Since when dlt tells where its resources read from."""


@dataclass(frozen=True, slots=True)
class Means:
    """What is missing, in words that say how to get it; None where it is there."""

    dlt: str | None
    spark: str | None


def look(environ: Mapping[str, str] = os.environ) -> Means:
    """What is here."""
    return Means(_dlt(), _spark(environ))


def _dlt() -> str | None:
    missing = [name for name in ("dlt", "sqlalchemy", "pyarrow") if folder_of(name) is None]
    if missing:
        return f"{' and '.join(missing)} {'is' if len(missing) == 1 else 'are'} not installed: {INSTALL}"
    found = _version("dlt")
    if found and found < _DLT:
        return f"dlt {'.'.join(map(str, found))} does not tell what it reads, {_DLT[0]}.{_DLT[1]} does: {INSTALL}"
    return None


def _spark(environ: Mapping[str, str]) -> str | None:
    if folder_of("pyspark") is None:
        return f"pyspark is not installed: {INSTALL}"
    java = java_version(environ)
    if java is None:
        return f"Spark needs Java, and there is none in JAVA_HOME or PATH: {JAVA}"
    needed = 17 if (_version("pyspark") or (4,)) >= (4,) else 8
    if java < needed:
        return f"Spark needs Java {needed} or newer, and this is {java}: {JAVA}"
    return None


def folder_of(package: str) -> Path | None:
    """Where a package is installed; None where it is not."""
    try:
        found = find_spec(package)
    except (ImportError, ValueError):
        return None
    return Path(found.origin).parent if found and found.origin else None


def _version(name: str) -> tuple[int, ...] | None:
    try:
        return tuple(int(part) for part in re.findall(r"\d+", version(name))[:2])
    except PackageNotFoundError:  # it came by PYTHONPATH
        return None


def java_version(environ: Mapping[str, str]) -> int | None:
    """The version of the Java that Spark would start, 17 say; None where there is none that works."""
    home = environ.get("JAVA_HOME")
    java = os.path.join(home, "bin", "java") if home else shutil.which("java", path=environ.get("PATH"))
    if java is None:
        return None
    try:
        done = subprocess.run(
            [java, "-version"], capture_output=True, text=True, timeout=60, env={}, check=True
        )
    except (OSError, subprocess.SubprocessError):  # macOS has a `java` that only says where to get one
        return None
    return read_version(done.stderr + done.stdout)


def read_version(text: str) -> int | None:
    """The version that `java -version` tells.

    >>> read_version('openjdk version "17.0.15" 2025-04-15'), read_version('java version "1.8.0_392"')
    (17, 8)
    """
    found = re.search(r'version "(?:1\.)?(\d+)', text)
    return int(found[1]) if found else None
