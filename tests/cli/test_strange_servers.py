"""Commands that ask a server find another one there, or no address of one: they say so, exit as told, and never show a traceback."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

Run = Callable[..., Any]


class _Stranger(BaseHTTPRequestHandler):
    """A page for every path; for those below /none, none."""

    def do_GET(self) -> None:
        body = b"<html>welcome</html>"
        self.send_response(404 if self.path.startswith("/none") else 200)
        self.send_header("Content-Type", "text/html")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        pass


@pytest.fixture(scope="module")
def stranger() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Stranger)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.mark.parametrize("below", ["", "/none"])
@pytest.mark.parametrize(
    "command", ["runs", "graph x --json", "search x", "incidents list", "audit", "tail --limit 1"]
)
def test_another_server_is_told_from_headwater(run: Run, stranger: str, command: str, below: str) -> None:
    done = run(*command.split(), "--url", stranger + below)
    assert (done.code, done.out) == (4, "")
    assert "does not answer as Headwater does" in done.err or "is no stream of changes" in done.err


def test_the_doctor_asks_no_further(run: Run, stranger: str) -> None:
    done = run("doctor", stranger)
    assert done.code == 1
    assert done.out.splitlines()[-1].startswith("broken   version: no Headwater answers there")


@pytest.mark.parametrize(
    "url", ["nonsense", "ftp://x", "http://", "http://[::1", "http://x:99999", "file:///tmp/x"]
)
def test_what_is_no_address_is_wrong_use(run: Run, url: str) -> None:
    for command in (["runs"], ["tail"], ["ingest", "-"]):
        done = run(*command, "--url", url)
        assert (done.code, "is no address of a server: write http://host:5000" in done.err) == (2, True)
    done = run("store", "import", "--marquez", url, "--store", "memory:")
    assert (done.code, "is no address of a server" in done.err) == (2, True)
