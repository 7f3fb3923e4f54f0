"""Registries and catalogs that connectors name are asked, each with what is its own; whatever they answer, nothing breaks or leaks."""

from __future__ import annotations

import json
import logging
import time
import tracemalloc
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import live_jars
import pytest
from cluster import Fake, serving

import services
from headwater.connect import Auth, Cluster
from headwater.connect._watching import Watcher

AVRO = "io.confluent.connect.avro.AvroConverter"
SINK = {
    "connector.class": "io.confluent.connect.s3.S3SinkConnector",
    "topics": "orders",
    "s3.bucket.name": "lake",
}
ICEBERG = {
    "connector.class": "org.apache.iceberg.connect.IcebergSinkConnector",
    "topics": "orders",
    "iceberg.tables": "shop.orders",
    "iceberg.catalog": "prod",
    "iceberg.catalog.type": "rest",
    "iceberg.catalog.warehouse": "s3://lake/wh",
}
ORDERS = {"type": "record", "name": "Order", "fields": [{"name": "id", "type": "long"}]}


@pytest.fixture
def fake() -> Iterator[Fake]:
    with serving() as made:
        yield made


@pytest.fixture
def other() -> Iterator[Fake]:
    with serving() as made:
        yield made


Watch = Callable[..., tuple[Watcher, list[dict[str, Any]]]]


@pytest.fixture
def watch(fake: Fake) -> Iterator[Watch]:
    opened: list[Watcher] = []

    def one(**options: Any) -> tuple[Watcher, list[dict[str, Any]]]:
        events: list[dict[str, Any]] = []
        watcher = Watcher(
            Cluster(**{"name": "prod", "url": fake.url, "bootstrap": "b:9092", **options}), events.extend
        )
        opened.append(watcher)
        return watcher, events

    yield one
    for each in opened:
        each.close()


def shown(server: Fake) -> set[str | None]:
    return {each.get("Authorization") for each in server.headers}


# --- the registry that a connector names


def test_a_connectors_own_registry_is_asked_with_its_own_login(fake: Fake, other: Fake, watch: Watch) -> None:
    other.register("orders-value", ORDERS)
    named = {
        **SINK,
        "value.converter": AVRO,
        "value.converter.schema.registry.url": other.url,
        "value.converter.basic.auth.credentials.source": "USER_INFO",
        "value.converter.basic.auth.user.info": "reader:hunter2",
    }
    fake.put("c", named)
    watcher, events = watch(auth=Auth(token="ours"), registry_auth=Auth(token="ours too"))
    watcher.round(0.0)
    assert events[1]["inputs"][0]["facets"]["schema"]["fields"][0]["name"] == "id"
    assert shown(other) == {"Basic cmVhZGVyOmh1bnRlcjI="}  # and nothing of ours
    assert "hunter2" not in json.dumps(events)


def test_a_login_is_shown_to_the_server_it_is_for_and_to_no_other(
    fake: Fake, other: Fake, watch: Watch
) -> None:
    with serving() as third:
        both = {"a": (other, "one:1"), "b": (third, "")}
        for name, (server, login) in both.items():
            config = {**SINK, "topics": name, "value.converter": AVRO, "value.converter.schema.registry.url": server.url}  # fmt: skip
            fake.put(name, {**config, **({"value.converter.basic.auth.user.info": login} if login else {})})
        watcher, _ = watch()
        watcher.round(0.0)
        assert shown(other) == {"Basic b25lOjE="}
        assert shown(third) == {None}


def test_a_redirect_takes_no_login_elsewhere(fake: Fake, other: Fake, watch: Watch) -> None:
    other.registry_instead = (302, "text/html", b"")
    fake.put("c", {**SINK, "value.converter": AVRO, "value.converter.schema.registry.url": other.url,
                   "value.converter.basic.auth.user.info": "reader:hunter2"})  # fmt: skip
    watcher, events = watch()
    watcher.round(0.0)
    assert len(other.asked) == 1
    assert [each["eventType"] for each in events] == ["START", "RUNNING"]


@pytest.mark.parametrize(
    ("options", "url", "asked"),
    [
        ({}, "{other}", True),
        ({"registry_from_connectors": False}, "{other}", False),
        ({}, "${file:/secrets:registry}", False),
        ({"resolve": {"${file:/secrets:registry}": "{other}"}}, "${file:/secrets:registry}", True),
        ({}, "mock://schemas", False),
        ({"schema_registry": "{fake}"}, "{other}", False),
    ],
)
def test_whether_a_connectors_own_registry_is_asked(
    fake: Fake, other: Fake, watch: Watch, options: dict[str, Any], url: str, asked: bool
) -> None:
    def filled(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: filled(each) for key, each in value.items()}
        return value.replace("{other}", other.url).replace("{fake}", fake.url) if isinstance(value, str) else value  # fmt: skip

    fake.put("c", {**SINK, "value.converter": AVRO, "value.converter.schema.registry.url": filled(url)})
    watcher, _ = watch(**filled(options))
    watcher.round(0.0)
    assert bool(other.asked) is asked


# --- the catalog that a connector names


def test_a_catalog_knows_where_its_table_lies(fake: Fake, other: Fake, watch: Watch) -> None:
    fake.put("c", {**ICEBERG, "iceberg.catalog.uri": other.url, "iceberg.catalog.token": "hunter2"})
    watcher, events = watch(schemas="none")
    watcher.round(0.0)
    (before,) = events[1]["outputs"]
    assert (before["namespace"], before["name"]) == (
        "s3://lake",
        "wh/shop/orders",
    )  # not created yet: the default
    other.tables["shop.orders"] = "s3://elsewhere/t/orders-4711"
    watcher.round(60.0)
    (after,) = events[2]["outputs"]
    assert (after["namespace"], after["name"]) == ("s3://elsewhere", "t/orders-4711")
    (link,) = after["facets"]["symlinks"]["identifiers"]
    assert link["name"] == "shop.orders"
    assert link == before["facets"]["symlinks"]["identifiers"][0]
    assert shown(other) == {"Bearer hunter2"}
    assert "hunter2" not in json.dumps(events)
    assert [each for each in other.asked if "orders" in each] == ["/v1/main/namespaces/shop/tables/orders?snapshots=refs"] * 2  # fmt: skip
    watcher.round(120.0)
    assert len(events) == 3


def test_who_we_are_for_a_catalog_wins_over_the_connectors_token(
    fake: Fake, other: Fake, watch: Watch
) -> None:
    fake.put("c", {**ICEBERG, "iceberg.catalog.uri": f"{other.url}/", "iceberg.catalog.token": "theirs"})
    watcher, _ = watch(schemas="none", catalogs={other.url: Auth(token="ours")})
    watcher.round(0.0)
    assert shown(other) == {"Bearer ours"}


@pytest.mark.parametrize(
    "changes",
    [
        {"iceberg.catalog.type": "hadoop"},
        {"iceberg.catalog.type": "hive"},
        {"iceberg.catalog.uri": "${env:CATALOG}"},
    ],
)
def test_only_a_rest_catalog_is_asked(fake: Fake, other: Fake, watch: Watch, changes: dict[str, str]) -> None:
    fake.put("c", {**ICEBERG, "iceberg.catalog.uri": other.url, **changes})
    watcher, _ = watch(schemas="none")
    watcher.round(0.0)
    assert other.asked == []


def test_a_hadoop_catalog_has_no_choice(fake: Fake, watch: Watch) -> None:
    fake.put(
        "c", {**ICEBERG, "iceberg.catalog.type": "hadoop", "iceberg.catalog.warehouse": "file:///data/wh"}
    )
    watcher, events = watch(schemas="none")
    watcher.round(0.0)
    (output,) = events[1]["outputs"]
    assert (output["namespace"], output["name"]) == ("file", "/data/wh/shop/orders")


@pytest.mark.live
def test_icebergs_own_rest_catalog(
    fake: Fake, watch: Watch, tmp_path: Path, need: Callable[[str, str], None]
) -> None:
    import httpx

    jars = live_jars.have("rest")
    if not jars:
        need("the jars of rest", "python scripts/live_jars.py rest")
    with services.rest_catalog(jars, tmp_path / "rest") as url:
        schema = {"type": "struct", "fields": [{"id": 1, "name": "id", "type": "long", "required": False}]}
        where = f"file://{tmp_path}/somewhere/else"
        assert httpx.post(f"{url}/v1/namespaces", json={"namespace": ["shop"], "properties": {}}).is_success
        made = httpx.post(f"{url}/v1/namespaces/shop/tables", json={"name": "orders", "schema": schema, "location": where})  # fmt: skip
        assert made.is_success, made.text
        fake.put("c", {**ICEBERG, "iceberg.catalog.uri": url, "iceberg.catalog.warehouse": f"file://{tmp_path}/wh"})  # fmt: skip
        watcher, events = watch(schemas="none")
        watcher.round(0.0)
        (output,) = events[1]["outputs"]
        assert (output["namespace"], output["name"]) == ("file", f"{tmp_path}/somewhere/else")


# --- bad answers, of either

HUGE = b'{"schema": "' + b"x" * 100_000_000 + b'"}'
BAD = {
    "a proxy's page": (200, "text/html", b"<html><body>log in, hunter2</body></html>"),
    "401": (401, "application/json", b'{"message": "who is hunter2?"}'),
    "403": (403, "text/plain", b"hunter2"),
    "500": (500, "application/json", b'{"error_code": 500, "message": "hunter2"}'),
    "502": (502, "text/html", b"<html>bad gateway</html>"),
    "503": (503, "text/plain", b""),
    "no JSON": (200, "application/json", b'{"schema": '),
    "a list": (200, "application/json", b'["hunter2"]'),
    "null": (200, "application/json", b"null"),
    "a number for a schema": (200, "application/json", b'{"schema": 3, "version": 1, "id": 1}'),
    "no version": (200, "application/json", json.dumps({"schema": json.dumps(ORDERS), "id": 1}).encode()),
    "nonsense for a schema": (200, "application/json", b'{"schema": "{{", "version": 1, "id": 1, "metadata": 3}'),
    "an unknown type": (200, "application/json", b'{"schema": "x", "schemaType": "THRIFT", "version": 1, "id": 1, "metadata": {"location": 7}}'),
    "not in UTF-8": (200, "application/json", b'{"schema": "\xff\xfe"}'),
    "without a bottom": (200, "application/json", b"[" * 200_000 + b"]" * 200_000),
    "a schema without a bottom": (200, "application/json", json.dumps({"schema": "[" * 200_000 + "]" * 200_000, "version": 1, "id": 1}).encode()),
    "a hundred million bytes": (200, "application/json", HUGE),
}  # fmt: skip


@pytest.mark.parametrize("bad", BAD.values(), ids=BAD)
@pytest.mark.parametrize("part", ["registry", "catalog"])
def test_a_bad_answer_costs_nothing_but_what_it_would_have_told(
    fake: Fake,
    other: Fake,
    watch: Watch,
    part: str,
    bad: tuple[int, str, bytes],
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.DEBUG)
    other.registry_instead = other.catalog_instead = bad
    if part == "registry":
        fake.put("c", {**SINK, "value.converter": AVRO, "value.converter.schema.registry.url": other.url})
    else:
        fake.put("c", {**ICEBERG, "iceberg.catalog.uri": other.url})
    watcher, events = watch(max_bytes=4_000_000)
    tracemalloc.start()
    try:
        for at in range(6):
            watcher.round(at * 40.0)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    if bad[2] is HUGE:
        assert peak < 60_000_000, "it was read to its end"
    assert [each["eventType"] for each in events] == ["START", "RUNNING"]
    assert "schema" not in events[1]["inputs"][0]["facets"]
    ours = [each.getMessage() for each in caplog.records if each.name.startswith("headwater")]
    assert len(ours) <= 1, "the reason is told once"
    assert "hunter2" not in " ".join(ours) + json.dumps(events)
    if bad[0] != 200 or bad[1] == "text/html" or bad[2] is HUGE:
        assert len(ours) == 1, "and it is told"


# --- secrets, wherever they stand

SECRETS = {
    "connection.password": "hunter2",
    "connection.url": "jdbc:postgresql://me:hunter2@db:5432/shop?password=hunter2&sslpassword=hunter2",
    "aws.secret.access.key": "hunter2",
    "snowflake.private.key": "hunter2",
    "value.converter.basic.auth.user.info": "me:hunter2",
    "consumer.override.sasl.jaas.config": 'org.x.PlainLoginModule required username="me" password="hunter2";',
    "producer.override.ssl.keystore.password": "hunter2",
    "mongodb.connection.string": "mongodb://me:hunter2@mongo:27017/?authSource=admin",
    "connection.uri": "mongodb+srv://me:hunter2@mongo/shop",
    "azblob.account.key": "hunter2",
    "http.headers.authorization": "Bearer hunter2",
    "iceberg.catalog.credential": "me:hunter2",
    "iceberg.catalog.token": "hunter2",
    "transforms.hash.salt.secret": "hunter2",
    "database.password": "hunter2",
    "gcp.credentials.json": '{"private_key": "hunter2"}',
}  # fmt: skip
KINDS = [
    "io.confluent.connect.jdbc.JdbcSinkConnector",
    "io.debezium.connector.jdbc.JdbcSinkConnector",
    "io.debezium.connector.mongodb.MongoDbConnector",
    "com.mongodb.kafka.connect.MongoSinkConnector",
    "org.apache.iceberg.connect.IcebergSinkConnector",
    "io.confluent.connect.s3.S3SinkConnector",
    "com.snowflake.kafka.connector.SnowflakeSinkConnector",
    "com.example.Unknown",
]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("fails", [False, True])
def test_no_secret_of_any_setting_is_told(
    fake: Fake, watch: Watch, kind: str, fails: bool, caplog: pytest.LogCaptureFixture, tmp_path: Path
) -> None:
    caplog.set_level(logging.DEBUG)
    config = {**SECRETS, "connector.class": kind, "topics": "t", "database": "shop", "iceberg.tables": "a.b"}
    trace = "org.x.E: cannot log in to jdbc:postgresql://me:hunter2@db/shop?password=hunter2\n\tat x\nCaused by: password=hunter2"
    source = "source" if "MongoDbConnector" in kind else "sink"
    fake.put("c", config, source, tasks="F" if fails else "R", trace=trace if fails else "")
    watcher, events = watch(max_bytes=10_000, grace=0.0)
    for at in range(3):
        watcher.round(at * 40.0)
    fake.instead = (401, "text/plain", b"hunter2")
    watcher.round(200.0)
    assert events
    ours = [each.getMessage() for each in caplog.records if each.name.startswith("headwater")]
    assert "hunter2" not in json.dumps(events) + " ".join(ours) + watcher.state.encode().decode()


def test_a_placeholder_is_a_reason_and_no_dataset(
    fake: Fake, watch: Watch, caplog: pytest.LogCaptureFixture
) -> None:
    config = {
        "connector.class": "io.confluent.connect.jdbc.JdbcSinkConnector",
        "topics": "orders,${env:MORE}",
        "connection.url": "${vault:secret/db:url}",
        "connection.password": "${vault:secret/db:password}",
    }
    fake.put("c", config)
    watcher, events = watch(schemas="none")
    for at in range(4):
        watcher.round(at * 40.0)
    assert [each["eventType"] for each in events] == ["START", "RUNNING"]
    assert events[1]["outputs"] == []
    why = events[1]["run"]["facets"]["kafkaConnect"]["unresolved"]
    assert len(why) == len(set(why))
    assert any("topics" in each for each in why)
    assert "${" not in json.dumps([each["inputs"] for each in events])
    known, told = watch(
        schemas="none",
        resolve={"${env:MORE}": "items", "${vault:secret/db:url}": "jdbc:postgresql://db/shop"},
    )
    known.round(0.0)
    assert [each["name"] for each in told[1]["inputs"]] == ["orders", "items"]
    assert [each["name"] for each in told[1]["outputs"]] == ["shop.public.orders", "shop.public.items"]


def test_a_server_that_answers_byte_by_byte_does_not_hold_up_the_round_for_ever() -> None:
    """Each byte comes in time; all of them together do not."""
    import socket
    import threading

    from headwater.connect._asking import Server
    from headwater.errors import TransportError

    listener = socket.create_server(("127.0.0.1", 0))
    stop = threading.Event()

    def drip() -> None:
        connection, _ = listener.accept()
        connection.recv(4096)
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n")
        while not stop.wait(0.05):
            try:
                connection.sendall(b" ")
            except OSError:
                break
        connection.close()

    thread = threading.Thread(target=drip, daemon=True)
    thread.start()
    server = Server(f"http://127.0.0.1:{listener.getsockname()[1]}", Auth(), timeout=1.0, verify=True, max_bytes=10_000_000)  # fmt: skip
    began = time.monotonic()
    try:
        with pytest.raises(TransportError, match="does not answer"):
            server.get("/")
    finally:
        stop.set()
        server.close()
        thread.join(10)
        listener.close()
    assert time.monotonic() - began < 20
