"""transport.spool.census: a place, looked at again and again -> how many events wait there and are dead; what was read once is not read again."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from headwater.transport.spool import dead
from headwater.transport.spool.backlog import cursor, waiting
from headwater.transport.spool.place import Place
from headwater.transport.spool.segment import Listed, count


@dataclass(frozen=True, slots=True)
class Counted:
    """What was found at one look."""

    events: int = 0
    size: int = 0
    oldest: float = 0.0
    """Seconds that the oldest file with an event in it has waited."""
    dead: int = 0
    lost: int = 0


@dataclass(slots=True)
class _Upto:
    """So many events stand before this place of a file."""

    events: int = 0
    end: int = 0

    def reach(self, path: Path, end: int | None = None) -> int:
        if end is None or end > self.end:
            more, self.end = count(path, self.end, end)
            self.events += more
        return self.events


class Census:
    """Counts a place. `spool status` reads all that waits; one who asks every few seconds must not."""

    def __init__(self, place: Place) -> None:
        self.place = place
        self._written: dict[str, _Upto] = {}
        self._delivered: dict[str, _Upto] = {}
        self._dead: tuple[frozenset[tuple[str, int]], int] = frozenset(), 0

    def look(self) -> Counted:
        """Count what waits now."""
        done = cursor(self.place)
        events = size = 0
        oldest = 0.0
        found = list(waiting(self.place))
        for segment, waits, age in found:
            here = self._here(segment, done.get(segment.stem, 0))
            events, size = events + here, size + waits
            oldest = max(oldest, age) if here else oldest
        stems = {segment.stem for segment, _, _ in found}
        for known in (self._written, self._delivered):
            for stem in known.keys() - stems:
                del known[stem]
        return Counted(events, size, oldest, self._letters(), dead.lost(self.place))

    def _here(self, segment: Listed, delivered: int) -> int:
        written = self._written.setdefault(segment.stem, _Upto()).reach(segment.path)
        before = self._delivered.setdefault(segment.stem, _Upto())
        return max(0, written - (before.reach(segment.path, delivered) if delivered else 0))

    def _letters(self) -> int:
        files = frozenset((each.name, each.stat().st_size) for each in (self.place / "dead").iterdir())
        if files != self._dead[0]:
            self._dead = files, sum(1 for _ in dead.letters(self.place))
        return self._dead[1]
