"""Recorded programs -> events, without Spark."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

from headwater.capture.spark import State, interpret

RECORDS = Path(__file__).with_name("records")
VERSIONS = sorted(path.parent.name for path in RECORDS.glob("*/session.json"))
RECORDED = [
    (version, path.stem) for version in VERSIONS for path in sorted((RECORDS / version).glob("*.jsonl"))
]
ROOT = "/data"
APP = "01a8a000-0000-7000-8000-000000000001"
START = 1_790_000_000_000

Record = dict[str, Any]
Event = dict[str, Any]


@cache
def _session(version: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((RECORDS / version / "session.json").read_text(encoding="utf-8"))
    return found


def records(version: str, name: str) -> list[Record]:
    lines = (RECORDS / version / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines]


def state(version: str = VERSIONS[-1] if VERSIONS else "4.1", **conf: str) -> State:
    session = _session(version)
    return State("tests", "programs", APP, version=session["version"], conf={**session["conf"], **conf})


def replay(told: list[Record], s: State) -> list[Event]:
    """The events of an application that did this and nothing else."""
    whole = [{"kind": "app_start", "time": START}, *told]
    whole.append({"kind": "app_end", "time": max([START, *(each.get("time", 0) for each in told)])})
    return [event for each in whole for event in interpret(each, s)]
