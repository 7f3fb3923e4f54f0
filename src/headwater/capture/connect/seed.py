"""capture.connect.seed: lineage, fields -> the same as the transform of the Factor House labs tells them, for who has its graphs already.

It knows the fields at the top alone. Its first documentation calls them `(value) order_id`, by the words of Avro (`STRING`, or
`UNION` where null is allowed); later they are `order_id` and `string`. A sink's output has the schema of the topics it reads, whatever
other transforms do.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from headwater.capture.connect.fields import Field
from headwater.capture.connect.lineage import KEY, Lineage, Told
from headwater.capture.connect.places import Naming
from headwater.capture.connect.records import Origin
from headwater.naming import Identity


def in_words(fields: tuple[Field, ...], naming: Naming) -> tuple[Field, ...]:
    """The fields of a dataset; a key without fields of its own is not told."""
    if naming == "openlineage":
        return fields
    first = naming == "factorhouse-seed"
    found: dict[str, Field] = {}
    for each in fields:
        inner = each.fields if each.name == KEY else (each,)
        part = "key" if each.name == KEY else "value"
        for one in inner:
            name = f"({part}) {one.name}" if first else one.name
            kind = one.plain or one.type
            if first:
                kind = "UNION" if one.nullable else kind.upper()
            found.setdefault(name, Field(name, kind))
    return tuple(found.values())


def name_in_words(column: str, naming: Naming) -> str:
    """A column's name.

    >>> name_in_words("price", "factorhouse-seed"), name_in_words("__key.id", "factorhouse-seed")
    ('(value) price', '(key) id')
    """
    if naming == "openlineage":
        return column
    key = column.startswith(f"{KEY}.")
    name = column[len(KEY) + 1 :] if key else column
    return f"({'key' if key else 'value'}) {name}" if naming == "factorhouse-seed" else name


def retold(lineage: Lineage) -> Lineage:
    """With the outputs of a sink as its topics: the same fields, each from the field of its name."""
    topics = {each.dataset.identity: each for each in lineage.inputs if each.kind == "TOPIC"}
    if not topics:
        return lineage
    return replace(lineage, outputs=tuple(_as_topics(each, topics) for each in lineage.outputs))


def _as_topics(told: Told, topics: Mapping[Identity, Told]) -> Told:
    fields: dict[str, Field] = {}
    columns: dict[str, tuple[Origin, ...]] = {}
    for identity in told.sources:
        for each in topics[identity].fields if identity in topics else ():
            fields.setdefault(each.name, each)
            for path in ((KEY, one.name) for one in each.fields) if each.name == KEY else ((each.name,),):
                name = ".".join(path)
                columns[name] = (*columns.get(name, ()), Origin(identity, path))
    return replace(told, fields=tuple(fields.values()), columns=tuple(columns.items()), filters=())
