"""noting: what a bench finds -> its tables on stdout, and with `--json FILE` its figures in a file, with machine, load and versions.

`bench/figures/<name>.json` is where `make bench` has them kept, and `scripts/results.py` makes `bench/RESULTS.md` and the plots of them:

    notes = Notes("graph", packages=("sqlalchemy",))      # takes --json FILE from the command line
    notes.table("growth", ("runs", "now"), [("20,200", "7.8 ms")])
    notes.aim("under 20 ms at the median", "8.2 ms", met=True)
    notes.keep()

Figures of a full size are replaced by those of a full size only, unless `BENCH_REPLACE=1` says otherwise; those of a part (`--only`)
replace that part.
"""

from __future__ import annotations

import json
import os
import platform
import re
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

Points = Sequence[tuple[Any, float]]


def machine() -> dict[str, Any]:
    """What this runs on."""
    said = Path("/proc/cpuinfo").read_text() if Path("/proc/cpuinfo").exists() else ""
    model = re.search(r"model name\s*: (.*)", said)
    kilobytes = re.search(r"MemTotal:\s+(\d+)", Path("/proc/meminfo").read_text()) if said else None
    return {
        "processor": model.group(1).strip() if model else platform.processor(),
        "cores": os.cpu_count(),
        "memory_gb": round(int(kilobytes.group(1)) / 1e6) if kilobytes else None,
        "system": platform.system(),
        "python": platform.python_version(),
    }


class Notes:
    """What one bench finds."""

    def __init__(self, name: str, packages: Sequence[str] = (), untold: Sequence[str] = ()) -> None:
        """`untold` are options whose values are nobody's business: urls with passwords, places on this machine."""
        self._file = _taken("--json")
        self._began, self._load = time.time(), os.getloadavg()[0]
        self._told: dict[str, Any] = {
            "bench": name,
            "command": " ".join([f"bench/{name}.py", *_told(sys.argv[1:], untold)]),
            "full": "--full" in sys.argv,
            "versions": _versions(packages),
            "words": [],
            "tables": {},
            "plots": {},
            "aims": [],
            "ratios": [],
        }

    def say(self, text: str) -> None:
        """A sentence: printed, and kept."""
        print(f"\n{text}", flush=True)
        self._told["words"].append(text)

    def table(
        self, name: str, head: Sequence[str], rows: Iterable[Sequence[object]], title: str = ""
    ) -> None:
        """A table: printed, and kept."""
        made = [[str(each) for each in row] for row in rows]
        lines = [*([title, ""] if title else []), *markdown(list(head), made)]
        print("\n" + "\n".join(lines), flush=True)
        self._told["tables"][name] = {"title": title, "head": list(head), "rows": made}

    def plot(self, name: str, kind: str, title: str, x: str, y: str, lines: Mapping[str, Points], *, log: bool = False) -> None:  # fmt: skip
        """What can be drawn: `line` over numbers, or `bar` over words; `log` for a logarithmic height (and, of lines, width)."""
        self._told["plots"][name] = {
            "kind": kind,
            "title": title,
            "x": x,
            "y": y,
            "log": log,
            "lines": {label: [[at, float(f"{value:.4g}")] for at, value in points] for label, points in lines.items()},
        }  # fmt: skip

    def aim(self, aim: str, measured: str, met: bool) -> None:
        """What was wanted, and what was found."""
        self._told["aims"].append({"aim": aim, "measured": measured, "met": met})

    def ratio(self, peer: str, what: str, times: float) -> None:
        """How many times a peer's figure ours is; more is better for us."""
        self._told["ratios"].append({"peer": peer, "what": what, "times": float(f"{times:.3g}")})

    def keep(self) -> None:
        """Write the figures, if the command line names a file for them."""
        taken = {
            **machine(),
            "date": time.strftime("%Y-%m-%d", time.gmtime(self._began)),
            "minutes": round((time.time() - self._began) / 60, 1),
            "load": [round(self._load, 1), round(os.getloadavg()[0], 1)],
        }
        if self._file is not None:
            write(self._file, self._told | {"taken": taken})


def write(file: Path, told: dict[str, Any]) -> bool:
    """Keep figures in a file, unless it holds some of a larger size; whether it was done."""
    kept = json.loads(file.read_text()) if file.exists() else {}
    if kept.get("full") and not told["full"] and os.environ.get("BENCH_REPLACE") != "1":
        print(f"{file} is left as it is: it is of full size, and this was not (BENCH_REPLACE=1 replaces it)", file=sys.stderr)  # fmt: skip
        return False
    if kept.get("full") == told["full"] and "--only" in told.get("command", "").split():
        told = _within(kept, told)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(told, indent=1, sort_keys=True, ensure_ascii=False) + "\n")
    return True


def _within(kept: dict[str, Any], part: dict[str, Any]) -> dict[str, Any]:
    """Figures with those of a part in place of what stood there for it."""
    told = {**kept, "taken": part["taken"], "versions": part["versions"]}
    for name in ("tables", "plots"):
        told[name] = kept[name] | part[name]
    for name, keys in (("aims", ("aim",)), ("ratios", ("peer", "what"))):
        rows = {tuple(row[key] for key in keys): row for row in (*kept[name], *part[name])}
        told[name] = list(rows.values())
    return told


def markdown(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """The lines of a table."""
    return [f"| {' | '.join(row)} |" if row else f"|{'---|' * len(head)}" for row in (head, (), *rows)]


def _taken(option: str) -> Path | None:
    """The value of an option, which is taken from the command line: each bench reads the rest in its own way."""
    if option not in sys.argv:
        return None
    at = sys.argv.index(option)
    if at + 1 == len(sys.argv):
        sys.exit(f"{option} names no file")
    file = Path(sys.argv[at + 1])
    del sys.argv[at : at + 2]
    return file


def _told(words: Sequence[str], untold: Sequence[str]) -> list[str]:
    """The words of a command line without some options and what follows them."""
    left, kept = list(words), []
    while left:
        word = left.pop(0)
        if word.partition("=")[0] not in untold:
            kept.append(word)
        elif "=" not in word and left:
            left.pop(0)
    return kept


def _versions(packages: Sequence[str]) -> dict[str, str]:
    found = {}
    for name in ("headwater", *packages):
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found
