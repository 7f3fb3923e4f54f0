"""A topic of events, servers that are killed: each event once, each bad record counted once."""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Callable
from contextlib import closing

import msgspec
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from headwater.errors import ConfigError
from headwater.event import parse
from headwater.ingest import ingest
from headwater.serve import Consume
from headwater.store import open_store
from kafka_broker import Broker
from serving import serving
from streams import events


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"brokers": "b:9092"}, "both brokers and topic"),
        ({"brokers": "b:9092", "topic": "t", "batch": 0}, "at least 1"),
        ({"brokers": "b:9092", "topic": "t", "config": {"group.id": "x"}}, "not for you to set"),
    ],
)
def test_wrong_settings_are_refused(given: dict[str, object], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        Consume(**given)  # type: ignore[arg-type]


def produced(broker: Broker, topic: str, payloads: list[bytes | None]) -> None:
    from confluent_kafka import Producer

    producer = Producer({"bootstrap.servers": broker.servers})
    for number, payload in enumerate(payloads):
        producer.produce(topic, payload, key=str(number % 7))
    assert producer.flush(60) == 0


@pytest.mark.live
@settings(max_examples=1, phases=[Phase.generate], suppress_health_check=list(HealthCheck))
@given(stream=st.lists(events, min_size=150, max_size=200), seed=st.integers(0, 1 << 32))
def test_each_record_counts_once_however_often_servers_are_killed(
    stream: list[bytes], seed: int, broker: Broker, store_url: str, repeats: Callable[[int], int]
) -> None:
    dice = random.Random(seed)
    bad = [msgspec.json.encode({"eventTime": "never", "number": number}) for number in range(40)] + [
        b"{",
        b"\xff",
    ] * 5
    payloads: list[bytes | None] = [*stream, *dice.sample(stream, 50), *bad, None]
    topic = broker.topic(3)
    environment = {
        "HEADWATER_CONSUME__BROKERS": broker.servers,
        "HEADWATER_CONSUME__TOPIC": topic,
        "HEADWATER_CONSUME__BATCH": "5",
        "HEADWATER_CONSUME__CONFIG": '{"session.timeout.ms": 6000}',
    }
    dice.shuffle(payloads)
    half = len(payloads) // 2
    produced(broker, topic, payloads[:half])
    rounds = max(2, repeats(8))
    for number in range(rounds):
        with serving(store_url, environment=environment) as server:
            with closing(open_store(store_url)) as store:
                _moves(lambda: sum(store.offsets("headwater", topic).values()), at_most=90)
            time.sleep(dice.uniform(0, 0.3))
            server.kill()
        if number == 0:
            produced(broker, topic, payloads[half:])
        elif number < rounds - 1:
            more = [*dice.sample(stream, 20), *bad[:3]]
            produced(broker, topic, more)
            payloads += more
    with (
        serving(store_url, environment=environment),
        serving(store_url, environment=environment),
        closing(open_store(store_url)) as store,
    ):
        until = time.monotonic() + 120
        while sum(store.offsets("headwater", topic).values()) < len(payloads) and time.monotonic() < until:
            time.sleep(0.2)
    with closing(open_store(store_url)) as store, closing(open_store("memory:")) as alone:
        assert sum(store.offsets("headwater", topic).values()) == len(payloads)
        ingest(alone, stream)
        assert store.dump() == alone.dump()
        assert Counter(e.digest for _, e in store.log()) == Counter({parse(each).digest for each in stream})
        refused = Counter(each for each in payloads if each in set(bad))
        assert sum(each["times"] for each in store.rejected(1000)) == sum(refused.values())
        assert len(store.rejected(1000)) == len(refused)


def _moves(look: Callable[[], int], at_most: float) -> None:
    """Wait until something was taken, or nothing is left to take."""
    first, until = look(), time.monotonic() + at_most
    while look() == first and time.monotonic() < until:
        time.sleep(0.05)
        if time.monotonic() > until - at_most + 15:
            return
