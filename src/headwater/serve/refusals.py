"""serve.refusals: an event, a batch -> what Correlator would refuse of it, in the order in which it looks.

Its clients show the first thing that is wrong. By default only what this server refuses too is told in that order;
the setting `serve.correlator_strict` refuses all that Correlator does.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from headwater.errors import EventError
from headwater.event import TERMINAL, TYPES, micros

_SCHEMA = re.compile(r"https://openlineage\.io/spec/\d+-\d+-\d+/OpenLineage\.json").fullmatch


def fault_of(raw: bytes, *, strict: bool) -> EventError | None:
    """The first thing that is wrong with an event; None where nothing is, or where it is no object at all.

    >>> str(fault_of(b'{"eventType": "start", "eventTime": "2026-01-01T00:00:00Z"}', strict=True))
    "eventType: 'start' is none of ABORT, COMPLETE, FAIL, OTHER, RUNNING, START"
    """
    try:
        event = msgspec.json.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    return next(_faults(event, strict), None) if isinstance(event, dict) else None


def _faults(event: dict[str, Any], strict: bool) -> Iterator[EventError]:
    kind, run, job = event.get("eventType"), event.get("run"), event.get("job")
    known = kind in TYPES if strict else kind is None or (isinstance(kind, str) and kind.upper() in TYPES)
    if not known:
        yield EventError("eventType", f"{kind!r} is none of {', '.join(sorted(TYPES))}")
    try:
        micros(event.get("eventTime") or "")
    except (ValueError, OverflowError, AttributeError, TypeError) as fault:
        yield EventError("eventTime", str(fault) if event.get("eventTime") else "missing")
    if strict:
        if not event.get("producer"):
            yield EventError("producer", "missing")
        schema = event.get("schemaURL")
        if not isinstance(schema, str) or not _SCHEMA(schema.partition("#")[0]):
            yield EventError("schemaURL", f"{schema!r} is no OpenLineage schema" if schema else "missing")
    for path, owner, name in (("run", run, "runId"), ("job", job, "namespace"), ("job", job, "name")):
        if owner is None and not strict:
            continue
        value = owner.get(name) if isinstance(owner, dict) else None
        if not isinstance(value, str) or not value.strip():
            yield EventError(f"{path}.{name}", "missing" if value is None else "is empty")


def out_of_order(payloads: Sequence[bytes]) -> str | None:
    """Why a batch about one run cannot have happened so; None where it can, or where it is about several.

    >>> def told(kind, second): return b'{"eventType":"%s","eventTime":"2026-01-01T00:00:0%dZ","run":{"runId":"a"}}' % (kind, second)
    >>> out_of_order([told(b"COMPLETE", 2), told(b"START", 1)]), out_of_order([told(b"COMPLETE", 1), told(b"START", 2)])
    (None, 'COMPLETE -> START')
    """
    told: list[tuple[int, int, str]] = []
    runs: set[str] = set()
    for position, raw in enumerate(payloads):
        try:
            event = msgspec.json.decode(raw)
            runs.add(event["run"]["runId"])
            told.append((micros(event["eventTime"]), position, event["eventType"]))
        except (
            msgspec.DecodeError,
            UnicodeDecodeError,
            RecursionError,
            KeyError,
            TypeError,
            ValueError,
            AttributeError,
        ):
            return None  # what is wrong with single events is told of each
    before = ""
    for _, _, kind in sorted(told) if len(runs) == 1 else ():
        if kind == "OTHER":
            continue
        if (before in TERMINAL and kind != before) or (before in ("START", "RUNNING") and kind == "START"):
            return f"{before} -> {kind}"
        before = kind
    return None
