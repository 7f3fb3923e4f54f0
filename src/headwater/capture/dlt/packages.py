"""capture.dlt.packages: what is known of a load package <-> a file beside it, until it is loaded, by whichever process.

A package that is extracted today may be normalised and loaded tomorrow by another process: what its resources read, and
which columns its fields became, would be gone by then. Of packages that are loaded the last few stay, for whoever asks
why something was told.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec

FOLDER = "headwater"
MOST, MOST_LOADED = 200, 10
"""Files kept of packages that wait (those dropped by hand leave theirs behind), and of packages that are loaded."""


def keep(pipeline_folder: str, load_id: str, known: dict[str, Any]) -> None:
    """Write down what is known of a package, whole or not at all."""
    folder = Path(pipeline_folder) / FOLDER
    folder.mkdir(parents=True, exist_ok=True)
    new = folder / f".{load_id}.{os.getpid()}"
    new.write_bytes(msgspec.json.encode(known))
    new.replace(folder / f"{load_id}.json")
    for old in sorted(folder.glob("*.json"))[:-MOST]:
        old.unlink(missing_ok=True)


def find(pipeline_folder: str, load_ids: Iterable[str]) -> dict[str, dict[str, Any]]:
    """What is known of packages; those of which nothing is known are left out."""
    found: dict[str, dict[str, Any]] = {}
    for load_id in load_ids:
        for ending in ("json", "loaded"):
            try:
                said = msgspec.json.decode(
                    (Path(pipeline_folder) / FOLDER / f"{load_id}.{ending}").read_bytes()
                )
            except (FileNotFoundError, msgspec.DecodeError):
                continue
            if isinstance(said, dict):
                found[load_id] = said
                break
    return found


def settle(pipeline_folder: str, load_ids: Iterable[str]) -> None:
    """These packages are loaded."""
    folder = Path(pipeline_folder) / FOLDER
    for load_id in load_ids:
        with suppress(FileNotFoundError):
            (folder / f"{load_id}.json").replace(folder / f"{load_id}.loaded")
    for old in sorted(folder.glob("*.loaded"))[:-MOST_LOADED]:
        old.unlink(missing_ok=True)
