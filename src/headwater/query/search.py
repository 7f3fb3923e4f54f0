"""query.search: a few letters -> the datasets and jobs whose names hold them."""

from __future__ import annotations

from typing import Any

from headwater.query.nodes import iso, node_id
from headwater.store import Store

KINDS = ("dataset", "job")


def search(
    store: Store, text: str, *, kind: str | None = None, namespace: str | None = None, limit: int = 25
) -> list[dict[str, Any]]:
    """What holds `text` in its name or namespace; the shortest names first, they are the closest."""
    found: list[dict[str, Any]] = []
    with store.read() as reader:
        for each in (kind,) if kind else KINDS:
            numbers = reader.match(each, text, limit=limit, namespace=namespace)
            rows = reader.nodes(each, numbers)
            found += [
                {
                    "id": node_id(each, rows[number]["namespace"], rows[number]["name"]),
                    "type": each.upper(),
                    "namespace": rows[number]["namespace"],
                    "name": rows[number]["name"],
                    "lastSeen": iso(rows[number]["last_seen"]),
                }
                for number in numbers
            ]
    return sorted(found, key=lambda row: (len(row["name"]), row["name"], row["id"]))[:limit]
