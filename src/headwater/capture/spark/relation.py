"""capture.spark.relation: nothing -> what a node of a plan gives to its parent, and what all nodes stand on."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from headwater.capture.spark.deps import NONE, Deps, Sources
from headwater.capture.spark.names import Named, Naming, Node
from headwater.naming import Identity

_REMEMBERED = 10_000
_FRAMES = 1_000
Schema = list[tuple[str, str]]
Attributes = list[tuple[int, str]]
Given = tuple[Deps, Deps, dict[Identity, Schema]]
"""What an attribute of an earlier plan came from, what decided on its rows, and what was read."""


class Rel:
    """What a node gives to its parent."""

    __slots__ = ("env", "inputs", "outs", "rows")

    def __init__(
        self, outs: Attributes, env: dict[int, Deps], rows: Deps, inputs: dict[Identity, Schema]
    ) -> None:
        self.outs, self.env, self.rows, self.inputs = outs, env, rows, inputs

    def columns(self) -> list[Deps]:
        """What each attribute comes from, in their order."""
        return [self.env.get(number, NONE) for number, _ in self.outs]


def refs(value: Any) -> list[int]:
    """The nodes that a field refers to."""
    if isinstance(value, dict):
        return [value["#"]] if "#" in value else []
    return [v["#"] for v in value if isinstance(v, dict) and "#" in v] if isinstance(value, list) else []


def attributes(node: Node, field: str = "o") -> Attributes:
    """The attributes that a node lists."""
    return [(each[0], each[1]) for each in node.get(field) or []]


@dataclass(frozen=True, slots=True)
class Ground:
    """What the plans of one application share."""

    sources: Sources
    named: dict[Identity, Named]
    registry: dict[int, Given]
    frames: dict[int, list[Given]]
    """RDD of a frame that was made from one -> what the frame's columns came from"""
    naming: Naming
    leaves: bool = True
    """Whether a field of a struct is told as a column of its own (`addr.city`), or as its column (`addr`)"""

    def note(self, found: Iterable[Named]) -> None:
        """Keep what is known of datasets; of very many, those that were read last."""
        for each in found:
            self.named.pop(each.identity, None)
            self.named[each.identity] = each
        while len(self.named) > _REMEMBERED:
            self.named.pop(next(iter(self.named)))

    def given(self, frame: int | None, outs: Attributes) -> list[Given]:
        """What the attributes of a frame that was made from an RDD came from; nothing unless all are known.

        It is that of its first reading: later plans pass its attributes on, with filters of their own, and in a join of
        the frame with itself one side has new ones.
        """
        found = self.frames.pop(frame, []) if frame is not None else []
        if len(found) != len(outs):
            found = [self.registry[number] for number, _ in outs if number in self.registry]
        if len(found) != len(outs):
            return []
        if frame is not None:
            self.frames[frame] = found
            while len(self.frames) > _FRAMES:
                self.frames.pop(next(iter(self.frames)))
        return found
