"""connect._topics: Connect's configuration and status topics -> snapshots at the times when something changed."""

from __future__ import annotations

from typing import Any, Literal

from headwater.capture.connect.history import History
from headwater.capture.connect.snapshots import Snapshot
from headwater.connect import Cluster
from headwater.errors import NotInstalled, TransportError

QUIET = 1.0
"""Seconds without a record after which all there is was read."""


class TopicSource:
    """One cluster behind its own topics; every start reads them from the beginning, which is what makes the runs the same."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._kinds: dict[str, Literal["config", "status"]] = {
            cluster.config_topic: "config",
            cluster.status_topic: "status",
        }
        self._consumer: Any = None
        self._history = History()
        self._latest: dict[tuple[str, int], float] = {}

    def rounds(self, now: float, *, whole: bool = False) -> list[tuple[float, Snapshot]]:
        """Every change since the last call at its own time, and the cluster now.

        Raises:
            TransportError: the brokers or the topics cannot be reached.

        """
        found: list[tuple[float, Snapshot]] = []
        for at, message in self._in_order(self._read()):
            kind = self._kinds[message.topic()]
            key = message.key().decode("utf-8", "replace") if message.key() else ""
            position = f"{message.partition()}:{message.offset()}"
            if self._history.take(kind, key, message.value(), position):
                found.append((at, self._history.snapshot()))
        found.append((now, self._history.snapshot()))
        return found

    def close(self) -> None:
        """Leave the brokers."""
        if self._consumer is not None:
            self._consumer.close()

    def _read(self) -> list[Any]:
        """All records up to the present ends."""
        try:
            from confluent_kafka import Consumer, KafkaException, TopicPartition
        except ImportError as fault:
            raise NotInstalled("mode topics", "kafka") from fault
        timeout = self._cluster.timeout
        try:
            if self._consumer is None:
                self._consumer = self._begin(Consumer, TopicPartition)
            ends = {
                (part.topic, part.partition): self._consumer.get_watermark_offsets(part, timeout)[1]
                for part in self._consumer.assignment()
            }
            messages: list[Any] = []
            while self._behind(ends):
                batch = self._consumer.consume(1000, QUIET)
                if not batch:
                    break
                for message in batch:
                    if message.error():
                        raise KafkaException(message.error())
                messages += batch
        except KafkaException as fault:
            raise TransportError(
                f"{self._cluster.bootstrap} does not answer: {fault.args[0].name()}",
                retryable=True,
                cause="unreachable",
            ) from None
        return messages

    def _in_order(self, messages: list[Any]) -> list[tuple[float, Any]]:
        """Records with their times, by these, for the two topics know nothing of each other.

        Workers with clocks of their own write into one partition: there a record's time is not before the one of its predecessor,
        or it would be taken for older than what it replaces.
        """
        timed = []
        for each in messages:
            place = (each.topic(), each.partition())
            at = max(each.timestamp()[1] / 1000, self._latest.get(place, 0.0))
            self._latest[place] = at
            timed.append((at, each))
        return sorted(timed, key=lambda pair: pair[0])

    def _begin(self, consumer_class: Any, partition_class: Any) -> Any:
        settings = {
            **self._cluster.kafka,
            "bootstrap.servers": self._cluster.bootstrap,
            "group.id": f"headwater-{self._cluster.name}",
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
        }
        consumer = consumer_class(settings)
        parts = []
        for topic in self._kinds:
            known = consumer.list_topics(topic, self._cluster.timeout).topics[topic]
            if known.error is not None:
                consumer.close()
                raise TransportError(
                    f"{self._cluster.bootstrap} has no topic {topic}: set config_topic and status_topic",
                    retryable=True,
                    cause="no_topic",
                )
            parts += [partition_class(topic, each, 0) for each in known.partitions]
        consumer.assign(parts)
        return consumer

    def _behind(self, ends: dict[tuple[str, int], int]) -> bool:
        return any(
            ends.get((part.topic, part.partition), 0) > max(part.offset, 0)
            for part in self._consumer.position(self._consumer.assignment())
        )
