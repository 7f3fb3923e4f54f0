"""capture.spark.sqltext: the text of a JDBC query -> its tables, the sources of its columns, what decides on its rows."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import Any, NamedTuple

from headwater.naming import PLATFORMS, Platform, platform_key, split_name


class Parsed(NamedTuple):
    """What a query text says of tables (as SQL writes them) and columns (as the database does)."""

    tables: tuple[str, ...] = ()
    columns: dict[str, tuple[tuple[str, str, bool], ...]] = {}  # noqa: RUF012 - never changed
    """output column, in small letters -> (table, column, whether it passes unchanged)"""
    rows: tuple[tuple[str, str], ...] = ()
    all_of: str | None = None
    """the one table whose columns are taken by `*`"""


_DIALECTS = {"mssql": "tsql", "synapse": "tsql", "unity": "databricks"}
"""Stores that sqlglot calls otherwise."""


_PASSING = frozenset({"*", "UNION", "INTERSECT", "EXCEPT"})


@lru_cache(maxsize=1000)
def parse(text: str, store: str = "") -> Parsed:
    """Parse a query that a store answers; nothing where sqlglot is not installed or does not understand it.

    >>> parse("SELECT a AS x FROM t WHERE b > 1").rows
    (('t', 'b'),)
    >>> parse("SELECT [Id] FROM dbo.Orders", "mssql").columns
    {'id': (('dbo.Orders', 'Id', True),)}
    """
    try:  # 0.3 s that only an application with such a query pays, in the reader's thread
        from sqlglot import Dialect, exp, parse_one
        from sqlglot.errors import SqlglotError
        from sqlglot.optimizer.qualify import qualify
        from sqlglot.optimizer.scope import build_scope
    except ImportError:
        return Parsed()
    key = platform_key(store) or ""
    known = Dialect.get(_DIALECTS.get(key, key)) or Dialect
    dialect = known(normalization_strategy="case_insensitive")
    try:
        tree: Any = parse_one(text, dialect=dialect)
        spelt = _Spelling(tree, PLATFORMS.get(key))
        tree = qualify(tree, dialect=dialect, validate_qualify_columns=False, quote_identifiers=False)
        scope = build_scope(tree)
        if scope is None:
            return Parsed()
        read = {id(source) for each in scope.traverse() for source in each.sources.values()}
        tables = [spelt.table(each) for each in tree.find_all(exp.Table) if each.name and id(each) in read]
    except (SqlglotError, RecursionError, KeyError, ValueError):
        return Parsed()
    try:
        columns, all_of = _columns(tree, scope, spelt)
        rows = tuple(dict.fromkeys(_rows(scope, spelt)))
    except (SqlglotError, RecursionError, KeyError, ValueError):
        columns, all_of, rows = {}, None, ()
    return Parsed(tuple(dict.fromkeys(tables)), columns, rows, all_of)


class _Spelling:
    """Names as the query spells them: to be compared, they were all put into small letters."""

    def __init__(self, tree: Any, store: Platform | None) -> None:
        from sqlglot import exp

        self._store = store
        self._tables: dict[str, str] = {}
        for each in tree.find_all(exp.Table):
            self._tables.setdefault(_dotted(each).lower(), _dotted(each))
        self._columns: dict[str, tuple[str, bool]] = {}
        for each in tree.find_all(exp.Column):
            self._columns.setdefault(each.name.lower(), (each.name, bool(each.this.args.get("quoted"))))

    def table(self, table: Any) -> str:
        """A table, with its quotes: naming knows what they mean to the store."""
        text = _dotted(table)
        return self._tables.get(text.lower(), text)

    def column(self, name: str) -> str:
        """A column as the store spells it; one that folds no names spells it as somebody did, as the query does, we take."""
        text, quoted = self._columns.get(name.lower(), (name, False))
        if self._store is None or (quoted and not self._store.insensitive):
            return text
        return {"upper": text.upper(), "lower": text.lower()}.get(self._store.fold, text)


def _dotted(table: Any) -> str:
    return ".".join(
        '"{}"'.format(part.name.replace('"', '""')) if part.args.get("quoted") else part.name
        for part in table.parts
    )


def _columns(
    tree: Any, scope: Any, spelt: _Spelling
) -> tuple[dict[str, tuple[tuple[str, str, bool], ...]], str | None]:
    from sqlglot import exp
    from sqlglot.lineage import lineage

    columns: dict[str, tuple[tuple[str, str, bool], ...]] = {}
    starred: set[str | None] = set()
    for each in tree.selects:
        if each.is_star:
            starred.add(_behind_star(scope, each, spelt))
            continue
        plain = isinstance(each.unalias(), exp.Column)
        found = lineage(each.alias_or_name, tree, scope=scope, copy=False, trim_selects=False)
        columns[each.alias_or_name.lower()] = tuple(
            (spelt.table(leaf.expression), spelt.column(name), plain) for leaf, name in _leaves(found, "")
        )
    return columns, starred.pop() if len(starred) == 1 else None


def _leaves(node: Any, above: str) -> Iterator[tuple[Any, str]]:
    """The columns of tables at the end of a lineage; one that came through a `*` has the name it was asked for by.

    sqlglot gives the parts of a UNION no names of columns, but places.
    """
    from sqlglot import exp

    own = split_name(node.name)[-1][0]
    name = above if above and (own in _PASSING or own.isdigit()) else own
    if isinstance(node.expression, exp.Table) and node.expression.name and name != "*":
        yield node, name
    for each in node.downstream:
        yield from _leaves(each, name)


def _behind_star(scope: Any, star: Any, spelt: _Spelling) -> str | None:
    """The table that a `*` takes its columns from, where it is one."""
    from sqlglot import exp

    while True:
        of = getattr(star, "table", "")
        sources = [scope.sources[of]] if of in scope.sources else list(scope.sources.values())
        if len(sources) != 1:
            return None
        if isinstance(sources[0], exp.Table):
            return spelt.table(sources[0])
        scope = sources[0]
        selects = scope.expression.selects
        if not isinstance(scope.expression, exp.Select) or len(selects) != 1 or not selects[0].is_star:
            return None
        star = selects[0]


def _rows(scope: Any, spelt: _Spelling) -> Iterator[tuple[str, str]]:
    """The columns that decide on rows, each of the table that its alias stands for there."""
    from sqlglot import exp

    aliases = {alias for each in scope.traverse() for alias in each.sources}
    for inner in scope.traverse():
        for column in inner.columns:
            if column.find_ancestor(exp.Where, exp.Join, exp.Group, exp.Having) is None:
                continue
            alias, name = column.table, column.name
            if isinstance(column.parent, exp.Dot) and name in aliases:  # u.c, taken for a field c of t.u
                alias, name = name, column.parent.name
            at: Any = inner
            while at is not None and alias not in at.sources:
                at = at.parent  # of a query around it
            source = at.sources[alias] if at is not None else None
            if isinstance(source, exp.Table) and source.name:
                yield spelt.table(source), spelt.column(name)
