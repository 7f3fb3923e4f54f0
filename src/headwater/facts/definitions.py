"""facts.definitions: a dataset, job, run, namespace, source or tag defined by hand -> its rows.

What a catalogue's own calls (`PUT …/datasets/x`) say is kept as commands, as the other writes by hand are. A
definition tells no event's time, so it never moves `last_seen`: that is the events' clock, by which a hidden
thing comes back. What it says of a thing beside its edges is `said`, and outlives later events.
"""

from __future__ import annotations

from typing import Any, ClassVar

import msgspec

from headwater.errors import EventError
from headwater.event import run_uuid
from headwater.facts._said import Said, one_of
from headwater.facts.contents import digest_of
from headwater.facts.derive import HEARSAY, SPOKEN
from headwater.facts.tables import Row, ref

QualifiedName = tuple[str, str]
"""A namespace and a name."""
NEW = "0 NEW"
"""The state of a run that was made by hand and has not begun: any event's state outranks it."""


class Name(Said, frozen=True, tag="name"):
    """Speak of a namespace, a source or a tag by itself: from then on it is there."""

    kind: str
    name: str
    shown_at: int | None = None
    """What shows a hidden one again: more than the `hidden_at` that is known."""

    KINDS: ClassVar[tuple[str, ...]] = ("namespace", "source", "tag")

    def rows(self) -> list[Row]:
        """That it is there."""
        one_of("kind", self.kind, Name.KINDS)
        row: dict[str, Any] = {"first_seen": self.at, "last_seen": self.at}
        return [("named", (self.kind, self.name), _show(row, self.shown_at))]


class DefineField(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A field of a dataset."""

    name: str
    type: str = ""
    description: str | None = None
    tags: tuple[str, ...] = ()


class DefineDataset(Said, frozen=True, tag="dataset"):
    """Define a dataset by hand, with its fields and tags; by which run it was written, where that is told."""

    namespace: str
    name: str
    type: str = "DB_TABLE"
    source: str = ""
    physical_name: str = ""
    schema_location: str = ""
    description: str | None = None
    fields: tuple[DefineField, ...] = ()
    tags: tuple[str, ...] = ()
    run_id: str | None = None
    job: QualifiedName | None = None
    """Whose run that is."""
    shown_at: int | None = None

    TYPES: ClassVar[tuple[str, ...]] = ("DB_TABLE", "STREAM")

    def rows(self) -> list[Row]:
        """The dataset, its schema, its tags, and what is said of it."""
        one_of("type", self.type, DefineDataset.TYPES)
        dataset, at = ref(self.namespace, self.name), self.at
        words = {
            "type": self.type,
            "sourceName": self.source,
            "physicalName": self.physical_name,
            "schemaLocation": self.schema_location,
            "description": self.description,
        }
        rows = _said("dataset", dataset, at, words)
        schema: dict[str, Any] = {}
        if self.fields:
            body = msgspec.json.encode([{"name": each.name, "type": each.type} for each in self.fields])
            digest = digest_of(body)
            schema["schema"] = (at, digest)
            rows.append(("contents", (digest,), {"body": body}))
            rows.append(("schemas", (dataset, digest), {"first_seen": at, "last_seen": at}))
            for each in self.fields:
                rows += _said("dataset", dataset, at, {"description": each.description}, each.name)
        rows.append(("described", (dataset, at), schema))
        tagged = [("", tag) for tag in self.tags]
        tagged += [(each.name, tag) for each in self.fields for tag in each.tags]
        for field, tag in tagged:
            live = {"live": (at + SPOKEN, 1), "source": (at + SPOKEN, "USER")}
            rows.append(("tags", ("dataset", dataset, field, tag), live))
        if self.run_id is not None:
            seen: dict[str, Any] = {"first_seen": at, "last_seen": at}
            rows.append(("outputs", (run_uuid(self.run_id), dataset), seen | schema))
            rows.append(("runs", (run_uuid(self.run_id),), {"first_seen": at, "last_seen": at}))
            if self.job is not None:
                rows.append(("edges", (ref(*self.job), "out", dataset), {"first_seen": at, "last_seen": at}))
                rows.append(("jobs", (ref(*self.job),), {"first_seen": at}))
        rows.append(("datasets", (dataset,), _show({"first_seen": at}, self.shown_at)))
        return rows


class DefineJob(Said, frozen=True, tag="job"):
    """Define a job by hand, with its inputs and outputs, as a job event does."""

    namespace: str
    name: str
    type: str = "BATCH"
    inputs: tuple[QualifiedName, ...] = ()
    outputs: tuple[QualifiedName, ...] = ()
    location: str | None = None
    description: str | None = None
    run_id: str | None = None
    """The run that reads and writes just these."""
    shown_at: int | None = None

    TYPES: ClassVar[tuple[str, ...]] = ("BATCH", "STREAM", "SERVICE")

    def rows(self) -> list[Row]:
        """The job, its edges, and what is said of it."""
        one_of("type", self.type, DefineJob.TYPES)
        job, at = ref(self.namespace, self.name), self.at
        rows = _said(
            "job", job, at, {"type": self.type, "location": self.location, "description": self.description}
        )
        for direction, names in (("in", self.inputs), ("out", self.outputs)):
            for namespace, name in names:
                dataset = ref(namespace, name)
                rows.append(("datasets", (dataset,), {"first_seen": at}))
                rows.append(("edges", (job, direction, dataset), {"first_seen": at, "last_seen": at}))
                rows.append(("declared", (job, at, direction, dataset), {}))
                if self.run_id is not None:
                    table = "inputs" if direction == "in" else "outputs"
                    key = (run_uuid(self.run_id), dataset)
                    rows.append((table, key, {"first_seen": at, "last_seen": at}))
                    rows.append(("runs", key[:1], {"first_seen": at, "last_seen": at}))
        rows.append(("jobs", (job,), _show({"first_seen": at}, self.shown_at)))
        return rows


class DefineRun(Said, frozen=True, tag="run"):
    """Make a run of a job by hand; its state is set apart."""

    run_id: str
    namespace: str
    job: str
    nominal_start: int | None = None
    nominal_end: int | None = None
    args: dict[str, str] = msgspec.field(default_factory=dict)
    inputs: tuple[QualifiedName, ...] = ()
    outputs: tuple[QualifiedName, ...] = ()
    """What the job is defined to read and write: the run does so, for all we know."""

    def rows(self) -> list[Row]:
        """The run, new, and its arguments."""
        if not self.run_id:
            raise EventError("run_id", "is empty")
        run, at, job = run_uuid(self.run_id), self.at, ref(self.namespace, self.job)
        row: dict[str, Any] = {
            "first_seen": at,
            "last_seen": at,
            "job": (at + HEARSAY, job),
            "state": (at + HEARSAY, NEW),
        }
        for column, value in (("nominal_start", self.nominal_start), ("nominal_end", self.nominal_end)):
            if value is not None:
                row[column] = (at, value)
        rows: list[Row] = [("runs", (run,), row), ("jobs", (job,), {"first_seen": at})]
        for table, names in (("inputs", self.inputs), ("outputs", self.outputs)):
            for namespace, name in names:
                dataset = ref(namespace, name)
                rows.append((table, (run, dataset), {"first_seen": at, "last_seen": at}))
                rows.append(("datasets", (dataset,), {"first_seen": at}))
        return rows + _said("run", run, at, dict(self.args), "args")


def _said(kind: str, owner: str, at: int, words: dict[str, str | None], field: str = "") -> list[Row]:
    return [
        ("said", (kind, owner, field, name), {"value": (at, word)}) for name, word in words.items() if word
    ]


def _show(row: dict[str, Any], shown_at: int | None) -> dict[str, Any]:
    return row if shown_at is None else {**row, "shown_at": shown_at}
