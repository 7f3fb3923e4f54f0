"""What passes the border, what is refused and with which words, and that nothing is changed on the way."""

from __future__ import annotations

import json
import re
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.errors import EventError, TooLarge
from headwater.event import Event, Limits, encode, facet, make, micros, of, parse, run_uuid, split
from openlineage_schemas import assert_openlineage
from streams import events

TIME = "2026-01-01T00:00:00Z"
RUN = "0197f3c6-0000-7000-8000-000000000000"
JOB = {"namespace": "etl", "name": "orders"}


def body(**changes: Any) -> dict[str, Any]:
    whole: dict[str, Any] = {"eventTime": TIME, "eventType": "START", "run": {"runId": RUN}, "job": dict(JOB)}
    whole.update(changes)
    return {key: value for key, value in whole.items() if value != "absent"}


def test_the_three_kinds() -> None:
    assert of(body()).kind == "run"
    assert of(body(run="absent")).kind == "job"
    assert of({"eventTime": TIME, "dataset": {"namespace": "s3://b", "name": "t"}}).kind == "dataset"


@pytest.mark.parametrize(
    ("changes", "field", "value"),
    [
        ({"eventType": "complete"}, "type", "COMPLETE"),
        ({"eventType": None}, "type", "OTHER"),
        ({"eventType": "absent"}, "type", "OTHER"),
        ({"inputs": None}, "inputs", ()),
        ({"run": {"runId": RUN, "facets": None}}, "run_facets", {}),
        ({"run": {"runId": RUN.upper()}}, "run_id", RUN),
        ({"producer": None}, "producer", ""),
    ],
)
def test_what_real_producers_send_is_taken(changes: dict[str, Any], field: str, value: object) -> None:
    assert getattr(of(body(**changes)), field) == value


def test_a_run_id_that_is_no_uuid_is_mapped_as_marquez_does() -> None:
    # what java.util.UUID.nameUUIDFromBytes makes of these bytes
    assert run_uuid("my-run") == "b866f7a6-b676-30d0-a252-2b4aaa593e0a"
    assert run_uuid("nächtlich 7") == "8c638683-7267-380f-9d04-ef5171bdfff7"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2020-12-28T19:51:01Z", "2020-12-28T19:51:01+00:00"),
        ("2020-12-28T19:51:01.641", "2020-12-28T19:51:01.641+00:00"),
        ("2020-12-28T19:51:01.641499123Z", "2020-12-28T19:51:01.641499+00:00"),
        ("2020-12-28T19:51Z", "2020-12-28T19:51:00+00:00"),
        ("2020-12-28T19:51:01+0130", "2020-12-28T18:21:01+00:00"),
        ("2020-12-28T19:51:01-08", "2020-12-29T03:51:01+00:00"),
        ("2020-12-28T19:51:01+01:00[Europe/Berlin]", "2020-12-28T18:51:01+00:00"),
        ("2020-12-28T19:51+02:00[GMT+02:00]", "2020-12-28T17:51:00+00:00"),
        ("2020-12-28 19:51:01", "2020-12-28T19:51:01+00:00"),
        ("1969-12-31T23:59:59.5Z", "1969-12-31T23:59:59.5+00:00"),
    ],
)
def test_times(text: str, expected: str) -> None:
    wanted = datetime.fromisoformat(
        expected if sys_reads(expected) else expected.replace(".5+", ".500000+").replace(".641+", ".641000+")
    )
    assert micros(text) == (wanted - datetime(1970, 1, 1, tzinfo=timezone.utc)) // timedelta(microseconds=1)


def sys_reads(text: str) -> bool:
    try:
        datetime.fromisoformat(text)
    except ValueError:
        return False
    return True


@given(st.datetimes(timezones=st.just(timezone.utc)))
def test_any_time_is_read_to_the_microsecond(moment: datetime) -> None:
    assert micros(moment.isoformat()) == (moment - datetime(1970, 1, 1, tzinfo=timezone.utc)) // timedelta(
        microseconds=1
    )


@pytest.mark.parametrize(
    ("sent", "path", "reason"),
    [
        (b"", "", "broken JSON"),
        (b"{", "", "broken JSON"),
        (b"[]", "", "expected `object`"),
        (b"null", "", "expected `object`"),
        (b'"x"', "", "expected `object`"),
        (b"{}", "eventTime", "missing"),
        (b'{"eventTime": 5}', "eventTime", "expected `str`"),
        (b'{"eventTime": "2026-01-01T00:00:00Z"}', "", "neither run, job nor dataset"),
        (body(eventTime="yesterday"), "eventTime", "is no ISO 8601 time"),
        (body(eventTime="2026-02-30T00:00:00Z"), "eventTime", "day"),
        (body(eventTime="9999-12-31T23:59:59-05:00"), "eventTime", "not of the years"),
        (body(eventTime="0001-01-01T00:00:00+01:00"), "eventTime", "not of the years"),
        (body(eventType="DONE"), "eventType", "is none of ABORT"),
        (body(run={}), "run.runId", "missing"),
        (body(run={"runId": None}), "run.runId", "expected `str`"),
        (body(run={"runId": " "}), "run.runId", "is empty"),
        (body(job="absent"), "job", "missing"),
        (body(job={"namespace": "a"}), "job.name", "missing"),
        (body(job={"namespace": "a", "name": ""}), "job.name", "is empty"),
        (body(job={"namespace": "a", "name": "b", "facets": []}), "job.facets", "expected `object"),
        (body(job={"namespace": "n" * 5000, "name": "b"}), "job.namespace", "is longer than 4,096 bytes"),
        (body(job={"namespace": "a", "name": "x\0y"}), "job.name", "NUL"),
        (body(inputs={}), "inputs", "expected `array"),
        (body(inputs=[JOB, {"namespace": "a"}]), "inputs[1].name", "missing"),
        (body(outputs=[JOB, JOB, {"namespace": "a", "name": 3}]), "outputs[2].name", "expected `str`"),
        (body(outputs=[{"namespace": "a", "name": " "}]), "outputs[0].name", "is empty"),
        (b'{"eventTime": "' + TIME.encode() + b'", "job": {"namespace": "a", "name": "\xff"}}', "", "invalid UTF-8 at byte"),
        (b'{"eventTime": "' + TIME.encode() + b'", "x": {"y": "\xc3("}, "job": {"namespace": "a", "name": "b"}}', "", "invalid UTF-8"),
    ],
)  # fmt: skip
def test_bad_input_is_refused_with_its_path_and_reason(sent: Any, path: str, reason: str) -> None:
    with pytest.raises(EventError) as caught:
        parse(sent if isinstance(sent, bytes) else json.dumps(sent))
    assert caught.value.path == path
    assert reason in caught.value.reason


def nested(depth: int) -> bytes:
    return b'{"eventTime": "%s", "job": {"namespace": "a", "name": "b"}, "x": %s%s}' % (
        TIME.encode(),
        b"[" * depth,
        b"]" * depth,
    )


def test_limits_are_settings() -> None:
    assert parse(nested(99), Limits(max_depth=100))  # the event itself is the hundredth
    with pytest.raises(TooLarge, match="max_depth = 100"):
        parse(nested(100), Limits(max_depth=100))
    with pytest.raises(TooLarge):
        parse(nested(10_000))
    with pytest.raises(TooLarge, match="max_bytes = 50"):
        parse(json.dumps(body()), Limits(max_bytes=50))


@given(
    st.recursive(
        st.none() | st.text(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
        max_leaves=40,
    )
)
def test_depth_is_counted_right_whatever_the_strings_hold(value: Any) -> None:
    def depth(thing: Any) -> int:
        inner = thing.values() if isinstance(thing, dict) else thing if isinstance(thing, list) else None
        return 0 if inner is None else 1 + max(map(depth, inner), default=0)

    sent = json.dumps({**body(), "x": value, "brackets": '[{"\\' * 9})
    deep = max(1 + depth(value), 2)
    assert parse(sent, Limits(max_depth=deep))
    with pytest.raises(TooLarge):
        parse(sent, Limits(max_depth=deep - 1))


@given(st.binary(max_size=60) | st.text(max_size=60) | events)
def test_nothing_but_an_event_error_rises(raw: bytes | str) -> None:
    try:
        assert isinstance(parse(raw), Event)
    except EventError:
        return


@given(
    events,
    st.dictionaries(
        st.text(),
        st.integers() | st.text() | st.lists(st.floats(allow_nan=False, allow_infinity=False)),
        max_size=3,
    ),
)
def test_unknown_facets_and_fields_survive(raw: bytes, unknown: dict[str, Any]) -> None:
    value = msgspec.json.decode(raw)
    value["x_unknown"] = unknown
    if "job" in value:
        value["job"]["x_field"] = unknown
        value["job"]["facets"]["x_facet"] = unknown
    event = of(value)
    assert msgspec.json.decode(encode(event)) == value
    assert parse(encode(event)) == event


def test_white_space_does_not_make_another_event() -> None:
    plain, pretty = json.dumps(body(), separators=(",", ":")), json.dumps(body(), indent=4)
    assert parse(plain).digest == parse(pretty).digest
    assert parse(plain).digest != parse(json.dumps(body(eventType="FAIL"))).digest


def test_every_shared_event_is_taken_and_comes_back_unchanged(shared: Path) -> None:
    files = sorted((shared / "events").rglob("*.json*"))
    assert len(files) > 15
    for path in files:
        text = re.sub(rb"\{\{\w+\}\}", TIME.encode(), path.read_bytes())
        for raw in split(text):
            assert json.loads(encode(parse(raw))) == json.loads(raw), path


def test_a_body_is_split_into_its_events() -> None:
    assert split(b"") == split(b"  \n") == []
    assert split(b'{"a":1}') == [b'{"a":1}']
    assert split(b'{"a":1}\n\n{"b":2}\n') == [b'{"a":1}', b'{"b":2}']
    assert split(b'[{"a":\n1},{"b":2}]') == [b'{"a":\n1}', b'{"b":2}']
    assert split(b'{\n "a": 1\n}') == [b'{\n "a": 1\n}']
    for broken in (b"[", b"[1,", b"nope", b"[" * 20_000):
        with pytest.raises(EventError):
            split(broken)


MADE = [
    make("START", datetime(2026, 1, 1, tzinfo=timezone.utc), job=("etl", "orders"), run_id=RUN),
    make(
        "COMPLETE",
        datetime(2026, 1, 1, 1, tzinfo=timezone(timedelta(hours=2))),
        job=("etl", "orders"),
        run_id=RUN,
        inputs=[{"namespace": "s3://b", "name": "raw"}],
        outputs=[
            {
                "namespace": "s3://b",
                "name": "t",
                "facets": {
                    "schema": facet("1-1-1/SchemaDatasetFacet.json", fields=[{"name": "id", "type": "int"}])
                },
            }
        ],
        run_facets={
            "errorMessage": facet(
                "1-0-1/ErrorMessageRunFacet.json", message="m", programmingLanguage="python"
            )
        },
        job_facets={"sql": facet("1-0-1/SQLJobFacet.json", query="SELECT 1")},
    ),
    make(
        "JOB",
        datetime(2026, 1, 1, tzinfo=timezone.utc),
        job=("etl", "orders"),
        outputs=[{"namespace": "a", "name": "b"}],
    ),
    make("DATASET", datetime(2026, 1, 1, tzinfo=timezone.utc), dataset={"namespace": "a", "name": "b"}),
]


@pytest.mark.parametrize("event", MADE, ids=lambda event: f"{event.kind}-{event.type}")
def test_what_we_make_is_valid_openlineage(event: Event, shared: Path) -> None:
    assert_openlineage(json.loads(event.raw), shared)


def test_the_recorded_demo_is_valid_openlineage(shared: Path) -> None:
    from headwater.cli.demo import recorded

    lines = list(recorded())
    assert len(lines) > 10
    for line in lines:
        assert_openlineage(json.loads(line), shared)
