"""naming: a path, JDBC url, topic, catalog table -> Dataset identity, symlinks and alias rules; scrubs secrets.

Every capture asks here, so that one physical dataset has one identity whoever names it. Nothing here does I/O, and
no dataset given, however strange, raises: what cannot be understood is named by its scrubbed text. Only rules, trimmers
and patterns, which a person writes once, are refused with a ConfigError when they are wrong.

    from_path      "s3a://lake/orders/"                        s3://lake            orders
    from_jdbc      "jdbc:postgresql://db/shop", "orders"       postgres://db:5432   shop.public.orders
    database       "postgres", "orders", host=…, database=…    the same, from parts
    from_topic     "b1:9092,b2:9092", "orders"                 kafka://b1:9092      orders
    from_catalog   "hive", "shop.orders", uri=…, warehouse=…   its location, with its catalog name as symlink
    from_endpoint  "https://api.example.org/v1/orders"         https://api.example.org  /v1/orders

To add a store, add a line to PLATFORMS in `_platforms.py` and a row to docs/naming.md.
"""

from __future__ import annotations

from headwater.naming._identity import Dataset, Identity, Symlink, SymlinkType
from headwater.naming._paths import FILESYSTEMS, Filesystem, from_path
from headwater.naming._platforms import PLATFORMS, Platform, platform_key
from headwater.naming._rule import AliasRule
from headwater.naming._secrets import HIDDEN, is_secret, scrub, scrub_mapping
from headwater.naming._tables import database, split_name
from headwater.naming._trim import Trimmers
from headwater.naming.aliases import DEFAULT_RULES, Aliases
from headwater.naming.catalogs import CATALOGS, CatalogKind, from_catalog
from headwater.naming.endpoints import from_endpoint, in_memory, unknown
from headwater.naming.jdbc import from_jdbc
from headwater.naming.topics import broker_aliases, from_topic

__all__ = [
    "CATALOGS",
    "DEFAULT_RULES",
    "FILESYSTEMS",
    "HIDDEN",
    "PLATFORMS",
    "AliasRule",
    "Aliases",
    "CatalogKind",
    "Dataset",
    "Filesystem",
    "Identity",
    "Platform",
    "Symlink",
    "SymlinkType",
    "Trimmers",
    "broker_aliases",
    "database",
    "from_catalog",
    "from_endpoint",
    "from_jdbc",
    "from_path",
    "from_topic",
    "in_memory",
    "is_secret",
    "platform_key",
    "scrub",
    "scrub_mapping",
    "split_name",
    "unknown",
]
