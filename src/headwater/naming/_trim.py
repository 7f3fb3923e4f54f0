"""naming._trim: a path's name, which trimmers -> the name above its partition and date directories."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from datetime import date

from headwater.errors import ConfigError

_DATES = (
    (re.compile(r"([0-9]{4})-([0-9]{2})-([0-9]{2})"), (1, 2, 3)),
    (re.compile(r"([0-9]{2})\.([0-9]{2})\.([0-9]{4})"), (3, 2, 1)),
    (re.compile(r"([0-9]{4})([0-9]{2})([0-9]{2})"), (1, 2, 3)),
)
_AROUND_A_DATE = re.compile(r"[TZ\s:.\-0-9]*")
_YEAR_MONTH = re.compile(r"([0-9]{4})-?([0-9]{2})")


@dataclass(frozen=True, slots=True)
class Trimmers:
    """Which trailing directories belong to a partition and not to the dataset; each can be switched off.

    `remove_path` is a regular expression whose group `remove` is cut out of the name first; Java's
    `(?<remove>…)` and Python's `(?P<remove>…)` are both understood.

    >>> Trimmers().trim("/lake/orders/day=2024-01-01/20240101T0901Z")
    '/lake/orders'
    >>> Trimmers(key_value=False).trim("/lake/orders/day=1")
    '/lake/orders/day=1'
    >>> Trimmers(remove_path=r"(?<remove>/_tmp[^/]*)").trim("/lake/_tmp7/orders")
    '/lake/orders'
    """

    date: bool = True
    key_value: bool = True
    multi_dir_date: bool = True
    year_month: bool = True
    remove_path: str | None = None
    _remove: re.Pattern[str] | None = field(init=False, repr=False, compare=False, default=None)

    def __post_init__(self) -> None:
        if self.remove_path is None:
            return
        try:
            pattern = re.compile(re.sub(r"\(\?<(?=[A-Za-z_])", "(?P<", self.remove_path))
        except re.error as fault:
            raise ConfigError(f"remove_path {self.remove_path!r} is no regular expression: {fault}") from None
        if "remove" not in pattern.groupindex:
            raise ConfigError(
                f"remove_path {self.remove_path!r} needs a group named 'remove', as in (?<remove>…)"
            )
        object.__setattr__(self, "_remove", pattern)

    def trim(self, name: str) -> str:
        """Cut `remove_path` out, then drop last directories as long as a trimmer claims them."""
        if self._remove is not None and (found := self._remove.search(name)) and found.group("remove"):
            start, end = found.span("remove")
            name = (name[:start] + name[end:]).rstrip("/") or "/"
        while drop := self._claimed([part for part in name.split("/") if part]):
            name = name.rsplit("/", drop)[0]
        return name

    def _claimed(self, dirs: list[str]) -> int:
        """How many last directories go now; one at least is always left."""
        if len(dirs) < 2:
            return 0
        last = dirs[-1]
        if self.key_value and last.count("=") == 1:
            return 1
        if self.date and _is_date(last):
            return 1
        if self.year_month and (ym := _YEAR_MONTH.fullmatch(last)) and _valid(ym[1], ym[2]):
            return 1
        if self.multi_dir_date:
            for length in (3, 2):
                if len(dirs) > length and _is_split_date(dirs[-length:]):
                    return length
        return 0


def _is_date(text: str) -> bool:
    for pattern, order in _DATES:
        for found in pattern.finditer(text):
            rest = text[: found.start()] + text[found.end() :]
            if _valid(*(found[group] for group in order)) and _AROUND_A_DATE.fullmatch(rest):
                return True
    return False


def _is_split_date(dirs: list[str]) -> bool:
    widths = (4, 2, 2)
    shaped = all(
        len(part) == width and part.isascii() and part.isdigit()
        for part, width in zip(dirs, widths, strict=False)
    )
    return shaped and _valid(*dirs)


def _valid(year: str, month: str, day: str = "1") -> bool:
    try:
        date(int(year), int(month), int(day))
    except ValueError:
        return False
    return True
