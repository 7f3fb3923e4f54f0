"""capture.spark.names: what the probe says of a relation, table, path or option map -> identities, by `naming`.

A table is named by where it lies and linked to its catalog name, so a job that opens the files and one that asks the
catalog meet in one node. A name that is only unique inside one application (`spark_catalog.db.t`) is never used as a
link: it would join tables of different clusters.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from headwater.naming import Dataset, Identity, from_catalog, from_jdbc, from_path, from_topic
from headwater.naming.catalogs import CatalogKind

Node = dict[str, Any]
NOWHERE = frozenset({"NoopTable$", "ConsoleTable$", "MemorySink", "ForeachWriterTable"})
"""Sinks that keep nothing."""
CHANGES = "SparkChangelogTable"
"""Iceberg's t.changes: the rows of t as they came and went, with columns of its own that tell how."""
SKIP = ("/_delta_log", "/metadata/", "/_spark_metadata")
V2_RELATIONS = frozenset(
    {
        "DataSourceV2Relation",
        "DataSourceV2ScanRelation",
        "StreamingDataSourceV2Relation",
        "StreamingDataSourceV2ScanRelation",
        "StreamingDataSourceV2RelationScan",
    }
)
_CATALOG_CLASSES: tuple[tuple[str, CatalogKind], ...] = (
    ("s3tables", "s3tables"),
    ("snowflake", "snowflake"),
    ("unity", "unity"),
    ("ucsinglecatalog", "unity"),
    ("glue", "glue"),
    ("nessie", "nessie"),
    ("rest", "rest"),
    ("jdbc", "jdbc"),
    ("hive", "hive"),
    ("hadoop", "hadoop"),
)


@dataclass(frozen=True, slots=True)
class Named:
    """A dataset as a plan names it: its identity, its other names, and what facets tell of it."""

    identity: Identity
    symlinks: tuple[tuple[str, str, str], ...] = ()
    """(namespace, name, type)"""
    kind: str | None = None
    """TABLE, VIEW, TOPIC … for the datasetType facet"""
    version: str | None = None
    catalog: tuple[tuple[str, str], ...] = ()
    """What the catalog facet says."""
    storage: tuple[str, str] | None = None
    """(storage layer, file format)"""
    placed: bool = True
    """False: a table by its catalog name alone, because only the catalog knows where it will lie."""


@dataclass(slots=True)
class Naming:
    """What naming needs to know of the application: its catalogs."""

    conf: Mapping[str, str] = field(default_factory=dict)
    keep_partitions: bool = False
    """Each partition directory that is named is a dataset of its own."""

    def above(self, text: str) -> str:
        """A path as it names a dataset: without partition directories, unless they are to be kept."""
        return text if self.keep_partitions else above_partitions(text)

    def session(self, ident: list[str], location: str | None, provider: str | None) -> Named:
        """A table of the session catalog."""
        levels = ident[1:] if len(ident) > 2 else ident
        table = ".".join(levels if len(levels) > 1 else ["default", *levels])
        uris = self.conf.get("spark.hadoop.hive.metastore.uris") or self.conf.get(
            "spark.sql.hive.metastore.uris"
        )
        hive = self.conf.get("spark.sql.catalogImplementation") == "hive"
        glue = (
            hive and "glue" in self.conf.get("spark.hadoop.hive.metastore.client.factory.class", "").lower()
        )
        warehouse = self.conf.get("spark.sql.warehouse.dir")
        kind: CatalogKind = "glue" if glue else "hive" if hive and uris else "hadoop"
        if location is None and warehouse:  # where Spark puts it
            own = [] if len(levels) < 2 or levels[-2] == "default" else [f"{levels[-2]}.db"]
            location = "/".join([warehouse.rstrip("/"), *own, levels[-1]])
        made = from_catalog(
            kind,
            table,
            location=location,
            encoded=True,
            uri=uris if hive else None,
            warehouse=warehouse,
            region=self.conf.get("spark.hadoop.aws.region"),
            account=self.conf.get("spark.hadoop.hive.metastore.glue.catalogid")
            or self.conf.get("spark.glue.accountId"),
        )
        told = {
            "framework": provider or "hive",
            "type": "glue" if glue else "hive" if hive else "memory",
            "name": "spark_catalog",
        }
        if warehouse:
            told["warehouseUri"] = warehouse
        if hive and uris and not glue:
            told["metadataUri"] = uris.split(",")[0]
        return _named(made, kind="TABLE", catalog=told, storage=("", provider) if provider else None)

    def catalog(
        self, name: str, ident: list[str], location: str | None, *, kind: str = "", provider: str = ""
    ) -> Named:
        """A table of a catalog that was configured by name."""
        if name in ("spark_catalog", ""):
            return self.session(ident, location, provider or None)
        prefix = f"spark.sql.catalog.{name}"
        told = {k[len(prefix) + 1 :]: v for k, v in self.conf.items() if k.startswith(prefix + ".")}
        form = _form(told, self.conf.get(prefix, "") or kind)
        if form == "jdbc" and "iceberg" not in self.conf.get(prefix, "").lower() and told.get("url"):
            return _named(from_jdbc(told["url"], ".".join(ident), told), kind="TABLE")
        made = from_catalog(
            form,
            ".".join(ident),
            location=location,
            encoded=False,
            uri=told.get("uri"),
            warehouse=told.get("warehouse"),
            catalog=name,
            region=told.get("client.region") or told.get("glue.region"),
            account=told.get("glue.account-id") or told.get("glue.id"),
        )
        facts = {
            "framework": provider or ("delta" if form == "unity" else "iceberg"),
            "type": form,
            "name": name,
        }
        for key, field_name in (("uri", "metadataUri"), ("warehouse", "warehouseUri")):
            if told.get(key):
                facts[field_name] = told[key]
        found = _named(made, kind="TABLE", catalog=facts)
        return replace(found, placed=location is not None or bool(made.symlinks))


def _form(told: Mapping[str, str], implementation: str) -> CatalogKind:
    """What kind of catalog its properties make: one that is reached by REST says whose it is by where it stands."""
    if told.get("warehouse", "").startswith("arn:aws:s3tables:"):
        return "s3tables"
    if "snowflakecomputing." in told.get("uri", ""):
        return "snowflake"
    said = (told.get("type") or told.get("catalog-impl") or implementation).lower()
    return next((form for word, form in _CATALOG_CLASSES if word in said), "hadoop")


def _named(
    made: Dataset,
    *,
    kind: str | None = None,
    version: str | None = None,
    catalog: Mapping[str, str] | None = None,
    storage: tuple[str, str] | None = None,
) -> Named:
    links = tuple((link.namespace, link.name, link.type) for link in made.symlinks)
    return Named(made.identity, links, kind, version, tuple((catalog or {}).items()), storage)


def path(text: str, *, encoded: bool = False) -> Named:
    """A directory or file."""
    return _named(from_path(text, encoded=encoded))


def above_partitions(text: str) -> str:
    """A path without the partition directories at its end: file:/t/day=1/h=2 -> file:/t."""
    while re.search(r"/[^/=]+=[^/]*/?$", text):
        text = text.rstrip("/").rsplit("/", 1)[0]
    return text


def under_rdd(naming: Naming, source: Node) -> list[Identity]:
    """The files at the bottom of an RDD -> their directories; a table format's own log is nobody's input."""
    kept = (each for each in source["paths"] if not any(skip in each + "/" for skip in SKIP))
    return list(dict.fromkeys(path(naming.above(each)).identity for each in kept))


def read_of(source: Node) -> list[tuple[str, str]]:
    """The columns read at the bottom of an RDD: Spark's schema, or Iceberg's own."""
    own = (source.get("columns") or {}).get("fields", [])
    return [(c[0], c[1]) for c in source.get("schema", [])] or [(f["name"], str(f["type"])) for f in own]


def lower(options: Mapping[str, Any] | None) -> dict[str, Any]:
    """Options by their names in small letters: Spark does not tell them apart."""
    return {key.lower(): value for key, value in (options or {}).items()}


def jdbc(options: Mapping[str, Any]) -> tuple[list[Named], str | None]:
    """The tables, and the query when it is more than a table."""
    low = lower(options)
    table = str(low.get("dbtable") or low.get("query") or "")
    inner = re.match(r"^\s*\((.*)\)\s*(?:as\s+)?[\w\"`]*\s*$", table, re.S | re.I)
    if inner or low.get("query") or re.match(r"^\s*(select|with)\b", table, re.I):
        return [], inner.group(1) if inner else table
    return [jdbc_table(options, table)], None


def jdbc_table(options: Mapping[str, Any], table: str) -> Named:
    """One table behind a JDBC url."""
    low = lower(options)
    return _named(
        from_jdbc(
            str(low.get("url", "jdbc")), table, {k: v for k, v in options.items() if k.lower() != "url"}
        )
    )


def kafka(options: Mapping[str, Any]) -> list[Named]:
    """The topics that options name: a list, one to write to, assigned partitions, or a pattern."""
    low = lower(options)
    brokers = str(low.get("kafka.bootstrap.servers", ""))
    topics = [
        part.strip()
        for part in str(low.get("topic") or low.get("subscribe") or "").split(",")
        if part.strip()
    ]
    if not topics and low.get("assign"):
        topics = re.findall(r'"([^"]+)"\s*:', str(low["assign"]))
    if not topics and low.get("subscribepattern"):
        topics = [str(low["subscribepattern"])]
    return [_named(from_topic(brokers, topic), kind="TOPIC") for topic in topics]


def table(naming: Naming, described: Node) -> list[Named]:
    """A CatalogTable: named by where it lies, linked to its catalog name; a view by its name alone."""
    ident, provider = described["ident"]["id"], described.get("provider")
    if described.get("type") == "VIEW" or not described.get("location"):
        made = naming.session(ident, None, None)
        links = made.symlinks
        identity = Identity(*links[0][:2]) if links else made.identity
        return [Named(identity, (), "VIEW" if described.get("type") == "VIEW" else "TABLE")]
    return [naming.session(ident, described["location"], provider)]


def v2(naming: Naming, node: Node) -> list[Named]:
    """A DataSourceV2Relation: files, a catalog table with a location, or whatever its table calls itself."""
    described, ident, catalog = node.get("table") or {}, node.get("identifier"), node.get("catalog") or {}
    if not described and isinstance(node.get("scan"), dict):
        described = node["scan"]
    if not isinstance(described, dict) or described.get("class") in NOWHERE:
        return []
    if described.get("metadata"):  # Iceberg's t.snapshots: what is said of the table, not what is in it
        return []
    if described.get("paths"):
        return [path(naming.above(each)) for each in described["paths"]]
    properties = described.get("properties") or {}
    options = {**(described.get("options") or {}), **(node.get("options") or {})}
    if "kafka.bootstrap.servers" in lower(options):
        return kafka(options)
    if described.get("class") == "JDBCTable" and lower(options).get("url"):
        return [jdbc_table(options, ".".join(ident["id"]) if ident else str(described.get("name")))]
    where = described.get("location") or properties.get("location")
    version = described.get("version") or properties.get("current-snapshot-id")
    version = None if str(version) == "none" else version
    provider = str(
        properties.get("provider") or ("iceberg" if "current-snapshot-id" in properties else "")
    ).lower()
    storage = ("", provider) if provider else None
    if ident and where and "/" in ident["id"][0]:  # Iceberg's table at a path: that is all its name
        return [replace(path(where), kind="TABLE", version=version, storage=storage)]
    if ident:
        within = str(catalog.get("name") or "")
        made = naming.catalog(within, _of_table(described, within, ident["id"]), where, provider=provider)
        return [Named(made.identity, made.symlinks, made.kind, version, made.catalog, storage)]
    if where:
        return [path(where)]
    if described.get("class") == "PythonTable":  # a data source written in Python
        return [Named(Identity("python", str(described.get("name"))))]
    return [
        Named(Identity(str(catalog.get("name") or described.get("class", "v2")), str(described.get("name"))))
    ]


def _of_table(described: Node, catalog: str, levels: list[str]) -> list[str]:
    """The name of a table without what is asked of it: Iceberg's t.branch_x, t.tag_x, t.changes are of t."""
    whole = ".".join([catalog, *levels[:-1]])
    above = described.get("class") == CHANGES or (
        described.get("class") == "SparkTable" and described.get("name") == whole
    )
    return levels[:-1] if above and len(levels) > 1 else levels


def leaf(naming: Naming, node: Node) -> tuple[list[Named], str | None]:
    """A leaf of a plan -> its datasets, and a query text that has to be parsed for them."""
    if node["n"] in V2_RELATIONS:
        return v2(naming, node), None
    if node["n"] == "HiveTableRelation":
        return table(naming, node["tableMeta"]), None
    if node["n"] not in ("LogicalRelation", "StreamingRelation", "StreamingExecutionRelation"):
        return [], None
    relation = node.get("relation") or {}
    if not isinstance(relation, dict):
        return [], None
    if node.get("catalogTable"):
        return [
            replace(each, version=relation.get("version")) for each in table(naming, node["catalogTable"])
        ], None
    if relation.get("t") == "files":
        paths = relation["paths"]
        if (
            node.get("isStreaming")
            and not relation.get("dirs")
            and "Delta" not in str(relation.get("format"))
        ):  # a micro-batch lists its files
            paths = list(dict.fromkeys(each.rsplit("/", 1)[0] for each in paths))
        kept = [path(naming.above(each)) for each in paths if not any(skip in each for skip in SKIP)]
        return [replace(each, version=relation.get("version")) for each in kept], None
    options = relation.get("options") or {}
    if relation.get("class") == "JDBCRelation":
        return jdbc(options)
    if relation.get("class") == "KafkaRelation":
        return kafka(options), None
    return [Named(Identity("spark", str(relation.get("class", "relation"))))], None


def option_target(options: Mapping[str, Any]) -> list[Named]:
    """What `df.write.format(…).options(…).save()` writes to through the old API."""
    low = lower(options)
    if "dbtable" in low and "url" in low:
        return [jdbc_table(options, str(low["dbtable"]))]
    if "kafka.bootstrap.servers" in low:
        return kafka(options)
    if "path" in low:
        return [path(str(low["path"]))]
    return []
