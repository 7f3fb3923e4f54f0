from __future__ import annotations

import json
import os
import signal
from collections import defaultdict
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.emitter import Emitter
from headwater.errors import ConfigError, TransportError
from headwater.transport import open_transport
from kafka_broker import Broker

pytest.importorskip("confluent_kafka", reason="pip install 'headwater[kafka]'")
from headwater.transport.kafka import run_family


def event(run: str, parent: str | None = None, root: str | None = None, n: int = 0) -> bytes:
    facet: dict[str, Any] = {"run": {"runId": parent}, "job": {"namespace": "n", "name": "p"}}
    if root:
        facet["root"] = {"run": {"runId": root}, "job": {"namespace": "n", "name": "r"}}
    facets = {"parent": facet} if parent else {}
    told = {"eventTime": f"2026-01-01T00:00:{n:02}Z", "run": {"runId": run, "facets": facets}}
    return json.dumps({**told, "job": {"namespace": "n", "name": "j"}}).encode()


def test_a_run_family_stays_in_one_partition_and_in_order(broker: Broker) -> None:
    topic = broker.topic(partitions=8)
    roots = [str(uuid4()) for _ in range(20)]
    sent: dict[str, list[str]] = defaultdict(list)
    transport = open_transport(f"kafka://{broker.servers}/{topic}")
    for n in range(5):
        batch = []
        for root in roots:
            task, app = f"task-{root}", f"app-{root}"
            batch += [event(root, n=n), event(task, root, root, n=n), event(app, task, root, n=n)]
            sent[root] += [f"{each}@{n}" for each in (root, task, app)]
        transport.send(batch)
    transport.close()
    partitions, came = defaultdict(set), defaultdict(list)
    for record in broker.read(topic):
        run = record.event["run"]["runId"]
        root = run.removeprefix("task-").removeprefix("app-")
        partitions[root].add(record.partition)
        came[root].append(f"{run}@{int(record.event['eventTime'][17:19])}")
    assert came == sent
    assert {len(each) for each in partitions.values()} == {1}
    assert len(set().union(*partitions.values())) > 1  # and not all in the same


def test_what_the_brokers_do_not_take_is_an_error(broker: Broker) -> None:
    small = broker.topic(**{"max.message.bytes": "2000"})
    transport = open_transport(f"kafka://{broker.servers}/{small}")
    large = event("b").replace(b'"j"', b'"' + os.urandom(4000).hex().encode() + b'"')
    with pytest.raises(TransportError) as caught:
        transport.send([event("a"), large, event("c")])
    assert set(caught.value.refused) == {1}
    assert not caught.value.pending
    assert not caught.value.retryable
    transport.close()
    assert [r.event["run"]["runId"] for r in broker.read(small)] == ["a", "c"]


def test_a_topic_that_is_not_there_and_brokers_that_are_not(broker: Broker) -> None:
    missing = open_transport(f"kafka://{broker.servers}/nobody-made-it", timeout=2)
    with pytest.raises(TransportError, match="make the topic") as caught:
        missing.send([event("a")])
    assert caught.value.retryable
    assert caught.value.pending == {0}
    nobody = open_transport("kafka://127.0.0.1:9/lineage", timeout=1)
    with pytest.raises(TransportError, match="are the brokers reachable") as caught:
        nobody.send([event("a"), event("b")])
    assert caught.value.retryable
    assert caught.value.pending == {0, 1}


def test_a_host_spools_and_a_broker_that_hangs_makes_it_wait_for_nothing(
    broker: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from headwater.transport.spool import SpoolTransport
    from headwater.transport.spool.drainer import Drainer

    monkeypatch.setenv("HEADWATER_SPOOL", str(tmp_path / "spool"))
    monkeypatch.setenv("HEADWATER_SPOOL__DRAIN", "off")
    topic = broker.topic()
    emitter = Emitter(f"kafka://{broker.servers}/{topic}")
    transport = emitter._transport
    assert isinstance(transport, SpoolTransport)
    os.kill(broker.pid, signal.SIGSTOP)
    try:
        for n in range(20):
            emitter.emit(event(str(uuid4()), n=n))
        emitter.close()
    finally:
        os.kill(broker.pid, signal.SIGCONT)
    assert Drainer(transport.place, patience=60).run().delivered == 20
    assert len(broker.read(topic)) == 20


def test_a_fork_has_a_producer_of_its_own(broker: Broker) -> None:
    topic = broker.topic()
    transport = open_transport(f"kafka://{broker.servers}/{topic}")
    transport.send([event("parent")])
    child = os.fork()
    if not child:
        code = 1
        try:
            transport.send([event("child")])
            code = 0
        finally:
            os._exit(code)
    assert os.waitpid(child, 0)[1] == 0
    transport.send([event("parent")])
    assert sorted(r.event["run"]["runId"] for r in broker.read(topic)) == ["child", "parent", "parent"]


@pytest.mark.parametrize(
    ("url", "options", "message"),
    [
        ("kafka://", {}, "write kafka://host:9092"),
        ("kafka://broker:9092", {}, "write kafka://host:9092"),
        ("kafka://broker:9092/a/b", {}, "write kafka://host:9092"),
        ("kafka://me:secret@broker:9092/t", {}, "sasl.username"),
        ("kafka://broker:9092/t", {"config": "acks=1"}, "config: must be a table"),
        ("kafka://broker:9092/t", {"config": {"no.such.property": 1}}, "No such configuration property"),
        ("kafka://broker:9092/t", {"config": {"bootstrap.servers": "x"}}, "bootstrap.servers is not for you"),
        ("kafka://broker:9092/t", {"compression": "rar"}, "config: Invalid value"),
        ("kafka://broker:9092/t", {"timeout": "soon"}, "timeout: 'soon' is no number"),
    ],
)
def test_bad_options_are_told_at_once_and_without_secrets(
    url: str, options: dict[str, Any], message: str
) -> None:
    with pytest.raises(ConfigError, match=message) as caught:
        open_transport(url, **options)
    assert "secret" not in str(caught.value)


@given(st.binary(max_size=50) | st.builds(lambda x: json.dumps(x).encode(), st.recursive(
    st.none() | st.booleans() | st.text() | st.integers(),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(["run", "runId", "facets", "parent", "root", "job", "name"]), inner, max_size=4),
    max_leaves=8)))  # fmt: skip
def test_a_key_is_found_or_not_but_nothing_is_refused_for_want_of_one(data: bytes) -> None:
    key = run_family(data)
    assert key is None or (isinstance(key, bytes) and key)
