"""deliver.datahub.comparing: proposals as they were and as they would be -> what would change."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import msgspec

from headwater.deliver.datahub.proposing import Proposal
from headwater.errors import ConfigError

Key = tuple[str, str, str | None]


class Change(NamedTuple):
    """What would become of one aspect."""

    kind: str
    """added, changed or gone"""
    urn: str
    aspect: str
    paths: tuple[tuple[str, Any, Any], ...] = ()
    """Of one that changed: where, what it was, what it would be"""


def compare(before: Iterable[Proposal], after: Iterable[Proposal]) -> list[Change]:
    """What would change; of an aspect that is told more than once, the last counts."""
    old, new = _by_key(before), _by_key(after)
    out = []
    for key in sorted({*old, *new}, key=lambda each: (each[0], each[1], each[2] or "")):
        if key not in old:
            out.append(Change("added", key[0], key[1]))
        elif key not in new:
            out.append(Change("gone", key[0], key[1]))
        elif paths := tuple(_paths(old[key], new[key], "")):
            out.append(Change("changed", key[0], key[1], paths))
    return out


def _by_key(proposals: Iterable[Proposal]) -> dict[Key, Any]:
    out: dict[Key, Any] = {}
    for each in proposals:
        told = content(each)
        when = told.get("timestampMillis") if isinstance(told, dict) else None
        out[(each["entityUrn"], each["aspectName"], None if when is None else str(when))] = told
    return out


def content(proposal: Proposal) -> Any:
    """What an aspect holds, as JSON or, in the older form, as a text that holds JSON.

    Raises:
        ConfigError: neither is there.

    """
    aspect = proposal.get("aspect") or {}
    if not isinstance(aspect, dict):
        raise ConfigError("its aspect is no object")
    if "json" in aspect:
        return aspect["json"]
    try:
        return msgspec.json.decode(aspect.get("value") or "null")
    except (msgspec.DecodeError, TypeError) as fault:
        raise ConfigError(f"the value of its aspect is no text that holds JSON: {fault}") from None


def _paths(old: Any, new: Any, path: str) -> Iterator[tuple[str, Any, Any]]:
    if old == new:
        return
    if isinstance(old, dict) and isinstance(new, dict):
        for name in sorted({*old, *new}):
            yield from _paths(old.get(name), new.get(name), f"{path}.{name}" if path else name)
    elif isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        for at, (mine, theirs) in enumerate(zip(old, new, strict=True)):
            yield from _paths(mine, theirs, f"{path}[{at}]")
    elif isinstance(old, list) and isinstance(new, list):
        gone = [each for each in old if each not in new]
        come = [each for each in new if each not in old]
        yield path, gone, come
    else:
        yield path, old, new
