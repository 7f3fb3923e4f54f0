"""Webhooks against a real receiver: signed, tried again, given up, never to where secrets live."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import msgspec
import pytest

from headwater.deliver.webhook import Happening, Options, check_url, post, reachable, render, verify
from headwater.errors import ConfigError, TransportError
from headwater.facts.commands import SetAlias, SetIncident
from headwater.ingest import command, ingest
from headwater.query.incidents import list_incidents
from headwater.store import Store, _outbox, open_store
from headwater.work import Worker

SECRET = "s3cret"
START = time.time_ns() // 1000
SECOND = 1_000_000


@dataclass
class Receiver:
    url: str
    answers: list[int] = field(default_factory=list)
    """What it answers, one after another; then 200. 0: it hangs up without an answer."""
    got: list[tuple[dict[str, str], bytes]] = field(default_factory=list)
    hang: float = 0.0
    retry_after: str = ""

    def models(self) -> list[dict[str, Any]]:
        return [json.loads(body) for _, body in self.got]


@contextmanager
def receiving() -> Iterator[Receiver]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            receiver.got.append((dict(self.headers), body))
            time.sleep(receiver.hang)
            status = receiver.answers.pop(0) if receiver.answers else 200
            if status:
                self.send_response(status)
                if receiver.retry_after:
                    self.send_header("Retry-After", receiver.retry_after)
                if status == 302:
                    self.send_header("Location", f"{receiver.url}/elsewhere")
                self.end_headers()

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    receiver = Receiver(f"http://127.0.0.1:{server.server_address[1]}")
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield receiver
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with receiving() as made:
        yield made


class Clock:
    def __init__(self) -> None:
        self.now = START

    def __call__(self) -> int:
        return self.now

    def pass_(self, seconds: float) -> None:
        self.now += int(seconds * SECOND)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture(params=["memory", "postgresql"])
def store(request: pytest.FixtureRequest) -> Iterator[Store]:
    url = "memory:" if request.param == "memory" else request.getfixturevalue("postgres").make()
    with closing(open_store(url)) as made:
        yield made


def hook(
    store: Store, receiver: Receiver, name: str = "ops", since: int = START - SECOND, **options: Any
) -> None:
    made = _outbox.Hook(name, receiver.url, SECRET, msgspec.to_builtins(Options(**options)), since)
    with store.writing() as connection:
        _outbox.set_hook(connection, made)


def iso(at: int) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(at / SECOND))


def fail(store: Store, clock: Clock, name: str = "orders", passed: bool = False, **more: Any) -> None:
    told = {"assertion": "not_null", "column": "id", "success": passed, **more}
    facet = {"dataQualityAssertions": {"assertions": [told]}}
    event = {
        "eventType": "COMPLETE",
        "eventTime": iso(clock.now + SECOND),
        "run": {"runId": f"run {name} {clock.now}"},
        "job": {"namespace": "dbt", "name": "test"},
        "inputs": [{"namespace": "db", "name": name, "inputFacets": facet}],
    }
    assert not ingest(store, [json.dumps(event).encode()]).rejected
    clock.pass_(2)


def messages(store: Store) -> dict[str, tuple[str, int, str]]:
    with store.read() as reader:
        return {
            each.key: (each.state, each.tries, each.fault) for each in _outbox.messages(reader.connection)
        }


def worker(store: Store, clock: Clock) -> Worker:
    return Worker(store, clock=clock)


def test_an_incident_is_told_once_from_its_opening_to_its_end(
    store: Store, receiver: Receiver, clock: Clock
) -> None:
    fail(store, clock)
    clock.pass_(10)
    hook(store, receiver, since=clock.now)
    fail(store, clock, "bills")
    one = worker(store, clock)
    for _ in range(3):
        one.once(every=True)
    other = worker(store, clock)  # another process, without this one's memory
    one.release()
    other.once(every=True)
    assert [each["event"] for each in receiver.models()] == ["incident.opened"], (
        "and nothing of before the hook"
    )
    opened = receiver.models()[0]
    assert (opened["dataset"], opened["test"], opened["column"]) == ("dataset:db:bills", "not_null", "id")
    number = int(opened["id"])
    for status, more in (("acknowledged", {}), ("muted", {"until": clock.now + 100 * SECOND})):
        clock.pass_(1)
        command(store, SetIncident(at=clock.now, by="ann", incident=number, status=status, **more))
    other.once(every=True)
    clock.pass_(200)
    other.once(every=True)
    fail(store, clock, "bills", passed=True)
    other.once(every=True)
    assert [each["event"] for each in receiver.models()] == [
        "incident.opened",
        "incident.acknowledged",
        "incident.muted",
        "incident.mute_expired",
        "incident.resolved",
    ]
    assert receiver.models()[1]["changedBy"] == "ann"
    keys = [headers["Idempotency-Key"] for headers, _ in receiver.got]
    assert len(set(keys)) == len(keys)


def test_messages_are_signed_and_of_now(store: Store, receiver: Receiver, clock: Clock) -> None:
    hook(store, receiver)
    fail(store, clock)
    worker(store, clock).once(every=True)
    ((headers, body),) = receiver.got
    now = clock.now // SECOND
    assert verify(SECRET, headers, body, now=now)
    assert not verify(SECRET, headers, body, now=now + 301), "played back later"
    assert not verify(SECRET, headers, body + b" ", now=now)
    assert not verify("other", headers, body, now=now)
    assert SECRET not in str(headers)
    assert SECRET.encode() not in body


def test_a_receiver_that_fails_is_tried_again_and_then_given_up(
    store: Store, receiver: Receiver, clock: Clock
) -> None:
    hook(store, receiver)
    fail(store, clock)
    receiver.answers = [500, 0, 503]
    one = worker(store, clock)
    one.once(every=True)
    ((key, told),) = messages(store).items()
    assert told == ("waiting", 1, "127.0.0.1 answered 500")
    one.once(every=True)
    assert len(receiver.got) == 1, "not before its time"
    for _ in range(3):
        clock.pass_(700)
        one.once(every=True)
    assert messages(store)[key][:2] == ("done", 4)
    assert {headers["Idempotency-Key"] for headers, _ in receiver.got} == {key}
    stamps = [headers["X-Headwater-Timestamp"] for headers, _ in receiver.got]
    assert len(set(stamps)) == 4, "each try is of its own time"
    fail(store, clock, "bills")
    receiver.answers = [500] * 50
    for _ in range(12):
        clock.pass_(20_000)
        one.once(every=True)
    assert sorted(state for state, _, _ in messages(store).values()) == ["dead", "done"]
    assert len(receiver.got) == 4 + 9
    receiver.answers = []
    with store.writing() as connection:
        assert _outbox.retry(connection, "ops", clock.now) == 1
    one.once(every=True)
    assert {state for state, _, _ in messages(store).values()} == {"done"}


def test_what_the_receiver_refuses_for_good_is_not_repeated(
    store: Store, receiver: Receiver, clock: Clock
) -> None:
    hook(store, receiver)
    fail(store, clock)
    receiver.answers = [410]
    worker(store, clock).once(every=True)
    assert [told[0] for told in messages(store).values()] == ["dead"]


def test_the_receiver_may_ask_for_time(store: Store, receiver: Receiver, clock: Clock) -> None:
    hook(store, receiver)
    fail(store, clock)
    receiver.answers, receiver.retry_after = [429], "5000"
    one = worker(store, clock)
    one.once(every=True)
    clock.pass_(4000)
    one.once(every=True)
    assert len(receiver.got) == 1
    clock.pass_(1001)
    one.once(every=True)
    assert len(receiver.got) == 2


def test_the_receiver_may_ask_for_time_by_a_date(receiver: Receiver) -> None:
    receiver.answers, receiver.retry_after = [503], formatdate(time.time() + 5000, usegmt=True)
    with pytest.raises(TransportError, match="answered 503") as told:
        post(receiver.url, b"{}", {})
    assert told.value.retry_after == pytest.approx(5000, abs=60)


def test_a_receiver_that_hangs_holds_nobody_for_long(receiver: Receiver) -> None:
    receiver.hang = 1.0
    with pytest.raises(TransportError, match="ReadTimeout") as told:
        post(receiver.url, b"{}", {}, timeout=0.2)
    assert told.value.retryable


def test_redirects_are_not_followed(receiver: Receiver) -> None:
    receiver.answers = [302]
    with pytest.raises(TransportError, match="answered 302"):
        post(receiver.url, b"{}", {})
    assert len(receiver.got) == 1


@pytest.mark.parametrize(
    "address",
    ["169.254.169.254", "fe80::1", "::ffff:169.254.169.254", "0.0.0.0", "fd00:ec2::254", "224.0.0.1"],
)
def test_addresses_of_metadata_are_not_called(address: str) -> None:
    def resolve(host: str, port: int) -> list[str]:
        return ["93.184.216.34", address]

    with pytest.raises(TransportError, match="not called") as told:
        reachable("https://rebinding.example.org/x", private=False, resolve=resolve)
    assert not told.value.retryable
    assert reachable("https://x.example.org/", private=True, resolve=resolve) == "93.184.216.34"


def test_the_address_that_was_checked_is_the_one_that_is_called(receiver: Receiver) -> None:
    port = receiver.url.rpartition(":")[2]
    post(f"http://hooks.example.invalid:{port}/a?b=c", b"{}", {}, resolve=lambda *_: ["127.0.0.1"])
    ((headers, _),) = receiver.got
    assert headers["Host"] == f"hooks.example.invalid:{port}"


@pytest.mark.parametrize(
    ("host", "named"), [("bücher.example", "xn--bcher-kva.example"), ("[2001:db8::1]", "[2001:db8::1]")]
)
def test_a_host_is_named_as_headers_can_hold_it(receiver: Receiver, host: str, named: str) -> None:
    port = receiver.url.rpartition(":")[2]
    post(f"http://{host}:{port}/", b"{}", {}, resolve=lambda *_: ["127.0.0.1"])
    assert receiver.got[0][0]["Host"] == f"{named}:{port}"


def test_the_address_that_can_be_reached_is_called(monkeypatch: pytest.MonkeyPatch) -> None:
    def found(*_: Any, **__: Any) -> list[Any]:  # as it tells a machine without a route to IPv6
        return [(0, 0, 0, "", (address, 443)) for address in ("34.1.1.1", "2600::1", "34.1.1.1")]

    monkeypatch.setattr("socket.getaddrinfo", found)
    assert reachable("https://hooks.example.org/", private=False) == "34.1.1.1"


@pytest.mark.parametrize(
    "url",
    [
        "ftp://x/y",
        "http://",
        "x",
        "http://me:secret@x/",
        "http://x:99999/",
        "http://[::1/",
        "http://ops..example.org/",
        f"http://{'a' * 64}.org/",
        "http://x/\x01",
    ],
)
def test_a_url_that_cannot_be_called_is_refused_without_its_secret(url: str) -> None:
    with pytest.raises(ConfigError) as told:
        check_url(url)
    assert "secret" not in str(told.value)


@pytest.mark.parametrize(
    ("options", "heard"),
    [
        ({}, 3),
        ({"severity": "error"}, 2),
        ({"datasets": ("db/ord*",)}, 1),
        ({"events": ("incident.resolved",)}, 0),
        ({"events": ("incident.opened",), "datasets": ("db/b*", "db/o*")}, 2),
    ],
)
def test_a_hook_hears_what_it_wants(
    store: Store, receiver: Receiver, clock: Clock, options: dict[str, Any], heard: int
) -> None:
    hook(store, receiver, **options)
    fail(store, clock)
    fail(store, clock, "bills", severity="error")
    fail(store, clock, "notes", severity="warn")
    worker(store, clock).once(every=True)
    assert len(receiver.got) == heard


def test_a_hook_knows_a_dataset_by_each_of_its_names(store: Store, receiver: Receiver, clock: Clock) -> None:
    hook(store, receiver, datasets=("db/ord*",))
    fail(store, clock)
    command(store, SetAlias(at=clock.now, rule={"pattern": "db/{t}", "canonical": "s3://lake/{t}"}))
    worker(store, clock).once(every=True)
    assert [each["dataset"] for each in receiver.models()] == ["dataset:s3://lake:orders"]


def test_failed_runs_and_schema_changes_are_told(store: Store, receiver: Receiver, clock: Clock) -> None:
    hook(store, receiver, events=("run.failed", "schema.changed"))

    def wrote(kind: str, *fields: str) -> None:
        schema = {"schema": {"fields": [{"name": name, "type": "int"} for name in fields]}}
        event = {
            "eventType": kind,
            "eventTime": iso(clock.now + SECOND),
            "run": {
                "runId": f"{clock.now}",
                "facets": {"errorMessage": {"message": "boom"}} if kind == "FAIL" else {},
            },
            "job": {"namespace": "etl", "name": "load"},
            "outputs": [{"namespace": "db", "name": "orders", "facets": schema if fields else {}}],
        }
        assert not ingest(store, [json.dumps(event).encode()]).rejected
        clock.pass_(2)

    wrote("COMPLETE", "a", "b")
    wrote("COMPLETE", "a")
    wrote("FAIL")
    worker(store, clock).once(every=True)
    told = {each["event"]: each for each in receiver.models()}
    assert set(told) == {"run.failed", "schema.changed"}
    assert told["run.failed"]["message"] == "boom"
    assert told["schema.changed"]["message"] == "column b was removed"
    wrote("FAIL")
    one = worker(store, clock)
    clock.pass_(60)  # the first worker's lease runs out
    one.once(every=True)
    assert [each["event"] for each in receiver.models()].count("run.failed") == 2, "every failed run is told"


def test_each_dataset_that_changes_to_one_schema_is_told(
    store: Store, receiver: Receiver, clock: Clock
) -> None:
    hook(store, receiver, events=("schema.changed",))
    for fields in (("id", "größe"), ("id",)):
        schema = {"schema": {"fields": [{"name": name, "type": "int"} for name in fields]}}
        event = {
            "eventType": "COMPLETE",
            "eventTime": iso(clock.now + SECOND),
            "run": {"runId": f"{clock.now}"},
            "job": {"namespace": "etl", "name": "load"},
            "outputs": [{"namespace": "db", "name": name, "facets": schema} for name in ("eu", "us")],
        }
        assert not ingest(store, [json.dumps(event).encode()]).rejected
        clock.pass_(2)
    worker(store, clock).once(every=True)
    assert {each["dataset"] for each in receiver.models()} == {"dataset:db:eu", "dataset:db:us"}


def test_a_template_names_fields_and_nothing_else(store: Store, receiver: Receiver, clock: Clock) -> None:
    hook(store, receiver, format="slack", template="{what} of {subject}{column} {link}", link="https://hw/i/")
    fail(store, clock)
    worker(store, clock).once(every=True)
    number = list_incidents(store, now=clock.now)["incidents"][0]["id"]
    assert receiver.models() == [{"text": f"not_null of db/orders.id https://hw/i/{number}"}]
    for wrong in ("{nothing}", "{secret}"):
        with pytest.raises(ConfigError, match="the template names"):
            Options(template=wrong)
    told = Happening("incident.opened", "k", (), 0, "{message}", "error", {"message": "{event} <!here>"})
    assert (
        render("{subject} {message} {0.__class__}", told) == "{message} {event} &lt;!here&gt; {0.__class__}"
    )


@pytest.mark.parametrize("wrong", [{"events": ("x",)}, {"severity": "loud"}, {"format": "xml"}])
def test_wrong_options_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ConfigError):
        Options(**wrong)


def test_a_failure_told_late_does_not_open_it_twice(store: Store, receiver: Receiver, clock: Clock) -> None:
    clock.pass_(100)
    hook(store, receiver)
    fail(store, clock)
    worker_ = worker(store, clock)
    worker_.once(every=True)
    earlier = Clock()
    earlier.now = clock.now - 50 * SECOND
    fail(store, earlier)
    worker_.once(every=True)
    assert [each["event"] for each in receiver.models()] == ["incident.opened"]


def test_settled_messages_are_forgotten_in_time(store: Store, receiver: Receiver, clock: Clock) -> None:
    hook(store, receiver)
    fail(store, clock)
    one = worker(store, clock)
    one.once(every=True)
    clock.pass_(31 * 86400)
    one.once(every=True)
    assert messages(store) == {}
    assert len(receiver.got) == 1, "and not told again"
