"""Proposals on DataHub's topic: a real broker, a real registry, and Confluent's own deserializer at the other end."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from gms import Answer, running
from making import columns, convert, dataset, event, raw, schema

import services
from datahub_sdk import records
from headwater.deliver.datahub.wire import SCHEMA, for_kafka
from headwater.errors import ConfigError, TransportError
from headwater.transport import open_transport
from headwater.transport.spool import SpoolTransport, dead
from headwater.transport.spool.drainer import Drainer
from kafka_broker import Broker

pytest.importorskip("confluent_kafka")

from headwater.deliver.datahub.sinks.kafka import KafkaSink

TOLD = event(
    inputs=[dataset("s3://b", "in,ä", schema=schema(a="int"))],
    outputs=[dataset("hive", "out", columnLineage=columns(x=[("s3://b", "in,ä", "a", "DIRECT:IDENTITY")]))],
)


@pytest.fixture(scope="module")
def registry(tmp_path_factory: pytest.TempPathFactory, need: Callable[[str, str], None]) -> Iterator[str]:
    import live_jars

    if shutil.which("java") is None:
        need("Java", "apt install openjdk-17-jre-headless")
    if not (jars := live_jars.have("schema-registry")):
        need("a schema registry", "python scripts/live_jars.py schema-registry")
    with services.registry(jars, tmp_path_factory.mktemp("registry")) as (url, _):
        yield f"{url}/apis/ccompat/v7"


@pytest.mark.live
def test_proposals_are_read_as_they_were_made(broker: Broker, registry: str, sdk: Path) -> None:
    topic = broker.topic(partitions=3)
    made = convert(TOLD, patch=True)
    sink = KafkaSink(broker.servers, topic, registry=registry)
    sink.emit(made, "g")
    sink.close()
    found = records(broker.servers, topic, registry, len(made))
    by_aspect = {(each["value"]["entityUrn"], each["value"]["aspectName"]): each for each in found}
    assert len(by_aspect) == len(made)
    for each in made:
        record = by_aspect[each["entityUrn"], each["aspectName"]]
        assert record["key"] == each["entityUrn"]
        value = record["value"]
        assert value["entityType"] == each["entityType"]
        assert value["changeType"] == each["changeType"]
        assert json.loads(value["aspect"]["value"]) == each["aspect"]["json"]
        kind = "application/json-patch+json" if each["changeType"] == "PATCH" else "application/json"
        assert value["aspect"]["contentType"] == kind
    partitions: dict[str, set[int]] = {}
    for each in found:
        partitions.setdefault(each["key"], set()).add(each["partition"])
    assert all(len(each) == 1 for each in partitions.values())


@pytest.mark.live
def test_a_host_delivers_through_the_spool(broker: Broker, registry: str, sdk: Path, tmp_path: Path) -> None:
    topic = broker.topic()
    to = {"url": f"datahub+kafka://{broker.servers}/{topic}", "schema_registry": registry, "coalesce": "run"}
    spool = SpoolTransport(f"spool://{tmp_path}/spool", to=to, drain="off")
    for kind, at in (("START", 1), ("COMPLETE", 2)):
        spool.send([json.dumps(raw(kind, at=at, outputs=[dataset("hive", "t")])).encode()])
    state = Drainer(spool.place).run()
    spool.close()
    assert (state.doing, state.dead) == ("ended", 0)
    assert list(dead.letters(spool.place)) == []
    names = {each["value"]["aspectName"] for each in records(broker.servers, topic, registry, 5)}
    assert "dataFlowInfo" in names


@pytest.mark.live
def test_what_is_too_large_for_the_brokers_is_refused_alone(broker: Broker, registry: str) -> None:
    topic = broker.topic(**{"max.message.bytes": "20000"})
    made = convert(TOLD)
    big = {**made[0], "aspect": {"json": {"name": "n", "customProperties": {"x": "y" * 100_000}}}}
    sink = KafkaSink(
        broker.servers, topic, registry=registry, config={"linger.ms": 0, "batch.num.messages": 1}
    )
    with pytest.raises(TransportError) as caught:
        sink.emit([made[1], big, made[2]], "g")
    assert list(caught.value.refused) == [1]
    assert caught.value.pending == frozenset()
    sink.close()


@pytest.mark.live
def test_the_schema_is_the_one_that_datahub_has(sdk: Path, tmp_path: Path) -> None:
    """What is written by ours is read by theirs: their own Avro reader, given both schemas."""
    made = convert(TOLD, patch=True)
    (tmp_path / "schema.json").write_text(json.dumps(SCHEMA))
    (tmp_path / "records").write_bytes(b"".join(for_kafka(each, 10**7, 7)[5:] for each in made))
    program = (
        "import io, json, sys, fastavro\n"
        "from datahub.metadata.schemas import getMetadataChangeProposalSchema\n"
        "ours = fastavro.parse_schema(json.load(open(sys.argv[1] + '/schema.json')))\n"
        "theirs = fastavro.parse_schema(json.loads(getMetadataChangeProposalSchema()))\n"
        "data = open(sys.argv[1] + '/records', 'rb')\n"
        "size = len(open(sys.argv[1] + '/records', 'rb').read())\n"
        "count = 0\n"
        "while data.tell() < size:\n"
        "    print(fastavro.schemaless_reader(data, ours, theirs)['aspectName'])\n"
    )
    done = subprocess.run([str(sdk), "-c", program, str(tmp_path)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == [each["aspectName"] for each in made]


def test_a_registry_that_is_not_there_or_refuses_is_told() -> None:
    sink = KafkaSink("127.0.0.1:9", registry="http://127.0.0.1:9", timeout=1)
    with pytest.raises(TransportError, match="no answer from the schema registry") as caught:
        sink.emit(convert(TOLD), "g")
    assert caught.value.retryable
    with running() as server:
        server.answers.append(Answer(409, {"error_code": 409, "message": "incompatible"}))
        sink = KafkaSink("127.0.0.1:9", registry=server.url.replace("://", "://me:hush@"), timeout=1)
        with pytest.raises(TransportError, match="409") as caught:
            sink.emit(convert(TOLD), "g")
    assert not caught.value.retryable
    assert "hush" not in str(caught.value)


def test_brokers_that_are_not_there_are_told() -> None:
    with running() as server:
        server.answers.append(Answer(200, {"id": 1}))
        sink = KafkaSink("127.0.0.1:9", registry=server.url, timeout=0.5)
        with pytest.raises(TransportError) as caught:
            sink.emit(convert(TOLD)[:2], "g")
    assert caught.value.retryable
    assert caught.value.pending == {0, 1}


def test_a_wrong_property_is_told_at_once() -> None:
    with pytest.raises(ConfigError, match="producer_config"):
        open_transport("datahub+kafka://b:9092", producer_config={"no.such": "x"})
