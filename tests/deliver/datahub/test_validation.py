"""Every recorded event converts, and every proposal is one to DataHub's own SDK."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import test_fixes
from making import options

from headwater.deliver.datahub import Converter, Refused

Wrong = Callable[[list[dict[str, Any]]], list[tuple[dict[str, Any], str]]]
EVERYTHING = {
    "platform_instance": "inst",
    "dataset_platform_instance": "data",
    "tags": ("a", "urn:li:tag:b,c"),
    "domains": ("urn:li:domain:x",),
    "parent_job": "urn:li:dataJob:(urn:li:dataFlow:(airflow,d,PROD),t)",
    "parent_edges": True,
    "legacy_cleanup": True,
    "field_paths": "v2",
}


def recorded(shared: Path) -> list[bytes]:
    """Every event under `events`; templates are filled in."""
    out = []
    for file in sorted((shared / "events").rglob("*.json*")):
        text = re.sub(r"\{\{\w+_TIME\w*\}\}", "2026-01-01T00:00:00Z", file.read_text())
        if file.suffix == ".jsonl":
            out += [line.encode() for line in text.splitlines() if line.strip()]
        else:
            told = json.loads(text)
            out += [json.dumps(each).encode() for each in (told if isinstance(told, list) else [told])]
    return out


@pytest.mark.parametrize("by", ["none", "run", "application", "group"])
def test_every_recorded_event_converts(shared: Path, by: str) -> None:
    events = recorded(shared)
    refused: list[Refused] = []
    made = list(Converter(by=by).convert_all(events, refused.append))
    assert [each.reason for each in refused] == []
    assert len(events) > 50
    assert len(made) > 100


@pytest.mark.live
@pytest.mark.parametrize(
    "given", [{}, EVERYTHING, {**EVERYTHING, "patch": True}], ids=["plain", "all", "patch"]
)
@pytest.mark.parametrize("compat", [None, "datahub-java"])
@pytest.mark.parametrize("by", ["none", "application"])
def test_every_proposal_of_recorded_events_is_valid(
    shared: Path, wrong: Wrong, given: dict[str, Any], compat: str | None, by: str
) -> None:
    converter = Converter(options(compat=compat, **given), by)
    made = list(converter.convert_all(recorded(shared), lambda refused: None))
    assert len(made) > 100
    assert wrong(made) == []


@pytest.mark.live
def test_every_proposal_of_the_table_of_fixes_is_valid(wrong: Wrong) -> None:
    made = [
        each
        for row in test_fixes.ROWS
        for each in Converter(options(**row.given), row.by).convert_all(
            [one.raw for one in row.told], pytest.fail
        )
    ]
    assert wrong(made) == []


@pytest.mark.live
def test_a_proposal_that_is_none_is_found(wrong: Wrong) -> None:
    bad = {
        "entityType": "dataJob",
        "entityUrn": "urn:li:dataJob:x",
        "changeType": "UPSERT",
        "aspectName": "dataJobInfo",
    }
    assert wrong([{**bad, "aspect": {"json": {"name": 5}}}])
