"""deliver.datahub.groups: what events tell -> open run groups, kept in files so that no end of the process loses them, and which are due.

A group is told when its own run has ended, when nothing came for a while, at each heartbeat where it is a stream, or after
each event where that is asked for. It is kept a while longer: what comes late is told together with what came before.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from hashlib import blake2b
from pathlib import Path

import msgspec

from headwater.deliver.datahub.converting import Converter
from headwater.deliver.datahub.folding import Group
from headwater.deliver.datahub.told import Told

REMEMBERED = 24 * 3600.0
"""Seconds that a group is kept after its last event."""
IN_MEMORY = 1000
"""Groups that are held; others are read from their files when something comes for them."""
IN_FILES = 10_000
"""Groups that were told and are kept in files; of more, the oldest go."""
_OPEN, _SETTLED = ".open", ".told"
"""Endings of the files of groups that have something to tell, and of those that have not."""


class Policy(msgspec.Struct, frozen=True):
    """When a group is told."""

    periodic: bool = False
    idle: float = 900.0
    heartbeat: float = 300.0
    streaming: bool = False
    """Whether every group is taken for a stream."""
    end: bool = True
    """Whether a stream is told at its end, too; the Java agent does not."""

    def due(self, each: Open, now: float, *, final: bool) -> bool:
        """Whether a group that has something new is to be told now."""
        if not each.dirty:
            return False
        if final and (self.end or not (self.streaming or each.streaming)):
            return True
        return now >= self.at(each.changed, each.emitted, complete=each.complete, streaming=each.streaming)

    def at(
        self, changed: float, emitted: float, *, complete: bool, streaming: bool, second: int = 1
    ) -> float:
        """When a group is to be told that changed then and was told (or first heard of) then; a clock has `second` in a second."""
        settled = changed if self.periodic or complete else changed + self.idle * second
        if not (self.streaming or streaming):
            return settled
        beat = emitted + self.heartbeat * second
        return min(beat, settled) if self.end else beat


class Open(msgspec.Struct):
    """A run group that may yet be added to."""

    kind: str
    name: str
    group: Group
    dirty: bool = False
    complete: bool = False
    streaming: bool = False
    changed: float = 0.0
    emitted: float = 0.0
    refused: list[bytes] = []
    """Digests of proposals that were refused: they are kept once."""


class _Saved(msgspec.Struct):
    kind: str
    name: str
    told: Told | None
    members: list[Told]
    dirty: bool
    complete: bool
    streaming: bool
    changed: float
    emitted: float
    refused: list[bytes]


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(_Saved).decode


class Groups:
    """The run groups of one destination; without a folder they live as long as this object."""

    def __init__(self, converter: Converter, folder: Path | None) -> None:
        self._converter, self._folder = converter, folder
        self._open: dict[tuple[str, str], Open] = {}
        self._listed = False

    def add(self, told: Told, now: float) -> Open:
        """Put what an event told to its group; to be saved."""
        key = (told.kind, told.group)
        each = (
            self._open.pop(key, None) or self._read(key) or Open(*key, self._converter.group(), emitted=now)
        )
        each.group.add(told)
        each.dirty, each.changed = True, now
        each.complete |= told.complete or told.kind != "run"
        each.streaming |= told.streaming
        self._open[key] = each  # last, so that the first is the one longest unused
        return each

    def due(self, policy: Policy, now: float, *, final: bool = False) -> list[Open]:
        """The groups to be told now."""
        self._list()
        return [each for each in self._open.values() if policy.due(each, now, final=final)]

    def crowded(self) -> list[Open]:
        """Without a folder: those to be told because too many are held."""
        if self._folder is not None or len(self._open) <= IN_MEMORY:
            return []
        return [each for each in list(self._open.values())[: len(self._open) - IN_MEMORY] if each.dirty]

    def save(self, each: Open) -> None:
        """Have the disk keep a group."""
        if self._folder is None:
            return
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        key = (each.kind, each.name)
        path, other = self._path(key, each.dirty), self._path(key, not each.dirty)
        saved = _Saved(
            each.kind,
            each.name,
            each.group.told,
            list(each.group.members.values()),
            each.dirty,
            each.complete,
            each.streaming,
            each.changed,
            each.emitted,
            each.refused,
        )
        spare = path.with_name(f"{path.name}.{os.getpid()}~")
        with open(os.open(spare, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
            file.write(_encode(saved))
            if each.dirty:  # whoever sent the events is about to forget them
                file.flush()
                os.fsync(file.fileno())
        spare.replace(path)
        other.unlink(missing_ok=True)

    def tidy(self, now: float) -> None:
        """Let go of what was told long ago, and hold no more than memory should."""
        for key, each in list(self._open.items()):
            if not each.dirty and now - each.changed > REMEMBERED:
                del self._open[key]
        spare = [key for key, each in self._open.items() if not each.dirty]
        for key in spare[: max(0, len(self._open) - IN_MEMORY)]:
            del self._open[key]
        if self._folder is not None and self._folder.is_dir():
            ages = sorted((_age(path, now), path) for path in self._folder.glob(f"*{_SETTLED}"))
            for at, (age, path) in enumerate(ages):
                if age > REMEMBERED or at >= IN_FILES:
                    path.unlink(missing_ok=True)

    def __len__(self) -> int:
        return len(self._open)

    def __iter__(self) -> Iterator[Open]:
        return iter(list(self._open.values()))

    def _list(self) -> None:
        """What an earlier process left untold."""
        if self._listed or self._folder is None:
            return
        self._listed = True
        for path in sorted(self._folder.glob(f"*{_OPEN}")) if self._folder.is_dir() else ():
            each = self._load(path)
            if each is not None:
                self._open.setdefault((each.kind, each.name), each)

    def _read(self, key: tuple[str, str]) -> Open | None:
        if self._folder is None:
            return None
        return self._load(self._path(key, True)) or self._load(self._path(key, False))

    def _load(self, path: Path) -> Open | None:
        with suppress(OSError, msgspec.DecodeError):  # cut short, or of an older form: begun anew
            saved = _decode(path.read_bytes())
            group = self._converter.group(saved.told)
            for told in saved.members:
                group.add(told)
            return Open(
                saved.kind,
                saved.name,
                group,
                saved.dirty,
                saved.complete,
                saved.streaming,
                saved.changed,
                saved.emitted,
                saved.refused,
            )
        return None

    def _path(self, key: tuple[str, str], dirty: bool) -> Path:
        assert self._folder is not None
        name = blake2b(repr(key).encode(), digest_size=12).hexdigest()
        return self._folder / f"{name}{_OPEN if dirty else _SETTLED}"


def _age(path: Path, now: float) -> float:
    try:
        return now - path.stat().st_mtime
    except FileNotFoundError:
        return 0.0
