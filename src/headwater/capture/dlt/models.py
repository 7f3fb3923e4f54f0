"""capture.dlt.models: the query of a model, a resource that is SQL -> the tables it reads, and its columns' sources.

The file says the dialect in its first line, then the query, whose tables dlt has written out in full.
"""

from __future__ import annotations

from dataclasses import dataclass, field

Source = tuple[str, str]
"""table (as the query names it), column"""


@dataclass(frozen=True, slots=True)
class Model:
    """What a query reads, and what each of its columns is made of."""

    sql: str
    tables: tuple[str, ...] = ()
    columns: dict[str, list[Source]] = field(default_factory=dict)


def read_model(text: str) -> Model:
    """Understand a model's file; a query that cannot be parsed gives its text alone.

    >>> read_model("dialect: duckdb\\nSELECT t.id AS pid FROM raw.t AS t").columns
    {'pid': [('raw.t', 'id')]}
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
        for name in whole.named_selects:
            found = {
                (_full(leaf.expression), leaf.name.rsplit(".", 1)[-1].strip('"`[]'))
                for leaf in lineage(
                    exp.column(name, quoted=True), whole.copy(), dialect=dialect or None
                ).walk()
                if isinstance(leaf.expression, exp.Table)
            }
            columns[name] = sorted(found)
    except SqlglotError:
        columns = {}  # the tables are known all the same
    return Model(sql, tuple(sorted(tables)), columns)


def _full(table: object) -> str:
    parts = (getattr(table, "catalog", ""), getattr(table, "db", ""), getattr(table, "name", ""))
    return ".".join(part for part in parts if part)
