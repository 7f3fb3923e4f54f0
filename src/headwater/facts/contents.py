"""facts.contents: a facet's bytes -> its digest, and what is read from it, once per digest.

Facets repeat from run to run. Each is hashed; only one whose digest is new is decoded, so the cost of an
event is that of reading it once, not of understanding the same schema and column lineage again.
"""

from __future__ import annotations

from collections.abc import Callable
from hashlib import blake2b
from typing import Any, Generic, NamedTuple, TypeVar

import msgspec

from headwater.event import MAX_NAME
from headwater.facts.tables import ref

T = TypeVar("T")
_decode = msgspec.json.decode
_encode = msgspec.json.encode
_MAX_WORD = 800
"""Bytes of a text in a key: two of them and an owner's name are what an index of Postgres can hold."""


class Columns(NamedTuple):
    """The column relations of one output, as a set under its fingerprint."""

    fingerprint: bytes
    body: bytes
    """JSON: [[out field, in dataset's reference, in field, kind, subtype, masking, description], …], sorted."""
    sources: tuple[str, ...]


class Memo(Generic[T]):
    """`read(raw)` remembered by digest, for as many digests as fit."""

    def __init__(self, read: Callable[[bytes], T], size: int = 20_000) -> None:
        self._read, self._size = read, size
        self._known: dict[bytes, T] = {}

    def __call__(self, digest: bytes, raw: bytes) -> T:
        """What `raw`, whose digest is given, says."""
        known = self._known.get(digest)
        if known is None:
            known = self._read(raw)
            if len(self._known) >= self._size:
                self._known.clear()  # cheaper than keeping an order; the next run fills it again
            self._known[digest] = known
        return known


def digest_of(raw: bytes) -> bytes:
    """The sixteen bytes under which a content is kept."""
    return blake2b(raw, digest_size=16).digest()


def load(raw: bytes) -> dict[str, Any]:
    """A facet as a mapping; an empty one where it is no object: a strange facet is kept, not understood."""
    try:
        value = _decode(raw)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def text(value: Any) -> str | None:
    """A text that every database can keep, or None."""
    return value.replace("\0", "\ufffd") if isinstance(value, str) and value else None


def word(value: Any) -> str | None:
    """A text that can be part of a key: of a long one (a check may be called by its SQL) the beginning, and a digest of all."""
    found = text(value)
    if found is None or len(found) * 4 <= _MAX_WORD or len(raw := found.encode()) <= _MAX_WORD:
        return found
    return f"{raw[:_MAX_WORD].decode(errors='ignore')}… {digest_of(raw).hex()}"


def objects(value: Any) -> list[dict[str, Any]]:
    """The objects of a list, whatever else is in it."""
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def identity(value: Any) -> str | None:
    """The reference that an object with `namespace` and `name` stands for, where an event could have named it so."""
    if not isinstance(value, dict):
        return None
    namespace, name = text(value.get("namespace")), text(value.get("name"))
    if not namespace or not name or _too_long(namespace) or _too_long(name):
        return None
    return ref(namespace, name)


def _too_long(name: str) -> bool:
    return len(name) * 4 > MAX_NAME and len(name.encode()) > MAX_NAME


def _read_schema(raw: bytes) -> tuple[bytes, bytes] | None:
    fields = _fields(load(raw).get("fields"))
    if not fields:  # deleted, strange, or of a producer that knows none: no table loses its columns by that
        return None
    body = _encode(fields)
    return digest_of(body), body


def _fields(value: Any) -> list[dict[str, Any]]:
    """Name, type and nesting: what makes a schema. Descriptions and tags stay in the facet."""
    out = []
    for field in objects(value):
        row: dict[str, Any] = {"name": text(field.get("name")) or "", "type": text(field.get("type")) or ""}
        if inner := _fields(field.get("fields")):
            row["fields"] = inner
        out.append(row)
    return out


def _read_columns(raw: bytes) -> Columns | None:
    facet = load(raw)
    relations: set[tuple[str, str, str, str, str, bool, str]] = set()
    fields = facet.get("fields")
    for out, told in fields.items() if isinstance(fields, dict) else ():
        if isinstance(told, dict):
            old = _old_form(told)
            for source in objects(told.get("inputFields")):
                relations.update(_relations(text(out) or "", source, old))
    for source in objects(facet.get("dataset")):
        relations.update(_relations("", source, ("INDIRECT", "", False, "")))
    if not relations:
        return None
    body = _encode(sorted(relations))
    return Columns(digest_of(body), body, tuple(sorted({row[1] for row in relations})))


def _old_form(told: dict[str, Any]) -> tuple[str, str, bool, str]:
    """The deprecated form: one transformation per output field, for inputs that have none of their own."""
    kind = text(told.get("transformationType")) or ""
    return "DIRECT", kind, "MASK" in kind.upper(), text(told.get("transformationDescription")) or ""


def _relations(
    out: str, source: dict[str, Any], default: tuple[str, str, bool, str]
) -> list[tuple[str, str, str, str, str, bool, str]]:
    dataset, field = identity(source), text(source.get("field"))
    if dataset is None or field is None:
        return []
    how = [
        (
            (text(each.get("type")) or default[0]).upper(),
            (text(each.get("subtype")) or "").upper(),
            each.get("masking") is True,
            text(each.get("description")) or "",
        )
        for each in objects(source.get("transformations"))
    ]
    return [(out, dataset, field, *each) for each in how or [default]]


schema_of = Memo(_read_schema)
"""(facet's digest, its bytes) -> digest and body of the schema, or None where it tells no field."""
columns_of = Memo(_read_columns)
"""(facet's digest, its bytes) -> the column relations, or None where it tells none."""
facet_of = Memo(load, size=5_000)
"""(facet's digest, its bytes) -> the facet as a mapping."""
