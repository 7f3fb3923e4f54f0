"""The raw log into files and back, and the events of a Marquez server, whatever its order and however they fall on pages."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.cli.demo import recorded
from headwater.errors import ConfigError, TransportError
from headwater.event import micros
from headwater.exchange.marquez import read_marquez
from headwater.exchange.parquet import is_parquet, read_parquet, write_parquet
from headwater.facts.commands import SetTag
from headwater.ingest import command, ingest, read_entry, restore
from headwater.store import open_store
from streams import at, run_id


def test_parquet_gives_back_the_log(tmp_path: Path) -> None:
    import pyarrow.parquet

    file = tmp_path / "log.parquet"
    with closing(open_store("memory:")) as store, closing(open_store("memory:")) as other:
        ingest(store, list(recorded()))
        command(store, SetTag(at=5, kind="job", namespace="spark", name="revenue", tag="core"))
        assert write_parquet(store.log(), file) == store.counts()["log"]
        assert is_parquet(str(file))
        restore(other, (read_entry(raw) for raw in read_parquet(str(file))))
        assert other.dump() == store.dump()
        table = pyarrow.parquet.read_table(file)
        rows = table.select(["kind", "type", "job_name", "run"]).to_pylist()
        assert {"kind": "command", "type": None, "job_name": None, "run": None} in rows
        assert any(each["job_name"] == "nightly" and each["type"] == "START" for each in rows)
        assert [micros(each.isoformat()) for each in table["time"].to_pylist()] == [
            entry.time for _, entry in store.log()
        ]
    (tmp_path / "other.parquet").write_bytes(b"PAR1 and nothing more")
    with pytest.raises(ConfigError, match="cannot be read"):
        list(read_parquet(str(tmp_path / "other.parquet")))
    with pytest.raises(ConfigError, match="cannot be written"):
        write_parquet([], tmp_path / "nowhere" / "x.parquet")
    assert not list(tmp_path.glob(".*.part"))


# ---- Marquez


class Answer:
    """What httpx would give."""

    def __init__(self, status: int, body: bytes) -> None:
        self.status_code, self.content, self.text = status, body, body.decode()
        self.is_success = status < 400


class Marquez:
    """Its event API: `after` is inclusive, `before` is not; sorted by time, then by arrival."""

    def __init__(
        self, seconds: list[int], *, knows_order: bool = True, late: list[int] | None = None
    ) -> None:
        self.events = [self.event(number, second) for number, second in enumerate(seconds)]
        self.knows_order, self.late, self.calls = knows_order, late or [], 0

    @staticmethod
    def event(number: int, second: int) -> tuple[int, bytes]:
        body = {
            "eventType": "COMPLETE",
            "eventTime": at(second),
            "run": {"runId": run_id(number)},
            "job": {"namespace": "etl", "name": f"job_{number}", "facets": None},
            "inputs": [],
            "outputs": None,
        }
        return micros(at(second)), msgspec.json.encode(body)

    def get(self, url: str, params: dict[str, Any]) -> Answer:
        self.calls += 1
        assert url.endswith("/api/v1/events/lineage")
        after, before = micros(params["after"]), micros(params["before"])
        found = sorted((each for each in self.events if after <= each[0] < before), key=lambda each: each[0])
        if not self.knows_order:
            found.reverse()
        start = int(params["offset"])
        page = [body for _, body in found[start : start + int(params["limit"])]]
        if self.late:  # meanwhile something arrives, with a time of before
            self.events.insert(0, self.event(1000 + self.calls, self.late.pop()))
        body = b'{"events": [' + b",".join(page) + b'], "totalCount": %d}' % len(self.events)
        return Answer(200, body)


seconds = st.lists(st.integers(0, 8), max_size=25)


@given(seconds, st.integers(1, 6), st.booleans(), st.lists(st.integers(0, 8), max_size=4))
def test_every_event_is_read_however_it_falls_on_pages(
    told: list[int], size: int, knows: bool, late: list[int]
) -> None:
    server = Marquez(told, knows_order=knows, late=late)
    expected = {body for _, body in server.events}
    got = [event for page in read_marquez("http://x", size=size, client=server) for event in page.events]
    assert expected <= set(got)
    assert server.calls <= 3 * len(told) + 10 + 3 * len(late), "it ends"


@given(seconds, st.integers(0, 9))
def test_it_begins_where_it_is_told(told: list[int], since: int) -> None:
    server = Marquez(told)
    got = [
        event
        for page in read_marquez("http://x", micros(at(since)), size=3, client=server)
        for event in page.events
    ]
    assert set(got) == {body for time, body in server.events if time >= micros(at(since))}


@contextmanager
def listening(marquez: Marquez, fail_after: int = 1_000) -> Iterator[str]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked = {name: values[0] for name, values in parse_qs(urlsplit(self.path).query).items()}
            answer = (
                Answer(503, b"gone")
                if marquez.calls >= fail_after
                else marquez.get(urlsplit(self.path).path, asked)
            )
            self.send_response(answer.status_code)
            self.end_headers()
            self.wfile.write(answer.content)

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def test_an_import_that_was_cut_off_says_how_to_go_on(tmp_path: Path) -> None:
    from headwater.cli._transfer import take_marquez

    with closing(open_store(f"sqlite:///{tmp_path}/x.db")) as store:
        marquez = Marquez([each // 2 for each in range(250)])
        with (
            listening(marquez, fail_after=2) as url,
            pytest.raises(TransportError, match=r"503.*go on with --since 2026-") as told,
        ):
            take_marquez(store, url, 0)
        assert store.counts()["log"] == 198, "a page of a hundred, and one that begins with its last two"
        since = micros(str(told.value).rsplit(" ", 1)[1])
        with listening(marquez) as url:
            outcome = take_marquez(store, f"{url}/api/v1", since)
        assert store.counts()["log"] == 250
        assert outcome.stored == 250 - 198
        with listening(Marquez([])) as url:
            assert take_marquez(store, url, 0).received == 0


def test_what_does_not_answer_as_marquez_is_refused() -> None:
    class Other:
        def get(self, url: str, params: Any) -> Answer:
            return Answer(200, b"<html>")

    with pytest.raises(TransportError, match="does not answer as Marquez does"):
        list(read_marquez("http://user:secret@x", client=Other()))
    with pytest.raises(TransportError, match="cannot be asked") as told:
        list(read_marquez("http://user:secret@127.0.0.1:1"))
    assert "secret" not in str(told.value)
