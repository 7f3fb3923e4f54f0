"""A dlt of its own for each test: folders of its own, no telemetry, and the events that were told."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("dlt", reason="needs dlt; get it with: pip install 'headwater[dlt]'")

from telling import VERSION, Told

import dlt
import headwater.dlt


@pytest.fixture(autouse=True)
def _own_dlt(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    for name, value in {
        "DLT_DATA_DIR": str(tmp_path / "dlt"),
        "RUNTIME__DLTHUB_TELEMETRY": "false",
        "RUNTIME__LOG_LEVEL": "CRITICAL",
        "EXTRACT__WORKERS": "1",
    }.items():
        monkeypatch.setenv(name, value)
    monkeypatch.chdir(tmp_path)
    yield
    headwater.dlt.uninstall()


@pytest.fixture
def told(tmp_path: Path) -> Told:
    """Capture from here on."""
    file = tmp_path / "events.jsonl"
    headwater.dlt.install(transport=f"file://{file}")
    return Told(file)


@pytest.fixture
def duck(tmp_path: Path) -> Any:
    """`duck("name")`: a pipeline into a DuckDB file of its own."""

    def made(name: str = "shop", dataset: str = "raw", **options: Any) -> Any:
        file = tmp_path / f"{options.pop('file', name)}.duckdb"
        return dlt.pipeline(
            name,
            destination=dlt.destinations.duckdb(str(file)),
            dataset_name=dataset,
            pipelines_dir=str(tmp_path / "pipelines"),
            **options,
        )

    return made


@pytest.fixture
def environment() -> Callable[..., dict[str, str]]:
    """`environment(NAME="value")`: that of this test, for a program of its own."""
    return lambda **more: {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), **more}


@pytest.fixture
def captured(tmp_path: Path, environment: Callable[..., dict[str, str]]) -> Callable[..., Told]:
    """`captured("job.py", cwd=…)`: run a Python program of its own without any code of ours in it -> what it told."""

    def run(*words: str, cwd: Path = tmp_path) -> Told:
        file = tmp_path / "captured.jsonl"
        by_plugin = VERSION >= (1, 27)
        before = (
            []
            if by_plugin
            else ["-m", "headwater", "run", "--transport", f"file://{file}", "--", sys.executable]
        )
        env = environment(**({"HEADWATER_TRANSPORT": f"file://{file}"} if by_plugin else {}))
        subprocess.run([sys.executable, *before, *words], env=env, cwd=cwd, check=True)
        return Told(file)

    return run


class Web(ThreadingHTTPServer):
    """A server on this machine that answers GET with some posts, takes events by POST, and remembers what it was asked."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Answering)
        self.events: list[Any] = []
        self.keys: set[str] = set()
        self.paths: list[str] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


class _Answering(BaseHTTPRequestHandler):
    server: Web

    def do_GET(self) -> None:
        self.server.paths.append(self.path)
        self._answer(200, b'[{"id": 1, "title": "x", "tags": ["a", "b"]}]')

    def do_POST(self) -> None:
        said = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.events += said if isinstance(said, list) else [said]
        self.server.keys.add(self.headers.get("Authorization", ""))
        self._answer(201, b"")

    def _answer(self, status: int, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args: Any) -> None:
        pass


@pytest.fixture
def web() -> Iterator[Web]:
    with Web() as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server
        server.shutdown()
        thread.join()
