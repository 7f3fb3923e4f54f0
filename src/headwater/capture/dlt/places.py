"""capture.dlt.places: where dlt read from and loads to, as plain data -> datasets, named as every other capture names them.

`KNOWN` says for each destination of dlt which of its settings make the name. To add one, add a line there.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import unquote, urlsplit

from headwater.naming import (
    Dataset,
    Symlink,
    database,
    from_endpoint,
    from_jdbc,
    from_path,
    platform_key,
    scrub,
    unknown,
)

Where = Mapping[str, Any]
"""A destination: `type` (its short name), `name`, and those of its settings that are no secret."""

SETTINGS = (
    *("host", "port", "database", "catalog", "server_hostname", "project_id", "region_name", "drivername"),
    *(
        "aws_data_catalog",
        "bucket_url",
        "layout",
        "dataset_table_separator",
        "lance_uri",
        "qd_location",
        "qd_path",
    ),
    *("data_source", "db_location", "url", "dataset_separator", "catalog_name"),
)
"""What is copied of a destination's configuration and credentials; nothing else leaves them."""


def inputs_of(location: Mapping[str, Any]) -> list[Dataset]:
    """A data location as dlt's traces have it (`kind`, `location`, …) -> the datasets it stands for."""
    kind, place = str(location.get("kind") or ""), str(location.get("location") or "")
    if kind == "sql_database":
        schema, base = location.get("db_schema"), location.get("database")
        if base and not urlsplit(place).path.strip("/"):  # dlt tells the server and the database apart
            place = f"{place.rstrip('/')}/{base}"
        return [_table(place, str(table), schema) for table in location.get("tables") or [""]]
    if kind == "rest_api":
        return [from_endpoint(place, str(each)) for each in location.get("endpoints") or [""]]
    if kind == "filesystem":
        return [from_path(_folder(place, str(location.get("glob") or "")))]
    return [_custom(kind, place, location)]


def _table(url: str, table: str, schema: Any) -> Dataset:
    """A table as SQLAlchemy has it: its name is exact, so it is quoted."""
    parts = [str(schema), table] if schema else [table]
    quoted = ".".join('"' + part.replace('"', '""') + '"' for part in parts)
    if url.startswith("sqlite:///") and not url.startswith("sqlite:////"):
        url = "sqlite:////" + url.removeprefix("sqlite:///")  # dlt leaves one slash of an absolute path out
    return from_jdbc(url, quoted)


def _decoded(place: str) -> str:
    """dlt writes a local path as a URI, whose `%20` is a space; other urls it leaves as they are."""
    return unquote(place) if place.startswith("file:") else place


def _folder(place: str, glob: str) -> str:
    """Where the files lie: the part of the pattern that has no wildcard."""
    place = _decoded(place)
    fixed = re.split(r"[*?\[]", glob, maxsplit=1)[0]
    if fixed != glob:
        fixed = fixed.rpartition("/")[0]
    return f"{place.rstrip('/')}/{fixed}".rstrip("/") or place


def _custom(kind: str, place: str, location: Mapping[str, Any]) -> Dataset:
    """What a user added by hand: by its url where it has one."""
    tables = [str(each) for each in location.get("tables") or ()]
    if "://" in place:
        scheme = place.partition(":")[0].lower()
        if platform_key(scheme) and tables:
            return _table(place, tables[0], location.get("db_schema"))
        if scheme in ("http", "https"):
            return from_endpoint(place)
        return from_path(place)
    if place.startswith("/"):
        return from_path(place)
    return Dataset(
        f"{kind}://{scrub(place)}" if kind and place else kind or "dlt",
        scrub(str(location.get("resource_name") or place)),
    )


def _schema(where: Where, dataset: str, table: str) -> Dataset:
    """A server with databases, whose dataset is a schema."""
    return database(
        where["type"],
        table,
        host=where.get("host"),
        port=where.get("port"),
        database=where.get("database"),
        schema=dataset,
    )


def _filesystem(where: Where, dataset: str, table: str) -> Dataset:
    """A folder per table, as the layout says; Spark, Delta and Iceberg know the table by it."""
    layout = str(where.get("layout") or "{table_name}/")
    layout = layout.replace(
        "{schema_name}", str(where.get("schema_name") or "")
    )  # no other comes before the table
    before, found, after = layout.partition("{table_name}")
    folder = f"{before}{table}" if found and after[:1] in ("/", "") else table
    return from_path(
        "/".join(
            part
            for part in (_decoded(str(where.get("bucket_url") or "")).rstrip("/"), dataset, folder)
            if part
        )
    )


def _clickhouse(where: Where, dataset: str, table: str) -> Dataset:
    separator = str(where.get("dataset_table_separator") or "___")
    whole = f"{dataset}{separator}{table}" if dataset else table
    return database(
        "clickhouse",
        whole,
        host=where.get("host"),
        port=where.get("http_port"),
        database=where.get("database"),
    )


def _file(where: Where, dataset: str, table: str) -> Dataset:
    return database(where["type"], table, path=str(where.get("database") or ""), schema=dataset or None)


def _sqlalchemy(where: Where, dataset: str, table: str) -> Dataset:
    driver = str(where.get("drivername") or "").partition("+")[0]
    if driver == "sqlite":
        file = str(where.get("database") or "")
        if dataset not in ("", "main") and ":" not in file:  # dlt makes a file for each dataset
            file = f"__{dataset}".join(os.path.splitext(file))
        return database("sqlite", table, path=file)
    kind = platform_key(driver) or driver or "sqlalchemy"
    if kind in ("mysql", "mariadb"):
        return database(kind, table, host=where.get("host"), port=where.get("port"), database=dataset)
    return database(kind, table, host=where.get("host"), port=where.get("port"), database=where.get("database"), schema=dataset)  # fmt: skip


def _collection(where: Where, dataset: str, table: str) -> Dataset:
    whole = f"{dataset}{where.get('dataset_separator') or '_'}{table}" if dataset else table
    url = urlsplit(str(where.get("url") or where.get("qd_location") or ""))
    if url.hostname:
        return database(where["type"], whole, host=url.hostname, port=url.port)
    place = str(where.get("lance_uri") or where.get("qd_path") or where.get("name") or "")
    return database("lancedb" if where["type"] == "lance" else where["type"], whole, path=place)


KNOWN: dict[str, Callable[[Where, str, str], Dataset]] = {
    "postgres": _schema,
    "redshift": _schema,
    "mssql": _schema,
    "synapse": _schema,
    "fabric": _schema,
    "snowflake": lambda w, d, t: database(
        "snowflake", t, host=w.get("host"), database=w.get("database"), schema=d
    ),
    "bigquery": lambda w, d, t: database("bigquery", t, project=w.get("project_id"), dataset=d),
    "athena": lambda w, d, t: database(
        "athena", t, region=w.get("region_name"), catalog=w.get("aws_data_catalog"), database=d
    ),
    "databricks": lambda w, d, t: database(
        "unity", t, host=w.get("server_hostname"), catalog=w.get("catalog"), schema=d
    ),
    "dremio": lambda w, d, t: database(
        "dremio", t, host=w.get("host"), port=w.get("port"), source=w.get("data_source") or w.get("database"), schema=d
    ),
    "clickhouse": _clickhouse,
    "duckdb": _file,
    "ducklake": lambda w, d, t: database(
        "ducklake", t, path=str(w.get("database") or w.get("catalog_name") or ""), catalog=w.get("catalog_name"), schema=d
    ),
    "motherduck": lambda w, d, t: database("motherduck", t, database=w.get("database"), schema=d),
    "filesystem": _filesystem,
    "sqlalchemy": _sqlalchemy,
    "lancedb": _collection,
    "lance": _collection,
    "weaviate": _collection,
    "qdrant": _collection,
}  # fmt: skip
"""dlt's destinations by their short names; another is a sink of its own name."""


def output_of(where: Where, dataset: str, table: str) -> Dataset:
    """A table that was loaded.

    >>> output_of({"type": "duckdb", "database": "/data/a.duckdb"}, "raw", "users").identity
    Identity(namespace='duckdb:///data/a.duckdb', name='raw.users')
    """
    named = KNOWN.get(str(where.get("type") or ""))
    if named is None:
        name = str(where.get("name") or where.get("type") or "")
        return database("dlt_sink", table, host=name) if name else unknown(table)
    return named(where, dataset, table)


def seed_name(where: Where, dataset: str, table: str) -> Symlink:
    """The name that dlt-openlineage documents: `duckdb://local`, `postgres://host`, `bigquery://project`; dataset.table."""
    kind = str(where.get("type") or "dlt")
    place = (
        where.get("project_id") if kind == "bigquery" else where.get("host") or where.get("server_hostname")
    )
    if kind == "filesystem":
        url = urlsplit(str(where.get("bucket_url") or ""))
        place = url.netloc or None
    return Symlink(f"{kind}://{place or 'local'}", f"{dataset}.{table}" if dataset else table)
