"""Events in a file -> what a test asks of them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import dlt

VERSION = tuple(int(part) for part in dlt.__version__.split(".")[:2])
TELLS_INPUTS = VERSION >= (1, 30)
needs_inputs = pytest.mark.skipif(
    not TELLS_INPUTS, reason="dlt before 1.30 does not tell where resources read from"
)


class Told:
    """The events that came out so far."""

    def __init__(self, file: Path) -> None:
        self.file = file

    def __call__(self, kind: str | None = None, job: str | None = None) -> list[dict[str, Any]]:
        lines = self.file.read_text().splitlines() if self.file.exists() else []
        events = [json.loads(line) for line in lines]
        return [
            each
            for each in events
            if (kind is None or each["eventType"] == kind) and (job is None or each["job"]["name"] == job)
        ]

    def end(self, job: str | None = None) -> dict[str, Any]:
        """The one event that ended the run."""
        ends = [each for each in self(job=job) if each["eventType"] in ("COMPLETE", "FAIL", "ABORT")]
        assert len(ends) == 1, [(each["eventType"], each["job"]["name"]) for each in self()]
        return ends[0]

    def clear(self) -> None:
        self.file.unlink(missing_ok=True)


def pairs(event: dict[str, Any]) -> set[tuple[str, str, str, str]]:
    """(table, column, source, field) of every column edge that an event tells."""
    return {
        (out["name"].rpartition(".")[2].rpartition("/")[2], column, each["name"], each["field"])
        for out in event["outputs"]
        for column, field in out["facets"].get("columnLineage", {"fields": {}})["fields"].items()
        for each in field["inputFields"]
    }
