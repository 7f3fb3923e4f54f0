"""naming.catalogs: a table of Iceberg, Delta or Hive and its catalog -> a Dataset: its location, and its catalog name as symlink.

The location comes first because it is what every reader has in common: a job that opens the files knows no catalog.
"""

from __future__ import annotations

import re
from typing import Literal, get_args

from headwater.errors import UnknownName
from headwater.naming._hosts import authority, split_hosts
from headwater.naming._identity import Dataset, Identity, Symlink
from headwater.naming._paths import from_path
from headwater.naming._secrets import scrub
from headwater.naming._tables import database as name_table
from headwater.naming._urls import bare, locate

CatalogKind = Literal[
    "hive",
    "hadoop",
    "rest",
    "nessie",
    "glue",
    "s3tables",
    "jdbc",
    "unity",
    "snowflake",
    "bigquery",
    "biglake",
]
CATALOGS: tuple[CatalogKind, ...] = get_args(CatalogKind)
"""The kinds of catalog `from_catalog` knows"""


def from_catalog(
    kind: CatalogKind,
    table: str,
    *,
    location: str | None = None,
    encoded: bool = False,
    uri: str | None = None,
    warehouse: str | None = None,
    catalog: str | None = None,
    region: str | None = None,
    account: str | None = None,
) -> Dataset:
    """Name a catalog's table.

    Args:
        kind: one of CATALOGS.
        table: `database.table`, the database of one level or more.
        location: where the table lies, when that is known; else where the catalog would put it.
        encoded: the location is a URI, as for `from_path`.
        uri: the catalog's address: a metastore, a REST endpoint, a JDBC url.
        warehouse: the directory that new tables are put under; of S3 tables the bucket's ARN, of a REST catalog of
            Snowflake the database.
        catalog: the catalog's own name, the first part of a Unity table's.
        region: of AWS, for Glue.
        account: of AWS for Glue, the project for BigQuery.

    >>> from_catalog("hive", "shop.orders", uri="thrift://ms:9083", warehouse="s3a://lake/wh").identity
    Identity(namespace='s3://lake', name='wh/shop.db/orders')
    """
    if kind not in CATALOGS:
        raise UnknownName("catalog", kind, CATALOGS)
    levels = [part for part in table.replace("`", "").replace('"', "").split(".") if part] or ["unnamed"]
    if len(levels) > 2 and catalog and levels[0] == catalog:
        levels = levels[1:]
    link = _named(kind, levels, uri, warehouse, catalog, region, account)
    place = location or _default_location(kind, levels, warehouse)
    if not place:
        return Dataset(link.namespace, link.name)
    found = from_path(place, encoded=encoded and place is location)
    symlinks = () if link == found.identity else (Symlink(link.namespace, link.name, "TABLE"),)
    return Dataset(found.namespace, found.name, symlinks)


def _default_location(kind: str, levels: list[str], warehouse: str | None) -> str | None:
    """Where the catalog puts a table it is told nothing of; None where only the catalog knows."""
    if not warehouse or "/" not in warehouse or kind in _CHOOSE:
        return None
    root, spaces, table = warehouse.rstrip("/"), levels[:-1], levels[-1]
    if kind in ("hive", "glue", "biglake"):
        own = [".".join(spaces) + ".db"] if spaces and spaces != ["default"] else []
        if kind == "glue" and spaces == ["default"]:
            own = ["default.db"]
        return "/".join([root, *own, table])
    return "/".join([root, *spaces, table])


_CHOOSE = frozenset({"nessie", "unity", "bigquery", "s3tables", "snowflake"})
"""Catalogs that choose a place themselves, Nessie by a random suffix. (A REST warehouse may be a mere name.)"""


def _named(
    kind: str,
    levels: list[str],
    uri: str | None,
    warehouse: str | None,
    catalog: str | None,
    region: str | None,
    account: str | None,
) -> Identity:
    dotted = ".".join(levels)
    database = ".".join(levels[:-1]) or "default"
    if kind == "glue":
        return name_table("glue", levels[-1], database=database, region=region, account=account).identity
    if kind == "s3tables" and warehouse:
        return Identity(warehouse, dotted)
    if kind == "snowflake" and uri and (host := authority(uri.removeprefix("jdbc:"))):
        # its REST catalog calls the database a warehouse, and leaves it out of the names; case counts for nothing
        known = levels if len(levels) > 2 or not warehouse else [warehouse, *levels]
        above = [None, None, *(each.upper() for each in known[:-1])]
        return name_table(
            "snowflake", known[-1].upper(), host=host, database=above[-2], schema=above[-1]
        ).identity
    if kind == "bigquery":
        return name_table("bigquery", levels[-1], dataset=database, project=account).identity
    if kind == "biglake":
        return Identity("gcp_lakehouse", ".".join(part for part in (catalog, dotted) if part))
    if kind == "hive" and uri and (hosts := split_hosts(uri, default=9083)):
        return Identity(f"hive://{hosts[0]}", f"{database}.{levels[-1]}".lower())
    if kind == "unity" and uri and (host := authority(uri)):
        return name_table("unity", levels[-1], host=host, catalog=catalog, schema=database).identity
    if kind == "jdbc" and uri and (keeper := _catalog_database(uri)):
        return Identity(keeper, dotted)
    if (
        kind in ("rest", "nessie")
        and uri
        and (server := re.split(r"[?#;]", scrub(uri.strip()))[0].rstrip("/"))
    ):
        return Identity(server, dotted)
    if warehouse and "/" in warehouse:
        return Identity(_warehouse(warehouse), dotted)
    return Identity(catalog or f"{kind}_catalog", dotted)


def _catalog_database(uri: str) -> str:
    """The database that keeps the catalog, as a namespace: no table of its own can be taken for one of the catalog's."""
    found = locate(uri)
    if found is None:
        return re.split(r"[?;]", scrub(bare(uri)), maxsplit=1)[0].rstrip("/:")
    parts: dict[str, str | None] = dict(found.parts)
    namespace = name_table(found.platform, "", host=found.host, port=found.port, sql=False, **parts).namespace
    inside = found.parts.get("database") or found.parts.get("service")
    return f"{namespace}/{inside}" if inside else namespace


def _warehouse(warehouse: str) -> str:
    """A warehouse as the namespace of its tables, as the JVM agent writes it: file:/wh, s3://bucket/wh."""
    found = from_path(warehouse)
    if found.namespace == "file":
        return f"file:{found.name}"
    return f"{found.namespace}/{found.name.strip('/')}".rstrip("/")
