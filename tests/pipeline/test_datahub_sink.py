"""DataHub from the pipeline: Spark puts run groups together as one process does, over batches too."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest

from headwater import pipeline
from headwater.deliver.datahub import Converter
from headwater.errors import ConfigError
from headwater.pipeline.sinks import open_sink

PRODUCER = "https://github.com/OpenLineage/OpenLineage/tree/1.50.0/integration/spark"


def story(app: int) -> list[bytes]:
    """An application with two queries, of which each event knows a part."""
    whole = f"0197f3c6-0000-7000-8000-0000000a{app:04x}"
    out = []
    for step, kind in enumerate(("START", "RUNNING", "COMPLETE", "COMPLETE")):
        query = f"0197f3c6-0000-7000-8000-00{step % 2:02x}000b{app:04x}"
        parent = {
            "run": {"runId": whole},
            "job": {"namespace": "ns", "name": f"app{app}"},
            "_producer": PRODUCER,
        }
        out.append(
            {
                "eventTime": f"2026-01-01T00:00:{step:02}Z", "eventType": kind, "producer": PRODUCER,
                "run": {"runId": query, "facets": {"parent": parent}},
                "job": {"namespace": "ns", "name": f"app{app}.query", "facets": {"jobType": {"jobType": "SQL_JOB"}}},
                "outputs": [{"namespace": "hive", "name": f"t{app}_{step}"}] if step else [],
            }
        )  # fmt: skip
    return [json.dumps(each).encode() for each in out]


def told(file: Path) -> dict[tuple[str, str, str], Any]:
    """What DataHub would hold after the file: the last of each aspect."""
    rows = json.loads(file.read_text())
    return {
        (each["entityUrn"], each["aspectName"], str(each["aspect"]["json"].get("timestampMillis"))): each
        for each in rows
    }


def expected(lines: list[bytes]) -> dict[tuple[str, str, str], Any]:
    made = Converter(by="application").convert_all(lines, pytest.fail)
    return {
        (each["entityUrn"], each["aspectName"], str(each["aspect"]["json"].get("timestampMillis"))): each
        for each in made
    }


def test_a_batch_tells_what_one_process_would(spark: Any, tmp_path: Path) -> None:
    lines = [line for app in range(20) for line in story(app)]
    random.Random(7).shuffle(lines)
    lines += lines[:10]
    for part in range(3):
        (tmp_path / "in").mkdir(exist_ok=True)
        (tmp_path / "in" / f"{part}.jsonl").write_bytes(b"\n".join(lines[part::3]))
    out = tmp_path / "mcps.json"
    report = pipeline.run(spark, f"{tmp_path}/in", f"datahub+file://{out}")
    assert report.events == len(lines)
    assert told(out) == expected(lines)


def test_groups_reach_over_batches_with_a_state(spark: Any, tmp_path: Path) -> None:
    lines = [line for app in range(4) for line in story(app)]
    out = tmp_path / "mcps.json"
    sink = f"datahub+file://{out}?state={tmp_path}/state"
    for number, part in enumerate((lines[::2], lines[1::2], lines[1::2])):
        (tmp_path / f"{number}.jsonl").write_bytes(b"\n".join(part))
        pipeline.run(spark, f"{tmp_path}/{number}.jsonl", sink, batch=f"b{number}")
    found = told(out)
    # what the first batch told of ends stays beside it, as DataHub keeps the past of a run
    assert {key: found.get(key) for key in expected(lines)} == expected(lines)


def test_what_needs_the_order_of_events_or_is_wrong_is_refused() -> None:
    with pytest.raises(ConfigError, match="compat needs events in their order"):
        open_sink("datahub+file:///tmp/x.json", options={"compat": "datahub-java"})
    with pytest.raises(ConfigError, match="names no host"):
        open_sink("datahub+rest://")
    with pytest.raises(ConfigError, match="keeps no tables"):
        open_sink("datahub+file:///tmp/x.json").rows(None, "jobs")  # type: ignore[arg-type]
