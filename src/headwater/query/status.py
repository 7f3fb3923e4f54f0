"""query.status: the store -> how much there is, over what time, and what was refused."""

from __future__ import annotations

from typing import Any

from headwater.query.nodes import iso
from headwater.store import Store


def status(store: Store, *, rejects: int = 0) -> dict[str, Any]:
    """Counts, the span of event times, and the newest `rejects` refused events."""
    with store.read() as reader:
        model: dict[str, Any] = reader.stats()
        span = reader.span()
        searchable = reader.searchable()
    model["search"] = searchable
    model["firstEvent"], model["lastEvent"] = (iso(span[0]), iso(span[1])) if span else (None, None)
    if rejects:
        model["rejected"] = [
            {**each, "first_seen": iso(each["first_seen"]), "last_seen": iso(each["last_seen"])}
            for each in store.rejected(rejects)
        ]
    return model
