"""connect._catalogs: the tables of an Iceberg sink -> where its catalog says that they lie, asked over HTTP where it can be.

Only a REST catalog is asked: a Hadoop catalog has no choice, and of the others the documented default is told. What the catalog
does not know yet, or cannot be asked for, is asked again after a while; the catalog's name of the table is told in any case.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any
from urllib.parse import quote

from headwater.capture.connect.sinks import catalog_kind
from headwater.capture.connect.templates import resolved
from headwater.connect import Auth, Cluster
from headwater.connect._asking import Server
from headwater.errors import TransportError

_BELOW = "iceberg.catalog."
LONG = 10
"""How many times `refresh` a location that is known is believed."""


class Catalogs:
    """The REST catalogs that connectors of one cluster write by."""

    def __init__(
        self, cluster: Cluster, warn: Callable[[str], None], server: Callable[[str, Auth], Server]
    ) -> None:
        self._cluster, self._warn, self._server = cluster, warn, server
        self._servers: dict[tuple[str, str], Server] = {}
        self._prefixes: dict[tuple[str, str], str] = {}
        self._known: dict[tuple[str, str, str], tuple[float, str]] = {}
        self._silent: dict[str, float] = {}

    def locations(self, config: Mapping[str, str], tables: Sequence[str], now: float) -> dict[str, str]:
        """table -> its location, of those that are known."""
        if not tables or not self._cluster.ask_catalogs:
            return {}
        settings = resolved(config, self._cluster.resolve)
        uri = settings.get(f"{_BELOW}uri", "").rstrip("/")
        if catalog_kind(settings) != "rest" or not uri.startswith(("http://", "https://")) or "${" in uri:
            return {}
        warehouse = settings.get(f"{_BELOW}warehouse", "")
        found = {}
        for table in tables:
            asked, location = self._known.get((uri, warehouse, table), (float("-inf"), ""))
            if now - asked >= self._cluster.refresh * (LONG if location else 1):
                location = self._ask(settings, uri, warehouse, table, now) or location
                self._known[uri, warehouse, table] = (now, location)
            if location:
                found[table] = location
        return found

    def close(self) -> None:
        """Give back the connections."""
        for each in self._servers.values():
            each.close()

    def _ask(self, settings: Mapping[str, str], uri: str, warehouse: str, table: str, now: float) -> str:
        if now < self._silent.get(uri, float("-inf")):
            return ""
        try:
            server = self._open(settings, uri)
            if (uri, warehouse) not in self._prefixes:
                query = f"?warehouse={quote(warehouse, safe='')}" if warehouse else ""
                self._prefixes[uri, warehouse] = _prefix(server.get(f"/v1/config{query}"))
            *levels, name = table.split(".")
            place = f"namespaces/{quote(chr(31).join(levels), safe='')}/tables/{quote(name, safe='')}"
            answer = server.get(f"/v1/{self._prefixes[uri, warehouse]}{place}?snapshots=refs")
        except TransportError as fault:
            if fault.cause not in ("missing", "http_404"):  # what is not there yet, its sink will create
                self._silent[uri] = now + self._cluster.refresh
                self._warn(f"Iceberg catalog: {fault}; until it answers, the usual locations are told")
            return ""
        metadata = answer.get("metadata") if isinstance(answer, dict) else None
        location = metadata.get("location") if isinstance(metadata, dict) else None
        return location if isinstance(location, str) else ""

    def _open(self, settings: Mapping[str, str], uri: str) -> Server:
        """With what the connector itself shows to this catalog, unless the cluster's settings say otherwise."""
        token = settings.get(f"{_BELOW}token", "")
        shown = Auth(token=token) if token and "${" not in token else Auth()
        auth = next((each for name, each in self._cluster.catalogs.items() if name.rstrip("/") == uri), shown)
        key = (uri, auth.token)
        if key not in self._servers:
            self._servers[key] = self._server(uri, auth)
        return self._servers[key]


def _prefix(answer: Any) -> str:
    """The part of every path that a catalog asks for."""
    found = ""
    for half in ("defaults", "overrides"):
        settings = answer.get(half) if isinstance(answer, dict) else None
        if isinstance(settings, dict) and isinstance(settings.get("prefix"), str):
            found = settings["prefix"].strip("/")
    return f"{found}/" if found else ""
