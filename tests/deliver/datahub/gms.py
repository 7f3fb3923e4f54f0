"""A server that answers as GMS does, well or badly, and remembers what it took."""

from __future__ import annotations

import json
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass
class Answer:
    status: int = 200
    body: Any = None
    headers: dict[str, str] = field(default_factory=dict)
    wait: float = 0.0
    truncated: bool = False
    """Says that more is coming than comes, and hangs up."""


@dataclass
class Gms:
    """`answers` are given in turn; after that each proposal is taken, unless `refuses` says what is wrong with it."""

    url: str = ""
    answers: deque[Answer] = field(default_factory=deque)
    requests: list[dict[str, Any]] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    taken: list[dict[str, Any]] = field(default_factory=list)
    refuses: Callable[[dict[str, Any]], str | None] = lambda proposal: None
    """Why a proposal is refused."""
    per_item: bool = True
    """Whether what is wrong is told of single proposals, with 200; else the whole batch is refused."""
    batches: bool = True

    def answer(self, path: str, headers: dict[str, str], body: bytes) -> Answer:
        told = json.loads(body)
        self.requests.append({"path": path, **told})
        self.headers.append(headers)
        if self.answers:
            return self.answers.popleft()
        if path.endswith("ingestProposalBatch"):
            if not self.batches:
                return Answer(404, {"message": "no such action"})
            return self.take(told["proposals"])
        return self.take([told["proposal"]])

    def take(self, proposals: list[dict[str, Any]]) -> Answer:
        wrong = [self.refuses(each) for each in proposals]
        if any(wrong) and not self.per_item:
            return Answer(422, {"status": 422, "message": next(why for why in wrong if why)})
        for each, why in zip(proposals, wrong, strict=True):
            if why is None:
                value = json.loads(each["aspect"]["value"])
                self.taken.append({**each, "aspect": value, "contentType": each["aspect"]["contentType"]})
        if any(wrong):
            rows = [
                {"status": 200} if why is None else {"status": 422, "error": {"message": why}}
                for why in wrong
            ]
            return Answer(200, {"elements": rows})
        return Answer(200, {"value": "ok"})


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    gms: Gms

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        answer = self.gms.answer(self.path, dict(self.headers), body)
        if answer.wait:
            time.sleep(answer.wait)
        text = b"" if answer.body is None else json.dumps(answer.body).encode()
        self.send_response(answer.status)
        length = len(text) + (100 if answer.truncated else 0)
        for name, value in {**answer.headers, "Content-Length": str(length)}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(text)
        if answer.truncated:
            self.close_connection = True

    def log_message(self, *args: object) -> None:
        pass


class _Quiet(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        pass  # a client that gave up waiting is part of the tests


@contextmanager
def running(port: int = 0) -> Iterator[Gms]:
    gms = Gms()
    http = _Quiet(("127.0.0.1", port), type("Handler", (_Handler,), {"gms": gms}))
    gms.url = f"http://127.0.0.1:{http.server_port}"
    thread = threading.Thread(target=http.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield gms
    finally:
        http.shutdown()
        thread.join()
        http.server_close()
