"""The shortest real run: a broker, one worker, a file into a topic and out of it again, from its creation to its end."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from live import eye

from connect_workers import connect

pytestmark = pytest.mark.live


def test_a_file_through_a_topic(tmp_path: Path, jars: Callable[[str], list[Path]]) -> None:
    (tmp_path / "in.txt").write_text("one\n")
    source = {
        "connector.class": "FileStreamSource",
        "file": str(tmp_path / "in.txt"),
        "topic": "lines",
        "tasks.max": "1",
    }
    sink = {
        "connector.class": "FileStreamSink",
        "file": str(tmp_path / "out.txt"),
        "topics": "lines",
        "tasks.max": "1",
    }
    with connect(tmp_path / "stack", jars("broker"), jars("connect"), {}, 1) as workers, eye(workers) as seen:
        workers.put("in", source)
        workers.put("out", sink)
        flows = {"in": "in.txt -> lines", "out": "lines -> out.txt"}
        told = {
            name: [("START", name, flow), ("RUNNING", name, f"datasets known: {flow}")]
            for name, flow in flows.items()
        }
        for name, lines in told.items():
            seen.until(name, *lines)
        seen.when(lambda: (tmp_path / "out.txt").is_file() and (tmp_path / "out.txt").read_text() == "one\n")
        workers.ask("PUT", "/connectors/in/stop")
        seen.until("in", *told["in"], ("ABORT", "in", "stopped"))
        workers.ask("DELETE", "/connectors/out")
        seen.until("out", *told["out"], ("ABORT", "out", "deleted"))
