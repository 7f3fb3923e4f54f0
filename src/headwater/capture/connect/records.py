"""capture.connect.records: a dataset's fields, known or not -> a Record whose every field knows which columns it came from.

A struct may be open: its fields are not listed, but whoever asks for one by name is told where it would have come from.
So a source's columns can be followed through its transforms although only what they leave is in the registry.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace

from headwater.naming import Identity


@dataclass(frozen=True, slots=True, order=True)
class Origin:
    """A column that a field came from, and what was done to it on its way: CAST, MASK, …"""

    dataset: Identity
    path: tuple[str, ...]
    ways: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Rest:
    """The fields of an open struct that are not listed: those of a place in a dataset, but for some that are gone."""

    dataset: Identity | None = None
    """None: they are made by the connector, and come from nowhere."""
    path: tuple[str, ...] = ()
    gone: frozenset[str] = frozenset()
    ways: tuple[str, ...] = ()
    delimiter: str | None = None
    """Between the parts of a flattened name."""
    only: frozenset[str] | None = None
    """Where only some fields passed: those."""


@dataclass(frozen=True, slots=True)
class Node:
    """A value: a struct with fields, open or not, or something without."""

    type: str = ""
    fields: tuple[tuple[str, Node], ...] | None = None
    rest: Rest | None = None
    origins: tuple[Origin, ...] = ()
    doc: str = ""
    constant: str | None = None
    """Where it is the same in every record: its text."""
    name: str = ""
    """Of a struct: its schema's name, where that is known."""

    @property
    def is_struct(self) -> bool:
        """Whether it has fields, or may have."""
        return self.fields is not None or self.rest is not None

    def child(self, name: str) -> Node | None:
        """The field of that name; None where there is none."""
        for each, node in self.fields or ():
            if each == name:
                return node
        rest = self.rest
        if rest is None or name in rest.gone or (rest.only is not None and name not in rest.only):
            return None
        if rest.dataset is None:
            return Node(rest=Rest())
        parts = tuple(name.split(rest.delimiter)) if rest.delimiter else (name,)
        path = (*rest.path, *parts)
        return Node(
            rest=replace(rest, path=path, gone=frozenset(), only=None, delimiter=None),
            origins=(Origin(rest.dataset, path, rest.ways),),
        )

    def put(self, name: str, node: Node) -> Node:
        """With a field, in the place of one of the same name or at the end."""
        fields = self.fields or ()
        if any(each == name for each, _ in fields):
            fields = tuple((each, node if each == name else old) for each, old in fields)
        else:
            fields = (*fields, (name, node))
        return replace(self, fields=fields)

    def drop(self, names: Iterable[str]) -> Node:
        """Without some fields."""
        gone = frozenset(names)
        rest = self.rest and replace(self.rest, gone=self.rest.gone | gone)
        return replace(self, fields=tuple(f for f in self.fields or () if f[0] not in gone), rest=rest)

    def keep(self, names: Iterable[str]) -> Node:
        """With some fields only."""
        kept = frozenset(names)
        rest = self.rest
        if rest is not None:
            rest = replace(rest, only=kept if rest.only is None else rest.only & kept)
        return replace(self, fields=tuple(f for f in self.fields or () if f[0] in kept), rest=rest)

    def through(self, way: str) -> Node:
        """After something was done to it and all in it."""
        fields = self.fields
        if fields is not None:
            fields = tuple((name, node.through(way)) for name, node in fields)
        return replace(
            self,
            fields=fields,
            rest=self.rest and replace(self.rest, ways=_added(self.rest.ways, way)),
            origins=tuple(replace(each, ways=_added(each.ways, way)) for each in self.origins),
        )

    def all_origins(self) -> tuple[Origin, ...]:
        """Of it and all in it."""
        found = set(self.origins)
        for _, node in self.fields or ():
            found |= set(node.all_origins())
        rest = self.rest
        if rest is not None and rest.dataset is not None and rest.path and not self.origins:
            found.add(Origin(rest.dataset, rest.path, rest.ways))
        return tuple(sorted(found))

    def leaves(self, above: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Node]]:
        """Every listed field without fields of its own, with its path."""
        for name, node in self.fields or ():
            if node.fields:
                yield from node.leaves((*above, name))
            else:
                yield (*above, name), node


def _added(ways: tuple[str, ...], way: str) -> tuple[str, ...]:
    return ways if ways[-1:] == (way,) else (*ways, way)


def open_struct(dataset: Identity | None, path: tuple[str, ...] = ()) -> Node:
    """A struct of which only the place is known."""
    return Node(fields=(), rest=Rest(dataset, path))


def made(kind: str = "", constant: str | None = None) -> Node:
    """A value that the connector or a transform makes up."""
    return Node(kind, constant=constant)


@dataclass(frozen=True, slots=True)
class Record:
    """What passes through a chain of transforms: where to, and what it holds."""

    topic: str
    key: Node = field(default_factory=Node)
    value: Node = field(default_factory=Node)
    fits: str | None = None
    """A regular expression for the topic's name, where data or time decide it."""
    headers: tuple[tuple[str, Node], ...] = ()
    filters: tuple[Origin, ...] = ()
    """Columns that decide whether a record passes."""
    filtered: bool = False
    traced: bool = True
    """False after a transform that nobody here knows: its fields are anybody's guess."""
    notes: tuple[str, ...] = ()

    def part(self, which: str) -> Node:
        """The key or the value."""
        return self.key if which == "key" else self.value

    def with_part(self, which: str, node: Node) -> Record:
        """With another key or value."""
        return replace(self, key=node) if which == "key" else replace(self, value=node)

    def noted(self, note: str) -> Record:
        """With something to tell whoever asks why."""
        return self if note in self.notes else replace(self, notes=(*self.notes, note))
