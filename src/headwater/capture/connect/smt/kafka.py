"""capture.connect.smt.kafka: a transform of Apache Kafka -> what it does, as its source says."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

from headwater.capture.connect.java import java_regex
from headwater.capture.connect.records import Node, Record, made
from headwater.capture.connect.smt import Part
from headwater.capture.connect.smt._settings import bare, listed, needed, pairs, path

__all__ = [
    "cast",
    "drop_headers",
    "extract_field",
    "filter",
    "flatten",
    "header_from",
    "hoist_field",
    "insert_field",
    "insert_header",
    "mask_field",
    "regex_router",
    "replace_field",
    "set_schema_metadata",
    "timestamp_converter",
    "timestamp_router",
    "value_to_key",
]

_NO_STRUCT = "a transform of fields meets a value whose fields nobody knows"


def regex_router(record: Record, settings: Mapping[str, str], part: Part) -> Sequence[Record]:
    """Another topic, where the whole of its name matches."""
    routed = java_regex(needed(settings, "regex"))
    if record.fits is not None:
        return (replace(record, fits=".*").noted("a router after one whose topics only the data decide"),)
    return (
        replace(
            record,
            topic=routed.replace_first(record.topic, settings.get("replacement", "")) or record.topic,
        ),
    )


def timestamp_router(record: Record, settings: Mapping[str, str], part: Part) -> Sequence[Record]:
    """A topic for each day or hour: a family of names."""
    form = settings.get("topic.format") or "${topic}-${timestamp}"
    inner = record.fits if record.fits is not None else re.escape(record.topic)
    fits = re.escape(form).replace(re.escape("${topic}"), f"(?:{inner})")
    fits = fits.replace(re.escape("${timestamp}"), ".+")
    return (replace(record, fits=fits).noted(f"the topic's name holds a time: {form}"),)


def replace_field(record: Record, settings: Mapping[str, str], part: Part) -> Sequence[Record]:
    """Some fields go, some stay, some are renamed; `exclude` wins over `include`."""
    node = record.part(part)
    if not node.is_struct:
        return (record.noted(_NO_STRUCT),)
    names = dict(pairs(settings, "renames"))
    kept = node
    if excluded := listed(settings, "exclude", "blacklist"):
        kept = kept.drop(excluded)
    if included := listed(settings, "include", "whitelist"):
        kept = kept.keep(included)
    return (record.with_part(part, _renamed(node, kept, names)),)


def _renamed(before: Node, kept: Node, names: Mapping[str, str]) -> Node:
    """With other names, in the same order; of an open struct those that were asked for are listed.

    A field's value is looked up by the old name of its new one. So where `a:b` meets a field that was called `b` all along,
    that one holds what `a` held.
    """
    old = {new: name for name, new in names.items()}
    told = {name for name, _ in kept.fields or ()}
    fields = [(names.get(name, name), node) for name, node in kept.fields or ()]
    fields += [
        (new, node)
        for name, new in names.items()
        if name not in told and (node := kept.child(name)) is not None
    ]
    made = tuple((new, (before.child(old[new]) if new in old else None) or node) for new, node in fields)
    rest = kept.rest
    if rest is not None:
        rest = replace(rest, gone=(rest.gone | set(names)) | set(names.values()))
    return replace(kept, fields=tuple(dict(made).items()), rest=rest)


def insert_field(record: Record, settings: Mapping[str, str], part: Part) -> Sequence[Record]:
    """Fields that come from the record itself, or are fixed."""
    node = record.part(part)
    if not node.is_struct:
        return (record.noted(_NO_STRUCT),)
    for name, kind in (
        ("topic.field", "string"),
        ("partition.field", "int32"),
        ("offset.field", "int64"),
        ("timestamp.field", "timestamp"),
        ("static.field", "string"),
    ):
        if settings.get(name):
            fixed = record.topic if name == "topic.field" and record.fits is None else None
            fixed = settings.get("static.value") if name == "static.field" else fixed
            node = node.put(bare(settings[name]), made(kind, fixed))
    return (record.with_part(part, node),)


def hoist_field(record: Record, settings: Mapping[str, str], part: Part) -> Sequence[Record]:
    """The whole under one field."""
    return (record.with_part(part, Node("struct", fields=((needed(settings, "field"), record.part(part)),))),)


def extract_field(record: Record, settings: Mapping[str, str], part: Part) -> Sequence[Record]:
    """One field in the place of the whole."""
    node: Node | None = record.part(part)
    for name in path(needed(settings, "field"), settings.get("field.syntax.version", "V1")):
        node = node.child(name) if node is not None else None
    if node is None:
        return (record.with_part(part, Node()).noted(f"no field {settings['field']!r} to extract is known"),)
    return (record.with_part(part, node),)


def flatten(record: Record, settings: Mapping[str, str], part: Part) -> Sequence[Record]:
    """Structs in structs become one, their names joined; arrays and maps stay."""
    delimiter = settings.get("delimiter", ".")
    node = record.part(part)
    if not node.is_struct:
        return (record,)
    fields: list[tuple[str, Node]] = []

    def walk(inner: Node, above: str) -> None:
        for name, each in inner.fields or ():
            whole = f"{above}{delimiter}{name}" if above else name
            if each.fields is not None and not _holds_many(each):
                walk(each, whole)
            else:
                fields.append((whole, each))

    walk(node, "")
    rest = node.rest and replace(node.rest, delimiter=delimiter)
    return (record.with_part(part, replace(node, fields=tuple(fields), rest=rest)),)


def _holds_many(node: Node) -> bool:
    return node.type.startswith(("array", "map"))


def cast(record: Record, settings: Mapping[str, str], part: Part) -> Sequence[Record]:
    """Another type for some fields, or for the whole."""
    node = record.part(part)
    for each in listed(settings, "spec"):
        field, colon, kind = each.partition(":")
        if not colon:
            return (record.with_part(part, replace(node.through(f"CAST {field}"), type=field)),)
        node = _changed(node, field.strip(), f"CAST {kind.strip()}", kind.strip())
    return (record.with_part(part, node),)


def mask_field(record: Record, settings: Mapping[str, str], part: Part) -> Sequence[Record]:
    """Fields whose values are taken away."""
    node = record.part(part)
    for name in listed(settings, "fields"):
        node = _changed(node, name, "MASK")
    return (record.with_part(part, node),)


def timestamp_converter(record: Record, settings: Mapping[str, str], part: Part) -> Sequence[Record]:
    """A time in another form."""
    node, kind = record.part(part), settings.get("target.type", "").strip() or "unknown"
    way = f"CAST {kind}"
    field = settings.get("field", "").strip()
    if not field:
        return (record.with_part(part, replace(node.through(way), type=kind)),)
    return (record.with_part(part, _changed(node, field, way, kind)),)


def _changed(node: Node, name: str, way: str, kind: str = "") -> Node:
    found = node.child(name)
    if found is None:
        return node
    found = found.through(way)
    return node.put(name, replace(found, type=kind, rest=None) if kind else found)


def value_to_key(record: Record, settings: Mapping[str, str], part: Part) -> Sequence[Record]:
    """A key made of fields of the value."""
    found = [(name, record.value.child(name)) for name in listed(settings, "fields")]
    key = Node("struct", fields=tuple((name, node or Node()) for name, node in found))
    return (replace(record, key=key),)


def set_schema_metadata(record: Record, settings: Mapping[str, str], part: Part) -> Sequence[Record]:
    """Another name for the schema: a change event by another name is none."""
    if not settings.get("schema.name"):
        return (record,)
    return (record.with_part(part, replace(record.part(part), name=settings["schema.name"])),)


def filter(record: Record, settings: Mapping[str, str], part: Part) -> Sequence[Record]:
    """Nothing passes; which records it meets, its predicate says."""
    return ()


def insert_header(record: Record, settings: Mapping[str, str], part: Part) -> Sequence[Record]:
    """A fixed header."""
    return (replace(record, headers=(*record.headers, (needed(settings, "header"), made("string")))),)


def drop_headers(record: Record, settings: Mapping[str, str], part: Part) -> Sequence[Record]:
    """Without some headers."""
    gone = set(listed(settings, "headers"))
    return (replace(record, headers=tuple(each for each in record.headers if each[0] not in gone)),)


def header_from(record: Record, settings: Mapping[str, str], part: Part) -> Sequence[Record]:
    """Fields copied, or moved, into headers."""
    node = record.part(part)
    fields = listed(settings, "fields")
    headers = tuple(
        (header, node.child(field) or Node())
        for field, header in zip(fields, listed(settings, "headers"), strict=False)
    )
    if settings.get("operation", "").strip().lower() == "move":
        node = node.drop(fields)
    return (replace(record.with_part(part, node), headers=record.headers + headers),)
