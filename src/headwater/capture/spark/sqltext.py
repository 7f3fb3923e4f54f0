"""capture.spark.sqltext: the text of a JDBC query -> its tables, the sources of its columns, what decides on its rows."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple


class Parsed(NamedTuple):
    """What a query text says of tables (as written) and columns."""

    tables: tuple[str, ...] = ()
    columns: dict[str, tuple[tuple[str, str, bool], ...]] = {}  # noqa: RUF012 - never changed
    """output column, in small letters -> (table, column, whether it passes unchanged)"""
    rows: tuple[tuple[str, str], ...] = ()


@lru_cache(maxsize=1000)
def parse(text: str, dialect: str | None = None) -> Parsed:
    """Parse a query; nothing where sqlglot is not installed or does not understand it.

    >>> parse("SELECT a AS x FROM t WHERE b > 1").rows
    (('t', 'b'),)
    """
    try:  # 0.3 s that only an application with such a query pays, in the reader's thread
        from sqlglot import exp, parse_one
        from sqlglot.errors import SqlglotError
        from sqlglot.lineage import lineage
        from sqlglot.optimizer.qualify import qualify
    except ImportError:
        return Parsed()
    try:
        tree: Any = qualify(
            parse_one(text, dialect=dialect), validate_qualify_columns=False, quote_identifiers=False
        )
        ctes = {each.alias for each in tree.find_all(exp.CTE)}
        by_alias = {
            each.alias_or_name: _full(each) for each in tree.find_all(exp.Table) if each.name not in ctes
        }
        columns: dict[str, tuple[tuple[str, str, bool], ...]] = {}
        for each in tree.selects:
            plain = isinstance(each.unalias(), exp.Column)
            found = [
                (_full(leaf.expression), leaf.name.rsplit(".", 1)[-1].strip('"'), plain)
                for leaf in lineage(each.alias_or_name, tree.copy()).walk()
                if isinstance(leaf.expression, exp.Table)
            ]
            columns[each.alias_or_name.lower()] = tuple(found)
        rows = [
            (by_alias[column.table], column.name)
            for clause in tree.find_all(exp.Where, exp.Join, exp.Group, exp.Having)
            for column in clause.find_all(exp.Column)
            if column.table in by_alias
        ]
    except (SqlglotError, RecursionError, KeyError, ValueError):
        return Parsed()
    return Parsed(tuple(dict.fromkeys(by_alias.values())), columns, tuple(dict.fromkeys(rows)))


def _full(table: Any) -> str:
    return ".".join(part for part in (table.catalog, table.db, table.name) if part)
