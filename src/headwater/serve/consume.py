"""serve.consume: a topic of events -> the store, each exactly once: how far it is read stands beside the rows.

The store's own offsets count, not Kafka's: they are written in the transaction that writes the events, so a server
that is killed goes on where its last transaction ended. Servers share the partitions as a consumer group does. One
that has lost a partition without noticing cannot write what another has taken: the store refuses it.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from time import perf_counter
from typing import TYPE_CHECKING, Any

from headwater.errors import ConfigError, NotInstalled, StoreError
from headwater.event import Limits
from headwater.guard import guard
from headwater.ingest import Outcome, ingest
from headwater.naming import scrub
from headwater.redact import Redaction
from headwater.store import Offset, Store

if TYPE_CHECKING:
    from confluent_kafka import Consumer, Message, TopicPartition

_log = logging.getLogger(__name__)
_OURS = ("bootstrap.servers", "group.id", "enable.auto.commit", "auto.offset.reset")


@dataclass(frozen=True, slots=True)
class Consume:
    """The settings of room `consume`: a topic that feeds the server."""

    brokers: str = ""
    """As in `b1:9092,b2:9092`; empty: no topic is read."""
    topic: str = ""
    group: str = "headwater"
    batch: int = 500
    """Events written in one transaction at most."""
    config: Mapping[str, Any] = field(default_factory=dict)
    """Further properties of librdkafka, as `security.protocol` or `sasl.password`."""

    def __post_init__(self) -> None:
        if bool(self.brokers) != bool(self.topic):
            raise ConfigError("consume: set both brokers and topic, or neither")
        if self.batch < 1:
            raise ConfigError(f"consume.batch is {self.batch}: at least 1")
        if taken := [name for name in _OURS if name in self.config]:
            raise ConfigError(f"consume.config: {taken[0]} is not for you to set")


class Feed:
    """The thread that reads the topic."""

    def __init__(
        self,
        store: Store,
        consume: Consume,
        limits: Limits,
        redaction: Redaction = Redaction(),  # noqa: B008 - frozen
        count: Callable[[Outcome, float], None] = lambda outcome, seconds: None,
    ) -> None:
        try:
            from confluent_kafka import Consumer, KafkaException
        except ModuleNotFoundError as fault:
            raise NotInstalled("reading events from Kafka", "kafka") from fault
        self._store, self._consume, self._count = store, consume, count
        self._limits, self._redaction = limits, redaction
        try:
            self._consumer: Consumer = Consumer(
                {
                    **consume.config,
                    "bootstrap.servers": consume.brokers,
                    "group.id": consume.group,
                    "enable.auto.commit": False,
                    "auto.offset.reset": "earliest",
                    "logger": _log,
                }
            )
        except KafkaException as fault:
            raise ConfigError(f"consume: {scrub(str(fault.args[0].str()))}") from None
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="headwater-consume", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Finish the batch that is under way, and leave the group."""
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        self._consumer.subscribe([self._consume.topic], on_assign=self._assigned)
        try:
            while not self._stop.is_set():
                with guard("reading events from Kafka"):
                    self._round(self._consumer.consume(self._consume.batch, 0.5))
        finally:
            self._consumer.close()

    def _assigned(self, consumer: Consumer, given: list[TopicPartition]) -> None:
        """Go on where the store stands."""
        while not self._stop.is_set():
            try:
                known = self._store.offsets(self._consume.group, self._consume.topic)
            except StoreError as fault:
                _log.warning("the store does not say how far the topic is read: %s", fault)
                self._stop.wait(1)
                continue
            for each in given:
                each.offset = known.get(each.partition, each.offset)
            consumer.assign(given)
            return

    def _round(self, messages: Sequence[Message]) -> None:
        read: dict[int, list[Message]] = {}
        for message in messages:
            fault = message.error()
            if fault is None:
                read.setdefault(message.partition() or 0, []).append(message)
            elif not fault.retriable():
                _log.warning("Kafka: %s", scrub(fault.str()))
        if not read:
            return
        group, topic = self._consume.group, self._consume.topic
        offsets = [
            Offset(group, topic, partition, _at(part[0]), _at(part[-1]) + 1)
            for partition, part in read.items()
        ]
        payloads = [value for part in read.values() for each in part if (value := each.value())]
        wait = 0.5
        while not self._stop.is_set():
            begun = perf_counter()
            try:
                outcome = ingest(self._store, payloads, self._limits, self._redaction, offsets=offsets)
            except StoreError as fault:
                if fault.cause == "moved":
                    self._rewind(offsets)
                    return
                _log.warning("events of the topic wait: %s", fault)
                self._stop.wait(wait)
                wait = min(wait * 2, 30)
            else:
                self._count(outcome, perf_counter() - begun)
                with guard(
                    "telling Kafka how far it is read"
                ):  # for those who watch the lag; nothing hangs on it
                    self._consumer.commit(offsets=self._places(offsets), asynchronous=True)
                return

    def _rewind(self, offsets: Sequence[Offset]) -> None:
        """Another has written some of it: go on where the store stands, with what is still ours."""
        known = self._store.offsets(self._consume.group, self._consume.topic)
        ours = {each.partition for each in self._consumer.assignment()}
        for each in offsets:
            if each.partition not in ours:
                continue
            place = self._place(each.partition, known.get(each.partition, each.start))
            _, end = self._consumer.get_watermark_offsets(place, timeout=10, cached=False) or (
                0,
                place.offset,
            )
            if place.offset > end:
                _log.error(
                    "topic %s was made anew: it ends at %d and is read up to %d; give the room `consume` another group",
                    self._consume.topic,
                    end,
                    place.offset,
                )
                self._stop.wait(30)
            self._consumer.seek(place)

    def _places(self, offsets: Sequence[Offset]) -> list[TopicPartition]:
        return [self._place(each.partition, each.next) for each in offsets]

    def _place(self, partition: int, offset: int) -> TopicPartition:
        from confluent_kafka import TopicPartition

        return TopicPartition(self._consume.topic, partition, offset)


def _at(message: Message) -> int:
    return message.offset() or 0
