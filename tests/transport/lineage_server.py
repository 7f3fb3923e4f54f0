"""A real server that answers as it is told and remembers what it was sent."""

from __future__ import annotations

import gzip
import json
import ssl
import threading
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass
class Request:
    path: str
    headers: dict[str, str]
    body: bytes
    port: int = 0  # of the client: one for each connection

    @property
    def json(self) -> Any:
        return json.loads(self.body)


@dataclass
class Answer:
    status: int = 201
    body: Any = None
    headers: dict[str, str] = field(default_factory=dict)


@dataclass
class Server:
    """`answers` are given in turn, then `always`; `rule`, where set, decides by the request."""

    url: str = ""
    requests: list[Request] = field(default_factory=list)
    answers: deque[Answer] = field(default_factory=deque)
    always: Answer = field(default_factory=Answer)
    rule: Callable[[Request], Answer | None] | None = None

    @property
    def events(self) -> list[Any]:
        """Every event of every request, in the order of arrival."""
        out: list[Any] = []
        for request in self.requests:
            out += request.json if isinstance(request.json, list) else [request.json]
        return out

    def answer(self, request: Request) -> Answer:
        self.requests.append(request)
        if self.rule and (ruled := self.rule(request)):
            return ruled
        return self.answers.popleft() if self.answers else self.always


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # headers and body are two writes: 40 ms each otherwise
    told: Server

    def do_POST(self) -> None:
        length = int(self.headers["Content-Length"])
        if len(body := self.rfile.read(length)) < length:
            self.close_connection = True
            return  # the client was killed while it sent: a server takes no half of a request
        if self.headers.get("Content-Encoding") == "gzip":
            body = gzip.decompress(body)
        answer = self.told.answer(Request(self.path, dict(self.headers), body, self.client_address[1]))
        raw = answer.body if isinstance(answer.body, bytes) else None
        text = raw or (b"" if answer.body is None else json.dumps(answer.body).encode())
        self.send_response(answer.status)
        for name, value in {**answer.headers, "Content-Length": str(len(text))}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, *args: object) -> None:
        pass


class _Quiet(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        pass  # a client that hangs up is part of the tests


def running(context: ssl.SSLContext | None = None, port: int = 0) -> Iterator[Server]:
    told = Server()
    http = _Quiet(("127.0.0.1", port), type("Handler", (_Handler,), {"told": told}))
    if context:
        http.socket = context.wrap_socket(http.socket, server_side=True)
    told.url = f"{'https' if context else 'http'}://localhost:{http.server_port}"
    thread = threading.Thread(target=http.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield told
    http.shutdown()
    thread.join()
    http.server_close()
