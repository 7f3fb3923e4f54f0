"""capture.connect.sinks: a sink's settings and a record that left its transforms -> where it is written, and as which columns."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import replace

import msgspec

from headwater.capture.connect.java import java_regex
from headwater.capture.connect.kcql import statements
from headwater.capture.connect.places import Ask, Target, named, table_of
from headwater.capture.connect.records import Node, Record
from headwater.capture.connect.snapshots import seed_settings
from headwater.capture.connect.templates import fill, listed, mapping, refuse_placeholder
from headwater.errors import ConfigError
from headwater.naming import CATALOGS, Dataset, database, from_catalog, from_jdbc

KINDS = {"path": "FILE", "endpoint": "ENDPOINT"}


def targets(ask: Ask, original: str, record: Record) -> list[Target]:
    """Where a record of a topic goes.

    Raises:
        ConfigError: what decides it is missing or not understood.

    """
    if seeds := _seeds(ask, original):
        return [Target(each, _columns(ask, record)) for each in seeds]
    shape = ask.entry.shape
    if shape:
        return SHAPES[shape](ask, original, record)
    if not ask.entry.dataset:
        return []
    if record.fits is not None and any(
        "{topic" in each or "{table" in each for each in ask.entry.args.values()
    ):
        raise ConfigError(f"of {original}, only the data tell the topic that its target is named after")
    table = table_of(ask.entry, ask.config, record.topic)
    values = {**ask.config, "topic": record.topic, "table": table}
    found = named(ask.entry.dataset, ask.entry.args, values)
    return [Target(found, _columns(ask, record), KINDS.get(ask.entry.dataset, "TABLE"))]


def _seeds(ask: Ask, original: str) -> list[Dataset]:
    """The names of the Factor House transform, where those are asked for and the connector is one that it knows."""
    naming, config = ask.site.naming, ask.config
    told = seed_settings(config)
    bucket = told.get("s3.bucket.name") or config.get("s3.bucket.name")
    iceberg = ask.entry.shape == "iceberg"
    if naming == "factorhouse-seed":
        if iceberg:
            catalog = told.get("iceberg.catalog") or config.get("iceberg.catalog") or "iceberg"
            return [Dataset(f"iceberg://{catalog}", catalog)]
        return [Dataset(f"s3://{bucket}", bucket)] if bucket else []
    if naming == "factorhouse":
        if told.get("dataset.namespace"):
            names = listed(told.get("dataset.names", "")) if iceberg else [original]
            return [Dataset(told["dataset.namespace"], name) for name in names or [original]]
        return [Dataset(f"s3://{bucket}", original)] if bucket and not iceberg else []
    return []


def _columns(ask: Ask, record: Record) -> Node | None:
    """The record's fields as the sink writes them."""
    entry, config = ask.entry, ask.config
    if entry.columns == "none" or not record.traced:
        return None
    value = record.value
    if entry.unwraps and value.fields and (row := value.child("after")) is not None and row.fields:
        value = replace(row, origins=())
    if entry.columns == "snowflake":
        if config.get("snowflake.enable.schematization", "").lower() != "true":
            return Node(
                "struct",
                fields=(
                    ("RECORD_CONTENT", Node("VARIANT", origins=value.through("NEST").all_origins())),
                    ("RECORD_METADATA", Node("VARIANT", origins=record.key.through("NEST").all_origins())),
                ),
            )
        value = replace(value, fields=tuple((name.upper(), node) for name, node in value.fields or ()))
    if entry.include and (wanted := listed(config.get(entry.include, ""))):
        value = value.keep(each.rpartition(":")[2] for each in wanted)
    return value


def _jdbc(ask: Ask, original: str, record: Record) -> list[Target]:
    config, args = ask.config, ask.entry.args
    url = config.get("connection.url", "")
    if not url:
        raise ConfigError("connection.url is not set")
    refuse_placeholder("connection.url", url)
    if record.fits is not None:
        raise ConfigError(f"of {original}, only the data tell the topic that its table is named after")
    form = next((config[key] for key in _settings(args["format"]) if config.get(key)), "${topic}")
    form = form.replace("${source.table}", record.topic.rpartition(".")[2])
    if left := re.search(r"\$\{source\.\w+\}", form):
        raise ConfigError(f"only the data tell {left[0]}, which the table is named after")
    name = record.topic.replace(".", "_") if args.get("underscored") else record.topic
    table = mapping(config.get(args.get("map", ""), "")).get(record.topic) or form.replace("${topic}", name)
    refuse_placeholder("table.name.format", table)
    if args.get("quoted"):
        table = ".".join(f'"{part}"' for part in table.split(".") if part)
    dataset = from_jdbc(url, table)
    columns = _columns(ask, record)
    if columns is not None and columns.fields:
        columns = _with_key(config, record, columns)
    return [Target(dataset, columns)]


def _settings(template: str) -> list[str]:
    return template.strip("{}").partition("|")[0].split(",")


def _with_key(config: Mapping[str, str], record: Record, columns: Node) -> Node:
    """The columns of a primary key that is the record's key."""
    mode = config.get("primary.key.mode") or config.get("pk.mode") or ""
    names = listed(config.get("primary.key.fields") or config.get("pk.fields") or "")
    if mode != "record_key":
        return columns
    if record.key.fields:
        for name, node in record.key.fields:
            if columns.child(name) is None and (not names or name in names):
                columns = columns.put(name, node)
    elif record.key.origins and len(names) == 1 and columns.child(names[0]) is None:
        columns = columns.put(names[0], record.key)
    return columns


def _iceberg(ask: Ask, original: str, record: Record) -> list[Target]:
    """No field that routes: every record goes to every table. Else the tables whose expression matches the field's text."""
    config = ask.config
    columns = _columns(ask, record)
    tables = listed(config.get("iceberg.tables", ""))
    field = config.get("iceberg.tables.route-field", "")
    dynamic = config.get("iceberg.tables.dynamic-enabled", "").lower() == "true"
    text = _constant(record, field) if field else None
    if dynamic:
        if text is None:
            raise ConfigError(f"the field {field or 'that routes'} names the table: only the data tell it")
        return [_iceberg_target(ask, text.lower(), columns)]
    if not tables:
        raise ConfigError("iceberg.tables is not set")
    found = []
    for table in tables:
        pattern = config.get(f"iceberg.table.{table}.route-regex", "")
        if field and pattern and text is not None and not java_regex(pattern).matches(text):
            continue
        if field and not pattern:
            continue  # without an expression nothing is routed to it
        found.append(_iceberg_target(ask, table, columns))
    return found


def _constant(record: Record, path: str) -> str | None:
    node: Node | None = record.value
    for name in path.split("."):
        node = node.child(name) if node is not None else None
    return node.constant if node is not None else None


_IMPLEMENTATIONS = {"GlueCatalog": "glue", "JdbcCatalog": "jdbc", "NessieCatalog": "nessie", "RESTCatalog": "rest", "HiveCatalog": "hive", "HadoopCatalog": "hadoop", "S3TablesCatalog": "s3tables", "SnowflakeCatalog": "snowflake", "BigQueryMetastoreCatalog": "bigquery"}  # fmt: skip


def catalog_kind(config: Mapping[str, str]) -> str:
    """The kind of catalog that an Iceberg sink writes by."""
    implementation = config.get("iceberg.catalog.catalog-impl", "").rpartition(".")[2]
    return config.get("iceberg.catalog.type", "").lower() or _IMPLEMENTATIONS.get(implementation, "hive")


def _iceberg_target(ask: Ask, table: str, columns: Node | None) -> Target:
    return Target(_iceberg_table(ask.config, table, ask.locations.get(table)), columns, table=table)


def _iceberg_table(config: Mapping[str, str], table: str, location: str | None) -> Dataset:
    """Where the catalog says that it lies, if it was asked, or where it would put it."""
    below = "iceberg.catalog."
    kind = catalog_kind(config)
    uri, warehouse = config.get(f"{below}uri") or None, config.get(f"{below}warehouse") or None
    for name, text in (("uri", uri), ("warehouse", warehouse), ("type", kind)):
        refuse_placeholder(f"{below}{name}", text or "")
    if kind not in CATALOGS:
        raise ConfigError(f"{below}type: {kind!r} is not known")
    return from_catalog(
        kind,
        table,
        location=location,
        uri=uri,
        warehouse=warehouse,
        catalog=config.get("iceberg.catalog") or "iceberg",
        region=config.get(f"{below}client.region") or config.get(f"{below}glue.region") or None,
        account=config.get(f"{below}glue.id") or None,
    )


def _mongodb(ask: Ask, original: str, record: Record) -> list[Target]:
    own = f"topic.override.{record.topic}."
    config = {**ask.config}
    for name in ("database", "collection"):
        if config.get(f"{own}{name}"):
            config[name] = config[f"{own}{name}"]
    if "namespace.mapper" in config and "Default" not in config["namespace.mapper"]:
        raise ConfigError("namespace.mapper: a field of the record names the collection")
    if record.fits is not None and not config.get("collection"):
        raise ConfigError(f"of {original}, only the data tell the topic that its collection is named after")
    host = fill("{connection.uri}", config)
    args = {"platform": "mongodb", "host": "{host}", "database": "{database}", "table": "{collection}"}
    values = {**config, "host": host, "collection": config.get("collection") or record.topic}
    return [Target(named("database", args, values), _columns(ask, record))]


def _cassandra(ask: Ask, original: str, record: Record) -> list[Target]:
    """`topic.<topic>.<keyspace>.<table>.mapping = col=value.field, other=key`: which column is which field."""
    config = ask.config
    form = re.compile(rf"topic\.{re.escape(record.topic)}\.([^.]+)\.([^.]+)\.mapping")
    host, port = fill("{contactPoints|localhost}", config), fill("{port|9042}", config)
    found = []
    for setting, text in sorted(config.items()):
        if not (named_ := form.fullmatch(setting)):
            continue
        columns = Node("struct", fields=())
        for column, source in mapping(text, "=").items():
            part, _, path = source.partition(".")
            node: Node | None = record.part("key" if part == "key" else "value")
            for name in path.split(".") if path else ():
                node = node.child(name) if node is not None else None
            columns = columns.put(column, node or Node())
        dataset = database("cassandra", named_[2], host=host, port=port, keyspace=named_[1])
        found.append(Target(dataset, columns))
    if not found:
        raise ConfigError(f"no mapping is set for the topic {record.topic}")
    return found


def _kcql(ask: Ask, original: str, record: Record) -> list[Target]:
    args = dict(ask.entry.args)
    found = []
    for said in statements(fill(args.pop("kcql"), ask.config)):
        if said.source not in (record.topic, "*"):
            continue
        bucket, _, prefix = said.target.partition(":")
        values = {**ask.config, "target": said.target, "bucket": bucket, "prefix": prefix}
        columns = record.value
        if said.fields:
            columns = Node("struct", fields=())
            for field, alias in said.fields:
                node: Node | None = record.value
                for name in field.split("."):
                    node = node.child(name) if node is not None else None
                columns = columns.put(alias, node or Node())
        kind = KINDS.get(ask.entry.dataset, "TABLE")
        found.append(Target(named(ask.entry.dataset, args, values), columns if record.traced else None, kind))
    if not found:
        raise ConfigError(f"no statement reads the topic {record.topic}")
    return found


def _kusto(ask: Ask, original: str, record: Record) -> list[Target]:
    text = ask.config.get("kusto.tables.topics.mapping", "")
    try:
        rows = msgspec.json.decode(text.replace("'", '"'), type=list[dict[str, str]])
    except (ValueError, RecursionError):
        raise ConfigError("kusto.tables.topics.mapping is not understood") from None
    host = fill("{kusto.query.url,kusto.ingestion.url:host}", ask.config).removeprefix("ingest-")
    return [
        Target(
            database("kusto", row.get("table", ""), host=host, database=row.get("db", "")),
            _columns(ask, record),
        )
        for row in rows
        if row.get("topic") == record.topic
    ]


SHAPES: dict[str, Callable[[Ask, str, Record], list[Target]]] = {
    "jdbc": _jdbc,
    "iceberg": _iceberg,
    "mongodb": _mongodb,
    "cassandra": _cassandra,
    "kcql": _kcql,
    "kusto": _kusto,
}
"""The sinks that an entry alone cannot tell."""
