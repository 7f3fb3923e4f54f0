"""connect: connect.toml -> clusters of Kafka Connect watched from outside, their lineage handed to the emitter.

    [[clusters]]
    name = "prod"
    url = "http://connect:8083"
    bootstrap = "kafka-1:9092,kafka-2:9092"
    schema_registry = "http://registry:8081"

`headwater connect watch --config connect.toml` does the rest; no connector and no worker is touched.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import Any, Literal

import msgspec

from headwater.config import expand
from headwater.errors import ConfigError

__all__ = ["Auth", "Cluster", "Watching", "load"]


class Auth(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Who we are, for Connect or a registry. With several given, all are used."""

    username: str = ""
    password: str = ""
    token: str = ""
    """A bearer token."""
    client_cert: str = ""
    client_key: str = ""

    def __repr__(self) -> str:
        return f"Auth(username={self.username!r})"

    def secrets(self) -> list[str]:
        """What must not be shown."""
        return [each for each in (self.password, self.token) if each]


class Cluster(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One cluster of Connect, as `[[clusters]]` names it."""

    name: str
    url: str = ""
    """Of Connect's REST API; several with commas are tried in their order."""
    mode: Literal["rest", "topics"] = "rest"
    """How the cluster is watched: by its REST API, or by its own topics, which tell also what happened meanwhile."""
    bootstrap: str = ""
    """The Kafka brokers, as other tools name them: Connect never tells them."""
    schema_registry: str = ""
    """A registry's url; where there is none, the one that a connector's converter names."""
    registry_from_connectors: bool = True
    """Whether such a registry is asked at all; it is shown what the connector itself shows to it, and nothing of ours."""
    ask_catalogs: bool = True
    """Whether REST catalogs of Iceberg are asked where tables lie."""
    catalogs: dict[str, Auth] = {}
    """A catalog's uri -> who we are for it; else what the connector itself shows to it."""
    namespace: str = ""
    """Of the jobs; else the setting `namespace`, else kafka-connect:// and the name."""
    naming: Literal["openlineage", "factorhouse", "factorhouse-seed"] = "openlineage"
    lifecycle: Literal["headwater", "seed"] = "headwater"
    schemas: Literal["value", "key", "both", "none"] = "value"
    sample: bool = False
    """Whether one record is read of topics whose records carry their own schema, as JsonConverter writes it."""
    fail_on: Literal["any", "majority", "all"] = "any"
    tasks: bool = False
    """Whether each task is a run of its own below its connector's."""
    terminal_datasets: bool = False
    """Whether the end of a run names its datasets again."""
    interval: float = 10.0
    """Seconds between two rounds."""
    jitter: float = 0.1
    """By which part of it the interval varies, so that several watchers do not ask at once."""
    grace: float = 10.0
    """Seconds that a failure or a recovery must last to count."""
    refresh: float = 30.0
    """Seconds after which configurations, topics and schemas are asked for again, where nothing hints at a change."""
    timeout: float = 10.0
    max_bytes: int = 64 * 1024 * 1024
    """The largest answer that is read."""
    verify: bool | str = True
    """Whether a server's certificate is checked; or a file of authorities to believe."""
    auth: Auth = Auth()
    registry_auth: Auth = Auth()
    """For `schema_registry`, and no other."""
    resolve: dict[str, str] = {}
    """What placeholders of configuration providers stand for: "${vault:db:url}" = "jdbc:postgresql://db/shop"."""
    config_topic: str = "connect-configs"
    status_topic: str = "connect-status"
    kafka: dict[str, str] = {}
    """Settings of the Kafka client, for mode topics."""


class Watching(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """All of connect.toml."""

    clusters: list[Cluster]
    connectors: str = ""
    """A file with connectors of one's own, of the form of Headwater's."""
    state: str = ""
    """The directory where the watcher remembers; else one in the user's state directory."""
    recall: str = ""
    """A server with Marquez's API that tells which runs there were; else the one that events go to, over HTTP."""
    recall_auth: Auth = Auth()


def load(path: Path, environ: Mapping[str, str] | None = None) -> Watching:
    """Read connect.toml; `${VARIABLE}` is taken from the environment, but not in `resolve`.

    Raises:
        ConfigError: it cannot be read, or a setting is wrong; told with its place, and without its value.

    """
    environ = os.environ if environ is None else environ
    try:
        text = path.read_text(encoding="utf-8")
        raw: dict[str, Any] = import_module("tomllib" if sys.version_info >= (3, 11) else "tomli").loads(text)
    except (OSError, ValueError) as fault:
        why = getattr(fault, "strerror", None) or fault
        raise ConfigError(f"{path}: cannot be read: {why}; docs/connect.md shows such a file") from None
    clusters = raw.get("clusters")
    if not isinstance(clusters, list) or not clusters:
        raise ConfigError(f"{path.name}: it names no cluster: write [[clusters]] with a name and a url")
    raw = {key: value if key == "clusters" else expand(value, environ) for key, value in raw.items()}
    raw["clusters"] = [_expanded(each, environ) for each in clusters]
    try:
        made = msgspec.convert(raw, Watching)
    except msgspec.ValidationError as fault:
        raise ConfigError(f"{path.name}: {fault}") from None
    _check(path.name, made)
    base = path.parent
    return msgspec.structs.replace(
        made,
        connectors=str(base / made.connectors) if made.connectors else "",
        state=str(base / made.state) if made.state else "",
    )


def _expanded(cluster: Any, environ: Mapping[str, str]) -> Any:
    if not isinstance(cluster, dict):
        return cluster
    made = {key: value if key == "resolve" else expand(value, environ) for key, value in cluster.items()}
    if not made.get("bootstrap"):  # where the seed's transform looks
        found = next(
            (
                environ[n]
                for n in ("CONNECT_BOOTSTRAP_SERVERS", "KAFKA_BOOTSTRAP", "BOOTSTRAP")
                if environ.get(n)
            ),
            "",
        )
        made["bootstrap"] = found
    return made


def _check(name: str, made: Watching) -> None:
    seen: set[str] = set()
    for cluster in made.clusters:
        where = f"{name}: cluster {cluster.name!r}"
        if not cluster.name or cluster.name in seen:
            raise ConfigError(f"{where}: every cluster needs a name of its own")
        seen.add(cluster.name)
        if cluster.mode == "rest" and not cluster.url:
            raise ConfigError(f"{where}: url is not set")
        if cluster.mode == "topics" and not cluster.bootstrap:
            raise ConfigError(f"{where}: mode topics needs bootstrap")
        for each in cluster.url.split(",") if cluster.url else ():
            if not each.strip().startswith(("http://", "https://")):
                raise ConfigError(f"{where}: url: write http://host:port")
        for setting in ("interval", "timeout", "refresh"):
            if getattr(cluster, setting) <= 0:
                raise ConfigError(f"{where}: {setting} must be more than 0")
        if not 0 <= cluster.jitter < 1 or cluster.grace < 0:
            raise ConfigError(f"{where}: jitter must be from 0 to 1, grace not less than 0")
