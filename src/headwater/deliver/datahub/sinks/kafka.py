"""deliver.datahub.sinks.kafka: change proposals -> DataHub's topic, as Avro under a schema that the registry knows, until the brokers have them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from time import monotonic
from typing import Any

import msgspec
from confluent_kafka import KafkaError

from headwater.deliver.datahub.proposing import Proposal
from headwater.deliver.datahub.sinks import fault_of
from headwater.deliver.datahub.wire import SCHEMA, for_kafka
from headwater.errors import TooLarge, TransportError
from headwater.naming import scrub
from headwater.transport._producing import SLACK, TOO_LARGE, Producers, make_producer, produce

TOPIC = "MetadataChangeProposal_v1"


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
        self._producers = Producers(self._config, "producer_config")
        if config:  # a wrong property is told now; this connects to nobody
            make_producer({**self._config, "bootstrap.servers": ""}, "producer_config")

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

        producer = self._producers.here()
        for at, made in enumerate(proposals):
            try:
                value = for_kafka(made, self._most, number)
            except TooLarge as fault:
                left.discard(at)
                refused[at] = str(fault)
                continue
            produce(producer, self._topic, value, made["entityUrn"].encode(), partial(told, at))
        until = monotonic() + self._timeout + SLACK
        while left and monotonic() < until:
            producer.poll(0.05)
        refused |= {at: fault.str() for at, fault in faults.items() if fault.code() in TOO_LARGE}
        pending = left | (faults.keys() - refused.keys())
        if refused or pending:
            first = next((faults[at] for at in sorted(pending) if at in faults), None)
            why = "no answer in time" if first is None else first.str()
            raise fault_of(self._shown, refused, pending, why, cause="unreachable")

    def close(self) -> None:
        """What was sent is with the brokers already."""
        self._producers.forget()


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
