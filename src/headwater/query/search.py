"""query.search: a few letters -> the datasets and jobs that have them: in names, columns, SQL, descriptions, tags, owners."""

from __future__ import annotations

from typing import Any

from headwater.query.nodes import iso, node_id
from headwater.store import Store

KINDS = ("dataset", "job")


def search(
    store: Store,
    text: str,
    *,
    kind: str | None = None,
    namespace: str | None = None,
    tag: str | None = None,
    owner: str | None = None,
    limit: int = 25,
) -> list[dict[str, Any]]:
    """What `text` means, the closest first; every word of it may be the beginning of one.

    `match` tells how: `exact` (the name, or its last part), `prefix`, `part` (in the name), `text` (elsewhere); `matches`
    where, with the letters to highlight.
    """
    if any("\0" in (each or "") for each in (text, namespace, tag, owner)):
        return []  # no database keeps it, so nothing has it
    with store.read() as reader:
        hits = reader.search(
            text, kinds=(kind,) if kind else KINDS, namespace=namespace, tag=tag, owner=owner, limit=limit
        )
        seen = {
            (each, number): row["last_seen"]
            for each in KINDS
            for number, row in reader.nodes(
                each, {hit["number"] for hit in hits if hit["kind"] == each}
            ).items()
        }
    return [
        {
            "id": node_id(hit["kind"], hit["told"].namespace, hit["told"].name),
            "type": hit["kind"].upper(),
            "namespace": hit["told"].namespace,
            "name": hit["told"].name,
            "lastSeen": iso(seen.get((hit["kind"], hit["number"]))),
            "match": hit["how"],
            "matches": hit["matches"],
            "description": hit["told"].description or None,
            "owners": hit["told"].owners,
            "tags": hit["told"].tags,
        }
        for hit in hits
    ]
