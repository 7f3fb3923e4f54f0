"""capture.connect.smt._settings: a transform's settings -> lists, pairs and paths, as Kafka reads them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from headwater.capture.connect.records import Record
from headwater.errors import ConfigError


def listed(settings: Mapping[str, str], *names: str) -> list[str]:
    """The values of a list with commas, under the first name that is set."""
    for name in names:
        if settings.get(name):
            return [each.strip() for each in settings[name].split(",") if each.strip()]
    return []


def pairs(settings: Mapping[str, str], name: str) -> list[tuple[str, str]]:
    """`a:b,c:d`; raises ConfigError where a part has no colon."""
    found = []
    for each in listed(settings, name):
        before, colon, after = each.partition(":")
        if not colon or not before.strip() or not after.strip():
            raise ConfigError(f"{name}: {each!r} is no pair a:b")
        found.append((before.strip(), after.strip()))
    return found


def needed(settings: Mapping[str, str], *names: str) -> str:
    """A setting without which a transform does nothing."""
    for name in names:
        if settings.get(name):
            return settings[name]
    raise ConfigError(f"{names[0]} is not set")


def truth(settings: Mapping[str, str], name: str, default: bool = False) -> bool:
    """As Kafka reads a boolean."""
    return settings.get(name, str(default)).strip().lower() == "true"


def bare(name: str) -> str:
    """InsertField's `offset!` and `offset?` without what says whether it is required."""
    return name[:-1] if name.endswith(("!", "?")) else name


def path(text: str, version: str) -> list[str]:
    """A field's path: of syntax V2 with dots and back-ticks, else one name."""
    if version.upper() != "V2":
        return [text]
    parts, at, current = [], 0, ""
    while at < len(text):
        if text[at] == "`" and not current:
            end = text.find("`", at + 1)
            while end >= 0 and end + 1 < len(text) and text[end + 1] != ".":
                end = text.find("`", end + 1)
            if end < 0:
                raise ConfigError(f"{text!r}: a back-tick without its end")
            current, at = text[at + 1 : end].replace("\\`", "`"), end + 1
        elif text[at] == ".":
            parts.append(current)
            current, at = "", at + 1
        else:
            current, at = current + text[at], at + 1
    return [*parts, current]


def same(record: Record, settings: Mapping[str, str], part: str) -> Sequence[Record]:
    """What changes neither topic nor fields."""
    return (record,)
