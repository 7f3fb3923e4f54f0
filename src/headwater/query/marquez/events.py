"""query.marquez.events: a span of time -> a page of the events of it, byte for byte as they were sent."""

from __future__ import annotations

from typing import Any

import msgspec

from headwater.facts.flows import NOW
from headwater.store import Store

_PART = 500
_MOST = 100_000


class _Job(msgspec.Struct, frozen=True):
    namespace: str = ""


class _Event(msgspec.Struct, frozen=True):
    job: _Job = _Job()


_namespace_of = msgspec.json.Decoder(_Event)


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
    return {"events": [msgspec.Raw(each) for each in found], "totalCount": total}


def namespace_events(store: Store, namespace: str, limit: int, offset: int) -> dict[str, Any]:
    """Run events of a namespace's jobs, the newest first; looked for among the newest hundred thousand."""
    found: list[msgspec.Raw] = []
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
                    found.append(msgspec.Raw(each))
            if len(part) < _PART:
                break
            start += _PART
    return {"events": found}
