"""capture.connect.fields: a schema of any format -> one tree of fields, and the facet that tells it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from headwater.capture.connect.records import Node, Origin
from headwater.errors import ConfigError
from headwater.naming import Identity

MAX_FIELDS = 5_000
"""Of one schema: named types that name each other can unfold without end."""
MAX_DEPTH = 40


@dataclass(frozen=True, slots=True)
class Field:
    """A field, or the whole (its name is empty then)."""

    name: str
    type: str
    fields: tuple[Field, ...] = ()
    doc: str = ""
    record: str = ""
    """Of a record: its full name."""
    plain: str = field(default="", repr=False)
    """Of Avro: its type's own word, without what is meant by it: `long`, not `timestamp-millis`."""
    nullable: bool = field(default=False, repr=False)
    """Of Avro: whether it stands in a union with null."""


class Budget:
    """How many fields may still be unfolded."""

    def __init__(self) -> None:
        self.left = MAX_FIELDS

    def spend(self) -> None:
        """Count one field.

        Raises:
            ConfigError: there are too many.

        """
        self.left -= 1
        if self.left < 0:
            raise ConfigError(f"a schema of more than {MAX_FIELDS} fields")


def told(fields: Iterable[Field]) -> list[dict[str, Any]]:
    """As the schema facet tells them."""
    found = []
    for at, each in enumerate(fields, 1):
        one: dict[str, Any] = {"name": each.name, "type": each.type}
        if each.doc:
            one["description"] = each.doc
        if each.fields:
            one["fields"] = told(each.fields)
        found.append({**one, "ordinal_position": at})
    return found


def node(field: Field, dataset: Identity, above: tuple[str, ...] = ()) -> Node:
    """The tree as what transforms work on; each leaf knows where it stands."""
    if field.fields:
        inner = tuple((each.name, node(each, dataset, (*above, each.name))) for each in field.fields)
        return Node(field.type, fields=inner, doc=field.doc, name=field.record)
    return Node(field.type, origins=(Origin(dataset, above),) if above else (), doc=field.doc)


def fields_of(value: Node) -> tuple[Field, ...]:
    """What transforms left, as fields again."""
    return tuple(
        Field(name, each.type or "unknown", fields_of(each), each.doc) for name, each in value.fields or ()
    )
