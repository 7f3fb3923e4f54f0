"""capture.connect.catalogue: connectors.toml and a user's own file -> what is known of a connector's class."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from functools import cache
from importlib import import_module
from importlib.resources import files
from pathlib import Path
from typing import Any, Literal

import msgspec

from headwater.errors import ConfigError, UnknownName


class Mapped(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How topics become tables."""

    setting: str
    between: str = ":"
    regex: bool = False
    """Whether the left side is a regular expression."""
    otherwise: str = "{topic}"
    after: str = ""
    """A function of templates for what the map names."""


class Entry(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename={"kinds": "class"}):
    """What is known of some connectors; see the head of connectors.toml."""

    kinds: list[str]
    direction: Literal["source", "sink"]
    shape: str = ""
    dataset: Literal["", "path", "jdbc", "database", "endpoint"] = ""
    args: dict[str, str] = {}
    map: Mapped | None = None
    topic: str = ""
    columns: Literal["same", "snowflake", "none"] = "same"
    include: str = ""
    unwraps: bool = False


class _File(msgspec.Struct, forbid_unknown_fields=True):
    connector: list[Entry] = []


Catalogue = Mapping[str, Entry]
"""class -> entry"""


@cache
def built_in() -> Catalogue:
    """The connectors that Headwater knows by itself."""
    text = files("headwater.capture.connect").joinpath("connectors.toml").read_text(encoding="utf-8")
    return _read(text, "connectors.toml")


def with_own(path: Path | None) -> Catalogue:
    """Ours, and before them those of a user's file.

    Raises:
        ConfigError: the file cannot be read, or says something that is not understood.

    """
    if path is None:
        return built_in()
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as fault:
        raise ConfigError(f"{path}: cannot be read: {fault}") from None
    own = _read(text, path.name)
    known = shapes(built_in().values())
    for kind, entry in own.items():
        if entry.shape and (entry.direction, entry.shape) not in known:
            usual = sorted(shape for direction, shape in known if direction == entry.direction)
            raise ConfigError(
                f"{path.name}: {kind}: {UnknownName(f'shape of a {entry.direction}', entry.shape, usual)}"
            )
    return {**built_in(), **own}


def _read(text: str, name: str) -> dict[str, Entry]:
    try:
        loaded: dict[str, Any] = import_module("tomllib" if sys.version_info >= (3, 11) else "tomli").loads(
            text
        )
        entries = msgspec.convert(loaded, _File).connector
    except (ValueError, msgspec.ValidationError) as fault:
        raise ConfigError(f"{name}: {fault}") from None
    for entry in entries:
        if missing := sorted(_NEEDED[entry.dataset] - entry.args.keys()) if not entry.shape else ():
            raise ConfigError(f"{name}: {', '.join(entry.kinds)}: {entry.dataset!r} needs args.{missing[0]}")
    return {kind: entry for entry in entries for kind in entry.kinds}


_NEEDED = {
    "": set[str](),
    "path": {"path"},
    "jdbc": {"url", "table"},
    "database": {"platform"},
    "endpoint": {"url"},
}
"""What of each kind of dataset must be told."""


def shapes(entries: Iterable[Entry]) -> set[tuple[str, str]]:
    """Which code the entries ask for."""
    return {(entry.direction, entry.shape) for entry in entries if entry.shape}
