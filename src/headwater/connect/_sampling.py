"""connect._sampling: topics whose records carry their own schema -> that schema, read from one record of each.

Only for topics that no registry knows, only where `sample` is set, and only one record is read; of it only the schema is kept.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any
from zlib import crc32

import msgspec

from headwater.capture.connect.schemas import parse
from headwater.capture.connect.subjects import Part, Registered
from headwater.connect import Cluster
from headwater.errors import ConfigError, NotInstalled

_JSON = "org.apache.kafka.connect.json.JsonConverter"


def embedded(config: Mapping[str, str], part: Part) -> bool:
    """Whether a connector says that its records carry their schema."""
    enabled = config.get(f"{part}.converter.schemas.enable", "true").strip().lower()
    return config.get(f"{part}.converter") == _JSON and enabled != "false"


class Sampler:
    """Reads one record of a topic now and then."""

    def __init__(self, cluster: Cluster, warn: Callable[[str], None]) -> None:
        self._cluster, self._warn = cluster, warn
        self._consumer: Any = None
        self._known: dict[tuple[str, Part], tuple[float, Registered | None]] = {}

    def schemas(
        self, config: Mapping[str, str], topics: Iterable[str], now: float
    ) -> dict[tuple[str, Part], Registered]:
        """(topic, part) -> the schema in its newest record."""
        found: dict[tuple[str, Part], Registered] = {}
        parts: tuple[Part, ...] = ("value", "key")
        for part in parts:
            if (
                not self._cluster.sample
                or self._cluster.schemas not in (part, "both")
                or not embedded(config, part)
            ):
                continue
            for topic in topics:
                asked, known = self._known.get((topic, part), (float("-inf"), None))
                if now - asked >= self._cluster.refresh:
                    known = self._sample(topic, part) or known
                    self._known[topic, part] = (now, known)
                if known is not None:
                    found[topic, part] = known
        return found

    def close(self) -> None:
        """Leave the brokers."""
        if self._consumer is not None:
            self._consumer.close()

    def _sample(self, topic: str, part: Part) -> Registered | None:
        try:
            raw = self._newest(topic, part)
            return registered(topic, part, raw) if raw is not None else None
        except ConfigError as fault:
            self._warn(f"topic {topic}: {fault}")
            return None

    def _newest(self, topic: str, part: Part) -> bytes | None:
        try:
            from confluent_kafka import Consumer, KafkaException, TopicPartition
        except ImportError as fault:
            raise NotInstalled("sampling records", "kafka") from fault
        timeout = self._cluster.timeout
        try:
            if self._consumer is None:
                settings = {
                    **self._cluster.kafka,
                    "bootstrap.servers": self._cluster.bootstrap,
                    "group.id": f"headwater-sample-{self._cluster.name}",
                    "enable.auto.commit": False,
                }
                self._consumer = Consumer(settings)
            for partition in self._consumer.list_topics(topic, timeout).topics[topic].partitions:
                low, high = self._consumer.get_watermark_offsets(TopicPartition(topic, partition), timeout)
                if high > low:
                    self._consumer.assign([TopicPartition(topic, partition, high - 1)])
                    message = self._consumer.poll(timeout)
                    if message is not None and message.error() is None:
                        raw: bytes | None = message.key() if part == "key" else message.value()
                        return raw
        except KafkaException as fault:
            raise ConfigError(f"no record could be read: {fault.args[0].name()}") from None
        return None


def registered(topic: str, part: Part, raw: bytes) -> Registered:
    """The schema in a record, as a registry would hold it; its version is made from its text.

    Raises:
        ConfigError: the record holds none.

    """
    try:
        found = msgspec.json.decode(raw)
    except (ValueError, RecursionError):
        raise ConfigError("its records are no JSON") from None
    schema = found.get("schema") if isinstance(found, dict) else None
    text = msgspec.json.encode(schema)
    version = crc32(text)
    return Registered(f"{topic}-{part}", version, version, "CONNECT", parse("CONNECT", text.decode()))
