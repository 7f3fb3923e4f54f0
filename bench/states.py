"""states: up, down or hanging -> the url of a server in that state, for benches of what sends events."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Taker(BaseHTTPRequestHandler):
    """A server that takes every event at once."""

    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        if self.headers.get("Transfer-Encoding") == "chunked":
            while size := int(self.rfile.readline().split(b";")[0], 16):
                self.rfile.read(size + 2)
            self.rfile.readline()
        else:
            self.rfile.read(int(self.headers.get("Content-Length", 0)))
        body = b"{}"
        self.send_response(201)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None: ...


@contextlib.contextmanager
def server(state: str) -> Iterator[str]:
    """The url of a server in that state."""
    if state == "up":
        taker = ThreadingHTTPServer(("127.0.0.1", 0), Taker)
        taker.daemon_threads = True
        threading.Thread(target=taker.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{taker.server_address[1]}"
        taker.shutdown()
        return
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{listening.getsockname()[1]}"
        if state == "down":
            listening.close()
            yield url
            return
        listening.listen(64)
        held: list[object] = []

        def accept() -> None:
            with contextlib.suppress(OSError):
                while True:
                    held.append(listening.accept())

        threading.Thread(target=accept, daemon=True).start()
        yield url
