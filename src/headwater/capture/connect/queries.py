"""capture.connect.queries: the SQL of a JDBC source -> the tables it reads, and which column each of its own came from."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from headwater.errors import ConfigError, NotInstalled

_DIALECTS = {"postgresql": "postgres", "sqlserver": "tsql", "mysql": "mysql", "mariadb": "mysql", "oracle": "oracle", "snowflake": "snowflake", "sqlite": "sqlite", "redshift": "redshift", "clickhouse": "clickhouse"}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Read:
    """A table that a query reads; `columns` of the whole query, or None where the text does not tell them."""

    table: str
    columns: dict[str, list[str]] | None


def read(query: str, url: str) -> list[Read]:
    """What a query reads.

    >>> read("SELECT o.id, upper(c.name) AS who FROM orders o JOIN shop.customers c ON c.id = o.c", "jdbc:postgresql://h/d")[1]
    Read(table='shop.customers', columns={'id': ['orders.id'], 'who': ['shop.customers.name']})

    Raises:
        ConfigError: it is not understood.

    """
    try:
        import sqlglot
        from sqlglot import exp
    except ImportError as fault:
        raise NotInstalled("queries of JDBC sources", "connect") from fault
    dialect = _DIALECTS.get(url.removeprefix("jdbc:").partition(":")[0])
    try:
        parsed = sqlglot.parse_one(query, dialect=dialect)
    except sqlglot.errors.SqlglotError:
        raise ConfigError("query: the SQL is not understood") from None  # its own message quotes the text
    read = [each for each in parsed.find_all(exp.Table) if not _of_the_query(each)]
    names = [".".join(part.sql(dialect) for part in each.parts) for each in read]
    if not names:
        raise ConfigError("query: it reads no table")
    alone = isinstance(parsed, exp.Select) and parsed.find(exp.CTE) is None
    by_alias = {each.alias_or_name: name for each, name in zip(read, names, strict=True)}
    columns = _columns(parsed, by_alias) if alone else None
    return [Read(table, columns) for table in dict.fromkeys(names)]


def _of_the_query(table: Any) -> bool:
    """Whether a name is one that the query gave by WITH; in that name's own text it is a table, unless WITH is recursive."""
    from sqlglot import exp

    if table.db or table.catalog:
        return False
    inside = {id(each) for each in _above(table)}
    for each in _above(table):
        made = each.args.get("with_") or each.args.get("with")
        for given in made.expressions if isinstance(made, exp.With) else ():
            if given.alias_or_name.lower() == table.name.lower() and (
                made.recursive or id(given) not in inside
            ):
                return True
    return False


def _above(node: Any) -> Iterator[Any]:
    while node is not None:
        yield node
        node = node.parent


def _columns(parsed: object, tables: dict[str, str]) -> dict[str, list[str]] | None:
    """name -> `table.column`; None where a star, or a column without its table, leaves it open."""
    from sqlglot import exp

    assert isinstance(parsed, exp.Select)
    if parsed.find(exp.Subquery):
        return None
    found: dict[str, list[str]] = {}
    for each in parsed.expressions:
        sources = []
        for column in each.find_all(exp.Column):
            owner = (
                tables.get(column.table)
                if column.table
                else next(iter(tables.values()))
                if len(tables) == 1
                else None
            )
            if owner is None or isinstance(column.this, exp.Star):
                return None
            sources.append(f"{owner}.{column.name}")
        if each.find(exp.Star) or not each.alias_or_name:
            return None
        found[each.alias_or_name] = list(dict.fromkeys(sources))
    return found
