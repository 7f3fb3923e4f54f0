"""locks: the dependency tables of pyproject.toml -> locks/*.txt, hash-pinned; or whether these still fit.

    python scripts/locks.py check              offline: compares digests, refuses hosts and missing hashes
    python scripts/locks.py write [--upgrade]  compiles with uv; without --upgrade, versions stay where they can

The first line of a lock is a digest of what it was made from, so that the check needs no network.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).parents[1]
LOCKS: dict[str, tuple[str, ...]] = {
    "base": (),
    "server": ("--extra", "server"),
    "all": ("--extra", "all"),
    "dev": ("--all-extras", "--group", "dev"),
}
COMPILE = (
    "--universal",
    "--generate-hashes",
    "--no-header",
    "--no-emit-index-url",
    "--python-version",
    "3.10",
)
HOST = re.compile(r"https?://|--(?:extra-)?index|--find-links|@ file:")


def inputs(project: dict[str, Any], flags: tuple[str, ...]) -> str:
    """The first line of a lock: a digest of all that decides what is in it."""
    tables = {
        "python": project["project"]["requires-python"],
        "base": project["project"]["dependencies"],
        "extras": project["project"]["optional-dependencies"] if flags else {},
        "groups": project["dependency-groups"] if "--group" in flags else {},
        "flags": [*COMPILE, *flags],
    }
    return "# inputs: sha256:" + hashlib.sha256(json.dumps(tables, sort_keys=True).encode()).hexdigest()


def problems(name: str, text: str, wanted: str) -> Iterator[str]:
    """What is wrong with a lock, one line each."""
    first, _, rest = text.partition("\n")
    if first != wanted:
        yield f"locks/{name}.txt does not fit pyproject.toml: run make lock"
    for number, line in enumerate(rest.splitlines(), 2):
        if HOST.search(line):
            yield f"locks/{name}.txt:{number} names a place to download from: {line.strip()}"
    for pinned in re.split(r"\n(?=[a-z0-9])", rest):
        if pinned.strip() and ("==" not in pinned or "--hash=sha256:" not in pinned):
            yield f"locks/{name}.txt: {pinned.split()[0]} has no version or no hash"


def check() -> list[str]:
    """What is wrong with the locks."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    found: list[str] = []
    for name, flags in LOCKS.items():
        file = ROOT / "locks" / f"{name}.txt"
        if file.exists():
            found += problems(name, file.read_text(), inputs(project, flags))
        else:
            found.append(f"locks/{name}.txt is missing: run make lock")
    return found


def write(uv: str, upgrade: bool) -> None:
    """Compile every lock."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    for name, flags in LOCKS.items():
        file = ROOT / "locks" / f"{name}.txt"
        file.parent.mkdir(exist_ok=True)
        command = [uv, "pip", "compile", "--quiet", *COMPILE, *flags, *(["--upgrade"] if upgrade else [])]
        subprocess.run([*command, "--output-file", str(file), "pyproject.toml"], cwd=ROOT, check=True)
        file.write_text(f"{inputs(project, flags)}\n{file.read_text()}")
        print(f"locks/{name}.txt: {file.read_text().count('==')} packages")


def main() -> int:
    """Run one of the two; exit 1 where a lock is wrong."""
    parser = argparse.ArgumentParser(description="Write or check locks/*.txt.")
    parser.add_argument("what", choices=("check", "write"))
    parser.add_argument("--uv", default="uv")
    parser.add_argument("--upgrade", action="store_true")
    given = parser.parse_args()
    if given.what == "write":
        write(given.uv, given.upgrade)
    found = check()
    print("\n".join(found) or f"locks: {len(LOCKS)} fit pyproject.toml")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
