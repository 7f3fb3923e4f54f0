"""query.marquez.lists: namespaces, sources, tags, and what a search finds -> pages of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from headwater.errors import NotFound
from headwater.query.marquez._words import source_type
from headwater.query.marquez.datasets import DEFAULT_SOURCE
from headwater.query.marquez.runs import LARGEST_LISTED, raw
from headwater.query.nodes import iso, node_id
from headwater.store import Store

if TYPE_CHECKING:
    from headwater.store import Reader

NOBODY = "anonymous"
"""Who owns a namespace that nobody claimed, as Marquez has it."""


def namespace_page(store: Store, limit: int, offset: int) -> dict[str, Any]:
    """Namespaces by name, hidden ones too."""
    with store.read() as reader:
        return {"namespaces": _namespaces(reader, reader.catalogue().namespaces(limit, offset))}


def namespace(store: Store, name: str) -> dict[str, Any]:
    """One namespace."""
    with store.read() as reader:
        found = _namespaces(reader, reader.catalogue().namespaces(1, 0, name))
        if not found:
            raise NotFound(f"Namespace '{name}' not found.")
        return found[0]


def _namespaces(reader: Reader, rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    said = reader.catalogue().said("namespace", [row["name"] for row in rows])
    models = []
    for row in rows:
        words = said.get(row["name"], {})
        times = [row["last_seen"] or row["first_seen"], *(at for at, _ in words.values())]
        hidden = row["hidden_at"]
        models.append(
            {
                "name": row["name"],
                "createdAt": iso(row["first_seen"]),
                "updatedAt": iso(max(times)),
                "ownerName": words.get(("", "owner"), (0, NOBODY))[1],
                "description": words.get(("", "description"), (0, None))[1],
                "isHidden": hidden is not None and hidden >= max(row["told"] or 0, row["shown_at"] or 0),
            }
        )
    return models


def source_page(store: Store, limit: int, offset: int) -> dict[str, Any]:
    """Sources by name; `default` comes first, where datasets tell none."""
    with store.read() as reader:
        sourceless = reader.catalogue().sourceless()
        head = [_default(sourceless)] if sourceless else []
        page = head[offset : offset + limit]
        rows = reader.catalogue().sources(limit - len(page), max(0, offset - len(head)))
        return {
            "sources": page
            + _sources(reader, [row for row in rows if row["name"] != DEFAULT_SOURCE or not head])
        }


def source(store: Store, name: str) -> dict[str, Any]:
    """One source."""
    with store.read() as reader:
        found = _sources(reader, reader.catalogue().sources(1, 0, name))
        if not found and name == DEFAULT_SOURCE:
            sourceless = reader.catalogue().sourceless()
            found = [_default(sourceless)] if sourceless else []
        if not found:
            raise NotFound(f"Source '{name}' not found.")
        return found[0]


def _default(seen: tuple[int, int]) -> dict[str, Any]:
    return {
        "type": "OTHER",
        "name": DEFAULT_SOURCE,
        "createdAt": iso(seen[0]),
        "updatedAt": iso(seen[1]),
        "connectionUrl": "",
        "description": None,
    }


def _sources(reader: Reader, rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    said = reader.catalogue().said("source", [row["name"] for row in rows])
    owners = {row["dataset"] for row in rows if row["dataset"] is not None}
    facets = reader.history().facets("dataset", owners)
    models = []
    for row in rows:
        words = said.get(row["name"], {})
        told = facets.get(row["dataset"], {}).get("dataSource")
        uri = told.read().get("uri") if told is not None else None
        url = words.get(("", "connectionUrl"), (0, uri if isinstance(uri, str) else ""))[1]
        models.append(
            {
                "type": words.get(("", "type"), (0, source_type(url)))[1],
                "name": row["name"],
                "createdAt": iso(row["first_seen"]),
                "updatedAt": iso(
                    max([row["last_seen"] or row["first_seen"], *(at for at, _ in words.values())])
                ),
                "connectionUrl": url,
                "description": words.get(("", "description"), (0, None))[1],
            }
        )
    return models


def tag_page(store: Store, limit: int, offset: int) -> dict[str, Any]:
    """Tags by name."""
    with store.read() as reader:
        return {"tags": _tags(reader, reader.catalogue().tag_names(limit, offset))}


def tag(store: Store, name: str) -> dict[str, Any]:
    """One tag."""
    with store.read() as reader:
        return _tags(reader, [name])[0]


def _tags(reader: Reader, names: list[str]) -> list[dict[str, Any]]:
    said = reader.catalogue().said("tag", names)
    return [
        {"name": name, "description": said.get(name, {}).get(("", "description"), (0, ""))[1]}
        for name in names
    ]


def search(
    store: Store,
    text: str,
    *,
    kind: str | None,
    by_name: bool,
    limit: int,
    namespace: str | None,
    after: int | None,
    before: int | None,
) -> dict[str, Any]:
    """The jobs and datasets whose names hold a text; `totalCount` is that of all of them."""
    with store.read() as reader:
        rows, total = reader.catalogue().search(
            text, kind=kind, namespace=namespace, after=after, before=before, by_name=by_name, limit=limit
        )
    results = [
        {
            "type": row["kind"].upper(),
            "name": row["name"],
            "updatedAt": iso(row["updated"]),
            "namespace": row["namespace"],
            "nodeId": node_id(row["kind"], row["namespace"], row["name"]),
        }
        for row in rows
    ]
    return {"totalCount": total, "results": results}


def beta_search(store: Store, kind: str, text: str, limit: int = 100) -> dict[str, Any]:
    """As Marquez answers with its search engine: hits with facets, and for each what is to be highlighted."""
    with store.read() as reader:
        history = reader.history()
        rows, _ = reader.catalogue().search(text, kind=kind, by_name=False, limit=limit)
        numbers = [row["id"] for row in rows]
        facets = history.facets(kind, numbers, most=LARGEST_LISTED)
        runs: dict[int, tuple[str | None, str]] = {}
        if kind == "job":
            for number, found in history.latest(numbers, 1).items():
                runs[number] = (found[0]["run_id"], (found[0]["state"] or "3 RUNNING").split(" ", 1)[1])
        else:
            for number, write in history.current({each: each for each in numbers}).items():
                runs[number] = (write.run_id or None, "COMPLETE")
    hits = [
        {
            "run_id": runs.get(row["id"], (None, ""))[0],
            "name": row["name"],
            "namespace": row["namespace"],
            "eventType": runs.get(row["id"], (None, ""))[1],
            "type": row["kind"].upper(),
            "facets": raw(facets.get(row["id"], {})),
        }
        for row in rows
    ]
    return {"hits": hits, "highlights": [{"name": [_marked(row["name"], text)]} for row in rows]}


def _marked(name: str, text: str) -> str:
    at = name.lower().find(text.lower())
    return f"{name[:at]}<em>{name[at : at + len(text)]}</em>{name[at + len(text) :]}" if at >= 0 else name
