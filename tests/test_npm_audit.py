"""`scripts/npm_audit.py` asks a registry, by npm itself: findings stop, silence does not."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[1] / "scripts" / "npm_audit.py"
LOCK = {
    "name": "tried",
    "lockfileVersion": 3,
    "packages": {
        "": {"name": "tried", "dependencies": {"brittle": "1.0.0"}},
        "node_modules/brittle": {"version": "1.0.0"},
    },
}


@contextmanager
def registry(status: int, severity: str = "") -> Iterator[str]:
    """One that answers what is known against packages with a status, or with one finding of a severity."""
    advisory = {
        "id": 1,
        "url": "https://example.org/1",
        "title": "it breaks",
        "severity": severity,
        "vulnerable_versions": "<2.0.0",
    }

    class Handler(BaseHTTPRequestHandler):
        def answer(self, code: int, told: object) -> None:
            text = json.dumps(told).encode()
            self.send_response(code)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

        def do_POST(self) -> None:
            self.rfile.read(int(self.headers.get("Content-Length") or 0))
            self.answer(status, {"brittle": [advisory]} if severity else {})

        def do_GET(self) -> None:
            version = {"name": "brittle", "version": "1.0.0", "dist": {"tarball": "", "shasum": ""}}
            told = {"name": "brittle", "dist-tags": {"latest": "1.0.0"}, "versions": {"1.0.0": version}}
            self.answer(200, told)

        def log_message(self, *said: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/"
    server.shutdown()
    server.server_close()
    thread.join()


def audit(folder: Path, url: str) -> subprocess.CompletedProcess[str]:
    (folder / "package.json").write_text(json.dumps({"name": "tried", "dependencies": {"brittle": "1.0.0"}}))
    (folder / "package-lock.json").write_text(json.dumps(LOCK))
    there = {"npm_config_registry": url, "npm_config_cache": str(folder / "cache")}
    return subprocess.run(
        [sys.executable, SCRIPT, folder],
        env={**os.environ, **there},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize(
    ("status", "severity", "code", "told"),
    [
        (200, "", 0, "nothing high or worse, 0 in all"),
        (200, "moderate", 0, "nothing high or worse, 1 in all"),
        (200, "high", 1, "high: it breaks"),
        (200, "critical", 1, "critical"),
        (405, "", 0, "did not answer"),
        (500, "", 0, "did not answer"),
    ],
)
def test_findings_stop_and_silence_is_told(
    tmp_path: Path, need: Callable[[str, str], None], status: int, severity: str, code: int, told: str
) -> None:
    if shutil.which("npm") is None:
        need("npm", "apt install npm")
    with registry(status, severity) as url:
        done = audit(tmp_path, url)
    assert (done.returncode, told in done.stdout + done.stderr) == (code, True), done.stdout + done.stderr


def test_a_registry_that_is_not_there_is_no_fault_of_ours(
    tmp_path: Path, need: Callable[[str, str], None]
) -> None:
    if shutil.which("npm") is None:
        need("npm", "apt install npm")
    done = audit(tmp_path, "http://127.0.0.1:9/")
    assert (done.returncode, "did not answer" in done.stdout) == (0, True), done.stdout + done.stderr
