"""capture.connect.schemas.connect_json: the schema that JsonConverter writes into each record -> fields."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from headwater.capture.connect.fields import MAX_DEPTH, Budget, Field
from headwater.errors import ConfigError


def parse(text: str, references: Mapping[str, str]) -> Field:
    """Read the `schema` of a record `{"schema": …, "payload": …}`, or that record whole.

    >>> parse('{"schema": {"type": "struct", "fields": [{"field": "id", "type": "int64"}]}, "payload": null}', {}).fields
    (Field(name='id', type='int64', fields=(), doc='', record=''),)
    """
    try:
        found = msgspec.json.decode(text)
    except (ValueError, RecursionError) as fault:
        raise ConfigError(f"no schema of Connect: {fault}") from None
    if isinstance(found, dict) and found.keys() >= {"schema", "payload"}:
        found = found["schema"]
    if not isinstance(found, dict) or not isinstance(found.get("type"), str):
        raise ConfigError("no schema of Connect: the records hold none")
    return _field("", found, 0, Budget())


def _field(name: str, schema: Any, depth: int, budget: Budget) -> Field:
    budget.spend()
    if not isinstance(schema, dict) or depth > MAX_DEPTH:
        return Field(name, "unknown")
    kind, logical = str(schema.get("type") or "unknown"), str(schema.get("name") or "")
    doc = str(schema.get("doc") or "")
    if kind == "struct":
        given = schema.get("fields")
        fields = tuple(
            _field(str(each.get("field")), each, depth + 1, budget)
            for each in (given if isinstance(given, list) else ())
            if isinstance(each, dict)
        )
        return Field(name, logical.rpartition(".")[2] or "struct", fields, doc, logical)
    if kind == "array":
        inner = _field("", schema.get("items"), depth + 1, budget)
        return Field(name, f"array<{inner.type}>", inner.fields, doc)
    if kind == "map":
        key, inner = (_field("", schema.get(each), depth + 1, budget) for each in ("keys", "values"))
        return Field(name, f"map<{key.type},{inner.type}>", inner.fields, doc)
    return Field(name, f"{kind} ({logical.rpartition('.')[2]})" if logical else kind, doc=doc)
