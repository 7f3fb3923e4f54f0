"""transport.spool.news: a place -> what went wrong there since somebody was last told, each cause once, whoever asks."""

from __future__ import annotations

import os
from contextlib import suppress

import msgspec

from headwater.transport._answers import named
from headwater.transport.spool import drainer
from headwater.transport.spool.place import Place, write_whole

_MOST = 20  # refusals told at once
_FILE = "told"


class _Told(msgspec.Struct, frozen=True):
    fault: str | None = None
    dead: int = 0
    """Bytes of refused.jsonl that were told."""


class _Line(msgspec.Struct):
    reason: str = ""
    event: msgspec.Raw = msgspec.Raw(b"null")


def news(place: Place) -> list[str]:
    """Sentences for a log. Processes that live for one event each tell a cause once, because the place remembers it."""
    before = _before(place)
    state = drainer.state(place)
    fault = (state.fault or "").splitlines()[0] if state and state.fault else None
    told: list[str] = []
    if fault and fault != before.fault:
        told.append(f"events wait in {place.folder}: {fault}")
    size = _size(place)
    if size != before.dead:
        with suppress(FileNotFoundError):  # they were replayed, or deleted
            told += _refused(place, before.dead if size > before.dead else 0)
    if (fault, size) != (before.fault, before.dead):
        with suppress(OSError):  # then it is told again
            write_whole(place / _FILE, msgspec.json.encode(_Told(fault, size)))
    return told


def _refused(place: Place, start: int) -> list[str]:
    with (place / "dead" / "refused.jsonl").open("rb") as file:
        file.seek(start)
        lines = [line for line in file.read().splitlines() if line]
    told = []
    for line in lines[:_MOST]:
        with suppress(msgspec.DecodeError):
            letter = msgspec.json.decode(line, type=_Line)
            told.append(f"{place.shown()} refused {named(bytes(letter.event))}: {letter.reason}")
    more = len(lines) - _MOST
    return [*told, f"and {more} more; see `headwater spool show --dead`"] if more > 0 else told


def _before(place: Place) -> _Told:
    try:
        return msgspec.json.decode((place / _FILE).read_bytes(), type=_Told)
    except (OSError, msgspec.DecodeError):
        return _Told()


def _size(place: Place) -> int:
    try:
        return os.stat(place / "dead" / "refused.jsonl").st_size
    except OSError:
        return 0
