"""facts.versions: a run's inputs and outputs -> the job version it shows.

A job version is a set of inputs and outputs. A run shows one when it completed and named datasets, in
whichever of its events: a START with the inputs and a COMPLETE with the outputs are one set. A run that
failed or named nothing shows none, so it can never wipe an edge.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from hashlib import blake2b
from typing import Any

import msgspec

from headwater.facts.derive import RANK

COMPLETE = f"{RANK['COMPLETE']} COMPLETE"
"""The state of a run that ended well, as rows keep it."""
RUNNING = f"{RANK['RUNNING']} RUNNING"
"""The state of a run that has begun; of one of which only its children told, too."""
Shown = Mapping[str, bytes]
"""run -> the version it shows"""


def version_of(inputs: Iterable[str], outputs: Iterable[str]) -> bytes:
    """The digest of a set of inputs and outputs, whatever their order.

    >>> version_of(["a\\nx", "a\\ny"], ["a\\nz"]) == version_of(["a\\ny", "a\\nx"], ["a\\nz"])
    True
    """
    body = msgspec.json.encode([sorted(inputs), sorted(outputs)])
    return blake2b(body, digest_size=16).digest()


def run_versions(tables: Mapping[str, Mapping[tuple[Any, ...], Mapping[str, Any]]]) -> Shown:
    """Every run that shows a version, with it."""
    named: dict[str, tuple[list[str], list[str]]] = {}
    for side, table in enumerate(("inputs", "outputs")):
        for run, dataset in tables[table]:
            named.setdefault(run, ([], []))[side].append(dataset)
    runs = tables["runs"]
    return {run: version_of(*io) for run, io in named.items() if completed(runs.get((run,), {}))}


def completed(run: Mapping[str, Any]) -> bool:
    """Whether a folded run ended well."""
    return "state" in run and run["state"][1] == COMPLETE


def job_versions(
    tables: Mapping[str, Mapping[tuple[Any, ...], Mapping[str, Any]]], shown: Shown
) -> dict[tuple[Any, ...], dict[str, Any]]:
    """(job, version) -> when runs first and last showed it."""
    found: dict[tuple[Any, ...], dict[str, Any]] = {}
    for run, digest in shown.items():
        row = tables["runs"][(run,)]
        ended = row["ended_at"]
        have = found.setdefault((row["job"][1], digest), {"first_seen": ended, "last_seen": ended})
        have["first_seen"] = min(have["first_seen"], ended)
        have["last_seen"] = max(have["last_seen"], ended)
    return found
