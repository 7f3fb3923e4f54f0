"""Any OpenLineage client may send with our transports; what it sends is what its own transports would."""

from __future__ import annotations

import enum
import json
from datetime import date, datetime, timezone
from pathlib import Path
from typing import Any
from uuid import UUID

import attr
import pytest
from hypothesis import given
from hypothesis import strategies as st
from lineage_server import Server
from openlineage.client import OpenLineageClient
from openlineage.client.event_v2 import Job, OutputDataset, Run, RunEvent, RunState
from openlineage.client.facet_v2 import RunFacet, nominal_time_run, parent_run, schema_dataset
from openlineage.client.serde import Serde

from headwater.errors import ConfigError, TransportError
from headwater.transport.openlineage import HeadwaterConfig, HeadwaterTransport, encoded
from headwater.transport.spool.place import places

TYPE = "headwater.transport.openlineage.HeadwaterTransport"
RUN = "0192c3a4-0000-7000-8000-000000000001"


class Colour(enum.Enum):
    RED = "red"


@attr.define
class Odd(RunFacet):
    value: Any = None


def event(value: Any = None, **more: Any) -> RunEvent:
    parent = parent_run.ParentRunFacet(
        run=parent_run.Run(RUN), job=parent_run.Job("airflow", "dag"), root=parent_run.Root(parent_run.RootRun(RUN), parent_run.RootJob("airflow", "dag"))
    )  # fmt: skip
    facets = {
        "parent": parent,
        "nominalTime": nominal_time_run.NominalTimeRunFacet("2026-01-01T00:00:00Z"),
        "odd": Odd(value),
    }
    fields = [schema_dataset.SchemaDatasetFacetFields("a", "int", "ä")]
    out = OutputDataset("n", "d", facets={"schema": schema_dataset.SchemaDatasetFacet(fields)})
    told = {
        "eventTime": "2026-01-01T00:00:00Z",
        "eventType": RunState.COMPLETE,
        "producer": "https://example.com",
    }
    return RunEvent(run=Run(RUN, facets), job=Job("n", "j"), outputs=[out], **{**told, **more})


VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.text()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.datetimes(timezones=st.just(timezone.utc))
    | st.dates()
    | st.uuids()
    | st.sampled_from(Colour),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=8,
)


@given(VALUES)
def test_events_are_written_as_the_clients_own_transports_write_them(value: Any) -> None:
    made = event(value)
    assert json.loads(encoded(made)) == json.loads(Serde.to_json(made))


def test_enums_ids_times_and_strangers() -> None:
    class Stranger:
        pass

    at = datetime(2026, 1, 2, tzinfo=timezone.utc)
    made = event(
        {"c": Colour.RED, "id": UUID(RUN), "at": at, "on": date(2026, 1, 2), "who": Stranger(), "no": None}
    )
    seen = json.loads(encoded(made))
    assert seen["eventType"] == "COMPLETE"
    value = seen["run"]["facets"]["odd"]["value"]
    assert value.pop("who").startswith("<<non-serializable: ")
    assert value == {"c": "red", "id": RUN, "at": "2026-01-02T00:00:00+00:00", "on": "2026-01-02"}


def test_a_client_that_names_it_delivers(server: Server) -> None:
    table = {"type": TYPE, "url": server.url, "direct": True, "api_key": "k", "name": "ours", "priority": 3}
    client = OpenLineageClient(config={"transport": table})
    client.emit(event())
    assert client.transport.name == "ours"
    client.close()
    (seen,) = server.events
    seen["run"]["facets"].pop("tags", None)  # the client adds its own
    assert seen == json.loads(Serde.to_json(event()))
    assert server.requests[0].headers["Authorization"] == "Bearer k"


def test_it_spools_by_itself_and_an_error_rises(tmp_path: Path) -> None:
    table = {"type": TYPE, "url": "http://127.0.0.1:9", "spool": {"dir": str(tmp_path / "s"), "drain": "off"}}
    client = OpenLineageClient(config={"transport": table})
    client.emit(event())
    (place,) = (each.folder for each in places(tmp_path / "s"))
    assert list(place.glob("*.open"))
    assert client.close()
    direct = {"type": TYPE, "url": "http://127.0.0.1:9", "direct": True, "retries": 0}
    client = OpenLineageClient(config={"transport": direct})
    with pytest.raises(TransportError, match="no answer"):
        client.emit(event())


def test_in_a_composite_beside_others(server: Server, tmp_path: Path) -> None:
    members = {
        "theirs": {"type": "file", "log_file_path": str(tmp_path / "theirs.jsonl"), "append": True},
        "file": {"type": TYPE, "url": (tmp_path / "ours.jsonl").as_uri()},
        "http": {"type": TYPE, "url": server.url, "direct": True},
    }
    client = OpenLineageClient(config={"transport": {"type": "composite", "transports": members}})
    client.emit(event())
    theirs, ours = (json.loads((tmp_path / f"{name}.jsonl").read_text()) for name in ("theirs", "ours"))
    assert theirs == ours == server.events[0]
    client.close()


def test_without_a_url_our_own_settings_say_where(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HEADWATER_TRANSPORT", (tmp_path / "e.jsonl").as_uri())
    OpenLineageClient(config={"transport": {"type": TYPE}}).emit(event())
    assert (tmp_path / "e.jsonl").exists()


def test_switched_off(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HEADWATER_DISABLED", "1")
    transport = HeadwaterTransport(HeadwaterConfig.from_dict({"url": (tmp_path / "e.jsonl").as_uri()}))
    transport.emit(event())
    assert not (tmp_path / "e.jsonl").exists()


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ({"url": "http://h", "timeoutt": 3}, r"'timeoutt'.*it takes: url, api_key"),
        ({"url": "http://h", "timeout": "soon"}, "timeout: 'soon' is no number"),
        ({"url": "htp://h"}, "unknown transport 'htp': did you mean 'http'"),
        ({"url": 3}, "url: is missing"),
        ({"api_key": "k"}, "url: is missing: api_key"),
        ({"url": "http://h", "api_key": "${NOT_SET}"}, r"api_key: \$\{NOT_SET\} is not set"),
        ({"url": "https://h", "verify_ssl": "/no/such/file"}, "verify: '/no/such/file' is neither"),
        ({"url": "https://h", "verify_ssl": True, "verify": False}, "verify_ssl: says what verify says"),
        ({"url": "http://h", "spool": 3}, "spool: must be a directory"),
        ({"url": "http://h", "spool": {"drainn": "off"}}, "drainn"),
        (
            {"url": "http://h", "spool": "/proc/nothing/here"},
            "the spool /proc/nothing/here cannot be written",
        ),
        ({"url": "http://h", "auth": {"type": "kerberos"}}, "auth.type: 'kerberos'"),
    ],
)
def test_bad_tables_are_told_when_the_client_is_made(table: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        OpenLineageClient(config={"transport": {"type": TYPE, **table}})
