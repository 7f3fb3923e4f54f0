from __future__ import annotations

import json
import logging
import os
import subprocess
import sys
import threading
import warnings
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import headwater
from headwater import config, emitter
from headwater.emitter import Emitter, Stats
from headwater.errors import ConfigError, EventError, TransportError
from headwater.event import parse
from headwater.transport import _host
from headwater.transport.memory import MemoryTransport

EVENT = {"eventTime": "2026-01-01T00:00:00Z", "job": {"namespace": "shop", "name": "orders"}}


def settings(**given: Any) -> config.Settings:
    return config.load(given, environ={}, cwd=Path("/nowhere"), home=Path(os.environ["HOME"]))


class Broken(MemoryTransport):
    def send(self, events: Sequence[bytes]) -> None:
        raise TransportError("down", retryable=True)


@pytest.fixture(autouse=True)
def fresh(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    for name in list(os.environ):
        if name.startswith(("HEADWATER_", "OPENLINEAGE_")):
            monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(emitter, "_DEFAULTS", {})
    monkeypatch.setattr(_host, "_SAID", [])
    yield
    emitter._close()


@pytest.mark.parametrize(
    "form",
    [
        dict,
        json.dumps,
        lambda e: json.dumps(e).encode(),
        lambda e: parse(json.dumps(e)),
        lambda e: json.dumps(e, indent=2),
    ],
)
def test_an_event_in_any_form_is_sent_as_one_line_of_json(form: Any) -> None:
    transport = MemoryTransport()
    Emitter(transport, settings()).emit(form(EVENT))
    (sent,) = transport.events
    assert json.loads(sent) == EVENT
    assert b"\n" not in sent


def test_many_are_sent_in_order_and_in_one_batch() -> None:
    batches: list[int] = []

    class Counting(MemoryTransport):
        def send(self, events: Sequence[bytes]) -> None:
            batches.append(len(events))
            super().send(events)

    transport = Counting()
    made = Emitter(transport, settings())
    made.emit_many({**EVENT, "job": {"namespace": "n", "name": str(i)}} for i in range(5))
    assert [json.loads(e)["job"]["name"] for e in transport.events] == list("01234")
    assert batches == [5]
    assert made.stats == Stats(sent=5, failed=0)


def test_a_bad_event_raises_before_any_is_sent() -> None:
    transport = MemoryTransport()
    made = Emitter(transport, settings())
    with pytest.raises(EventError):
        made.emit_many([EVENT, {"eventTime": "yesterday"}])
    assert transport.events == []
    assert made.stats == Stats(sent=0, failed=2)


def test_a_failing_transport_raises_and_is_counted() -> None:
    made = Emitter(Broken(), settings())
    with pytest.raises(TransportError, match="down"):
        made.emit(EVENT)
    assert made.stats == Stats(sent=0, failed=1)


def test_a_namespace_is_given_only_to_a_job_without_one() -> None:
    transport = MemoryTransport()
    made = Emitter(transport, settings(namespace="mine"))
    event = {**EVENT, "job": {"name": "orders"}}
    made.emit_many([EVENT, event])
    assert [json.loads(e)["job"]["namespace"] for e in transport.events] == ["shop", "mine"]
    assert event["job"] == {"name": "orders"}


def test_disabled_sends_nothing_and_opens_nothing() -> None:
    transport = MemoryTransport()
    made = Emitter(transport, settings(disabled=True))
    made.emit("not even looked at")
    made.close()
    assert (transport.events, made.stats, transport.closed) == ([], Stats(), False)
    Emitter("nonsense://x", settings(disabled=True))


def test_a_transport_by_url_by_mapping_and_by_settings(tmp_path: Path) -> None:
    url = (tmp_path / "e.jsonl").as_uri()
    Emitter(url, settings()).emit(EVENT)
    Emitter({"url": url, "fsync": "yes"}, settings()).emit(EVENT)
    Emitter(settings=settings(transport={"url": url, "fsync": True})).emit(EVENT)
    assert len((tmp_path / "e.jsonl").read_bytes().splitlines()) == 3


def test_a_bad_option_of_the_settings_is_refused() -> None:
    with pytest.raises(ConfigError, match="'fsink'"):
        Emitter(settings=settings(transport={"url": "file:///e", "fsink": True}))


@pytest.mark.parametrize(
    ("transport", "key"),
    [
        ("http://h", "from-settings"),
        ("https://h", "from-settings"),
        ("http://h?api_key=own", "own"),
        ({"url": "http://h", "api_key": "own"}, "own"),
    ],
)
def test_the_key_of_the_settings_goes_to_http_that_has_none(transport: Any, key: str) -> None:
    for made in (
        Emitter(transport, settings(api_key="from-settings")),
        Emitter(settings=settings(transport=transport, api_key="from-settings")),
    ):
        assert made._transport.place.target().to["api_key"] == key  # type: ignore[union-attr]


def test_the_key_does_not_trouble_another_transport() -> None:
    assert (
        repr(Emitter("memory:", settings(api_key="k")))
        == "Emitter(MemoryTransport(0 events), sent=0, failed=0)"
    )


def test_nothing_configured_goes_to_localhost_and_says_so_once(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "headwater"):
        made = [Emitter(), Emitter()]
    assert [repr(e) for e in made] == [
        "Emitter(SpoolTransport(to 'http://localhost:5000'), sent=0, failed=0)"
    ] * 2
    assert [r.getMessage().split(";")[0] for r in caplog.records] == [
        "no transport is set: events go to http://localhost:5000"
    ]


# --- the spool in front of what may make a host wait


@pytest.mark.parametrize(
    ("transport", "kind"),
    [
        ("http://h", "SpoolTransport"),
        ("https://h", "SpoolTransport"),
        ({"type": "http", "url": "http://h", "timeout": 3}, "SpoolTransport"),
        ("http://h?direct=1", "HttpTransport"),
        ({"url": "http://h", "direct": True}, "HttpTransport"),
        ("http://h?direct=no", "SpoolTransport"),
        ("file:///e", "FileTransport"),
        ("console:", "ConsoleTransport"),
        ("memory:", "MemoryTransport"),
    ],
)
def test_what_goes_over_a_network_is_spooled(transport: Any, kind: str) -> None:
    assert type(Emitter(transport, settings())._transport).__name__ == kind


def test_the_spool_is_where_and_as_the_settings_say(tmp_path: Path) -> None:
    given = settings(
        transport="http://h", spool={"dir": str(tmp_path / "s"), "fsync": "never", "drain": "off"}
    )
    made = Emitter(settings=given)
    made.emit(EVENT)
    assert made._transport.place.folder.parent == tmp_path / "s"  # type: ignore[union-attr]
    assert len(list(made._transport.place.folder.glob("*.open"))) == 1  # type: ignore[union-attr]
    made.close()
    assert (
        Emitter("http://h", settings(spool=tmp_path / "t"))._transport.place.folder.parent == tmp_path / "t"
    )  # type: ignore[union-attr]


@pytest.mark.parametrize("option", [{"fsink": "never"}, {"linger": "long"}])
def test_a_wrong_option_of_the_spool_is_told_at_set_up(option: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match=next(iter(option))):
        Emitter("http://h", settings(spool=option))


def test_a_spool_that_was_set_and_cannot_be_written_is_told_at_set_up(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigError, match="cannot be written"):
        Emitter("http://h", settings(spool=tmp_path / "file" / "s"))


def test_without_a_state_directory_events_wait_in_a_temporary_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "home").write_text("no directory")
    (tmp_path / "t").mkdir()
    monkeypatch.setattr("tempfile.gettempdir", lambda: str(tmp_path / "t"))
    given = config.load({}, environ={}, cwd=Path("/nowhere"), home=tmp_path / "home")
    for _ in range(2):
        made = Emitter("http://h", given)
        assert made._transport.place.folder.parent.parent == tmp_path / "t"  # type: ignore[union-attr]
    assert len([r for r in caplog.records if "HEADWATER_SPOOL" in r.getMessage()]) == 1


def test_a_will_is_kept_and_settled_where_that_can_be_done(tmp_path: Path) -> None:
    run = {**EVENT, "eventType": "ABORT", "run": {"runId": "0192c3a4-0000-7000-8000-000000000001"}}
    made = Emitter("http://h", settings(spool={"dir": str(tmp_path / "s"), "drain": "off"}))
    made.will("0192c3a4-0000-7000-8000-000000000001", run)
    assert len(list(tmp_path.rglob("*.will"))) == 1
    made.settle("0192c3a4-0000-7000-8000-000000000001")
    assert list(tmp_path.rglob("*.will")) == []
    transport = MemoryTransport()
    other = Emitter(transport, settings())
    other.will("r", run)
    other.settle("r")
    assert transport.events == []
    with pytest.raises(EventError):
        made.will("r", {"no": "event"})


def test_the_functions_use_one_emitter_of_the_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HEADWATER_TRANSPORT", (tmp_path / "e.jsonl").as_uri())
    headwater.emit(EVENT)
    headwater.emit_many([EVENT, EVENT])
    assert len((tmp_path / "e.jsonl").read_bytes().splitlines()) == 3
    assert emitter.default() is emitter.default()
    assert emitter.default().stats == Stats(sent=3)


def test_openlineage_disabled_switches_the_functions_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENLINEAGE_DISABLED", "true")
    headwater.emit({"no": "event"})
    assert emitter.default().stats == Stats()


def test_a_bad_setting_raises_in_an_explicit_call(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEADWATER_TRANSPORT", "htp://h")
    with pytest.raises(ConfigError, match="unknown transport 'htp'"):
        headwater.emit(EVENT)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_forked_child_makes_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEADWATER_TRANSPORT", (tmp_path / "e.jsonl").as_uri())
    headwater.emit(EVENT)
    parents = emitter.default()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        child = os.fork()
    if child == 0:
        code = 1
        try:
            headwater.emit(EVENT)
            parents.emit(EVENT)
            code = 0 if emitter.default() is not parents and emitter.default().stats == Stats(sent=1) else 2
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert len((tmp_path / "e.jsonl").read_bytes().splitlines()) == 3
    assert parents.stats == Stats(sent=1)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_child_forked_while_the_count_was_locked_goes_on() -> None:
    made = Emitter(MemoryTransport(), settings())
    with made._lock, warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        child = os.fork()
        if child == 0:
            made.emit(EVENT)
            os._exit(0 if made.stats == Stats(sent=1) else 1)
    timer = threading.Timer(10, os.kill, (child, 9))  # a lock that is never free would hang the tests
    timer.start()
    status = os.waitpid(child, 0)[1]
    timer.cancel()
    timer.join()
    assert status == 0


def test_threads_are_counted_exactly() -> None:
    transport = MemoryTransport()
    made = Emitter(transport, settings())
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda _: made.emit_many([EVENT, EVENT]), range(200)))
    assert made.stats == Stats(sent=400)
    assert len(transport.events) == 400


def test_close_closes_the_transport() -> None:
    transport = MemoryTransport()
    Emitter(transport, settings()).close()
    assert transport.closed


def test_importing_headwater_stays_light() -> None:
    code = "import sys, headwater, headwater.emitter; print([m for m in ('httpx', 'yaml', 'sqlalchemy', 'litestar', 'rich') if m in sys.modules])"
    assert (
        subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout
        == "[]\n"
    )
