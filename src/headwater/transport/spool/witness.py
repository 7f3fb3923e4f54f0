"""transport.spool.witness: events that wait, the first of them failing -> which of the others could show that the receiver is well."""

from __future__ import annotations

from headwater.transport._answers import run_of

DESPAIR = 16
"""Tries of an event alone, while the first of no other run was taken either: then later ones are tried, too."""


def witnesses(events: list[bytes], left: list[int], tries: int) -> list[int]:
    """Where those stand whose being taken would show that the receiver is well, though it failed so often at the first.

    They are of other runs, and each its run's first: whichever is taken comes before its run's next. Only where the first of
    every run fails for long does a later one do, after those before it failed: else two such events would hold up all for ever.
    """
    queues: dict[str, list[int]] = {}
    for at in left[1:]:
        if (run := run_of(events[at])) != run_of(events[left[0]]):
            queues.setdefault(run or str(at), []).append(at)
    if tries < DESPAIR:
        return [queue[0] for queue in queues.values()]
    deep = (tries - DESPAIR) // max(1, len(queues)) % max(map(len, queues.values()), default=1)
    return [queue[min(deep, len(queue) - 1)] for queue in queues.values()]
