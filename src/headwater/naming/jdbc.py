"""naming.jdbc: a JDBC or SQLAlchemy url, a table -> its Dataset, the same whoever connects and however the url is spelt."""

from __future__ import annotations

import re
from collections.abc import Mapping

from headwater.naming._identity import Dataset
from headwater.naming._secrets import scrub
from headwater.naming._tables import database, split_name
from headwater.naming._urls import bare, locate


def from_jdbc(
    url: str, table: str, properties: Mapping[str, object] | None = None, *, default_schema: str | None = None
) -> Dataset:
    """Name a table behind a connection.

    The url's own parts go before its settings, these before `properties`; a qualified table name goes before all.
    A url that no driver would take is its own namespace, without its settings and secrets.

    Args:
        url: with or without `jdbc:`, or as SQLAlchemy writes it (`postgresql+psycopg://…`).
        table: as written in SQL: `orders`, `shop.orders`, `"Shop"."Orders"`, `[dbo].[Orders]`.
        properties: connection properties, such as `databaseName` or `user`.
        default_schema: the schema of unqualified tables, when it is not the store's own default.

    >>> from_jdbc("jdbc:postgresql://fred:pw@DB/shop?ssl=true", "Orders").identity
    Identity(namespace='postgres://db:5432', name='shop.public.orders')
    """
    found = locate(url, properties)
    if found is None:
        namespace = re.split(r"[?;]", scrub(bare(url)), maxsplit=1)[0].rstrip("/:")
        return Dataset(namespace or "jdbc", ".".join(text for text, _ in split_name(table) if text))
    parts: dict[str, str | None] = dict(found.parts)
    if default_schema:
        parts["schema"] = default_schema
    return database(found.platform, table, host=found.host, port=found.port, sql=True, **parts)
