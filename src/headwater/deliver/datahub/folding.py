"""deliver.datahub.folding: what events of one run group tell, in any order and as often as may be -> what they tell together.

Put together, nothing is held but what is told in the end: memory follows datasets and columns, not events. In compat mode,
where the order of events decides what an alias reaches, a group holds what each event told, as the Java agent does.
"""

from __future__ import annotations

from copy import copy
from typing import TypeVar

from headwater.deliver.datahub.options import Fixes
from headwater.deliver.datahub.told import Column, First, Last, Seen, Stamp, Told

T = TypeVar("T")


class Group:
    """The events of one run group."""

    def __init__(self, fixes: Fixes, told: Told | None = None) -> None:
        self._fixes = fixes
        self.told: Told | None = told
        self.members: dict[Stamp, Told] = {}
        """What each event told, where the order decides."""

    def add(self, told: Told) -> None:
        """One more."""
        if not self._fixes.group_aliases:
            self.members.setdefault(told.stamp, told)
        elif self.told is None:
            self.told = told
        else:
            put(self.told, told, self._fixes)

    def join(self, other: Group) -> None:
        """All of another's."""
        for each in other.members.values():
            self.add(each)
        if other.told is not None:
            self.add(other.told)

    def result(self) -> Told | None:
        """What is told together, under the urns that aliases lead to. The group may be added to afterwards."""
        if self._fixes.group_aliases:
            return None if self.told is None else resolved(self.told, self._fixes)
        out: Told | None = None
        aliases: dict[str, str] = {}
        for _, told in sorted(self.members.items()):
            known = in_turn(told, aliases)
            out = known if out is None else put(out, known, self._fixes)
        return out


def put(into: Told, more: Told, fixes: Fixes) -> Told:
    """Put `more` into `into`; `more` is not changed, but parts of it may be shared."""
    if more.stamp > into.stamp:
        into.stamp = more.stamp
    into.time = max(into.time, more.time)
    into.collapsed |= more.collapsed
    into.names = last(into.names, more.names)
    for name in ("description", "created", "run", "parent", "succeeded"):
        setattr(into, name, first(getattr(into, name), getattr(more, name)))
    into.failed = last(into.failed, more.failed)
    for mine, theirs in (
        (into.flow_properties, more.flow_properties),
        (into.job_properties, more.job_properties),
        (into.application, more.application),
    ):
        for key, value in theirs.items():
            have = mine.get(key)
            if have is None or value[0] < have[0]:
                mine[key] = value
    for mine, theirs in ((into.run_properties, more.run_properties), (into.aliases, more.aliases)):
        for key, value in theirs.items():
            have = mine.get(key)
            if have is None or value[0] > have[0]:
                mine[key] = value
    into.flow_tags = _union(into.flow_tags, more.flow_tags)
    into.job_tags = _union(into.job_tags, more.job_tags)
    into.links = _union(into.links, more.links)
    for urn, kind in more.owners.items():
        into.owners[urn] = max(kind, into.owners.get(urn, ""))
    for have_all, come in ((into.inputs, more.inputs), (into.outputs, more.outputs)):
        for urn, seen in come.items():
            known = have_all.get(urn)
            have_all[urn] = _copy(seen) if known is None else _put_seen(known, seen, fixes)
    if more.named is not None and (
        into.named is None
        or more.named[0] > into.named[0]
        or (more.named[0] == into.named[0] and more.named[1] < into.named[1])
    ):
        into.named = more.named
    starts = [each for each in (into.started, more.started) if each is not None]
    into.started = min(starts) if starts else None
    ends = [each for each in (into.ended, more.ended) if each is not None]
    into.ended = max(ends) if ends else None
    into.streaming |= more.streaming
    into.silent &= more.silent
    into.complete |= more.complete
    return into


def first(mine: First | None, theirs: First | None) -> First | None:
    """The one with the smaller stamp; what is missing never wins."""
    if mine is None or (theirs is not None and theirs[0] < mine[0]):
        return theirs
    return mine


def last(mine: T | None, theirs: T | None) -> T | None:
    """The one with the greater stamp; what is missing never wins."""
    if mine is None or (theirs is not None and theirs[0] > mine[0]):  # type: ignore[index]  # stamped, all of them
        return theirs
    return mine


def _union(mine: list[str], theirs: list[str]) -> list[str]:
    if not theirs or mine == theirs:
        return mine
    return sorted({*mine, *theirs}, key=lambda each: (each.lower(), each))


def _copy(seen: Seen) -> Seen:
    """A dataset that can be added to: what an event told stays as it was."""
    columns = None
    if seen.columns is not None:
        columns = {
            name: Column([*each.texts], [*each.sources], each.query) for name, each in seen.columns.items()
        }
    return Seen(seen.urn, seen.original, seen.schema, columns, seen.columns_at, seen.operation, seen.profile)


def _put_seen(known: Seen, seen: Seen, fixes: Fixes) -> Seen:
    known.schema = last(known.schema, seen.schema)
    known.operation = last(known.operation, seen.operation)
    known.profile = last(known.profile, seen.profile)
    if seen.columns is None:
        return known
    if not fixes.union_columns:
        if known.columns_at is None or (seen.columns_at is not None and seen.columns_at > known.columns_at):
            known.columns, known.columns_at = seen.columns, seen.columns_at
        return known
    if known.columns is None:
        known.columns, known.columns_at = _copy(seen).columns, seen.columns_at
        return known
    known.columns_at = max(filter(None, (known.columns_at, seen.columns_at)), default=None)
    for name, column in seen.columns.items():
        have = known.columns.get(name)
        if have is None:
            known.columns[name] = Column([*column.texts], [*column.sources], column.query)
        else:
            have.texts = _union(have.texts, column.texts)
            if have.sources != column.sources:
                have.sources = sorted({*map(tuple, have.sources), *map(tuple, column.sources)})  # type: ignore[arg-type]
            have.query = last(have.query, column.query)
    return known


def resolved(told: Told, fixes: Fixes) -> Told:
    """The same with every urn replaced by what it is an alias of; datasets that become one are put together."""
    if not told.aliases:
        return told
    ends = {urn: _end(urn, told.aliases) for urn in told.aliases}
    out = _replaced(told)
    for side in ("inputs", "outputs"):
        datasets: dict[str, Seen] = {}
        for _, seen in sorted(getattr(told, side).items()):  # of one event, two may become one
            made = _copy(seen)
            made.urn = ends.get(seen.urn, seen.urn)
            for column in (made.columns or {}).values():
                column.sources = [(ends.get(urn, urn), field) for urn, field in column.sources]
            known = datasets.get(made.urn)
            datasets[made.urn] = made if known is None else _put_seen(known, made, fixes)
        setattr(out, side, datasets)
    return out


def in_turn(told: Told, aliases: dict[str, str]) -> Told:
    """The same as Java names it: by the aliases of earlier events, and of datasets that the event names before."""
    out = _replaced(told)
    for side in ("inputs", "outputs"):
        datasets: dict[str, Seen] = {}
        for seen in getattr(told, side).values():
            made = _copy(seen)
            if seen.original is not None:
                aliases[seen.original] = seen.urn
            made.urn = aliases.get(seen.urn, seen.urn)
            for column in (made.columns or {}).values():
                column.sources = [(aliases.get(urn, urn), field) for urn, field in column.sources]
            datasets.setdefault(made.urn, made)
        setattr(out, side, datasets)
    return out


def _replaced(told: Told) -> Told:
    out = copy(told)
    out.flow_properties, out.job_properties = dict(told.flow_properties), dict(told.job_properties)
    out.application, out.run_properties = dict(told.application), dict(told.run_properties)
    out.aliases, out.owners = dict(told.aliases), dict(told.owners)
    return out


def _end(urn: str, aliases: dict[str, Last]) -> str:
    """Where a chain of aliases ends; of a circle, its smallest."""
    seen = [urn]
    while (following := aliases.get(seen[-1])) is not None:
        if following[1] in seen:
            return min(seen[seen.index(following[1]) :])
        seen.append(following[1])
    return seen[-1]
