"""store._told: numbers of jobs or datasets -> what is told of each: description, owners, tags, columns, SQL.

What people said by hand comes before what events say. Used by whoever shows a node, and by the search index:
so what is found is what is shown.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec

from headwater.facts.contents import facet_of, objects, text
from headwater.facts.tables import ref
from headwater.store._driver import Cursor, among, listed
from headwater.store._packing import unpack

SLOTS = {"job": ("sql", "documentation", "ownership"), "dataset": ("schema", "documentation", "ownership")}
"""The facets that are read here."""
NODES = {"job": "jobs", "dataset": "datasets"}
_DEPTH = 16


@dataclass(slots=True)
class Told:
    """What is told of one job or dataset."""

    namespace: str
    name: str
    description: str = ""
    owners: list[dict[str, str]] = field(default_factory=list)
    tags: list[str] = field(default_factory=list)
    columns: list[dict[str, Any]] = field(default_factory=list)
    """Name (dotted where nested), type, description and tags of each."""
    sql: str = ""
    said: dict[str, str] = field(default_factory=dict)
    """What people said of the node by hand."""
    slots: bytes = b""
    """Which contents this was read from: their digests, in the order of `SLOTS`."""


def told(cursor: Cursor, kind: str, leader: Mapping[int, int]) -> dict[int, Told]:
    """What is told of nodes; `leader` maps each name's number to the number it is told of under."""
    cursor.execute(
        f"SELECT id, namespace, name FROM {NODES[kind]} WHERE id IN {among()}",
        (listed({*leader, *leader.values()}),),
    )
    names = {number: (namespace, name) for number, namespace, name in cursor.fetchall()}
    found = {number: Told(*names[number]) for number in set(leader.values()) if number in names}
    refs = {ref(*names[number]): to for number, to in leader.items() if number in names}
    _read_facets(cursor, kind, leader, found)
    # a dataset's own name comes last, so that what is said under it wins over what is said under an alias
    order = {
        each: (ref(found[to].namespace, found[to].name) == each, each)
        for each, to in refs.items()
        if to in found
    }
    _read_tags(cursor, kind, refs, found)
    _read_said(cursor, kind, refs, order, found)
    return found


def _read_facets(cursor: Cursor, kind: str, leader: Mapping[int, int], found: dict[int, Told]) -> None:
    slots = SLOTS[kind]
    marks = ", ".join("?" for _ in slots)
    cursor.execute(
        f'SELECT "{kind}", name, last_seen, body FROM {kind}_facets'
        f' WHERE "{kind}" IN {among()} AND name IN ({marks})',
        (listed(leader), *slots),
    )
    latest: dict[tuple[int, str], tuple[int, bytes]] = {}
    schemas: dict[int, set[tuple[int, bytes]]] = {}
    for number, name, seen, digest in cursor.fetchall():
        key = (leader[number], name)
        latest[key] = max(latest.get(key, (seen, b"")), (seen, bytes(digest)))
        if name == "schema":
            schemas.setdefault(leader[number], set()).add((seen, bytes(digest)))
    bodies = _bodies(cursor, {digest for _, digest in latest.values()})
    for number, told in found.items():
        digests = [latest.get((number, name), (0, b""))[1] for name in slots]
        told.slots = b"".join(digest or bytes(16) for digest in digests)
        facets = {
            name: facet_of(digest, bodies[digest])
            for name, digest in zip(slots, digests, strict=True)
            if digest in bodies
        }
        _read(told, {name: facet for name, facet in facets.items() if facet.get("_deleted") is not True})
        before = sorted(schemas.get(number, ()), reverse=True)[1:]
        while before and not told.columns:  # a schema that names no column says nothing, as in `facts`
            _, digest = before.pop(0)
            told.columns = _columns_of(facet_of(digest, _bodies(cursor, {digest}).get(digest, b"")))


def _bodies(cursor: Cursor, digests: Collection[bytes]) -> dict[bytes, bytes]:
    found: dict[bytes, bytes] = {}
    wanted = sorted(digests)
    for start in range(0, len(wanted), 500):
        part = wanted[start : start + 500]
        marks = ", ".join("?" for _ in part)
        cursor.execute(f"SELECT digest, body FROM contents WHERE digest IN ({marks})", part)
        found.update((bytes(digest), unpack(body)) for digest, body in cursor.fetchall())
    return found


def _read(told: Told, facets: Mapping[str, Mapping[str, Any]]) -> None:
    told.description = text(facets.get("documentation", {}).get("description")) or ""
    told.sql = text(facets.get("sql", {}).get("query")) or ""
    told.owners = [
        {"name": name, **({"type": kind} if (kind := text(each.get("type"))) else {})}
        for each in objects(facets.get("ownership", {}).get("owners"))
        if (name := text(each.get("name")))
    ]
    told.columns = _columns_of(facets.get("schema", {}))


def _columns_of(schema: Mapping[str, Any]) -> list[dict[str, Any]]:
    return list(_columns(schema.get("fields"), "", 0))


def _columns(fields: Any, above: str, depth: int) -> Iterable[dict[str, Any]]:
    for each in objects(fields):
        name = f"{above}{text(each.get('name')) or ''}"
        yield {
            "name": name,
            "type": text(each.get("type")) or "",
            "description": text(each.get("description")) or "",
            "tags": [],
        }
        if depth < _DEPTH:
            yield from _columns(each.get("fields"), f"{name}.", depth + 1)


def _read_tags(cursor: Cursor, kind: str, refs: Mapping[str, int], found: Mapping[int, Told]) -> None:
    cursor.execute(
        f"SELECT owner, field, tag FROM tags WHERE kind = ? AND live = 1 AND owner IN {among()}",
        (kind, listed(refs)),
    )
    for owner, column, tag in sorted(cursor.fetchall()):
        node = found.get(refs[owner])
        if node is None:
            continue
        at = node.tags if not column else _column(node, column)["tags"]
        if tag not in at:
            at.append(tag)


def _read_said(
    cursor: Cursor, kind: str, refs: Mapping[str, int], order: Mapping[str, Any], found: Mapping[int, Told]
) -> None:
    cursor.execute(
        f"SELECT owner, field, name, value FROM said WHERE kind = ? AND value <> '' AND owner IN {among()}",
        (kind, listed(refs)),
    )
    for owner, column, name, value in sorted(cursor.fetchall(), key=lambda row: (order.get(row[0], ()), row)):
        node = found.get(refs[owner])
        if node is None:
            continue
        if column:
            if name == "description":
                _column(node, column)["description"] = value
            continue
        node.said[name] = value
        if name == "description":
            node.description = value
        elif name == "owners":
            node.owners = [{"name": each} for each in names_in(value)]


def names_in(value: str) -> list[str]:
    """A list of names as `said` keeps it: JSON, or one name by itself."""
    try:
        listed = msgspec.json.decode(value)
    except msgspec.DecodeError:
        return [value]
    return [each for each in listed if isinstance(each, str)] if isinstance(listed, list) else [value]


def _column(told: Told, name: str) -> dict[str, Any]:
    """The column of that name; one that no schema tells of is told of all the same."""
    for each in told.columns:
        if each["name"] == name:
            return each
    told.columns.append({"name": name, "type": "", "description": "", "tags": []})
    return told.columns[-1]
