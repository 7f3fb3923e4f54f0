"""transport.memory: encoded events -> a list, for tests of those who use us and for our own."""

from __future__ import annotations

from collections.abc import Sequence

from headwater.transport._options import refuse_closed


class MemoryTransport:
    """Keeps what it is sent in `events`.

    >>> transport = MemoryTransport()
    >>> transport.send([b"{}"])
    >>> transport, transport.events
    (MemoryTransport(1 events), [b'{}'])
    """

    def __init__(self, url: str = "memory:") -> None:
        self.events: list[bytes] = []
        self.closed = False

    def __repr__(self) -> str:
        return f"MemoryTransport({len(self.events)} events)"

    def send(self, events: Sequence[bytes]) -> None:
        """Keep the events."""
        refuse_closed(self.closed, self)
        self.events.extend(events)

    def close(self) -> None:
        """Keep what was sent, take no more."""
        self.closed = True
