"""deliver.datahub.converting: events -> change proposals, each for itself or put together by run or application.

An event that cannot be converted is told with its reason; the others go on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from headwater.deliver.datahub.folding import Group
from headwater.deliver.datahub.options import Options
from headwater.deliver.datahub.proposing import Proposal, Proposing
from headwater.deliver.datahub.reading import Reading
from headwater.deliver.datahub.told import Told
from headwater.errors import EventError, UnknownName
from headwater.event import Event, Limits, parse

BY = ("none", "run", "application", "group")
"""What is put together: nothing; the events of one run; of a Spark application (of others: of one run); of any run group."""
HELD = 10_000
"""Run groups that are put together at once from a stream of events."""
_COLLAPSED = frozenset({"spark"})
"""Orchestrators whose run groups are one job: what a Spark application runs has no name that lasts."""


class Refused(NamedTuple):
    """An event that could not be converted."""

    reason: str
    event: bytes


class Converter:
    """Converts events as one configuration says; not to be shared by threads."""

    def __init__(self, options: Options = Options(), by: str = "none") -> None:  # noqa: B008 - frozen
        if by not in BY:
            raise UnknownName("value of coalesce", by, BY)
        self.options, self.by = options, by
        self.reading, self._proposing = Reading(options), Proposing(options)

    def read(self, event: Event, notes: list[str] | None = None) -> Told:
        """What an event tells, under the group it is put together with.

        Raises:
            EventError: it cannot be converted.

        """
        told = self.reading.read(event, notes)
        if told.kind != "run" or self.by == "none":
            return told
        assert told.names is not None
        assert told.run is not None
        told.collapsed = self.by == "group" or (
            self.by == "application" and told.names[1].orchestrator in _COLLAPSED
        )
        if told.collapsed and told.parent is not None and told.parent[1][0] == told.group:
            told.parent = None  # a part of the group is not its parent
        if not told.collapsed:
            told.group = told.run[1]
            told.complete = told.ended is not None
        return told

    def propose(self, told: Told) -> list[Proposal]:
        """The proposals of what was told together, aliases resolved.

        Raises:
            EventError: a name that no urn can hold, where names are not encoded.

        """
        return self._proposing.propose(told)

    def group(self, told: Told | None = None) -> Group:
        """A group to put together; `told` is what it held before."""
        return Group(self.reading.fixes, told)

    def convert(self, event: Event) -> list[Proposal]:
        """The proposals of one event alone.

        Raises:
            EventError: it cannot be converted.

        """
        group = self.group()
        group.add(self.read(event))
        return self._result(group)

    def convert_all(
        self,
        payloads: Iterable[bytes],
        refused: Callable[[Refused], None],
        limits: Limits = Limits(),  # noqa: B008 - frozen
    ) -> Iterator[Proposal]:
        """The proposals of many events; what cannot be converted is handed to `refused`, with its reason.

        At most HELD groups are held: of more, those that nothing came for longest are told first.
        """
        groups: dict[tuple[str, str], Group] = {}
        for payload in payloads:
            try:
                event = parse(payload, limits)
                told = self.read(event)
                if self.by == "none":
                    group = self.group()
                    group.add(told)
                    yield from self._result(group)
                    continue
            except EventError as fault:
                refused(Refused(str(fault), payload))
                continue
            name = (told.kind, told.group)
            joined = groups.pop(name) if name in groups else self.group()
            joined.add(told)
            groups[name] = joined  # last: the first is the one longest unused
            if len(groups) > HELD:
                oldest = next(iter(groups))
                yield from self._told(oldest, groups.pop(oldest), refused)
        for name in sorted(groups):
            yield from self._told(name, groups[name], refused)

    def _told(
        self, name: tuple[str, str], group: Group, refused: Callable[[Refused], None]
    ) -> list[Proposal]:
        try:
            return self._result(group)
        except EventError as fault:
            refused(Refused(str(fault), name[1].encode()))
            return []

    def _result(self, group: Group) -> list[Proposal]:
        told = group.result()
        return [] if told is None else self.propose(told)
