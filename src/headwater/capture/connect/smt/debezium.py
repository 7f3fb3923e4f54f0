"""capture.connect.smt.debezium: a transform of Debezium -> what it does: change events taken apart, tables routed together."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

from headwater.capture.connect.java import java_regex
from headwater.capture.connect.records import Node, Record, made
from headwater.capture.connect.smt import Part
from headwater.capture.connect.smt._settings import listed, needed, same, truth
from headwater.errors import ConfigError

__all__ = [
    "by_logical_table_router",
    "content_based_router",
    "event_router",
    "extract_new_document_state",
    "extract_new_record_state",
    "filter",
    "header_to_value",
    "same",
    "timescale_db",
]

_SCRIPT = "a script decides; only topics that were seen are told"


def by_logical_table_router(record: Record, settings: Mapping[str, str], part: Part) -> Sequence[Record]:
    """Many tables into one topic; the key is told apart by one more field."""
    key = record.key
    if truth(settings, "key.enforce.uniqueness", True):
        name = settings.get("key.field.name") or "__dbz__physicalTableIdentifier"
        key = key.put(name, made("string"))
    pattern, replacement = java_regex(needed(settings, "topic.regex")), needed(settings, "topic.replacement")
    if record.fits is not None:
        after = replace(record, fits=".*").noted("a router after one whose topics only the data decide")
        return (after,) if key is record.key else (after, replace(after, key=key))
    routed = pattern.replace_first(record.topic, replacement)
    return (record,) if routed is None else (replace(record, topic=routed, key=key),)


def extract_new_record_state(record: Record, settings: Mapping[str, str], part: Part) -> Sequence[Record]:
    """The row as it is after the change, in the place of the change event."""
    value = record.value
    row = _row(value)
    if row is None:
        return (record,)
    headers = record.headers
    for name, node in _added_fields(value, settings, "add.fields"):
        row = row.put(name, node)
    headers += tuple(_added_fields(value, settings, "add.headers"))
    mode = settings.get("delete.tombstone.handling.mode") or settings.get("delete.handling.mode") or ""
    if mode.startswith("rewrite"):
        row = row.put("__deleted", made("string"))
    after = replace(record, value=replace(row, origins=()), headers=headers)
    if settings.get("route.by.field"):
        return (replace(after, fits=".*").noted("a field of the row decides the topic"),)
    return (after,)


def _row(value: Node) -> Node | None:
    """Of a change event the row after it; None where it is no change event, which these transforms pass on as it is."""
    row = value.child("after")
    if row is None or not row.is_struct or (value.name and not value.name.endswith("Envelope")):
        return None
    return row


def _added_fields(value: Node, settings: Mapping[str, str], setting: str) -> Sequence[tuple[str, Node]]:
    """`op,source.ts_ms:at` -> `__op`, `__at`: of the change event, not of the row."""
    prefix = settings.get(f"{setting}.prefix", "__")
    found = []
    for each in listed(settings, setting):
        path, _, alias = each.partition(":")
        node: Node | None = value
        for name in path.split("."):
            node = node.child(name) if node is not None else None
        found.append((prefix + (alias or path.replace(".", "_")), node or made()))
    return found


def extract_new_document_state(record: Record, settings: Mapping[str, str], part: Part) -> Sequence[Record]:
    """The document after the change; its fields are in no schema."""
    value = record.value
    row = value.child("after")
    if row is None:
        return (record,)
    if not row.is_struct:
        return (
            replace(record, value=Node(origins=row.origins), traced=False).noted(
                "the document's fields are told by no schema"
            ),
        )
    return extract_new_record_state(record, settings, part)


def event_router(record: Record, settings: Mapping[str, str], part: Part) -> Sequence[Record]:
    """The outbox: a row's payload becomes the value, a column of it decides the topic."""
    row = _row(record.value)
    if row is None:
        return (record,)
    payload = settings.get("table.field.event.payload") or "payload"
    key = settings.get("table.field.event.key") or "aggregateid"
    value = row.child(payload) or Node()
    if truth(settings, "table.expand.json.payload"):
        value = Node(origins=value.all_origins())
    record = replace(record, key=row.child(key) or Node(), value=value)
    envelope: list[tuple[str, Node]] = []
    for each in listed(settings, "table.fields.additional.placement"):
        field, _, rest = each.partition(":")
        place, _, alias = rest.partition(":")
        node = row.child(field) or Node()
        if place.strip() == "envelope":
            envelope.append((alias or field, node))
        else:
            record = replace(record, headers=(*record.headers, (alias or field, node)))
    if envelope:
        record = replace(record, value=Node("struct", fields=(("payload", record.value), *envelope)))
    form = settings.get("route.topic.replacement") or "outbox.event.${routedByValue}"
    if "${" not in form and "$" not in form:
        return (replace(record, topic=form),)
    fits = re.sub(r"\\\$\\\{\w+\\\}|\\\$\d+", ".+", re.escape(form))
    column = settings.get("route.by.field") or "aggregatetype"
    return (replace(record, fits=fits).noted(f"the column {column} decides the topic: {form}"),)


def header_to_value(record: Record, settings: Mapping[str, str], part: Part) -> Sequence[Record]:
    """Headers copied, or moved, into fields."""
    headers, fields = listed(settings, "headers"), listed(settings, "fields")
    if len(headers) != len(fields):
        raise ConfigError("headers and fields differ in number")
    known = dict(record.headers)
    value = record.value
    for header, field in zip(headers, fields, strict=True):
        if header not in known:  # a record may bring it, or not
            record = record.noted(
                f"whether records have a header {header}, for the field {field}, only the data tell"
            )
        else:
            value = _put(value, field.split("."), known[header])
    if settings.get("operation", "").strip().lower() == "move":
        record = replace(record, headers=tuple(each for each in record.headers if each[0] not in headers))
    return (replace(record, value=value),)


def _put(value: Node, path: list[str], node: Node, *, top: bool = True) -> Node:
    """With a field in a struct, however deep. One that is missing is made at the top, and holds the path's second name; deeper, none is."""
    name, *rest = path
    if not rest:
        return value.put(name, node)
    inner = value.child(name)
    if inner is None and top:
        return value.put(name, Node("struct", fields=((rest[0], node),)))
    if inner is None or not inner.is_struct:
        return value
    return value.put(name, _put(inner, rest, node, top=False))


def content_based_router(record: Record, settings: Mapping[str, str], part: Part) -> Sequence[Record]:
    """A script decides the topic."""
    return (replace(record, fits=".*").noted(_SCRIPT),)


def filter(record: Record, settings: Mapping[str, str], part: Part) -> Sequence[Record]:
    """A script decides what passes."""
    return (replace(record, filtered=True).noted("a script decides which records pass"),)


def timescale_db(record: Record, settings: Mapping[str, str], part: Part) -> Sequence[Record]:
    """The chunks of a table go to the topic of that table, which only the database knows; other tables pass."""
    inner = listed(settings, "schema.list") or ["_timescaledb_internal"]
    if record.fits is None and not _within(record.topic, inner):
        return (record,)
    prefix = settings.get("target.topic.prefix") or "timescaledb"
    fits = rf"{re.escape(prefix)}\..+"
    return (replace(record, fits=fits).noted(f"only the database knows whose chunk it is: {prefix}.…"),)


def _within(topic: str, schemas: Sequence[str]) -> bool:
    """Whether a topic `server.schema.table` is of a table in one of these schemas."""
    return any(each in schemas for each in topic.split(".")[-2:-1])
