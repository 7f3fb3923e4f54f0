"""capture.connect.places: what is known of a cluster and a connector's settings -> the names of its topics and external datasets.

`naming` says in whose words: OpenLineage's, which Spark, dlt and Debezium's own lineage share, or those of the transform that
the Factor House labs use (`factorhouse`; `factorhouse-seed` as its first documentation has them).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from headwater.capture.connect.catalogue import Catalogue, Entry, built_in
from headwater.capture.connect.records import Node, Record
from headwater.capture.connect.snapshots import Connector
from headwater.capture.connect.templates import FUNCTIONS, fill, listed, mapping, refuse_placeholder
from headwater.errors import ConfigError
from headwater.naming import Dataset, database, from_endpoint, from_jdbc, from_path, from_topic

Naming = Literal["openlineage", "factorhouse", "factorhouse-seed"]


@dataclass(frozen=True, slots=True)
class Site:
    """What the user says of a cluster, and what it says of itself."""

    name: str
    bootstrap: str = ""
    naming: Naming = "openlineage"
    schemas: Literal["value", "key", "both", "none"] = "value"
    cluster_id: str = ""
    resolve: Mapping[str, str] = field(default_factory=dict)
    """placeholder -> what it stands for"""
    catalogue: Catalogue = field(default_factory=built_in)


@dataclass(frozen=True, slots=True)
class Ask:
    """One connector, ready to be understood: its placeholders are resolved."""

    connector: Connector
    config: Mapping[str, str]
    entry: Entry
    site: Site
    locations: Mapping[str, str] = field(default_factory=dict)
    """table -> where its catalog says that it lies"""

    @property
    def observed(self) -> frozenset[str]:
        """The topics that it was seen to use."""
        return self.connector.topics or frozenset()


@dataclass(frozen=True, slots=True)
class Flow:
    """Of a source: where records come from (None: they are made up), and the record before the transforms."""

    dataset: Dataset | None
    record: Record
    kind: str = "TABLE"


@dataclass(frozen=True, slots=True)
class Target:
    """Of a sink: where records go, and which columns they have there (None: nobody knows)."""

    dataset: Dataset
    columns: Node | None = None
    kind: str = "TABLE"
    table: str = ""
    """Its name in a catalog that may know better where it lies."""


def topic(site: Site, name: str, config: Mapping[str, str], direction: str) -> Dataset:
    """Name a topic; a connector may be told to use other brokers than its worker.

    >>> topic(Site("c", "PLAINTEXT://b1:9092,b2:9092"), "orders", {}, "sink").identity
    Identity(namespace='kafka://b1:9092', name='orders')
    """
    client = "producer" if direction == "source" else "consumer"
    own = config.get(f"{client}.override.bootstrap.servers") or config.get("kafka.endpoint") or ""
    bootstrap = own if own and "${" not in own else site.bootstrap
    if not bootstrap:
        return from_topic((), name, canonical=site.cluster_id or site.name)
    if site.naming == "factorhouse-seed":  # the first host as it was written, without a scheme
        return Dataset(from_topic(bootstrap, name).namespace.removeprefix("kafka://"), name)
    return from_topic(bootstrap, name)


def named(kind: str, args: Mapping[str, str], values: Mapping[str, str]) -> Dataset:
    """Name an external dataset by an entry's templates.

    Raises:
        ConfigError: a setting is missing.

    """
    filled = {name: fill(template, values) for name, template in args.items()}
    if kind == "path":
        return from_path(filled["path"])
    if kind == "endpoint":
        return from_endpoint(filled["url"])
    if kind == "jdbc":
        return from_jdbc(filled.pop("url"), filled.pop("table"), filled)
    return stored(filled)


def stored(parts: Mapping[str, str]) -> Dataset:
    """Name a table, collection or index whose parts are known; `host` may be a connection string."""
    known = {"platform", "table", "host", "port"}
    more: dict[str, str | None] = {name: text for name, text in parts.items() if name not in known}
    return database(
        parts["platform"],
        parts.get("table", ""),
        host=_hosts(parts.get("host", "")) or None,
        port=parts.get("port") or None,
        sql=False,
        **more,
    )


def _hosts(text: str) -> str:
    """The hosts of a connection string: `mongodb+srv://user:pw@h1,h2/db?x=y` -> `h1,h2`."""
    return text.partition("://")[2].partition("/")[0].rpartition("@")[2] if "://" in text else text


def table_of(entry: Entry, config: Mapping[str, str], topic_name: str) -> str:
    """What an entry's map makes of a topic."""
    rule = entry.map
    if rule is None:
        return topic_name
    text = next((config[name] for name in listed(rule.setting) if config.get(name)), "")
    refuse_placeholder(rule.setting, text)
    for left, right in mapping(text, rule.between).items():
        if left == topic_name or (rule.regex and _matches(left, topic_name)):
            return FUNCTIONS[rule.after](right) if rule.after else right
    return fill(rule.otherwise, {**config, "topic": topic_name})


def _matches(pattern: str, text: str) -> bool:
    from headwater.capture.connect.java import java_regex

    try:
        return java_regex(pattern).matches(text)
    except ConfigError:
        return False
