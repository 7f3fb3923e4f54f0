"""transport._producing: records -> librdkafka's queue, whatever is in it, and what the brokers say of each."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Any

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from headwater.errors import ConfigError

TOO_LARGE = (KafkaError.MSG_SIZE_TOO_LARGE, KafkaError.RECORD_LIST_TOO_LARGE)
SLACK = 2.0
"""Seconds that librdkafka has to tell that a record's time is over."""


def make_producer(config: Mapping[str, Any], setting: str = "config") -> Producer:
    """A producer; a wrong property is a fault of the setting that named it."""
    try:
        return Producer({**config, "log_level": 0})  # what goes wrong is raised, not printed
    except (KafkaException, TypeError, ValueError) as fault:
        told = fault.args[0] if fault.args else fault
        why = told.str() if isinstance(told, KafkaError) else str(told)
        raise ConfigError(f"{setting}: {why}") from None


class Producers:
    """The producer of each process: after a fork, threads and sockets of the parent are the parent's."""

    def __init__(self, config: Mapping[str, Any], setting: str = "config") -> None:
        self._config, self._setting = config, setting
        self._of: dict[int, Producer] = {}

    def here(self) -> Producer:
        """This process's own."""
        producer = self._of.get(os.getpid())
        if producer is None:
            producer = self._of.setdefault(os.getpid(), make_producer(self._config, self._setting))
        return producer

    def forget(self) -> None:
        """Let this process's go; what was sent is with the brokers already."""
        self._of.pop(os.getpid(), None)


def produce(
    producer: Producer,
    topic: str,
    value: bytes,
    key: bytes | str | None,
    told: Callable[[KafkaError | None], None],
) -> None:
    """Queue a record; `told` hears what became of it, at once or in a later poll."""

    def delivered(fault: KafkaError | None, message: Message) -> None:
        told(fault)

    while True:
        try:
            producer.produce(topic, value, key=key, on_delivery=delivered)
            producer.poll(0)
        except BufferError:  # its queue is full: let some go first
            producer.poll(0.05)
        except KafkaException as fault:
            told(fault.args[0])
            return
        else:
            return
