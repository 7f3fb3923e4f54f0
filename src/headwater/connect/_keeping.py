"""connect._keeping: what the watcher remembers of a cluster <-> a file that only its owner reads."""

from __future__ import annotations

import os
import re
from pathlib import Path

import msgspec

from headwater.capture.connect.lifecycle import State
from headwater.errors import StoreError


class Keeper:
    """Keeps one cluster's state; without a directory it forgets."""

    def __init__(self, folder: Path | None, cluster: str) -> None:
        self._cluster = cluster
        name = re.sub(r"[^\w.\-]", "_", cluster)
        self._file = folder / f"{name}.json" if folder is not None else None

    def load(self) -> tuple[State, str]:
        """What was kept, and what was wrong with it: a file that cannot be understood counts as none."""
        if self._file is None:
            return State(self._cluster), ""
        try:
            found = State.decode(self._file.read_bytes())
        except FileNotFoundError:
            return State(self._cluster), ""
        except (OSError, msgspec.DecodeError) as fault:
            return State(self._cluster), f"{self._file}: cannot be read, so runs begin anew: {fault}"
        return (found, "") if found.cluster == self._cluster else (State(self._cluster), "")

    def save(self, state: State) -> None:
        """Keep a state, whole or not at all.

        Raises:
            StoreError: the directory cannot be written.

        """
        if self._file is None:
            return
        temporary = self._file.with_suffix(f".{os.getpid()}.tmp")
        try:
            self._file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            with open(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
                file.write(state.encode())
                file.flush()
                os.fsync(file.fileno())
            os.replace(temporary, self._file)
        except OSError as fault:
            raise StoreError(f"{self._file.parent}: what the watcher knows cannot be kept: {fault}") from None
