"""deliver.datahub.sinks.kafka: change proposals -> DataHub's topic, as Avro under a schema that the registry knows, until the brokers have them."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from time import monotonic
from typing import Any

import msgspec
from confluent_kafka import KafkaError, KafkaException, Message, Producer

from headwater.deliver.datahub.proposing import Proposal
from headwater.deliver.datahub.sinks import fault_of
from headwater.deliver.datahub.wire import SCHEMA, for_kafka
from headwater.errors import ConfigError, TooLarge, TransportError
from headwater.naming import scrub

TOPIC = "MetadataChangeProposal_v1"
_TOO_LARGE = (KafkaError.MSG_SIZE_TOO_LARGE, KafkaError.RECORD_LIST_TOO_LARGE)
_SLACK = 2.0


class KafkaSink:
    """Writes to a topic; the key is the entity's urn, so that what is told of one entity stays in order."""

    def __init__(
        self,
        brokers: str,
        topic: str = TOPIC,
        *,
        registry: str = "http://localhost:8081",
        registry_config: Mapping[str, Any] | None = None,
        config: Mapping[str, Any] | None = None,
        timeout: float = 10.0,
        max_string: int = 16_000_000,
    ) -> None:
        self._shown = f"kafka://{brokers}/{topic}"
        self._topic, self._timeout, self._most = topic, timeout, max_string
        self._registry = _Registry(registry, f"{topic}-value", registry_config or {}, timeout)
        self._config = {
            "enable.idempotence": True,
            "partitioner": "murmur2_random",  # as Java's clients do: one key, one partition, whoever writes
            "message.max.bytes": max(1_000_000, min(max_string + 65_536, 1_000_000_000)),
            **(config or {}),
            "bootstrap.servers": brokers,
            "message.timeout.ms": max(1, int(timeout * 1000)),
        }
        self._producers: dict[int, Producer] = {}
        if config:  # a wrong property is told now; this connects to nobody
            _producer({**self._config, "bootstrap.servers": ""})

    def __repr__(self) -> str:
        return f"KafkaSink({self._shown!r})"

    def emit(self, proposals: Sequence[Proposal], name: str) -> None:
        """Write the proposals and wait until the brokers have them."""
        number = self._registry.number()
        refused: dict[int, str] = {}
        faults: dict[int, KafkaError] = {}
        left = set(range(len(proposals)))

        def told(at: int, fault: KafkaError | None) -> None:
            left.discard(at)
            if fault is not None:
                faults[at] = fault

        producer = self._producer()
        for at, made in enumerate(proposals):
            try:
                value = for_kafka(made, self._most, number)
            except TooLarge as fault:
                left.discard(at)
                refused[at] = str(fault)
                continue
            self._produce(producer, made["entityUrn"].encode(), value, at, told)
        until = monotonic() + self._timeout + _SLACK
        while left and monotonic() < until:
            producer.poll(0.05)
        refused |= {at: fault.str() for at, fault in faults.items() if fault.code() in _TOO_LARGE}
        pending = left | (faults.keys() - refused.keys())
        if refused or pending:
            first = next((faults[at] for at in sorted(pending) if at in faults), None)
            why = "no answer in time" if first is None else first.str()
            raise fault_of(self._shown, refused, pending, why, cause="unreachable")

    def close(self) -> None:
        """What was sent is with the brokers already."""
        self._producers.pop(os.getpid(), None)

    def _produce(self, producer: Producer, key: bytes, value: bytes, at: int, told: Any) -> None:
        def delivered(fault: KafkaError | None, message: Message) -> None:
            told(at, fault)

        while True:
            try:
                producer.produce(self._topic, value, key=key, on_delivery=delivered)
                producer.poll(0)
            except BufferError:  # its queue is full: let some go first
                producer.poll(0.05)
            except KafkaException as fault:
                told(at, fault.args[0])
                return
            else:
                return

    def _producer(self) -> Producer:
        producer = self._producers.get(os.getpid())
        if producer is None:  # also after a fork: threads and sockets of the parent are the parent's
            producer = self._producers.setdefault(os.getpid(), _producer(self._config))
        return producer


class _Registry:
    """A Confluent-compatible registry: the number of our schema, asked for once."""

    def __init__(self, url: str, subject: str, config: Mapping[str, Any], timeout: float) -> None:
        self._url, self._subject, self._timeout = url.rstrip("/"), subject, timeout
        self._config = {str(key): str(value) for key, value in config.items()}
        self._number: int | None = None

    def number(self) -> int:
        """The schema's number; it is registered where it is not known yet."""
        if self._number is None:
            self._number = self._ask()
        return self._number

    def _ask(self) -> int:
        import httpx

        user, _, password = self._config.get("basic.auth.user.info", "").partition(":")
        token = self._config.get("bearer.auth.token")
        headers = {"Content-Type": "application/vnd.schemaregistry.v1+json"}
        if token:
            headers["Authorization"] = f"Bearer {token}"
        body = msgspec.json.encode({"schema": msgspec.json.encode(SCHEMA).decode(), "schemaType": "AVRO"})
        url = f"{self._url}/subjects/{self._subject}/versions"
        shown = scrub(url)
        verify: Any = self._config.get("ssl.ca.location") or True
        try:
            auth = (user, password) if user else None
            with httpx.Client(timeout=self._timeout, verify=verify, auth=auth) as client:
                answer = client.post(url, content=body, headers=headers)
        except (httpx.HTTPError, httpx.InvalidURL, OSError) as fault:
            why = str(fault) or type(fault).__name__
            raise TransportError(
                f"no answer from the schema registry {shown}: {scrub(why)}",
                retryable=True,
                cause="unreachable",
            ) from None
        try:
            return int(msgspec.json.decode(answer.content)["id"])
        except (msgspec.DecodeError, KeyError, TypeError, ValueError):
            text = " ".join(answer.text.split())[:300]
            raise TransportError(
                f"the schema registry {shown} answered {answer.status_code} {scrub(text)}",
                retryable=answer.status_code >= 500 or answer.status_code == 429,
                cause=f"registry_{answer.status_code}",
            ) from None


def _producer(config: Mapping[str, Any]) -> Producer:
    try:
        return Producer({**config, "log_level": 0})  # what goes wrong is raised, not printed
    except (KafkaException, TypeError, ValueError) as fault:
        told = fault.args[0] if fault.args else fault
        why = told.str() if isinstance(told, KafkaError) else str(told)
        raise ConfigError(f"producer_config: {why}") from None
