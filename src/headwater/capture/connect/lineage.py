"""capture.connect.lineage: a connector, what its cluster is, the schemas of its topics -> what it reads and writes, column by column.

What cannot be told is not invented: it is left out, and `why` says so. A connector that nobody knows still has its topics.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from typing import Literal

import msgspec

from headwater.capture.connect import sinks, sources
from headwater.capture.connect.catalogue import Entry
from headwater.capture.connect.chain import follow
from headwater.capture.connect.fields import Field, fields_of, node
from headwater.capture.connect.java import java_regex
from headwater.capture.connect.places import Ask, Site, Target
from headwater.capture.connect.places import topic as name_topic
from headwater.capture.connect.records import Node, Origin, Record, open_struct
from headwater.capture.connect.snapshots import Connector, seed_settings
from headwater.capture.connect.subjects import Part, Registered, converter, wanted
from headwater.capture.connect.templates import listed, refuse_placeholder, resolved
from headwater.errors import ConfigError
from headwater.naming import Dataset, Identity

KEY = "__key"
"""The field under which a topic's key stands beside the fields of its value."""

Schemas = Mapping[tuple[str, Part], Registered]
"""(topic, part) -> its latest schema"""


@dataclass(frozen=True, slots=True)
class Told:
    """A dataset as the events tell it."""

    dataset: Dataset
    kind: str = "TABLE"
    fields: tuple[Field, ...] = ()
    schemas: tuple[Registered, ...] = ()
    sources: tuple[Identity, ...] = ()
    """Of an output: which of the inputs feed it."""
    columns: tuple[tuple[str, tuple[Origin, ...]], ...] = ()
    filters: tuple[Origin, ...] = ()


@dataclass(frozen=True, slots=True)
class Lineage:
    """What a connector reads and writes."""

    inputs: tuple[Told, ...] = ()
    outputs: tuple[Told, ...] = ()
    why: tuple[str, ...] = ()
    topics: tuple[str, ...] = ()
    """The topics on the Kafka side, whose schemas are of interest."""
    ready: bool = True
    """Whether every schema that it needs was there."""
    tables: tuple[str, ...] = ()
    """Tables of a catalog, which knows better than we where they lie."""

    @property
    def digest(self) -> str:
        """Another one where anything that is told has changed."""
        told = [_plain(each) for each in (*self.inputs, None, *self.outputs)]
        return blake2b(msgspec.json.encode(told), digest_size=12).hexdigest()


def _plain(told: Told | None) -> object:
    if told is None:
        return None
    versions = [(each.subject, each.version, each.id) for each in told.schemas]
    return (told.dataset, told.kind, told.fields, versions, told.sources, told.columns, told.filters)


def lineage(
    connector: Connector,
    site: Site,
    schemas: Schemas | None = None,
    locations: Mapping[str, str] | None = None,
) -> Lineage:
    """What a connector reads and writes, by its settings, the topics it was seen to use, their schemas, and where tables lie.

    >>> s3 = {"connector.class": "io.confluent.connect.s3.S3SinkConnector", "topics": "orders", "s3.bucket.name": "lake"}
    >>> found = lineage(Connector("c", "sink", s3), Site("prod", "b:9092"))
    >>> [str(each.dataset) for each in (*found.inputs, *found.outputs)]
    ['kafka://b:9092/orders', 's3://lake/topics/orders']
    """
    config = resolved(connector.config, site.resolve)
    entry = site.catalogue.get(connector.kind)
    why: list[str] = []
    if entry is None:
        why.append(f"connector {connector.kind or 'without a class'} is not known: only its topics are told")
        direction = connector.type if connector.type != "unknown" else _guess(config)
        entry = Entry([connector.kind], direction)
    elif connector.type in ("source", "sink") and connector.type != entry.direction:
        why.append(f"{connector.kind} is a {connector.type} here, which is not what is known of it")
        entry = Entry([connector.kind], connector.type)
    if not site.bootstrap:
        why.append(
            "the brokers are not told by Connect: set `bootstrap`, so that topics meet those of other tools"
        )
    work = _Work(Ask(connector, config, entry, site, locations or {}), schemas or {}, why)
    return work.source() if entry.direction == "source" else work.sink()


def _guess(config: Mapping[str, str]) -> Literal["source", "sink"]:
    return "sink" if config.get("topics") or config.get("topics.regex") else "source"


@dataclass(slots=True)
class _Output:
    """An output while it is put together: several topics or tables may feed it."""

    dataset: Dataset
    kind: str
    sources: dict[Identity, None] = field(default_factory=dict)
    columns: dict[str, set[Origin]] = field(default_factory=dict)
    filters: set[Origin] = field(default_factory=set)
    fields: dict[str, Field] = field(default_factory=dict)


class _Work:
    def __init__(self, ask: Ask, schemas: Schemas, why: list[str]) -> None:
        self.ask, self.schemas, self.why = ask, schemas, why
        self.outputs: dict[Identity, _Output] = {}
        self.tables: dict[str, None] = {}

    # --- sinks

    def sink(self) -> Lineage:
        topics = self._consumed()
        told = []
        for topic in topics:
            dataset = name_topic(self.ask.site, topic, self.ask.config, "sink")
            told.append(Told(dataset, "TOPIC", self._fields(topic), self._registered(topic)))
            for record in follow(self.ask.config, self._record(topic, dataset)):
                self._note(record.notes)
                self._written(topic, dataset, record)
        self._dead_letters(told)
        outputs = tuple(self._told(each) for each in self.outputs.values())
        ready, tables = self._ready(topics), tuple(self.tables)
        return Lineage(tuple(told), outputs, self._reasons(), tuple(topics), ready, tables)

    def _consumed(self) -> list[str]:
        config, seen = self.ask.config, self.ask.observed
        if pattern := config.get("topics.regex"):
            try:
                wanted = java_regex(pattern)
                found = sorted(topic for topic in seen if wanted.matches(topic))
            except ConfigError as fault:
                self.why.append(f"topics.regex: {fault}")
                found = sorted(seen)
            if not found:
                found = listed(seed_settings(config).get("topics", ""))
            if not found:
                self.why.append("topics.regex: no topic was seen to be read yet")
            return found
        try:
            refuse_placeholder("topics", config.get("topics", ""))
        except ConfigError as fault:
            self.why.append(str(fault))
            return sorted(seen)
        return list(dict.fromkeys(listed(config.get("topics", "")))) or sorted(seen)

    def _record(self, topic: str, dataset: Dataset) -> Record:
        value, key = self._schema(topic, "value"), self._schema(topic, "key")
        identity = dataset.identity
        return Record(
            topic,
            key=_topic_node(key, identity, (KEY,)) if key else open_struct(identity, (KEY,)),
            value=_topic_node(value, identity, ()) if value else open_struct(identity),
        )

    def _written(self, topic: str, dataset: Dataset, record: Record) -> None:
        try:
            found = sinks.targets(self.ask, topic, record)
        except ConfigError as fault:
            self.why.append(str(fault))
            return
        for target in found:
            if target.table:
                self.tables[target.table] = None
            output = self._output(target.dataset, target.kind)
            output.sources[dataset.identity] = None
            output.filters |= set(record.filters)
            self._add_columns(output, target, known=self._schema(topic, "value") is not None)

    def _add_columns(self, output: _Output, target: Target, known: bool) -> None:
        columns = target.columns
        explicit = columns is not None and columns.rest is None
        if columns is None or not (known or explicit):
            return
        for each in fields_of(columns):
            output.fields.setdefault(each.name, each)
        for path, leaf in columns.leaves():
            output.columns.setdefault(".".join(path), set()).update(leaf.all_origins())

    def _dead_letters(self, inputs: list[Told]) -> None:
        config = self.ask.config
        name = config.get("errors.deadletterqueue.topic.name", "")
        if not name or "${" in name:
            return
        output = self._output(name_topic(self.ask.site, name, {}, "sink"), "TOPIC")
        for each in inputs:
            output.sources[each.dataset.identity] = None

    # --- sources

    def source(self) -> Lineage:
        try:
            flows = sources.flows(self.ask)
        except ConfigError as fault:
            self.why.append(str(fault))
            flows = []
        observed = self.ask.observed - sources.hidden(self.ask)
        if (
            not flows and not observed
        ):  # the seed's transform had to be told the topics: so they are known here too
            observed = frozenset(listed(seed_settings(self.ask.config).get("topics", "")))
        inputs: dict[Identity, Told] = {}
        topics: dict[str, None] = {}
        own = {flow.record.topic for flow in flows}
        for flow in flows:
            if flow.dataset is not None:
                inputs.setdefault(flow.dataset.identity, Told(flow.dataset, flow.kind))
            for record in follow(self.ask.config, flow.record):
                self._note(record.notes)
                for topic in self._reached(record, flow.record.topic, observed, alone=len(own) == 1):
                    topics[topic] = None
                    self._produced(topic, flow.dataset, record)
        if self.ask.entry.shape != "nothing":
            for topic in sorted(observed - set(topics)):
                topics[topic] = None
                self._output(name_topic(self.ask.site, topic, self.ask.config, "source"), "TOPIC")
                if self.ask.entry.shape or self.ask.entry.dataset:
                    self.why.append(f"topic {topic}: nothing tells what feeds it")
        outputs = []
        for topic in topics:
            dataset = name_topic(self.ask.site, topic, self.ask.config, "source")
            told = self._told(self.outputs[dataset.identity])
            if fields := self._fields(topic):
                told = replace(told, fields=fields)
            outputs.append(replace(told, schemas=self._registered(topic)))
        return Lineage(
            tuple(inputs.values()), tuple(outputs), self._reasons(), tuple(topics), self._ready(topics)
        )

    def _reached(self, record: Record, original: str, observed: frozenset[str], *, alone: bool) -> list[str]:
        """The topics that a record may go to, where only the data decide those that were seen."""
        if record.fits is None:
            return [record.topic]
        if record.fits != ".*":
            found = sorted(topic for topic in observed if re.fullmatch(record.fits, topic))
        elif original in observed:
            found = [original]
        else:
            found = sorted(observed) if alone else []
        if not found:
            self.why.append(f"of {original}, only the data tell the topic, and none was seen yet")
        return found

    def _produced(self, topic: str, dataset: Dataset | None, record: Record) -> None:
        output = self._output(name_topic(self.ask.site, topic, self.ask.config, "source"), "TOPIC")
        if dataset is not None:
            output.sources[dataset.identity] = None
        output.filters |= set(record.filters)
        if not record.traced:
            return
        value, key = self._schema(topic, "value"), self._schema(topic, "key")
        parts: Iterable[tuple[tuple[str, ...], Node, Field | None]] = (
            ((), record.value, value),
            ((KEY,), record.key, key if self._wants("key") else None),
        )
        for above, made, registered in parts:
            if registered is not None:
                for path in _leaves(registered):
                    if (found := _lookup(made, path)) is not None:
                        name = ".".join((*above, *path)) or "value"
                        output.columns.setdefault(name, set()).update(found.all_origins())
            elif above == () and not _is_open(made):
                for each in fields_of(made):
                    output.fields.setdefault(each.name, each)
                for path, leaf in made.leaves():
                    output.columns.setdefault(".".join(path), set()).update(leaf.all_origins())

    # --- both

    def _output(self, dataset: Dataset, kind: str) -> _Output:
        return self.outputs.setdefault(dataset.identity, _Output(dataset, kind))

    def _told(self, output: _Output) -> Told:
        columns = tuple((name, tuple(sorted(origins))) for name, origins in output.columns.items() if origins)
        return Told(
            output.dataset,
            output.kind,
            tuple(output.fields.values()),
            (),
            tuple(output.sources),
            columns,
            tuple(sorted(output.filters)),
        )

    def _wants(self, part: Part) -> bool:
        return wanted(self.ask.site.schemas, self.ask.site.naming, self.ask.config, part)

    def _schema(self, topic: str, part: Part) -> Field | None:
        found = self.schemas.get((topic, part))
        return found.field if found is not None else None

    def _fields(self, topic: str) -> tuple[Field, ...]:
        """The value's fields, and the key under a field of its own."""
        found: tuple[Field, ...] = ()
        if self._wants("value") and (value := self._schema(topic, "value")):
            found = value.fields or (replace(value, name="value"),)
        if self._wants("key") and (key := self._schema(topic, "key")):
            found += (replace(key, name=KEY),)
        return found

    def _registered(self, topic: str) -> tuple[Registered, ...]:
        parts: tuple[Part, ...] = ("value", "key")
        return tuple(
            self.schemas[topic, part] for part in parts if self._wants(part) and (topic, part) in self.schemas
        )

    def _ready(self, topics: Iterable[str]) -> bool:
        parts: tuple[Part, ...] = ("value", "key")
        return all(
            (topic, part) in self.schemas
            for topic in topics
            for part in parts
            if self._wants(part) and (how := converter(self.ask.config, part)).registered and how.kind
        )

    def _note(self, notes: Iterable[str]) -> None:
        self.why.extend(notes)

    def _reasons(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(self.why))


def _topic_node(field: Field, identity: Identity, above: tuple[str, ...]) -> Node:
    if field.fields:
        return node(field, identity, above)
    return Node(field.type, origins=(Origin(identity, above or ("value",)),), doc=field.doc)


def _leaves(field: Field, above: tuple[str, ...] = ()) -> Iterable[tuple[str, ...]]:
    if not field.fields:
        yield above
    for each in field.fields:
        yield from _leaves(each, (*above, each.name))


def _is_open(made: Node) -> bool:
    """Whether fields that nobody has listed are in it somewhere."""
    return made.rest is not None or any(_is_open(each) for _, each in made.fields or ())


def _lookup(made: Node, path: tuple[str, ...]) -> Node | None:
    found: Node | None = made
    for name in path:
        found = found.child(name) if found is not None else None
    return found
