"""query.events: the raw log, filters, a place in it -> events as they came, and the place to go on from."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import msgspec

from headwater.errors import ConfigError
from headwater.event import run_uuid
from headwater.facts.flows import NOW
from headwater.facts.remains import KIND as BASE
from headwater.query.nodes import iso, node_id, resolve
from headwater.query.runs import run_id_of
from headwater.store import Entry, Store

SCANNED = 5_000
"""How many entries one page looks at, at most: a rare match must not hold a request up."""


class _Named(msgspec.Struct):
    namespace: str = ""
    name: str = ""


class _Run(msgspec.Struct):
    run_id: str = msgspec.field(name="runId", default="")


class _Head(msgspec.Struct):
    """What a filter looks at; everything else of an event is passed over."""

    event_type: str | None = msgspec.field(name="eventType", default=None)
    run: _Run | None = None
    job: _Named | None = None
    dataset: _Named | None = None
    inputs: list[_Named] | None = None
    outputs: list[_Named] | None = None


_heads = msgspec.json.Decoder(_Head)


def _head(entry: Entry) -> _Head:
    try:
        return _heads.decode(entry.raw)
    except msgspec.MsgspecError:  # it was an event once, of a form that is told no more
        return _Head()


def job_of(entry: Entry) -> tuple[str | None, str | None]:
    """The namespace and name of the job that an event is about."""
    job = _head(entry).job if entry.kind != "command" else None
    return (job.namespace, job.name) if job else (None, None)


def head_of(entry: Entry, number: int) -> dict[str, Any]:
    """An entry of the log in short: its number, time, kind, and what it is about."""
    told: dict[str, Any] = {"number": number, "kind": entry.kind, "time": iso(entry.time)}
    if entry.kind == "command":
        said = msgspec.json.decode(entry.raw)
        told["command"] = said.get("command")
        told["by"] = said.get("by", "")
        if said.get("kind") in ("job", "dataset") and said.get("namespace"):
            told["node"] = node_id(said["kind"], said["namespace"], said["name"])
        if "run_id" in said:
            told["run"] = said["run_id"]
        return told
    if entry.kind == BASE:
        return told
    head = _head(entry)
    if head.event_type:
        told["type"] = head.event_type.upper()
    if head.run is not None:
        told["run"] = run_uuid(head.run.run_id)
    if head.job is not None:
        told["job"] = node_id("job", head.job.namespace, head.job.name)
    if head.dataset is not None:
        told["dataset"] = node_id("dataset", head.dataset.namespace, head.dataset.name)
    for side, found in (("inputs", head.inputs), ("outputs", head.outputs)):
        if found:
            told[side] = [node_id("dataset", each.namespace, each.name) for each in found]
    return told


@dataclass(frozen=True, slots=True)
class Filter:
    """Which entries are wanted; what is None does not matter."""

    kind: str | None = None
    namespace: str | None = None
    state: str | None = None
    job: str | None = None
    run: str | None = None
    datasets: frozenset[str] | None = None

    def takes(self, told: dict[str, Any]) -> bool:
        """Whether an entry, in short, is wanted; what is left of events that are kept no more is none."""
        if told["kind"] == BASE:
            return False
        if self.kind is not None and told["kind"] != self.kind:
            return False
        if self.state is not None and told.get("type") != self.state.upper():
            return False
        if self.job is not None and self.job != told.get("job") and self.job != told.get("node"):
            return False
        if self.run is not None and told.get("run") != self.run:
            return False
        if self.datasets is not None and not self.datasets & set(_datasets(told)):
            return False
        return self.namespace is None or any(
            each.partition(":")[2].startswith(f"{self.namespace}:") for each in _ids(told)
        )


def _datasets(told: dict[str, Any]) -> Iterator[str]:
    yield from (*told.get("inputs", ()), *told.get("outputs", ()))
    yield from (told[key] for key in ("dataset", "node") if key in told)


def _ids(told: dict[str, Any]) -> Iterator[str]:
    yield from _datasets(told)
    if "job" in told:
        yield told["job"]


def events(
    store: Store,
    *,
    job: str | None = None,
    run: str | None = None,
    dataset: str | None = None,
    kind: str | None = None,
    since: int | None = None,
    until: int | None = None,
    cursor: str | None = None,
    limit: int = 100,
) -> dict[str, Any]:
    """A page of raw events in the order of their times: `{"events": [{…, "event"}], "next"}`.

    `next` leads to the page after; it is None at the end. A page may be short though there is more: it looks at so many
    entries and no more.
    """
    after = _place(cursor)
    first, last = since if since is not None else 0, until if until is not None else NOW
    found: list[dict[str, Any]] = []
    with store.read() as reader:
        wanted: dict[str, Any] = {"kind": kind}
        spans: list[tuple[int | None, int | None]] = []
        if run is not None:
            wanted["run"] = run_id_of(run) or run_uuid(run)
            row = reader.run(wanted["run"])
            spans.append((row["first_seen"], row["last_seen"]) if row else (1, 0))
        for asked, which in ((job, "job"), (dataset, "dataset")):
            if asked is None:
                continue
            node = resolve(reader, asked)
            if node.kind != which:
                raise ConfigError(f"{asked!r} is a {node.kind}, not a {which}")
            members = reader.leaders(which, [node.number])
            rows = reader.nodes(which, members)
            ids = frozenset(node_id(which, each["namespace"], each["name"]) for each in rows.values())
            wanted |= {"job": next(iter(ids))} if which == "job" else {"datasets": ids}
        for begin, end in spans:
            first, last = max(first, begin or 0), min(last, end if end is not None else NOW)
        filter = Filter(**wanted)
        looked, place = 0, after
        for number, stamp, entry_kind, raw in reader.trail().entries(after, first, last, SCANNED):
            looked, place = looked + 1, (stamp, number)
            entry = Entry(b"", entry_kind, stamp, raw)
            told = head_of(entry, number)
            if filter.takes(told):
                found.append({**told, "event": msgspec.Raw(raw)})
                if len(found) >= limit:
                    break
    more = looked == SCANNED or len(found) >= limit
    return {"events": found, "next": f"{place[0]}.{place[1]}" if more else None}


def event(store: Store, number: int) -> dict[str, Any]:
    """One entry of the log by its number, in the form of `events`; none where it is kept no more."""
    for found, entry in store.log(after=number - 1, limit=1):
        told = head_of(entry, found)
        if found == number and Filter().takes(told):
            return {"events": [{**told, "event": msgspec.Raw(entry.raw)}], "next": None}
    return {"events": [], "next": None}


def _place(cursor: str | None) -> tuple[int, int]:
    if cursor is None:
        return -1, 0
    stamp, dot, number = cursor.partition(".")
    if not dot or not (stamp.isascii() and stamp.isdigit() and number.isascii() and number.isdigit()):
        raise ConfigError(f"{cursor!r} is no cursor: give the `next` of the page before")
    place = int(stamp), int(number)
    if max(place) > NOW:
        raise ConfigError(f"{cursor!r} is no cursor: give the `next` of the page before")
    return place


def follow(
    store: Store, after: int | None, wanted: Filter, *, every: float = 0.5
) -> Iterator[dict[str, Any]]:
    """What comes into the log, as it comes, in short; from an entry on, or from now on. It never ends by itself."""
    if after is None:
        with store.read() as reader:
            after = reader.last_entry()
    while True:
        for number, entry in store.log(after):
            after = number
            told = head_of(entry, number)
            if wanted.takes(told):
                yield told
        time.sleep(every)
