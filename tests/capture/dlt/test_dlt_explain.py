"""`headwater dlt explain`: what a real run left on this machine -> what is printed of it."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from telling import Told, pairs

import dlt
from headwater.cli import main

Explain = Callable[..., tuple[int, str]]


@pytest.fixture
def explain(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Explain:
    """`explain("shop")` -> the exit code, and what was printed."""

    def call(*words: str) -> tuple[int, str]:
        monkeypatch.setattr(
            sys,
            "argv",
            ["headwater", "dlt", "explain", "--pipelines-dir", str(tmp_path / "pipelines"), *words],
        )
        with pytest.raises(SystemExit) as done:
            main()
        return int(done.value.code or 0), capsys.readouterr().out

    return call


def test_a_run_is_explained_as_it_was_told(told: Told, duck: Any, explain: Explain) -> None:
    duck().run(dlt.resource([{"Order ID": 1, "tags": ["a"]}], name="orders"))
    code, said = explain("shop")
    assert code == 0
    assert "dlt/shop  COMPLETE" in said
    assert "reads  dlt/dlt/orders" in said
    assert "order_id <- dlt/orders: Order ID" in said
    assert "made by dlt: _dlt_load_id, _dlt_id" in said
    events = json.loads(explain("shop", "--json")[1])
    assert pairs(events[-1]) == pairs(told.end())
    assert events[-1]["run"]["runId"] == told.end()["run"]["runId"]
    assert events[-1]["outputs"] == told.end()["outputs"]


def test_a_run_that_nobody_captured_is_explained_without_its_columns(duck: Any, explain: Explain) -> None:
    duck().run([{"Order ID": 1}], table_name="orders")
    code, said = explain("shop")
    assert code == 0
    assert "of unknown source: order_id" in said
    assert "extracted without Headwater" in said


def test_a_run_that_failed_and_one_that_loaded_nothing(told: Told, duck: Any, explain: Explain) -> None:
    @dlt.resource
    def broken() -> Any:
        yield {"a": 1}
        raise ValueError("the well is dry")

    with pytest.raises(Exception, match="dry"):
        duck().run(broken())
    _, said = explain("shop")
    assert "FAIL" in said
    assert "failed: ValueError: the well is dry" in said
    duck("idle").extract([{"a": 1}], table_name="t")
    _, said = explain("idle")
    assert "nothing was loaded, so no output is claimed; planned: t" in said


def test_the_names_of_dlt_openlineage_on_request(duck: Any, explain: Explain) -> None:
    duck().run([{"a": 1}], table_name="t")
    _, said = explain("shop", "--naming", "dlt-openlineage")
    assert "writes duckdb://local/raw.t" in said


def test_a_pipeline_that_is_not_here_and_a_trace_that_is_broken(duck: Any, explain: Explain) -> None:
    assert explain("nobody")[0] == 3
    assert explain("no/name")[0] == 3
    pipeline = duck()
    pipeline.run([{"a": 1}], table_name="t")
    (trace,) = Path(pipeline.working_dir).glob("trace.pickle")
    trace.write_bytes(b"no pickle at all")
    assert explain("shop")[0] == 3
