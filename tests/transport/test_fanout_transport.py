from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import pytest
from lineage_server import Answer, Server

from headwater import config
from headwater.emitter import Emitter
from headwater.errors import ConfigError, TransportError
from headwater.transport import open_transport
from headwater.transport.fanout import FanoutTransport
from headwater.transport.spool import SpoolTransport

EVENT = b'{"eventTime":"2026-01-01T00:00:00Z","job":{"namespace":"n","name":"j"}}'
DOWN = {"url": "http://127.0.0.1:9", "retries": 0, "timeout": 1}


def lines(path: Path) -> int:
    return len(path.read_bytes().splitlines()) if path.exists() else 0


def test_a_required_target_that_fails_is_an_error_after_all_were_tried(tmp_path: Path) -> None:
    file = tmp_path / "after.jsonl"
    transport = open_transport({"type": "fanout", "to": [DOWN, file.as_uri()]})
    with pytest.raises(TransportError, match="no answer from http://127") as caught:
        transport.send([EVENT])
    assert caught.value.retryable
    assert lines(file) == 1


def test_a_best_effort_target_that_fails_is_warned_of_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file = tmp_path / "events.jsonl"
    transport = open_transport("fanout:", to=[{**DOWN, "policy": "best_effort"}, file.as_uri()])
    with caplog.at_level(logging.WARNING, "headwater"):
        for _ in range(3):
            transport.send([EVENT])
    assert lines(file) == 3
    assert sum("best effort" in record.message for record in caplog.records) == 1


def test_what_nobody_took_is_an_error_though_all_are_best_effort() -> None:
    other = {**DOWN, "url": "http://127.0.0.1:10"}
    transport = open_transport("fanout:", to=[DOWN, other], policy="best_effort")
    with pytest.raises(TransportError, match=r"127.0.0.1:9.*127.0.0.1:10"):
        transport.send([EVENT])


def test_an_event_that_one_refuses_for_good_is_named(server: Server, tmp_path: Path) -> None:
    server.always = Answer(422, {"message": "no"})
    file = tmp_path / "events.jsonl"
    transport = open_transport("fanout:", to=[server.url, file.as_uri()])
    with pytest.raises(TransportError) as caught:
        transport.send([EVENT])
    assert caught.value.refused.keys() == {0}
    assert not caught.value.retryable
    assert lines(file) == 1
    transport.close()


def test_in_a_host_each_target_has_a_spool_of_its_own(tmp_path: Path) -> None:
    settings = config.load(
        {"spool": {"dir": str(tmp_path / "spool"), "drain": "off"}}, environ={}, cwd=tmp_path, home=tmp_path
    )
    file = tmp_path / "events.jsonl"
    to: list[Any] = ["http://a:5000", {"url": "http://b:5000", "policy": "best_effort"}, file.as_uri()]
    emitter = Emitter({"type": "fanout", "to": to}, settings)
    emitter.emit(EVENT)
    transport = emitter._transport
    assert isinstance(transport, FanoutTransport)
    spools = [each for each in transport.targets if isinstance(each, SpoolTransport)]
    assert [each.place.shown() for each in spools] == ["http://a:5000", "http://b:5000"]
    assert all(list(each.place.folder.glob("*.open")) for each in spools)
    assert lines(file) == 1


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "to: must be a list"),
        ({"to": "http://a"}, "to: must be a list"),
        ({"to": [3]}, r"to\[0\]: 3 is neither"),
        ({"to": ["memory:", {"url": "htp://x"}]}, r"to\[1\]: unknown transport 'htp'"),
        ({"to": [{"url": "memory:", "policy": "maybe"}]}, r"to\[0\]: policy: 'maybe' is none of"),
        ({"to": ["memory:"], "policy": "never"}, "policy: 'never' is none of"),
    ],
)
def test_bad_options_are_told_at_once(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        open_transport("fanout:", **options)
