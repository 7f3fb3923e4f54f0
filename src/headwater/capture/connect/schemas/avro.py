"""capture.connect.schemas.avro: an Avro schema -> fields: named types resolved, nullable unions opened, logical types told."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import msgspec

from headwater.capture.connect.fields import MAX_DEPTH, Budget, Field
from headwater.errors import ConfigError, NotInstalled


def parse(text: str, references: Mapping[str, str]) -> Field:
    """Read a schema.

    >>> parse('{"type": "record", "name": "A", "fields": [{"name": "id", "type": ["null", "long"]}]}', {}).fields
    (Field(name='id', type='long', fields=(), doc='', record=''),)
    """
    try:
        from fastavro.schema import SchemaParseException, parse_schema
    except ImportError as fault:
        raise NotInstalled("schemas in Avro", "connect") from fault
    named: dict[str, Any] = {}
    try:
        for each in references.values():
            parse_schema(_decoded(each), named_schemas=named)
        schema = parse_schema(_decoded(text), named_schemas=named)
    except (SchemaParseException, ValueError, TypeError, KeyError, AttributeError, RecursionError) as fault:
        raise ConfigError(f"no Avro schema: {type(fault).__name__} {fault}") from None
    return _Walk(named).field("", schema, (), "")


def _decoded(text: str) -> Any:
    try:
        return msgspec.json.decode(text)
    except (ValueError, RecursionError):
        return text.strip().strip('"')  # a lone name: `string`


class _Walk:
    def __init__(self, named: Mapping[str, Any]) -> None:
        self.named, self.budget = named, Budget()

    def field(self, name: str, schema: Any, inside: tuple[str, ...], doc: str) -> Field:
        """A field; `inside` are the records around it, which are not unfolded again."""
        self.budget.spend()
        if len(inside) > MAX_DEPTH:
            return Field(name, "record", doc=doc)
        if isinstance(schema, list):
            return self._union(name, schema, inside, doc)
        if isinstance(schema, str):
            if schema in self.named:
                return self.field(name, self.named[schema], inside, doc)
            return Field(name, schema, doc=doc, plain=schema)
        kind = schema.get("type")
        if isinstance(kind, (dict, list)):
            return self.field(name, kind, inside, doc)
        doc = doc or str(schema.get("doc") or "")
        if kind in ("record", "error"):
            return self._record(name, schema, inside, doc)
        if kind == "array":
            return self._many(name, "array<{}>", schema.get("items"), inside, doc)
        if kind == "map":
            return self._many(name, "map<string,{}>", schema.get("values"), inside, doc)
        if isinstance(kind, str) and kind in self.named:
            return self.field(name, self.named[kind], inside, doc)
        return Field(name, _logical(schema) or str(kind), doc=doc, plain=str(kind))

    def _record(self, name: str, schema: Mapping[str, Any], inside: tuple[str, ...], doc: str) -> Field:
        full = str(schema.get("name") or "")
        short = full.rpartition(".")[2]
        if full in inside:
            return Field(name, short or "record", doc=doc, record=full)
        fields = tuple(
            self.field(str(each["name"]), each["type"], (*inside, full), str(each.get("doc") or ""))
            for each in schema.get("fields", ())
        )
        told = str(schema.get("connect.name") or full)
        return Field(name, short or "record", fields, doc, told, "record")

    def _many(self, name: str, form: str, item: Any, inside: tuple[str, ...], doc: str) -> Field:
        inner = self.field("", item, inside, "")
        return Field(name, form.format(inner.type), inner.fields, doc, plain=form.partition("<")[0])

    def _union(self, name: str, branches: list[Any], inside: tuple[str, ...], doc: str) -> Field:
        real = [each for each in branches if each != "null" and each != {"type": "null"}]
        if len(real) == 1:
            return replace(self.field(name, real[0], inside, doc), nullable=True)
        found = [self.field("", each, inside, "") for each in real]
        fields = {each.name: each for branch in found for each in branch.fields}
        kinds = ",".join(each.type for each in found)
        return Field(name, f"union<{kinds}>", tuple(fields.values()), doc, plain="union")


def _logical(schema: Mapping[str, Any]) -> str:
    kind = schema.get("logicalType")
    if kind == "decimal":
        return f"decimal({schema.get('precision')},{schema.get('scale', 0)})"
    connect = schema.get("connect.name")
    if (
        kind is None
        and isinstance(connect, str)
        and connect.startswith(("io.debezium.", "org.apache.kafka."))
    ):
        return f"{schema.get('type')} ({connect.rpartition('.')[2]})"
    return str(kind) if kind else ""
