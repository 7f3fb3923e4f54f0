"""store._space: how much space is left, and how much must be -> whether to warn, and whether to take more.

Writes stop before the disk is full: a database that has no space left can neither be pruned nor, at worst, opened.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from headwater.errors import ConfigError

_UNITS = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}


@dataclass(frozen=True, slots=True)
class Thresholds:
    """Below `alarm` free it is told that space is low, below `reserve` nothing more is written."""

    alarm: str = "10%"
    reserve: str = "64MB"

    def __post_init__(self) -> None:
        for name in ("alarm", "reserve"):
            size(getattr(self, name), 100, f"disk_{name}")

    def judge(self, used: int, limit: int | None, free: int | None) -> dict[str, Any]:
        """What is told of a store that uses so much, where so much is free of so much."""
        told: dict[str, Any] = {"state": "ok", "used_bytes": used, "limit_bytes": limit, "free_bytes": free}
        if limit is not None and free is not None:
            alarm, reserve = size(self.alarm, limit), size(self.reserve, limit)
            told |= {"alarm_bytes": alarm, "reserve_bytes": reserve}
            told["state"] = "full" if free < reserve else "low" if free < alarm else "ok"
        return told


def size(text: str | int, whole: int, what: str = "size") -> int:
    """A size as people write it -> bytes.

    >>> size("10%", 2000), size("64MB", 0), size(512, 0)
    (200, 67108864, 512)
    """
    word = str(text).strip().lower()
    if word.endswith("%") and word[:-1].isdecimal() and int(word[:-1]) <= 100:
        return whole * int(word[:-1]) // 100
    number = word.removesuffix("b").rstrip("kmgt")
    unit = word.removesuffix("b")[len(number) :]
    if not number.isdecimal() or unit not in _UNITS:
        raise ConfigError(f"{what} is {text!r}: write bytes, as in 64MB or 10GB, or a share, as in 10%")
    return int(number) * _UNITS[unit]
