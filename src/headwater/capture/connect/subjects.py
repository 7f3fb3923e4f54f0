"""capture.connect.subjects: a connector's converters and a topic -> the registry, and the subject in it, that holds the schema.

A registry of Apicurio is asked by its Confluent-compatible paths, which stand beside its own.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal

from headwater.capture.connect.fields import Field as Schema
from headwater.capture.connect.snapshots import seed_settings

Part = Literal["key", "value"]

_WITHOUT = re.compile(
    r"(?:^|\.)(?:Json|String|ByteArray|Boolean|Double|Float|Integer|Long|Short|Number|Simple\w*|CloudEvents)Converter$"
)
_RECORD = re.compile(r"[^\W\d][\w.$]*").fullmatch
_APICURIO = re.compile(r"/apis/registry(?:/v\d+)?/?$")


@dataclass(frozen=True, slots=True)
class Converter:
    """How a connector's keys or values are written."""

    registered: bool
    """Whether a registry holds their schemas."""
    url: str = ""
    """That registry's; empty where only the worker knows."""
    strategy: str = "topic"
    """topic, record, topic-record, or plain: the topic alone."""
    kind: str = ""
    login: str = field(default="", repr=False)
    """`user:password` for that registry, and for no other server."""


@dataclass(frozen=True, slots=True)
class Registered:
    """A schema as the registry holds it."""

    subject: str
    version: int
    id: int
    format: str
    field: Schema


def converter(config: Mapping[str, str], part: Part) -> Converter:
    """Read a connector's converter; one that it does not name is the worker's, which nobody tells.

    >>> converter({"value.converter": "org.apache.kafka.connect.json.JsonConverter"}, "value").registered
    False
    """
    kind = config.get(f"{part}.converter", "")
    below = f"{part}.converter."
    if kind and _WITHOUT.search(kind):
        return Converter(False, kind=kind)
    for settings in (config, seed_settings(config)):  # that transform had to be told the registry once more
        url = (
            settings.get(f"{below}schema.registry.url") or settings.get(f"{below}apicurio.registry.url") or ""
        )
        if url:
            url = url.split(",")[0].strip()
            login = settings.get(f"{below}basic.auth.user.info") or settings.get(
                f"{below}schema.registry.basic.auth.user.info"
            )
            return Converter(True, compatible(url), _strategy(config, below, part), kind, login or "")
    return Converter(True, "", _strategy(config, below, part), kind)


def wanted(schemas: str, naming: str, config: Mapping[str, str], part: Part) -> bool:
    """Whether the schema of a part is read: in the words of the Factor House labs, as their transform was told.

    >>> wanted("value", "openlineage", {}, "key")
    False
    """
    said = seed_settings(config).get(f"{part}.converter.schema.read", "") if naming != "openlineage" else ""
    return said.strip().lower() == "true" if said else schemas in (part, "both")


def compatible(url: str) -> str:
    """The address that speaks Confluent's API.

    >>> compatible("http://registry:8080/apis/registry/v2")
    'http://registry:8080/apis/ccompat/v7'
    """
    return _APICURIO.sub("/apis/ccompat/v7", url.rstrip("/")) if url else ""


def _strategy(config: Mapping[str, str], below: str, part: Part) -> str:
    named = (
        config.get(f"{below}{part}.subject.name.strategy")
        or config.get(f"{below}subject.name.strategy")
        or config.get(f"{below}apicurio.registry.artifact-resolver-strategy")
        or config.get(f"{below}apicurio.registry.artifact-id-strategy")
        or ""
    ).rpartition(".")[2]
    if named in ("RecordNameStrategy", "RecordIdStrategy", "QualifiedRecordIdStrategy"):
        return "record"
    if named in ("TopicRecordNameStrategy", "TopicRecordIdStrategy"):
        return "topic-record"
    return "plain" if named == "SimpleTopicIdStrategy" else "topic"


def candidates(strategy: str, part: Part, topic: str, subjects: Iterable[str]) -> list[str]:
    """The subjects that may hold a topic's schema; several where a topic holds records of several kinds.

    `subjects` are all that the registry has; only the strategy that begins with the topic looks among them. A strategy
    by the record alone leads nowhere: nothing ties its subjects to a topic.

    >>> candidates("topic-record", "value", "t", ["t-shop.Order", "t-shop.Item", "t-value", "u-shop.Order"])
    ['t-shop.Item', 't-shop.Order']
    """
    if strategy == "topic":
        return [f"{topic}-{part}"]
    if strategy == "plain":
        return [topic]
    if strategy == "topic-record":
        # what follows is a record's name, which holds no dash: else it is a subject of a topic with a longer name
        usual, head = ("key", "value"), f"{topic}-"
        rest = {each: each.removeprefix(head) for each in subjects if each.startswith(head)}
        return sorted(each for each, name in rest.items() if name not in usual and _RECORD(name))
    return []
