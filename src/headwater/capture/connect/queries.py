"""capture.connect.queries: the SQL of a JDBC source -> the tables it reads, and which column each of its own came from."""

from __future__ import annotations

from dataclasses import dataclass

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
    own = {cte.alias_or_name for cte in parsed.find_all(exp.CTE)}
    tables = {
        each.alias_or_name: ".".join(part.sql(dialect) for part in each.parts)
        for each in parsed.find_all(exp.Table)
        if each.name not in own
    }
    if not tables:
        raise ConfigError("query: it reads no table")
    columns = _columns(parsed, tables) if isinstance(parsed, exp.Select) and not own else None
    return [Read(table, columns) for table in dict.fromkeys(tables.values())]


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
