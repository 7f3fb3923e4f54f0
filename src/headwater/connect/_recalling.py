"""connect._recalling: a connector that the watcher does not remember -> which of its runs were told before, asked from the server.

The events' own destination knows which runs there were and which have ended, if it is Headwater's server or Marquez: both
answer by the run's id, and the ids of a configuration's runs are a series that anybody can make.
"""

from __future__ import annotations

from collections.abc import Callable
from time import monotonic
from typing import Any

from headwater.capture.connect.remembered import Fate, State, numbered
from headwater.capture.connect.snapshots import Connector
from headwater.connect._asking import Server
from headwater.errors import TransportError

PAUSE = 60.0
"""Seconds for which a server that did not answer is left alone."""
_FATES: dict[str, Fate] = {"NEW": "open", "RUNNING": "open", "FAILED": "failed", "COMPLETED": "ended", "ABORTED": "ended"}  # fmt: skip


class Recall:
    """A server with Marquez's API."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._able = False
        self._silent = float("-inf")

    def told(
        self, state: State, connector: Connector, warn: Callable[[str], None]
    ) -> tuple[int, Fate] | None:
        """How many runs of its configuration were told, and what became of the last; None where that cannot be known."""
        if monotonic() < self._silent:  # a thousand connectors must not wait for it a thousand times
            return None
        try:
            if not self._able:
                self._able = _lists_namespaces(self._server.get("/api/v1/namespaces?limit=1"))
            if not self._able:
                raise TransportError("it is no lineage server", retryable=False, cause="no_marquez")
            fates: dict[int, Fate] = {}
            return self._search(lambda number: self._fate(numbered(state, connector, number)), fates)
        except TransportError as fault:
            self._silent = monotonic() + PAUSE
            warn(
                f"whether runs were told before cannot be asked ({fault}): those of new connectors have ids of this watcher alone"
            )
            return None

    def close(self) -> None:
        """Give back the connections."""
        self._server.close()

    def _search(self, ask: Callable[[int], Fate | None], fates: dict[int, Fate]) -> tuple[int, Fate]:
        """The first number that has no run; all before it have one."""
        low, high = 0, 1

        def known(number: int) -> bool:
            found = ask(number)
            if found is not None:
                fates[number] = found
            return found is not None

        if not known(0):
            return 0, "ended"
        while known(high):
            low, high = high, high * 2
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if known(middle) else (low, middle)
        return high, fates[low]

    def _fate(self, run: str) -> Fate | None:
        try:
            answer = self._server.get(f"/api/v1/jobs/runs/{run}")
        except TransportError as fault:
            if fault.cause in ("missing", "http_404"):
                return None
            raise
        state = answer.get("state") if isinstance(answer, dict) else None
        if state not in _FATES:
            raise TransportError("its answer is not understood", retryable=True, cause="no_marquez")
        return _FATES[state]


def _lists_namespaces(answer: Any) -> bool:
    return isinstance(answer, dict) and isinstance(answer.get("namespaces"), list)
