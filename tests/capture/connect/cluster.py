"""A Connect cluster, a schema registry and an Iceberg catalog that answer over real HTTP what a test tells them to."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import unquote, urlsplit


class Fake:
    """What is answered: connectors by name, schemas by subject, or one answer to everything."""

    def __init__(self) -> None:
        self.url = ""
        self.connectors: dict[str, dict[str, Any]] = {}
        self.topics: dict[str, list[str]] = {}
        self.subjects: dict[str, list[dict[str, Any]]] = {}
        self.instead: tuple[int, str, bytes] | None = None
        self.registry_instead: tuple[int, str, bytes] | None = None
        self.tables: dict[str, str] = {}
        self.catalog_instead: tuple[int, str, bytes] | None = None
        self.asked: list[str] = []
        self.headers: list[dict[str, str]] = []

    def put(self, name: str, config: dict[str, str], type: str = "sink", state: str = "RUNNING", tasks: str = "R", trace: str = "") -> None:  # fmt: skip
        words = {"R": "RUNNING", "F": "FAILED", "P": "PAUSED"}
        self.connectors[name] = {
            "info": {
                "name": name,
                "config": {**config, "name": name},
                "tasks": [{"connector": name, "task": at} for at in range(len(tasks))],
                "type": type,
            },
            "status": {
                "name": name,
                "connector": {"state": state, "worker_id": "w1:8083", **({"trace": trace} if trace else {})},
                "tasks": [
                    {"id": at, "state": words[each], "worker_id": "w1:8083", **({"trace": trace} if each == "F" else {})}
                    for at, each in enumerate(tasks)
                ],
                "type": type,
            },
        }  # fmt: skip

    def register(self, subject: str, schema: Any, **more: Any) -> None:
        versions = self.subjects.setdefault(subject, [])
        text = schema if isinstance(schema, str) else json.dumps(schema)
        number = sum(len(each) for each in self.subjects.values()) + 1
        versions.append(
            {"subject": subject, "version": len(versions) + 1, "id": number, "schema": text, **more}
        )

    def answer(self, path: str) -> tuple[int, str, bytes]:
        parts = urlsplit(path)
        steps = [unquote(each) for each in parts.path.strip("/").split("/")]
        if steps[0] == "subjects":
            return self.registry_instead or self._subject(steps[1:])
        if steps[0] == "v1":
            return self.catalog_instead or self._catalog(steps[1:])
        if self.instead:
            return self.instead
        if steps == [""]:
            return _json({"version": "4.3.1", "kafka_cluster_id": "kafka-1"})
        if steps == ["connectors"]:
            wanted = [each.partition("=")[2] for each in parts.query.split("&")]
            return _json({n: {half: each[half] for half in wanted} for n, each in self.connectors.items()})
        return _json({steps[1]: {"topics": self.topics.get(steps[1], [])}})

    def _catalog(self, steps: list[str]) -> tuple[int, str, bytes]:
        """As the REST specification of Iceberg has it, with a prefix."""
        if steps == ["config"]:
            return _json({"defaults": {}, "overrides": {"prefix": "main"}})
        location = (
            self.tables.get(f"{steps[2].replace(chr(31), '.')}.{steps[4]}") if steps[0] == "main" else None
        )
        if location is None:
            return (
                404,
                "application/json",
                b'{"error": {"message": "no such table", "type": "NoSuchTableException", "code": 404}}',
            )
        return _json({"metadata-location": f"{location}/metadata/1.json", "metadata": {"location": location}})

    def _subject(self, steps: list[str]) -> tuple[int, str, bytes]:
        if not steps:
            return _json(list(self.subjects))
        versions = self.subjects.get(steps[0])
        if not versions:
            return 404, "application/json", b'{"error_code": 40401, "message": "no"}'
        return _json(versions[-1] if steps[2] == "latest" else versions[int(steps[2]) - 1])


def _json(value: Any) -> tuple[int, str, bytes]:
    return 200, "application/json", json.dumps(value).encode()


@contextmanager
def serving() -> Iterator[Fake]:
    fake = Fake()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            fake.asked.append(self.path)
            fake.headers.append(dict(self.headers))
            code, kind, body = fake.answer(self.path)
            self.send_response(code)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            if code in (301, 302):
                self.send_header("Location", "http://elsewhere.invalid/")
            self.end_headers()
            with suppress(ConnectionError):  # whoever asked has read enough
                self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    fake.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield fake
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
