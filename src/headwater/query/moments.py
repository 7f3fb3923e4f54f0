"""query.moments: a node -> the times at which the graph around it became another, and what did."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from headwater.graph import Direction, walk
from headwater.query.nodes import identify, iso, node_id, resolve
from headwater.store import Store

if TYPE_CHECKING:
    from headwater.store import Reader

_NODES = 200
"""How many nodes on each side are looked at: so many are drawn."""


def moments(
    store: Store, text: str, *, direction: Direction = "both", depth: int = 3, limit: int = 500
) -> dict[str, Any]:
    """The newest `limit` times at which a job around a node first had its edges, or a dataset its schema; the oldest first."""
    with store.read() as reader:
        start = resolve(reader, text)
        which = {"datasets" if start.kind == "dataset" else "jobs": [start.number]}
        if start.kind == "job":
            which["jobs"] += reader.trail().parts(start.number)
        around = walk(reader.edges(), **which, direction=direction, depth=depth, limit=_NODES, fan=_NODES)
        found: dict[int, list[dict[str, str]]] = {}
        for number, row in reader.nodes("job", around.jobs).items():
            name = node_id("job", row["namespace"], row["name"])
            for at in _turns(reader, number) or [row["first_seen"]]:
                found.setdefault(at, []).append({"node": name, "what": "edges"})
        for number, row in reader.nodes("dataset", around.datasets).items():
            name = node_id("dataset", row["namespace"], row["name"])
            for schema in reader.schemas(number):
                found.setdefault(schema["first_seen"], []).append({"node": name, "what": "schema"})
        name = identify(reader, start)
    newest = sorted(found)[-limit:]
    return {
        "node": name,
        "moments": [{"at": iso(at), "changes": found[at]} for at in newest],
        "cut": len(found) > limit or around.cut,
    }


def _turns(reader: Reader, job: int) -> list[int]:
    return [each["first_seen"] for each in reader.versions(job) if each["first_seen"] is not None]
