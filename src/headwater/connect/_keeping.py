"""connect._keeping: what the watcher remembers of a cluster <-> a file that only its owner reads.

A state that begins anew has an epoch that no other has; two watchers that share the directory share it.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from uuid import uuid4

from headwater.capture.connect.remembered import State
from headwater.errors import StoreError


class Keeper:
    """Keeps one cluster's state; without a directory it forgets."""

    def __init__(self, folder: Path | None, cluster: str) -> None:
        self._cluster = cluster
        name = re.sub(r"[^\w.\-]", "_", cluster)
        self._file = folder / f"{name}.json" if folder is not None else None

    def load(self) -> tuple[State, str]:
        """What was kept, and what was wrong with it: a file that cannot be understood counts as none."""
        fresh = State(self._cluster, epoch=uuid4().hex)
        if self._file is None:
            return fresh, ""
        try:
            return self._begun(fresh), ""
        except (OSError, ValueError) as fault:
            return fresh, f"{self._file}: cannot be read, so runs begin anew: {fault}"

    def _begun(self, fresh: State) -> State:
        """What is kept; where nothing is, `fresh`, unless another watcher is quicker by now."""
        assert self._file is not None
        try:
            found = State.decode(self._file.read_bytes())
        except FileNotFoundError:
            temporary = self._file.with_suffix(f".{uuid4().hex}.tmp")
            try:
                self._write(temporary, fresh)
                os.link(temporary, self._file)
            except FileExistsError:
                return State.decode(self._file.read_bytes())
            except OSError:  # it cannot be kept: the first round will say so
                return fresh
            finally:
                temporary.unlink(missing_ok=True)
            return fresh
        return found if found.cluster == self._cluster else fresh

    def save(self, state: State) -> None:
        """Keep a state, whole or not at all.

        Raises:
            StoreError: the directory cannot be written.

        """
        if self._file is None:
            return
        temporary = self._file.with_suffix(f".{os.getpid()}.tmp")
        try:
            self._write(temporary, state)
            os.replace(temporary, self._file)
        except OSError as fault:
            raise StoreError(f"{self._file.parent}: what the watcher knows cannot be kept: {fault}") from None

    def _write(self, file: Path, state: State) -> None:
        file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        with open(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as out:
            out.write(state.encode())
            out.flush()
            os.fsync(out.fileno())
