"""transport.kafka: encoded events -> records of a topic, those of one run family in one partition, until the brokers have them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from time import monotonic
from typing import Any
from urllib.parse import unquote, urlsplit

import msgspec
from confluent_kafka import KafkaError, KafkaException

from headwater.errors import ConfigError, TransportError
from headwater.transport._options import flag, number, refuse_closed
from headwater.transport._producing import SLACK, TOO_LARGE, Producers, make_producer, produce

_OURS = ("bootstrap.servers", "message.timeout.ms", "on_delivery", "dr_cb", "dr_msg_cb")
_HINTS = {
    KafkaError.UNKNOWN_TOPIC_OR_PART: "make the topic, or let the brokers make it",
    KafkaError._UNKNOWN_TOPIC: "make the topic, or let the brokers make it",
    KafkaError._MSG_TIMED_OUT: "are the brokers reachable from here?",
    KafkaError._ALL_BROKERS_DOWN: "are the brokers reachable from here?",
    KafkaError.TOPIC_AUTHORIZATION_FAILED: "this user may not write to it",
}
_PASSING = {
    KafkaError._MSG_TIMED_OUT,
    KafkaError._TIMED_OUT,
    KafkaError._ALL_BROKERS_DOWN,
    KafkaError._TRANSPORT,
    KafkaError._RESOLVE,
    KafkaError._UNKNOWN_TOPIC,
    KafkaError.UNKNOWN_TOPIC_OR_PART,
    KafkaError._PURGE_QUEUE,
    KafkaError._PURGE_INFLIGHT,
}
"""Faults after which the same may be taken: a broker comes back, a topic is made. Others, as a lacking right, wait."""


class KafkaTransport:
    """Writes to `kafka://broker:9092,broker:9092/topic`; the key is the root run, else the parent, else the run.

    Args:
        url: brokers and topic.
        config: further properties of librdkafka, as `security.protocol` or `sasl.password`.
        timeout: seconds until the brokers must have a record.
        compression: `gzip`, `snappy`, `lz4` or `zstd`.
        direct: for a host, which then leaves out the spool.

    >>> KafkaTransport("kafka://localhost:9092/lineage")
    KafkaTransport('kafka://localhost:9092/lineage')

    """

    def __init__(
        self,
        url: str,
        *,
        config: Mapping[str, Any] | None = None,
        timeout: float | str = 10.0,
        compression: str | None = None,
        direct: bool | str = False,
    ) -> None:
        parts = urlsplit(url)
        self._topic = unquote(parts.path.strip("/"))
        if not parts.netloc or not self._topic or "/" in self._topic:
            raise ConfigError("url: names no brokers or no topic: write kafka://host:9092,host:9092/topic")
        if "@" in parts.netloc:
            raise ConfigError("url: a user stands in config, as sasl.username and sasl.password")
        if config is not None and not isinstance(config, Mapping):
            raise ConfigError('config: must be a table, as in {"security.protocol": "SSL"}')
        if taken := [name for name in _OURS if name in (config or {})]:
            raise ConfigError(f"config: {taken[0]} is not for you to set: the url and timeout say it")
        flag("direct", direct)
        self._shown = f"kafka://{parts.netloc}/{self._topic}"
        self._timeout = number("timeout", timeout, least=0.001)
        self._config: dict[str, Any] = {
            "enable.idempotence": True,  # keeps the order when a batch is sent again
            "partitioner": "murmur2_random",  # as Java's clients do: one key, one partition, whoever writes
            **({"compression.type": compression} if compression else {}),
            **(config or {}),
            "bootstrap.servers": parts.netloc,
            "message.timeout.ms": max(1, int(self._timeout * 1000)),
        }
        self._producers = Producers(self._config)
        self._closed = False
        if config or compression:  # a wrong property is told now; this connects to nobody
            make_producer({**self._config, "bootstrap.servers": ""})

    def __repr__(self) -> str:
        return f"KafkaTransport({self._shown!r})"

    def send(self, events: Sequence[bytes]) -> None:
        """Write the events in their order and wait until the brokers have them."""
        refuse_closed(self._closed, self)
        if not events:
            return
        told = _Told(len(events))
        self._write(events, range(len(events)), told)
        large = sorted(at for at, each in told.faults.items() if each.code() in TOO_LARGE)
        if len(large) > 1:  # brokers refuse a batch as a whole: which event it was shows one by one
            for at in large:
                self._write(events, [at], told)
        if told.open or told.faults:
            raise self._fault(told, len(events))

    def _write(self, events: Sequence[bytes], places: Sequence[int], told: _Told) -> None:
        """Write the events at these places and wait for what the brokers say of each."""
        producer = self._producers.here()
        for at in places:
            told.begin(at)
            produce(producer, self._topic, events[at], run_family(events[at]), partial(told.tell, at))
        until = monotonic() + self._timeout + SLACK
        while told.open.intersection(places) and monotonic() < until:
            producer.poll(0.05)

    def close(self) -> None:
        """Take no more; what was sent is with the brokers already."""
        self._closed = True
        self._producers.forget()

    def _fault(self, told: _Told, count: int) -> TransportError:
        refused = {at: each.str() for at, each in told.faults.items() if each.code() in TOO_LARGE}
        left = {at: each for at, each in told.faults.items() if at not in refused}
        passing = all(each.retriable() or each.code() in _PASSING for each in left.values())
        first = next(iter(left.values()), next(iter(told.faults.values()), None))
        why = "no answer in time" if first is None else first.str()
        code = KafkaError._MSG_TIMED_OUT if first is None else first.code()
        if (
            code == KafkaError._MSG_TIMED_OUT and self._lacks_topic()
        ):  # records wait for it until their time is over
            why, code = "there is no such topic", KafkaError._UNKNOWN_TOPIC
        hint = _HINTS.get(code, "")
        text = f"{self._shown} did not take {count - told.taken} event(s): {why}{f': {hint}' if hint else ''}"
        pending = {*left, *told.open}
        return TransportError(text, retryable=bool(pending) and passing, refused=refused, pending=pending)

    def _lacks_topic(self) -> bool:
        """Whether the brokers answer, and know nothing of the topic."""
        try:
            known = self._producers.here().list_topics(self._topic, 1.0).topics.get(self._topic)
        except KafkaException:
            return False
        return known is None or (
            known.error is not None and known.error.code() == KafkaError.UNKNOWN_TOPIC_OR_PART
        )


class _Told:
    """What the brokers said of the records of one call, by position."""

    def __init__(self, count: int) -> None:
        self.open, self.taken = set(range(count)), 0
        self.faults: dict[int, KafkaError] = {}

    def begin(self, at: int) -> None:
        self.open.add(at)
        self.faults.pop(at, None)

    def tell(self, at: int, fault: KafkaError | None) -> None:
        self.open.discard(at)
        if fault is None:
            self.taken += 1
        else:
            self.faults[at] = fault


def run_family(event: bytes) -> bytes | None:
    """The key: what is alike in all events of a run and of those that it started; None where nothing can be read.

    >>> run_family(b'{"run":{"runId":"b","facets":{"parent":{"run":{"runId":"a"}}}}}')
    b'a'
    """
    try:
        seen = msgspec.json.decode(event, type=_Seen)
    except msgspec.DecodeError:
        return None
    if seen.run is not None:
        parent = seen.run.facets.parent if seen.run.facets else None
        root = parent.root if parent else None
        for each in (root and root.run, parent and parent.run):
            if each and each.runId:
                return each.runId.encode()
        return seen.run.runId.encode() or None
    one = seen.job or seen.dataset
    return f"{one.namespace}/{one.name}".encode() if one else None


class _Id(msgspec.Struct):
    runId: str = ""  # noqa: N815 - the wire's own names


class _Root(msgspec.Struct):
    run: _Id | None = None


class _Parent(msgspec.Struct):
    run: _Id | None = None
    root: _Root | None = None


class _Facets(msgspec.Struct):
    parent: _Parent | None = None


class _Run(msgspec.Struct):
    runId: str = ""  # noqa: N815
    facets: _Facets | None = None


class _Named(msgspec.Struct):
    namespace: str = ""
    name: str = ""


class _Seen(msgspec.Struct):
    run: _Run | None = None
    job: _Named | None = None
    dataset: _Named | None = None
