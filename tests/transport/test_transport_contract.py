"""What every transport must do; a new line in TRANSPORTS is enrolled by itself and must have a place to send to."""

from __future__ import annotations

import json
import shutil
import ssl
import subprocess
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from lineage_server import Server, running
from object_store import Bucket

from headwater.errors import ConfigError, TransportError
from headwater.transport import TRANSPORTS, Transport, open_transport
from kafka_broker import Broker


@dataclass
class Place:
    """Where a transport sends to in these tests, and how to see what arrived there."""

    url: str
    arrived: Callable[[Transport], list[Any]]
    options: dict[str, Any] = field(default_factory=dict)


def _memory(request: pytest.FixtureRequest) -> Iterator[Place]:
    yield Place("memory:", lambda transport: [json.loads(event) for event in transport.events])  # type: ignore[attr-defined]


def _console(request: pytest.FixtureRequest) -> Iterator[Place]:
    capture = request.getfixturevalue("capfdbinary")
    yield Place("console:", lambda _: [json.loads(line) for line in capture.readouterr().out.splitlines()])


def _file(request: pytest.FixtureRequest) -> Iterator[Place]:
    path: Path = request.getfixturevalue("tmp_path") / "made for it" / "events #1.jsonl"

    def arrived(_: Transport) -> list[Any]:
        return [json.loads(line) for line in path.read_bytes().splitlines()] if path.exists() else []

    yield Place(path.as_uri(), arrived)


def _http(request: pytest.FixtureRequest) -> Iterator[Place]:
    server: Server = request.getfixturevalue("server")
    yield Place(server.url, lambda _: server.events)


def _https(request: pytest.FixtureRequest) -> Iterator[Place]:
    if not (openssl := shutil.which("openssl")):
        pytest.skip("needs the openssl command to make a certificate")
    folder = request.getfixturevalue("tmp_path")
    made = ["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "1", "-subj", "/CN=localhost"]
    names = [
        "-addext",
        "subjectAltName=DNS:localhost",
        "-keyout",
        folder / "key.pem",
        "-out",
        folder / "cert.pem",
    ]
    subprocess.run([openssl, *made, *names], check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "cert.pem", folder / "key.pem")
    with contextmanager(running)(context) as server:
        yield Place(server.url, lambda _: server.events, {"verify": str(folder / "cert.pem")})


def _spool(request: pytest.FixtureRequest) -> Iterator[Place]:
    from headwater.transport.spool.drainer import Drainer

    folder: Path = request.getfixturevalue("tmp_path")
    file = folder / "delivered.jsonl"

    def arrived(transport: Transport) -> list[Any]:
        Drainer(transport.place).run()  # type: ignore[attr-defined]
        return [json.loads(line) for line in file.read_bytes().splitlines()] if file.exists() else []

    yield Place(
        (folder / "spool").as_uri().replace("file:", "spool:") + f"?to={file.as_uri()}&drain=off", arrived
    )


def _kafka(request: pytest.FixtureRequest) -> Iterator[Place]:
    broker: Broker = request.getfixturevalue("broker")
    topic = broker.topic(partitions=1)  # order is kept in a partition
    yield Place(f"kafka://{broker.servers}/{topic}", lambda _: [r.event for r in broker.read(topic)])


def _s3(request: pytest.FixtureRequest) -> Iterator[Place]:
    bucket: Bucket = request.getfixturevalue("bucket")
    yield Place(f"{bucket.url}/events", lambda _: bucket.events(), {"storage_options": bucket.options})


def _in_memory(scheme: str) -> Callable[[pytest.FixtureRequest], Iterator[Place]]:
    """fsspec's own memory in the place of a cloud that no test can reach."""

    def place(request: pytest.FixtureRequest) -> Iterator[Place]:
        fsspec = request.getfixturevalue("fsspec_memory")(scheme)
        url = {"gs": "gs://bucket/events", "abfss": "abfss://box@account.dfs.core.windows.net/events"}[scheme]
        yield Place(url, lambda _: fsspec.events())

    return place


def _fanout(request: pytest.FixtureRequest) -> Iterator[Place]:
    files = [request.getfixturevalue("tmp_path") / name for name in ("a.jsonl", "b.jsonl")]

    def arrived(_: Transport) -> list[Any]:
        read = [file.read_bytes().splitlines() if file.exists() else [] for file in files]
        assert sorted(read[0]) == sorted(read[1])  # threads may pass each other on the way
        return [json.loads(line) for line in read[0]]

    yield Place("fanout:", arrived, {"to": [file.as_uri() for file in files]})


PLACES = {
    "kafka": _kafka,
    "s3": _s3,
    "gs": _in_memory("gs"),
    "abfss": _in_memory("abfss"),
    "fanout": _fanout,
    "spool": _spool,
    "memory": _memory,
    "console": _console,
    "file": _file,
    "http": _http,
    "https": _https,
}


CARRIES = sorted(name for name in TRANSPORTS if not name.startswith("datahub+"))
"""Those that hand on events as they are; what becomes proposals of DataHub has a contract in tests/deliver/datahub."""


@pytest.fixture(params=CARRIES)
def place(request: pytest.FixtureRequest) -> Iterator[Place]:
    if request.param not in PLACES:
        pytest.fail(f"transport {request.param!r} has no place in PLACES of this file: say where it sends to")
    yield from PLACES[request.param](request)


@pytest.fixture
def transport(place: Place) -> Iterator[Transport]:
    opened = open_transport(place.url, **place.options)
    yield opened
    opened.close()


def event(n: int) -> bytes:
    return b'{"eventTime":"2026-01-01T00:00:00Z","job":{"namespace":"n","name":"\xc3\xa4 %d"}}' % n


def test_keeps_the_protocol(transport: Transport) -> None:
    assert isinstance(transport, Transport)


def test_nothing_to_send_is_no_fault(place: Place, transport: Transport) -> None:
    transport.send([])
    assert place.arrived(transport) == []


def test_one_event_arrives(place: Place, transport: Transport) -> None:
    transport.send([event(1)])
    assert place.arrived(transport) == [json.loads(event(1))]


def test_events_arrive_in_their_order(place: Place, transport: Transport) -> None:
    transport.send([event(n) for n in range(50)])
    transport.send([event(n) for n in range(50, 60)])
    assert place.arrived(transport) == [json.loads(event(n)) for n in range(60)]


def test_an_event_over_several_lines_arrives_as_one(place: Place, transport: Transport) -> None:
    transport.send([b'{\r\n "a":\n 1}', event(1)])
    assert place.arrived(transport) == [{"a": 1}, json.loads(event(1))]


def test_the_callers_list_stays_as_it_was(transport: Transport) -> None:
    events = [event(1), event(2)]
    transport.send(events)
    assert events == [event(1), event(2)]


def test_threads_share_it_and_lose_nothing(place: Place, transport: Transport) -> None:
    def work(start: int) -> None:
        for n in range(start, start + 10, 2):
            transport.send([event(n), event(n + 1)])

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(work, range(0, 80, 10)))  # a fault in a thread rises here
    names = sorted(int(e["job"]["name"].split()[1]) for e in place.arrived(transport))
    assert names == list(range(80))


def test_closing_twice_is_no_fault_but_sending_afterwards_is(place: Place, transport: Transport) -> None:
    transport.send([event(1)])
    transport.close()
    transport.close()
    with pytest.raises(TransportError, match="closed") as caught:
        transport.send([event(2)])
    assert not caught.value.retryable


def test_an_unknown_option_is_refused_with_those_it_takes(place: Place) -> None:
    with pytest.raises(ConfigError, match=r"'timeoutt'.*it takes: url"):
        open_transport(place.url, timeoutt=3)


def test_its_name_is_refused_when_nobody_has_it() -> None:
    with pytest.raises(ConfigError, match="unknown transport 'htp': did you mean 'http'"):
        open_transport("htp://localhost")


def test_a_mapping_opens_the_same_and_is_left_alone(place: Place) -> None:
    mapping = {"url": place.url, **place.options}
    before = dict(mapping)
    made = open_transport(mapping)
    typed = open_transport({"type": place.url.split(":")[0], **mapping})
    assert type(made) is type(typed)
    assert mapping == before
    made.close()
    typed.close()


def test_a_mapping_needs_a_name() -> None:
    with pytest.raises(ConfigError, match="needs a `url` or a `type`"):
        open_transport({"timeout": 3})


def test_a_url_needs_a_scheme() -> None:
    with pytest.raises(ConfigError, match="is no url"):
        open_transport("events.jsonl")
