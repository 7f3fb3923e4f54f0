"""connect._registry: topics of a connector -> their latest schemas, asked from its registry and kept while that is silent."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any
from urllib.parse import quote

from headwater.capture.connect.fields import Field
from headwater.capture.connect.schemas import parse
from headwater.capture.connect.subjects import (
    Converter,
    Part,
    Registered,
    candidates,
    compatible,
    converter,
    wanted,
)
from headwater.capture.connect.templates import resolved
from headwater.connect import Auth, Cluster
from headwater.connect._asking import Server
from headwater.errors import ConfigError, NotFound, TransportError

MAX_REFERENCES = 200


class Registries:
    """The registries that connectors of one cluster use; what they told is asked again after `refresh` seconds."""

    def __init__(
        self, cluster: Cluster, warn: Callable[[str], None], server: Callable[[str, Auth], Server]
    ) -> None:
        self._cluster, self._warn, self._server = cluster, warn, server
        self._servers: dict[str, Server] = {}
        self._logins: dict[str, Auth] = {}
        self._known: dict[tuple[str, str], tuple[float, Registered | None]] = {}
        self._subjects: dict[str, tuple[float, list[str]]] = {}
        self._silent: dict[str, float] = {}

    def schemas(
        self, config: Mapping[str, str], topics: Iterable[str], now: float
    ) -> dict[tuple[str, Part], Registered]:
        """(topic, part) -> its schema, for the parts that are wanted and registered at all."""
        found: dict[tuple[str, Part], Registered] = {}
        parts: tuple[Part, ...] = ("value", "key")
        for part in parts:
            if not wanted(self._cluster.schemas, self._cluster.naming, config, part):
                continue
            how = converter(resolved(config, self._cluster.resolve), part)
            url = self._url(how)
            if not url:
                continue
            for topic in topics:
                if schema := self._topic(url, how, part, topic, now):
                    found[topic, part] = schema
        return found

    def _url(self, how: Converter) -> str:
        """The registry to ask, if any. What a connector shows to its own registry is shown to no other."""
        if not how.registered:
            return ""
        if self._cluster.schema_registry:
            return compatible(self._cluster.schema_registry)
        if not self._cluster.registry_from_connectors or not how.url.startswith(("http://", "https://")):
            return ""
        if "${" in how.url:
            return ""
        if how.login and "${" not in how.login:
            user, _, password = how.login.partition(":")
            login = Auth(username=user, password=password)
            if self._logins.get(how.url) != login and how.url in self._servers:
                self._servers.pop(how.url).close()
            self._logins[how.url] = login
        return how.url

    def close(self) -> None:
        """Give back the connections."""
        for each in self._servers.values():
            each.close()

    def _topic(self, url: str, how: Converter, part: Part, topic: str, now: float) -> Registered | None:
        subjects = self._all(url, now) if how.strategy == "topic-record" else []
        found = [
            schema
            for subject in candidates(how.strategy, part, topic, subjects)
            if (schema := self._latest(url, subject, now)) is not None
        ]
        return _joined(found) if found else None

    def _all(self, url: str, now: float) -> list[str]:
        asked, known = self._subjects.get(url, (0.0, []))
        if url not in self._subjects or now - asked >= self._cluster.refresh:
            answer = self._get(url, "/subjects", now)
            known = [each for each in answer if isinstance(each, str)] if isinstance(answer, list) else known
            self._subjects[url] = (now, known)
        return known

    def _latest(self, url: str, subject: str, now: float) -> Registered | None:
        asked, known = self._known.get((url, subject), (float("-inf"), None))
        if now - asked < self._cluster.refresh:
            return known
        try:
            answer = self._get(url, f"/subjects/{quote(subject, safe='')}/versions/latest", now)
            if isinstance(answer, dict):
                told = (answer.get("version"), answer.get("id"))
                if known is None or told != (known.version, known.id):
                    known = self._read(url, subject, answer, now)
        except NotFound:
            known = None
        except ConfigError as fault:  # what it holds is not understood: the last that was still is
            self._warn(f"schema {subject}: {fault}")
        self._known[url, subject] = (now, known)
        return known

    def _read(self, url: str, subject: str, answer: Mapping[str, Any], now: float) -> Registered:
        text, version, number = answer.get("schema"), answer.get("version"), answer.get("id")
        if not isinstance(text, str) or not isinstance(version, int) or not isinstance(number, int):
            raise ConfigError("the registry's answer holds no schema, version and id")
        format = str(answer.get("schemaType") or "AVRO")
        references: dict[str, str] = {}
        self._references(url, answer.get("references"), references, set(), now)
        return Registered(subject, version, number, format, parse(format, text, references))

    def _references(
        self, url: str, given: Any, found: dict[str, str], seen: set[tuple[str, int]], now: float
    ) -> None:
        """The schemas that one refers to, those first that others need."""
        for each in given if isinstance(given, list) else ():
            if not isinstance(each, dict) or not isinstance(each.get("version"), int):
                continue
            key = (str(each.get("subject")), each["version"])
            if key in seen:
                continue
            seen.add(key)
            if len(seen) > MAX_REFERENCES:
                raise ConfigError(f"a schema with more than {MAX_REFERENCES} references")
            answer = self._get(url, f"/subjects/{quote(key[0], safe='')}/versions/{key[1]}", now)
            if isinstance(answer, dict) and isinstance(answer.get("schema"), str):
                self._references(url, answer.get("references"), found, seen, now)
                found[str(each.get("name"))] = answer["schema"]

    def _get(self, url: str, path: str, now: float) -> Any:
        """What it answers; None where it is silent, of which is told once, and which is asked again only a while later."""
        if now < self._silent.get(url, float("-inf")):
            return None
        if url not in self._servers:
            ours = url == compatible(self._cluster.schema_registry)
            self._servers[url] = self._server(
                url, self._cluster.registry_auth if ours else self._logins.get(url, Auth())
            )
        try:
            return self._servers[url].get(path)
        except TransportError as fault:
            if fault.cause == "missing":
                raise NotFound(path) from None
            self._silent[url] = now + self._cluster.refresh
            self._warn(f"schema registry: {fault}")
            return None


def _joined(found: list[Registered]) -> Registered:
    """Several kinds of record in one topic: all their fields."""
    if len(found) == 1:
        return found[0]
    fields = {each.name: each for schema in found for each in schema.field.fields}
    kinds = ",".join(schema.field.type for schema in found)
    return Registered(
        ",".join(each.subject for each in found),
        max(each.version for each in found),
        max(each.id for each in found),
        found[0].format,
        Field("", f"union<{kinds}>", tuple(fields.values())),
    )
