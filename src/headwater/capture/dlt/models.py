"""capture.dlt.models: the query of a model, a resource that is SQL -> the tables it reads, and its columns' sources.

The file says the dialect in its first line, then the query, whose tables dlt has written out in full.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

Source = tuple[str, str, bool]
"""table (as the query names it), column, and whether it is handed on as it is"""


@dataclass(frozen=True, slots=True)
class Model:
    """What a query reads, and what each of its columns is made of."""

    sql: str
    tables: tuple[str, ...] = ()
    columns: dict[str, list[Source]] = field(default_factory=dict)


def read_model(text: str) -> Model:
    """Understand a model's file; a query that cannot be parsed gives its text alone.

    >>> read_model("dialect: duckdb\\nSELECT t.id AS pid FROM raw.t AS t").columns
    {'pid': [('raw.t', 'id', True)]}
    """
    head, _, rest = text.partition("\n")
    dialect = head.partition(":")[2].strip() if head.startswith("dialect:") else ""
    sql = rest.strip() if dialect or head.startswith("dialect:") else text.strip()
    import sqlglot
    from sqlglot import exp
    from sqlglot.errors import SqlglotError
    from sqlglot.lineage import lineage
    from sqlglot.optimizer.qualify import qualify

    try:
        tree = sqlglot.parse_one(sql, dialect=dialect or None)
    except SqlglotError:
        return Model(sql)
    if not isinstance(tree, exp.Query):
        return Model(sql)
    defined = {each.alias_or_name for each in tree.find_all(exp.CTE)}
    tables = {_full(each) for each in tree.find_all(exp.Table) if each.db or each.name not in defined}
    columns: dict[str, list[Source]] = {}
    try:
        whole = qualify(tree.copy(), dialect=dialect or None, validate_qualify_columns=False)
        written, names = list(tree.named_selects), list(whole.named_selects)
        if len(written) != len(names) or "*" in written:
            written = names  # a star was opened
        for shown, name in zip(written, names, strict=True):  # qualify() lowers what is quoted, too
            node = lineage(exp.column(name, quoted=True), whole.copy(), dialect=dialect or None)
            same = _handed_on(node)
            found = {
                (_full(leaf.expression), leaf.name.rsplit(".", 1)[-1].strip('"`[]'), same)
                for leaf in node.walk()
                if isinstance(leaf.expression, exp.Table)
            }
            columns[shown] = sorted(found)
    except SqlglotError:
        columns = {}  # the tables are known all the same
    return Model(sql, tuple(sorted(tables)), columns)


def _handed_on(node: Any) -> bool:
    """Whether a column is one column of a table, through however many subqueries, and nothing is done to it."""
    from sqlglot import exp

    if isinstance(node.expression, exp.Table):
        return True
    return (
        isinstance(node.expression.unalias(), exp.Column)
        and len(node.downstream) == 1
        and _handed_on(node.downstream[0])
    )


def _full(table: object) -> str:
    parts = (getattr(table, "catalog", ""), getattr(table, "db", ""), getattr(table, "name", ""))
    return ".".join(part for part in parts if part)
