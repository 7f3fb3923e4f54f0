"""deliver.datahub.sinks: change proposals -> DataHub: over REST or Kafka, or as files that `datahub ingest` reads.

To add one: write sinks/<name>.py with a class that keeps the Protocol below, and open it in `deliver.datahub.transport`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from headwater.deliver.datahub.proposing import Proposal
from headwater.deliver.datahub.wire import is_proposal
from headwater.errors import TransportError

__all__ = ["Sink", "fault_of", "is_proposal"]


class Sink(Protocol):
    """Hands proposals on."""

    def emit(self, proposals: Sequence[Proposal], name: str) -> None:
        """Hand on proposals in their order; `name` is the run group that they tell of.

        Raises:
            TransportError: not all were taken; `refused` says which never will be, and why, `pending` which may be yet.

        """

    def close(self) -> None:
        """Give back what is held."""


def fault_of(
    shown: str,
    refused: dict[int, str],
    pending: set[int],
    why: str = "",
    *,
    cause: str = "other",
    retryable: bool = True,
    retry_after: float | None = None,
) -> TransportError:
    """What became of proposals that were not all taken."""
    parts = []
    if pending:
        parts.append(f"{shown} did not take {len(pending)} proposal(s){f': {why}' if why else ''}")
    if refused:
        first = next(iter(refused.values()))
        parts.append(f"{shown} refused {len(refused)} proposal(s): {first}")
    return TransportError(
        "; ".join(parts),
        retryable=bool(pending) and retryable,
        refused=refused,
        pending=pending,
        retry_after=retry_after,
        cause=cause,
    )
