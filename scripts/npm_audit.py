"""npm_audit: a folder with a package-lock.json -> what the registry knows against the packages in it.

    python scripts/npm_audit.py [web] [--level high]

Ends with 1 where a package has a finding of that severity or more. A registry that does not answer such questions (many
mirrors say 404 or 405, and none answers without a network) is told, and is no fault of ours: 0.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

LEVELS = ("info", "low", "moderate", "high", "critical")
SECONDS = 60


def ask(folder: Path) -> dict[str, Any] | str:
    """What npm says, or why it said nothing."""
    quick = {"npm_config_fetch_retries": "0", "npm_config_fetch_timeout": "20000", "npm_config_fund": "false"}
    command = ["npm", "audit", "--json", "--package-lock-only"]
    try:
        done = subprocess.run(
            command,
            cwd=folder,
            env={**os.environ, **quick},
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
        )
    except FileNotFoundError:
        return "npm is not installed"
    except subprocess.TimeoutExpired:
        return f"no answer within {SECONDS} seconds"
    try:
        told: dict[str, Any] = json.loads(done.stdout)
    except ValueError:
        return (done.stderr.strip() or "npm said nothing").splitlines()[0][:200]
    if "vulnerabilities" not in told:
        fault = told.get("error") or {}
        return str(told.get("message") or fault.get("summary") or fault.get("code") or "no report")[:200]
    return told


def findings(report: dict[str, Any], level: str) -> list[str]:
    """The packages with a finding of this severity or more, one line each."""
    wanted = LEVELS[LEVELS.index(level) :]
    lines = []
    for name, each in sorted(report["vulnerabilities"].items()):
        if each["severity"] not in wanted:
            continue
        titles = [via["title"] for via in each["via"] if isinstance(via, dict)]
        through = [via for via in each["via"] if isinstance(via, str)]
        why = "; ".join(titles) or f"by {', '.join(through)}"
        lines.append(f"{name} {each.get('range', '')}: {each['severity']}: {why}")
    return lines


def main() -> int:
    """Ask, tell, and say by the exit code whether it may go on."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", nargs="?", default="web", type=Path)
    parser.add_argument("--level", choices=LEVELS, default="high")
    given = parser.parse_args()
    found = ask(given.folder)
    if isinstance(found, str):
        print(f"npm audit: the registry did not answer ({found}); nothing is known against {given.folder}")
        return 0
    counts = found.get("metadata", {}).get("vulnerabilities", {})
    lines = findings(found, given.level)
    for line in lines:
        print(f"npm audit: {line}", file=sys.stderr)
    if not lines:
        print(f"npm audit: nothing {given.level} or worse, {counts.get('total', 0)} in all")
    return 1 if lines else 0


if __name__ == "__main__":
    sys.exit(main())
