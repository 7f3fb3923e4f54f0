"""query.marquez.events: a span of time -> a page of the events of it, as they were sent.

Marquez gives an event back with every key it knows, null where the producer sent none; clients count on them. So
what is missing is filled in, and nothing else is touched: facets are byte for byte what they were.
"""

from __future__ import annotations

from typing import Any

import msgspec

from headwater.event import micros
from headwater.facts.flows import NOW
from headwater.query.nodes import iso
from headwater.store import Store

_PART = 500
_MOST = 100_000


class _Job(msgspec.Struct, frozen=True):
    namespace: str = ""


class _Event(msgspec.Struct, frozen=True):
    job: _Job = _Job()


_namespace_of = msgspec.json.Decoder(_Event)
_Object = dict[str, msgspec.Raw]
_object = msgspec.json.Decoder(_Object)
_objects = msgspec.json.Decoder(list[_Object])
_NULL, _NONE = msgspec.Raw(b"null"), msgspec.Raw(b"[]")
_JOB = ("documentation", "sourceCodeLocation", "sql", "jobType")
_RUN = ("nominalTime", "parent")
_DATASET = (
    "documentation",
    "schema",
    "dataSource",
    "description",
    "lifecycleStateChange",
    "columnLineage",
    "symlinks",
)


def _filled(raw: bytes) -> dict[str, Any]:
    """An event with every key that Marquez knows."""
    event: dict[str, Any] = {"eventType": _NULL, "schemaURL": _NULL, **_object.decode(raw)}
    event["eventTime"] = iso(micros(msgspec.json.decode(event["eventTime"], type=str)))
    for name, known in (("run", _RUN), ("job", _JOB)):
        event[name] = _with_facets(_object.decode(event[name]), known)
    for side in ("inputs", "outputs"):
        given = event.get(side, _NONE)
        found = [] if bytes(given) == b"null" else _objects.decode(given)
        event[side] = [
            {"inputFacets": _NULL, "outputFacets": _NULL, **_with_facets(each, _DATASET)} for each in found
        ]
    return event


def _with_facets(thing: _Object, known: tuple[str, ...]) -> dict[str, Any]:
    facets = thing.get("facets", _NULL)
    if bytes(facets) == b"null":
        return {**thing, "facets": None}
    return {**thing, "facets": {**dict.fromkeys(known, _NULL), **_object.decode(facets)}}


def event_page(
    store: Store,
    *,
    after: int = -NOW,
    before: int = NOW,
    newest_first: bool = True,
    limit: int,
    offset: int,
) -> dict[str, Any]:
    """Run events by their time; `totalCount` is that of the whole span."""
    with store.read() as reader:
        found, total = reader.times().events(
            after, before, newest_first=newest_first, limit=limit, offset=offset
        )
    return {"events": [_filled(each) for each in found], "totalCount": total}


def namespace_events(store: Store, namespace: str, limit: int, offset: int) -> dict[str, Any]:
    """Run events of a namespace's jobs, the newest first; looked for among the newest hundred thousand."""
    found: list[dict[str, Any]] = []
    skipped = start = 0
    with store.read() as reader:
        while len(found) < limit and start < _MOST:
            part = reader.times().page(-NOW, NOW, newest_first=True, limit=_PART, offset=start)
            for each in part:
                if _namespace_of.decode(each).job.namespace != namespace:
                    continue
                if skipped < offset:
                    skipped += 1
                elif len(found) < limit:
                    found.append(_filled(each))
            if len(part) < _PART:
                break
            start += _PART
    return {"events": found}
