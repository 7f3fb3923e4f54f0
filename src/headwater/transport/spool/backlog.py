"""transport.spool.backlog: segments and a cursor -> events in the order they were sent, batch by batch; what is acknowledged is deleted.

Several processes write at once, and a run may be told by more than one of them. The stamps of one boot come from one
steady clock, so merging by stamp keeps the order in which `send` was called, whoever called it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from heapq import heappop, heappush
from itertools import count, groupby
from pathlib import Path

import msgspec

from headwater.transport.spool import dead
from headwater.transport.spool.identity import UNKNOWN, Writer, clock, gone, me
from headwater.transport.spool.place import Place, write_whole
from headwater.transport.spool.segment import (
    DAMAGED,
    EVENT,
    Frame,
    Listed,
    Segment,
    frames,
    listed,
    read,
    short_boot,
    writer_of,
)

NAMELESS = 60.0  # seconds after which a segment without a header is nobody's
FOREIGN = 7 * 86400.0  # seconds of silence after which a writer on another host counts as gone


class Batch(msgspec.Struct):
    """Events to deliver together, and how far each of them brings its segment."""

    events: list[bytes] = msgspec.field(default_factory=list)
    marks: list[tuple[int, str, int]] = msgspec.field(default_factory=list)
    """After so many events, that segment is read up to there."""
    size: int = 0

    def upto(self, count: int) -> dict[str, int]:
        """How far the first so many events bring each segment."""
        return {stem: end for after, stem, end in self.marks if 0 < after <= count}


class Backlog:
    """What waits for one destination. Whoever acknowledges must hold the drainer's lock."""

    def __init__(self, place: Place) -> None:
        self.place = place
        self.torn = 0
        self._cursor = cursor(place)
        self._writers: dict[str, Writer | None] = {}
        self._saved = dict(self._cursor)
        self._read_up: dict[str, tuple[Path, int]] = {}  # complete and read; where the last event ends

    def batches(self, most: int, most_bytes: int) -> Iterator[Batch]:
        """What waits now, in order. The next round has what comes meanwhile."""
        batch = Batch()
        for segment, frame in self._merged():
            if frame.kind == DAMAGED:
                self._damaged(segment, frame)
            elif frame.kind == EVENT:
                if batch.events and (
                    len(batch.events) >= most or batch.size + len(frame.payload) > most_bytes
                ):
                    yield batch
                    batch = Batch()
                batch.events.append(frame.payload)
                batch.size += len(frame.payload)
            if batch.events:
                batch.marks.append((len(batch.events), segment.stem, frame.end))
        if batch.events:
            yield batch
        self._sweep()

    def acknowledge(self, batch: Batch, count: int | None = None) -> None:
        """The batch, or the first so many of it, is delivered or among the dead letters: it will not be seen again."""
        self._cursor.update(batch.upto(len(batch.events) if count is None else count))
        self._sweep()

    def _merged(self) -> Iterator[tuple[Listed, Frame]]:
        # What a `send` that returned before this moment wrote is in the listing that follows. So nothing that
        # is stamped up to here can have been sent before something that this round does not see.
        now, here = clock.steady(), me()
        self._read_up.clear()
        segments = sorted(self._listed(), key=lambda each: (each.boot, each.stamp))
        boots = [list(group) for _, group in groupby(segments, key=lambda each: each.boot)]
        for group in sorted(boots, key=lambda each: min(s.wall for s in each)):
            known = here.boot != UNKNOWN and group[0].boot == short_boot(here)
            yield from self._merge(group, now if known else None)

    def _merge(self, segments: list[Listed], cut: int | None) -> Iterator[tuple[Listed, Frame]]:
        """By stamp; a segment is opened when its turn may have come, so that few are open at a time."""
        heap: list[tuple[int, int, Listed, Frame, Iterator[Frame]]] = []
        number, later = count(), iter(segments)
        upcoming = next(later, None)
        while heap or upcoming:
            while upcoming and (not heap or upcoming.stamp <= heap[0][0]):
                self._push(heap, next(number), upcoming, self._frames(upcoming, cut), upcoming.stamp)
                upcoming = next(later, None)
            if heap:
                stamp, _, segment, frame, rest = heappop(heap)
                yield segment, frame
                self._push(heap, next(number), segment, rest, stamp)

    @staticmethod
    def _push(
        heap: list[tuple[int, int, Listed, Frame, Iterator[Frame]]],
        number: int,
        segment: Listed,
        rest: Iterator[Frame],
        least: int,
    ) -> None:
        frame = next(rest, None)
        if frame is not None:  # within a segment the order of the file rules
            heappush(heap, (max(least, frame.stamp), number, segment, frame, rest))

    def _frames(self, segment: Listed, cut: int | None) -> Iterator[Frame]:
        start = end = self._cursor.get(segment.stem, 0)
        for frame in read(segment.path, start, complete=segment.done):
            if cut is not None and frame.stamp > cut:
                return
            end = frame.end if frame.kind == EVENT else end
            yield frame
        if segment.done:
            self._read_up[segment.stem] = segment.path, end

    def _listed(self) -> list[Listed]:
        """The segments; one whose writer is gone counts as done."""
        found = listed(self.place.folder)
        stems = {each.stem for each in found}
        self._cursor = {stem: at for stem, at in self._cursor.items() if stem in stems}
        self._writers = {stem: who for stem, who in self._writers.items() if stem in stems}
        return [each if each.done else each._replace(done=self._abandoned(each)) for each in found]

    def _abandoned(self, segment: Listed) -> bool:
        if self._writers.get(segment.stem) is None:
            self._writers[segment.stem] = writer_of(segment.path)
        return abandoned(segment.path, self._writers[segment.stem])

    def _damaged(self, segment: Listed, frame: Frame) -> None:
        """A torn tail was never acknowledged to anybody; what is damaged in the middle is kept to be looked at."""
        if any(True for _ in read(segment.path, frame.end, complete=True)):
            dead.refuse(self.place, [dead.Letter(f"damaged in {segment.path.name}", frame.payload)])
        else:
            self.torn += 1

    def _sweep(self) -> None:
        for stem, (path, end) in list(self._read_up.items()):
            if self._cursor.get(stem, 0) >= end:
                path.unlink(missing_ok=True)
                self._read_up.pop(stem)
                self._cursor.pop(stem, None)
        if self._cursor != self._saved:
            with suppress(OSError):  # a full disk: what is sent twice for it counts once
                write_whole(self.place / "cursor", msgspec.json.encode(self._cursor))
                self._saved = dict(self._cursor)


def abandoned(path: Path, writer: Writer | None) -> bool:
    """Whether nobody will add to a segment any more."""
    known = None if writer is None else gone(writer)
    if known is not None:
        return known
    try:
        silent = clock.wall() - path.stat().st_mtime
    except FileNotFoundError:  # completed meanwhile; the next round sees it
        return False
    return silent > (NAMELESS if writer is None else FOREIGN)


def cursor(place: Place) -> dict[str, int]:
    """How far each segment was delivered. Lost with the machine's power, it only makes for repeats."""
    try:
        return msgspec.json.decode((place / "cursor").read_bytes(), type=dict[str, int])
    except (OSError, msgspec.DecodeError):
        return {}


def waiting(place: Place) -> Iterator[tuple[Listed, int, float]]:
    """Each segment with the bytes of it that wait, and its age in seconds, oldest first."""
    done, here = cursor(place), short_boot(me())
    for segment in sorted(listed(place.folder), key=lambda each: (each.wall, each.stamp)):
        with suppress(FileNotFoundError):
            seen = segment.path.stat()
            age = clock.wall() - seen.st_mtime
            if segment.boot == here:  # a clock that jumped must not make anything old
                age = min(age, (clock.steady() - segment.stamp) / 1e9)
            yield segment, max(0, seen.st_size - done.get(segment.stem, 0)), max(0.0, age)


def waiting_events(place: Place) -> Iterator[bytes]:
    """What waits, to be looked at; nothing is changed."""
    done = cursor(place)
    for segment, _, _ in waiting(place):
        frames = read(segment.path, done.get(segment.stem, 0))
        yield from (frame.payload for frame in frames if frame.kind == EVENT)


def make_room(place: Place, max_bytes: int, max_age: float, *, old_only: bool = False) -> int:
    """Drop complete segments that are too old, and the oldest while there is too much; how many."""
    found = list(waiting(place))
    total = sum(size for _, size, _ in found)
    dropped, done = 0, cursor(place)
    for segment, size, age in found:
        why = "old" if age > max_age else "full" if total > max_bytes and not old_only else None
        if why and size and (segment.done or abandoned(segment.path, writer_of(segment.path))):
            dead.drop(place, segment.path, why, done.get(segment.stem, 0))
            dropped, total = dropped + 1, total - size
    if dropped:  # once for all: of processes that live for one event there may be thousands
        dead.make_room(place, max_bytes)
    return dropped


def total_bytes(place: Place) -> int:
    """How much waits."""
    return sum(size for _, size, _ in waiting(place))


def move(place: Place, to: Place) -> int:
    """Put what waits in one place to the end of what waits in another; how many. Needs the drainer's lock of the first.

    Files that a living process still writes stay where they are.
    """
    done, count = cursor(place), 0
    for segment in sorted(listed(place.folder), key=lambda each: (each.wall, each.stamp)):
        if not segment.done and not abandoned(segment.path, writer_of(segment.path)):
            continue
        frames_left = read(segment.path, done.get(segment.stem, 0), complete=True)
        if events := [frame.payload for frame in frames_left if frame.kind == EVENT]:
            fresh = Segment(to.folder)
            fresh.append(frames(events))
            fresh.sync()
            fresh.seal()
        segment.path.unlink(missing_ok=True)  # twice on the wire, should it be cut short here; once in effect
        count += len(events)
    return count


def purge(place: Place) -> int:
    """Delete what waits; how many. A process that writes begins a new file."""
    count = sum(1 for _ in waiting_events(place))
    for segment in listed(place.folder):
        segment.path.unlink(missing_ok=True)
    return count
