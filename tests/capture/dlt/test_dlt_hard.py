"""Bad input: whatever it is, the pipeline goes on, no secret appears, and the reason is told once."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import pytest
from dlt.common.configuration.exceptions import ConfigurationException
from oracle import loaded
from telling import Told, needs_inputs, pairs

import dlt
import headwater.dlt
from headwater.capture.dlt import recording

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning:dlt")  # of its own older options


@pytest.fixture
def warnings_of(caplog: pytest.LogCaptureFixture) -> Any:
    """`warnings_of()`: what Headwater has logged so far."""
    caplog.set_level(logging.WARNING, logger="headwater")
    return lambda: [each.getMessage() for each in caplog.records if each.name.startswith("headwater")]


def test_a_destination_that_nobody_knows_is_a_sink_of_its_name(told: Told, warnings_of: Any) -> None:
    place = dlt.destinations.dummy(completed_prob=1.0)
    dlt.pipeline("odd", destination=place).run([{"Some Id": 1}], table_name="t")
    end = told.end()
    assert end["eventType"] == "COMPLETE"
    (out,) = end["outputs"]
    assert out["namespace"].endswith("//dummy")
    assert pairs(end) == {("t", "some_id", "dlt/t", "Some Id")}
    assert warnings_of() == []


def test_no_destination_at_all_fails_as_dlt_fails_and_is_told_once(told: Told) -> None:
    with pytest.raises(Exception, match=r"(?i)destination"):
        dlt.pipeline("nowhere").run([{"a": 1}], table_name="t")
    assert [each["outputs"] for each in told() if each["eventType"] == "FAIL"] in ([], [[]])


@pytest.mark.parametrize("step", ["extracted", "normalised", "loaded"])
def test_a_step_that_cannot_be_read_costs_its_own_part_and_is_said_once(
    told: Told, duck: Any, monkeypatch: pytest.MonkeyPatch, warnings_of: Any, step: str
) -> None:
    def broken(*args: Any, **options: Any) -> Any:
        raise KeyError("postgresql://fred:hunter2@db/shop has no such field")

    monkeypatch.setattr(recording, step, broken)
    pipeline = duck()
    for _ in range(3):
        info = pipeline.run([{"id": 1}], table_name="t")
        info.raise_on_failed_jobs()
    ends = told("COMPLETE")
    assert len(ends) == 3
    for end in ends:
        reason = end["run"]["facets"]["headwater_degraded"]["reasons"][-1]
        assert "could not be read: KeyError" in reason
    assert len([each for each in warnings_of() if "KeyError" in each]) == 1
    assert "hunter2" not in told.file.read_text() + "".join(warnings_of())
    if step == "loaded":
        assert all(end["outputs"] == [] for end in ends)
    else:
        assert all([each["name"] for each in end["outputs"]] == ["raw.t"] for end in ends)


def test_files_that_cannot_be_read_leave_their_columns_unknown_and_say_so(
    told: Told, duck: Any, monkeypatch: pytest.MonkeyPatch, warnings_of: Any
) -> None:
    def broken(*args: Any) -> Any:
        raise OSError("the disk is gone")

    monkeypatch.setattr(recording, "look", broken)
    duck().run([{"id": 1}], table_name="t")
    facet = told.end()["outputs"][0]["facets"]["dlt_table"]
    assert (facet["columns_of_unknown_source"], facet["why"]) == (
        ["id"],
        "what was extracted could not be read",
    )
    assert len(warnings_of()) == 1


EXOTIC = [
    'quo"te',
    "apo'strophe",
    "new\nline",
    "tab\there",
    " ",
    "",
    "🦆",
    "$['x']",
    "a[*].b",
    "%s",
    "{brace}",
    "back\\slash",
    "NULL",
    "'; DROP TABLE t; --",
    "x" * 300,
    "日本語",
]


@pytest.mark.parametrize("naming", ["snake_case", "sql_cs_v1", "sql_ci_v1"])
def test_exotic_names_of_fields(naming: str, monkeypatch: pytest.MonkeyPatch) -> None:
    data = [{name: f"s{7_000_000 + at}e"} for at, name in enumerate(EXOTIC)]
    there, told, _ = loaded(data, naming, None, monkeypatch)
    # found again one by one; what no path can be shown for (an empty name) is called `value`
    assert told == there != set()


def test_names_that_look_like_secrets_are_names(told: Told, duck: Any) -> None:
    duck().run([{"password": "pw1", "api_key": "k1", "nested": {"token": "t1"}}], table_name="t")
    assert {(column, field) for _, column, _, field in pairs(told.end())} == {
        ("password", "password"),
        ("api_key", "api_key"),
        ("nested__token", "nested.token"),
    }


SECRETS = ("hunter2", "s3cr3t", "t0psecret", "k3y-9")


@needs_inputs
def test_no_secret_of_a_source_or_a_destination_appears(
    told: Told, duck: Any, monkeypatch: pytest.MonkeyPatch, warnings_of: Any, tmp_path: Path
) -> None:
    monkeypatch.setenv("SOURCES__CRM__API_KEY", "k3y-9")

    @dlt.source(name="crm")
    def crm(api_key: str = dlt.secrets.value) -> Any:
        assert api_key == "k3y-9"
        rows = dlt.resource([{"id": 1}], name="people")
        return rows.add_input(
            {"kind": "crm", "location": "https://fred:hunter2@crm.example.org/v1?token=t0psecret&sig=s3cr3t"}
        )

    duck().run(crm())
    place = dlt.destinations.postgres(
        "postgresql://fred:hunter2@127.0.0.1:9/shop?sslpassword=s3cr3t&connect_timeout=1"
    )
    with pytest.raises(Exception, match=r"(?i)connect"):
        dlt.pipeline("gone", destination=place, pipelines_dir=str(tmp_path / "p")).run(
            [{"id": 1}], table_name="t"
        )

    @dlt.resource
    def talks() -> Any:
        yield {"id": 1}
        raise RuntimeError(
            "401 from https://fred:hunter2@crm.example.org/?api_key=k3y-9 Authorization: Bearer t0psecret"
        )

    with pytest.raises(Exception, match="401"):
        duck("talks").run(talks())
    text = told.file.read_text() + "".join(warnings_of())
    kept = "".join(
        file.read_text(errors="replace") for file in tmp_path.rglob("headwater/*") if file.is_file()
    )
    for secret in SECRETS:
        assert secret not in text
        assert secret not in kept
    assert told.end("gone")["eventType"] == told.end("talks")["eventType"] == "FAIL"
    assert ("https://crm.example.org", "/v1") in {
        (each["namespace"], each["name"]) for each in told.end("shop")["inputs"]
    }


def test_settings_that_are_wrong_raise_where_they_are_given(tmp_path: Path) -> None:
    for wrong in ({"naming": "other"}, {"sample": -1}, {"nonsense": 1}):
        with pytest.raises(headwater.errors.ConfigError):
            headwater.dlt.install(transport=f"file://{tmp_path}/x.jsonl", **wrong)


def test_columns_may_be_left_alone(told: Told, duck: Any) -> None:
    import pyarrow as pa

    headwater.dlt.uninstall()
    headwater.dlt.install(transport=f"file://{told.file}", columns=False)
    duck().run([dlt.resource([{"id": 1}], name="t"), dlt.resource([pa.table({"A b": [1]})], name="frame")])
    end = told.end()
    assert pairs(end) == set()
    assert {each["facets"]["dlt_table"]["why"] for each in end["outputs"]} == {
        "columns are not followed: the setting says so"
    }


def test_dlts_own_errors_are_what_the_caller_gets(told: Told, tmp_path: Path) -> None:
    with pytest.raises((ConfigurationException, Exception)) as bare:
        dlt.pipeline("bad", destination="no_such_destination").run([{"a": 1}], table_name="t")
    headwater.dlt.uninstall()
    with pytest.raises(type(bare.value)):
        dlt.pipeline("bad", destination="no_such_destination").run([{"a": 1}], table_name="t")
