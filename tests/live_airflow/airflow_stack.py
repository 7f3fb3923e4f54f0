"""Nothing -> lineage servers in every state that an Airflow can meet."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from lineage_server import Answer, Request, Server, running

STATES = ("up", "down", "refusing", "hanging", "500", "429", "207")
DAGS = Path(__file__).parent / "dags"


@dataclass
class States:
    """A server for each state; `mend` lets it answer as it should."""

    urls: dict[str, str] = field(default_factory=dict)
    servers: dict[str, Server] = field(default_factory=dict)
    stack: ExitStack = field(default_factory=ExitStack)

    mended: threading.Event = field(default_factory=threading.Event)

    def mend(self, state: str) -> Server:
        """The server as it is when its operator came back: all that waits is to arrive."""
        if state == "down":
            port = int(self.urls[state].rpartition(":")[2])
            self.servers[state] = self.stack.enter_context(contextmanager(running)(port=port))
        server = self.servers[state]
        server.rule, server.always = None, Answer(201)
        if state == "hanging":
            self.mended.set()
        server.requests.clear()  # what it answered with an error it did not take
        return server


@contextmanager
def states() -> Iterator[States]:
    made = States()
    with made.stack:
        for state in STATES:
            if state == "down":
                continue
            server = made.servers[state] = made.stack.enter_context(contextmanager(running)())
            made.urls[state] = server.url
            if state == "refusing":
                server.always = Answer(403, {"message": "go away"})
            elif state == "500":
                server.always = Answer(500)
            elif state == "429":
                server.always = Answer(429, headers={"Retry-After": "1"})
            elif state == "207":
                server.rule = refuse_some
            elif state == "hanging":
                server.rule = lambda request: Answer(503) if made.mended.wait(3600) else None
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            made.urls["down"] = f"http://localhost:{free.getsockname()[1]}"
        try:
            yield made
        finally:
            made.mended.set()  # or its threads would wait on


def refuse_some(request: Request) -> Answer:
    """207: it takes all but the events of failed runs, for good."""
    events = request.json if isinstance(request.json, list) else [request.json]
    bad = [at for at, event in enumerate(events) if event.get("eventType") == "FAIL"]
    if not isinstance(request.json, list):
        return Answer(422, {"message": "no FAIL here"}) if bad else Answer(201)
    failed = [{"index": at, "reason": "no FAIL here", "retriable": False} for at in bad]
    return Answer(207 if bad else 200, {"failed_events": failed})
