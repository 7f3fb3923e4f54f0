"""transport.spool.dead: what cannot be delivered -> dead letters with their reason, to be shown, replayed or purged.

`dead/refused.jsonl` holds events that the receiver refused, one line each. Segments that had no room or grew too
old stand there whole, as `<segment>.<reason>.<delivered up to>`. When all of them outgrow the limit, the oldest is
deleted, and a line in `dead/lost.jsonl` says what was lost.
"""

from __future__ import annotations

import os
import re
from base64 import b64encode
from collections.abc import Iterator
from contextlib import suppress
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from headwater.transport.spool.identity import clock
from headwater.transport.spool.place import Place
from headwater.transport.spool.segment import EVENT, OWNER_ONLY, Segment, frames, read, write_all

_DROPPED = re.compile(r"(.+)\.(full|old)\.(\d+)").fullmatch
_REASONS = {
    "full": "the spool had no room: it was dropped as the oldest",
    "old": "it waited longer than max_age allows",
}


class Letter(NamedTuple):
    """One dead letter."""

    reason: str
    event: bytes
    """JSON; of a record that was damaged, an object that holds its bytes in base 64"""
    at: str | None = None
    damaged: bool = False


def refuse(place: Place, letters: list[Letter]) -> None:
    """Keep events that will never be delivered, and wait until the disk has them."""
    if not letters:
        return
    now = datetime.fromtimestamp(clock.wall(), timezone.utc).isoformat(timespec="seconds")
    lines = b"".join(_line({"at": now, "reason": each.reason}, each.event) for each in letters)
    _append(place / "dead" / "refused.jsonl", lines)


def drop(place: Place, segment: Path, why: str, delivered: int) -> None:
    """Move a complete segment, whole, to the dead letters; `why` is `full` or `old`."""
    with suppress(FileNotFoundError):  # another process was first
        segment.rename(place / "dead" / f"{segment.stem}.{why}.{delivered}")


def make_room(place: Place, max_bytes: int) -> None:
    """Delete the oldest dropped segments while there is too much of them, and write down what was lost."""
    kept = sorted((path for path, _ in _dropped(place)), key=lambda path: path.name)
    sizes = [_size(path) for path in kept]
    total = sum(sizes)
    for oldest, size in list(zip(kept, sizes, strict=True))[:-1]:
        if total <= max_bytes:
            return
        total -= size
        events = sum(1 for _ in _events(oldest))
        with suppress(FileNotFoundError):
            oldest.unlink()
            _append(place / "dead" / "lost.jsonl", _line({"segment": oldest.name, "events": events}, None))


def letters(place: Place) -> Iterator[Letter]:
    """Every dead letter, the refused first."""
    for path in sorted((place / "dead").glob("refused*.jsonl")):
        yield from _refused(path)
    for path, why in _dropped(place):
        for event in _events(path):
            yield Letter(_REASONS[why], event)


def lost(place: Place) -> int:
    """How many events were deleted for want of room even among the dead letters."""
    path = place / "dead" / "lost.jsonl"
    rows = [_decoded(line) for line in path.read_bytes().splitlines()] if path.exists() else []
    return sum(int(row.get("events", 0)) for row in rows if row)


def replay(place: Place) -> int:
    """Put every dead letter back among those that wait, but for damaged ones, which stay; how many."""
    count = 0
    refused = place / "dead" / "refused.jsonl"
    with suppress(FileNotFoundError):  # those of a replay that was cut short are there already
        refused.rename(refused.with_name(f"refused.{os.getpid()}.{clock.steady()}.jsonl"))
    for path in sorted((place / "dead").glob("refused.*.jsonl")):
        events = [letter.event for letter in _refused(path) if not letter.damaged]
        if events:
            segment = Segment(place.folder)
            segment.append(frames(events))
            segment.sync()
            segment.seal()
        lines = path.read_bytes().splitlines(keepends=True)
        if damaged := [line for line in lines if "damaged" in (_decoded(line) or {})]:
            _append(refused, b"".join(damaged))
        path.unlink()  # twice on the wire, should it be cut short here; once in effect
        count += len(events)
    for path, _ in _dropped(place):
        count += sum(1 for _ in _events(path))
        name = _DROPPED(path.name)
        if name:
            os.utime(path)  # it is young again, or it would be dropped again
            path.rename(place / f"{name[1]}.done")
    return count


def purge(place: Place) -> int:
    """Delete every dead letter; how many."""
    count = sum(1 for _ in letters(place))
    for path in (place / "dead").iterdir():
        path.unlink()
    return count


def _dropped(place: Place) -> list[tuple[Path, str]]:
    found = ((path, _DROPPED(path.name)) for path in sorted((place / "dead").iterdir()))
    return [(path, matched[2]) for path, matched in found if matched]


def _events(path: Path) -> Iterator[bytes]:
    start = int(path.name.rpartition(".")[2])
    return (each.payload for each in read(path, start, complete=True) if each.kind == EVENT)


def _refused(path: Path) -> Iterator[Letter]:
    with path.open("rb") as file:
        for line in file:
            row = _decoded(line)
            if not row or not {"event", "damaged"} & row.keys():
                continue  # a line that a kill cut short was never counted as kept
            whole = row.get("event") or msgspec.json.encode({"damaged": row["damaged"]})
            yield Letter(str(row.get("reason")), bytes(whole), str(row.get("at")), "event" not in row)


def _decoded(line: bytes) -> dict[str, Any] | None:
    try:
        row = msgspec.json.decode(line, type=dict[str, msgspec.Raw])
        event = row.pop("event", None)
        told = {name: msgspec.json.decode(value) for name, value in row.items()}
    except msgspec.DecodeError:
        return None
    return {**told, "event": bytes(event)} if event is not None else told


def _line(told: dict[str, Any], event: bytes | None) -> bytes:
    """Begins on a line of its own, whatever a kill left behind."""
    if event is not None:
        try:
            told["event"] = msgspec.Raw(msgspec.json.format(event, indent=-1))
        except msgspec.DecodeError:
            told["damaged"] = b64encode(event).decode()
    return b"\n" + msgspec.json.encode(told) + b"\n"


def _append(path: Path, data: bytes) -> None:
    file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | getattr(os, "O_CLOEXEC", 0), OWNER_ONLY)
    try:
        write_all(file, data)
        os.fsync(file)
    finally:
        os.close(file)


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0
