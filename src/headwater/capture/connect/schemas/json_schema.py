"""capture.connect.schemas.json_schema: a JSON Schema -> fields: references followed, combinators merged, Connect's order kept."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import unquote

import msgspec

from headwater.capture.connect.fields import MAX_DEPTH, Budget, Field
from headwater.errors import ConfigError


def parse(text: str, references: Mapping[str, str]) -> Field:
    """Read a schema.

    >>> parse('{"properties": {"at": {"oneOf": [{"type": "null"}, {"type": "string", "format": "date-time"}]}}}', {}).fields
    (Field(name='at', type='date-time', fields=(), doc='', record=''),)
    """
    whole = _decoded(text)
    others = {name: _decoded(each) for name, each in references.items()}
    return _Walk(whole, others).field("", whole, whole, ())


def _decoded(text: str) -> Any:
    try:
        found = msgspec.json.decode(text)
    except (ValueError, RecursionError) as fault:
        raise ConfigError(f"no JSON Schema: {fault}") from None
    if not isinstance(found, (dict, bool)):
        raise ConfigError("no JSON Schema: neither an object nor true or false")
    return found


class _Walk:
    def __init__(self, whole: Any, others: Mapping[str, Any]) -> None:
        self.budget = Budget()
        self.documents: dict[str, Any] = dict(others)
        for each in (whole, *others.values()):
            if isinstance(each, dict) and isinstance(each.get("$id"), str):
                self.documents.setdefault(each["$id"].rstrip("#"), each)

    def field(self, name: str, schema: Any, whole: Any, inside: tuple[int, ...]) -> Field:
        """A field; `whole` is the document it stands in, `inside` the schemas that are being unfolded around it."""
        self.budget.spend()
        if not isinstance(schema, dict):
            return Field(name, "any")
        if id(schema) in inside or len(inside) > MAX_DEPTH:
            return Field(name, str(schema.get("title") or "object"))
        here = (*inside, id(schema))
        if isinstance(schema.get("$ref"), str):
            target, document = self._find(schema["$ref"], whole)
            found = self.field(name, target, document, here)
            return Field(name, found.type, found.fields, _doc(schema) or found.doc, found.record)
        for word in ("oneOf", "anyOf"):
            if isinstance(schema.get(word), list) and schema[word]:
                return self._either(name, schema, schema[word], whole, here)
        if isinstance(schema.get("allOf"), list):
            return self._all(name, schema, whole, here)
        return self._plain(name, schema, whole, here)

    def _plain(self, name: str, schema: dict[str, Any], whole: Any, here: tuple[int, ...]) -> Field:
        kind = schema.get("type")
        if isinstance(kind, list):
            real = [each for each in kind if each != "null"]
            kind = real[0] if len(real) == 1 else f"union<{','.join(map(str, real))}>"
        doc = _doc(schema)
        properties = schema.get("properties")
        if isinstance(properties, dict):
            order = sorted(properties.items(), key=_position)
            fields = tuple(self.field(str(key), each, whole, here) for key, each in order)
            title = schema.get("title")
            return Field(name, str(title or "object"), fields, doc, str(title or ""))
        if kind == "array" or "items" in schema or "prefixItems" in schema:
            return self._array(name, schema, whole, here, doc)
        extra = schema.get("additionalProperties")
        if isinstance(extra, dict):
            inner = self.field("", extra, whole, here)
            return Field(name, f"map<string,{inner.type}>", inner.fields, doc)
        shown = schema.get("connect.type") or schema.get("format") or kind
        if shown is None and "enum" in schema:
            shown = "enum"
        return Field(name, str(shown or "any"), doc=doc)

    def _array(self, name: str, schema: dict[str, Any], whole: Any, here: tuple[int, ...], doc: str) -> Field:
        items = schema.get("prefixItems", schema.get("items"))
        if isinstance(items, list):
            inner = [self.field("", each, whole, here) for each in items]
            return Field(name, f"tuple<{','.join(each.type for each in inner)}>", doc=doc)
        one = self.field("", items, whole, here)
        return Field(name, f"array<{one.type}>", one.fields, doc)

    def _either(
        self, name: str, schema: dict[str, Any], branches: list[Any], whole: Any, here: tuple[int, ...]
    ) -> Field:
        real = [each for each in branches if not (isinstance(each, dict) and each.get("type") == "null")]
        found = [self.field(name, each, whole, here) for each in real]
        doc = _doc(schema)
        if len(found) == 1:
            return Field(name, found[0].type, found[0].fields, doc or found[0].doc, found[0].record)
        fields = {each.name: each for branch in found for each in branch.fields}
        kinds = list(dict.fromkeys(each.type for each in found))
        return Field(name, f"union<{','.join(kinds)}>" if kinds else "any", tuple(fields.values()), doc)

    def _all(self, name: str, schema: dict[str, Any], whole: Any, here: tuple[int, ...]) -> Field:
        own = {key: each for key, each in schema.items() if key != "allOf"}
        found = [self.field(name, each, whole, here) for each in schema["allOf"]]
        found.append(self._plain(name, own, whole, here))
        fields = {each.name: each for part in found for each in part.fields}
        kind = next((each.type for each in found if each.type not in ("any", "object")), found[-1].type)
        return Field(
            name, kind if kind != "any" or not fields else "object", tuple(fields.values()), _doc(schema)
        )

    def _find(self, reference: str, whole: Any) -> tuple[Any, Any]:
        """What a `$ref` leads to, and the document that it stands in."""
        base, _, fragment = reference.partition("#")
        document = whole if not base else self.documents.get(base)
        if document is None:
            short = base.rpartition("/")[2]
            document = next(
                (each for key, each in self.documents.items() if key.rpartition("/")[2] == short), None
            )
        if document is None:
            raise ConfigError(f"the reference {reference!r} leads nowhere")
        found = document
        for part in fragment.split("/")[1:]:
            key = unquote(part).replace("~1", "/").replace("~0", "~")
            if isinstance(found, dict) and key in found:
                found = found[key]
            elif isinstance(found, list) and key.isdigit() and int(key) < len(found):
                found = found[int(key)]
            else:
                raise ConfigError(f"the reference {reference!r} leads nowhere")
        return found, document


def _position(item: tuple[str, Any]) -> int:
    """Where Connect says that a property stands; the others keep their order behind."""
    index = item[1].get("connect.index") if isinstance(item[1], dict) else None
    return index if isinstance(index, int) else 1 << 30


def _doc(schema: Mapping[str, Any]) -> str:
    return str(schema.get("description") or "")
