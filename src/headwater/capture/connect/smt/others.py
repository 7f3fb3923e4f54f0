"""capture.connect.smt.others: a transform of Confluent, Aiven, Tabular or Iceberg -> what it does."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

from headwater.capture.connect.records import Node, Record, made
from headwater.capture.connect.smt import Part
from headwater.capture.connect.smt._settings import listed, needed, same, truth

__all__ = [
    "case_transform",
    "concat_fields",
    "confluent_filter",
    "copy_value",
    "debezium_transform",
    "dms_transform",
    "drop",
    "extract_topic",
    "extract_topic_from_schema_name",
    "extract_topic_from_value_schema",
    "filter_by_field_value",
    "hash_field",
    "json_to_map_transform",
    "kafka_metadata_transform",
    "key_to_value",
    "same",
]


def extract_topic(record: Record, settings: Mapping[str, str], part: Part) -> Sequence[Record]:
    """A field, or the whole, is the topic's name."""
    field = settings.get("field") or settings.get("field.name") or f"the {part}"
    return (replace(record, fits=".*").noted(f"{field} decides the topic"),)


def extract_topic_from_schema_name(
    record: Record, settings: Mapping[str, str], part: Part
) -> Sequence[Record]:
    """The schema's name is the topic's."""
    return (replace(record, fits=".*").noted("the schema's name decides the topic"),)


extract_topic_from_value_schema = extract_topic_from_schema_name


def confluent_filter(record: Record, settings: Mapping[str, str], part: Part) -> Sequence[Record]:
    """Records that a JSON path finds pass, or do not."""
    names = re.findall(r"@\.([A-Za-z_]\w*)", settings.get("filter.condition", ""))
    return (_filtered(record, part, names),)


def filter_by_field_value(record: Record, settings: Mapping[str, str], part: Part) -> Sequence[Record]:
    """Records with some value in a field pass, or do not."""
    return (_filtered(record, part, listed(settings, "field.name")),)


def _filtered(record: Record, part: Part, names: list[str]) -> Record:
    found = [node for name in names if (node := record.part(part).child(name)) is not None]
    origins = {origin for node in found for origin in node.all_origins()}
    return replace(record, filtered=True, filters=tuple(sorted({*record.filters, *origins})))


def drop(record: Record, settings: Mapping[str, str], part: Part) -> Sequence[Record]:
    """Without its key, or its value."""
    return (record.with_part(part, Node()),)


def hash_field(record: Record, settings: Mapping[str, str], part: Part) -> Sequence[Record]:
    """A digest in the place of a field, or of the whole."""
    node, name = record.part(part), settings.get("field.name", "").strip()
    if not name:
        return (record.with_part(part, replace(node.through("MASK"), type="string")),)
    found = node.child(name)
    if found is None:
        return (record,)
    return (record.with_part(part, node.put(name, replace(found.through("MASK"), type="string"))),)


def concat_fields(record: Record, settings: Mapping[str, str], part: Part) -> Sequence[Record]:
    """Several fields make one more."""
    node = record.part(part)
    parts = [node.child(name) for name in listed(settings, "field.names")]
    origins = {
        origin for each in parts if each is not None for origin in each.through("CONCAT").all_origins()
    }
    target = needed(settings, "output.field.name")
    return (record.with_part(part, node.put(target, Node("string", origins=tuple(sorted(origins))))),)


def key_to_value(record: Record, settings: Mapping[str, str], part: Part) -> Sequence[Record]:
    """Fields of the key, or the whole of it, in the value too."""
    sources = listed(settings, "key.fields") or ["*"]
    targets = listed(settings, "value.fields")
    value = record.value
    for at, source in enumerate(sources):
        target = targets[at] if at < len(targets) else ("_key" if source == "*" else source)
        node = record.key if source == "*" else record.key.child(source)
        value = value.put(target, node or made())
    return (replace(record, value=value),)


def case_transform(record: Record, settings: Mapping[str, str], part: Part) -> Sequence[Record]:
    """Upper or lower case in some fields."""
    node = record.part(part)
    for name in listed(settings, "field.names"):
        found = node.child(name)
        if found is not None:
            node = node.put(name, found.through(f"CASE {settings.get('case', '').strip()}".strip()))
    return (record.with_part(part, node),)


def copy_value(record: Record, settings: Mapping[str, str], part: Part) -> Sequence[Record]:
    """A field once more, under another name."""
    found = record.value.child(needed(settings, "source.field"))
    return (replace(record, value=record.value.put(needed(settings, "target.field"), found or made())),)


def debezium_transform(record: Record, settings: Mapping[str, str], part: Part) -> Sequence[Record]:
    """The row of a change event, with `_cdc` beside its columns."""
    row = record.value.child("after")
    if row is None or not row.is_struct:
        return (record,)
    cdc = [(name, made()) for name in ("op", "ts", "offset", "source", "target")]
    if (at := record.value.child("ts_ms")) is not None:
        cdc[1] = ("ts", replace(at.through("CAST Timestamp"), type="Timestamp"))
    if record.key.is_struct or record.key.origins:
        cdc.append(("key", record.key))
    row = replace(row, origins=()).put("_cdc", Node("struct", fields=tuple(cdc)))
    return (replace(record, value=row),)


def dms_transform(record: Record, settings: Mapping[str, str], part: Part) -> Sequence[Record]:
    """The row of an AWS DMS record, with `_cdc` beside its columns."""
    row = record.value.child("data")
    if row is None or not row.is_struct:
        return (record,)
    cdc = tuple((name, made()) for name in ("op", "ts", "source"))
    return (replace(record, value=replace(row, origins=()).put("_cdc", Node("struct", fields=cdc))),)


def json_to_map_transform(record: Record, settings: Mapping[str, str], part: Part) -> Sequence[Record]:
    """A text of JSON becomes fields that no schema tells."""
    origins = record.value.all_origins()
    if truth(settings, "json.root"):
        value = Node("struct", fields=(("payload", Node("map<string,string>", origins=origins)),))
        return (replace(record, value=value),)
    return (replace(record, value=Node(origins=origins), traced=False).noted("JSON without a schema"),)


def kafka_metadata_transform(record: Record, settings: Mapping[str, str], part: Part) -> Sequence[Record]:
    """Where the record stood, in fields of its own."""
    if not record.value.is_struct:
        return (record,)
    prefix = settings.get("field_name") or "_kafka_metadata"
    parts = [("topic", "string"), ("partition", "int32"), ("offset", "int64"), ("timestamp", "int64")]
    if settings.get("external_field"):
        parts.append((settings["external_field"].partition(",")[0].strip(), "string"))
    value = record.value
    if truth(settings, "nested"):
        return (
            replace(
                record,
                value=value.put(prefix, Node("struct", fields=tuple((n, made(k)) for n, k in parts))),
            ),
        )
    for name, kind in parts:
        value = value.put(f"{prefix}_{name}", made(kind))
    return (replace(record, value=value),)
