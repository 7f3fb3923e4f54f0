"""capture.spark.ddl: a statement about tables, and what the catalog says of them -> what it changes.

`tables` of a record are those that the statement names, by field, as the catalog knew them when the statement began;
`after` those when it had ended. A dropped table is told as it was, a created or altered one as it is.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from headwater.capture.spark import names
from headwater.capture.spark.columns import Plan
from headwater.capture.spark.deps import IDENTITY, NONE, OPEN
from headwater.capture.spark.names import Named, Node
from headwater.capture.spark.relation import refs
from headwater.capture.spark.writes import Effect, Output

Tables = dict[str, Node]
"""Field of the statement -> what the catalog says of that table."""

CHANGES = {
    "CreateDataSourceTableCommand": "CREATE",
    "CreateTableCommand": "CREATE",
    "CreateTableLikeCommand": "CREATE",
    "CreateTable": "CREATE",
    "CreateV2Table": "CREATE",
    "ReplaceTable": "OVERWRITE",
    "DropTableCommand": "DROP",
    "DropTable": "DROP",
    "DropView": "DROP",
    "TruncateTableCommand": "TRUNCATE",
    "TruncateTable": "TRUNCATE",
    "TruncatePartition": "TRUNCATE",
    "AlterTableRenameCommand": "RENAME",
    "RenameTable": "RENAME",
    "AddColumns": "ALTER",
    "DropColumns": "ALTER",
    "RenameColumn": "ALTER",
    "AlterColumn": "ALTER",
    "AlterColumns": "ALTER",
    "ReplaceColumns": "ALTER",
    "SetTableProperties": "ALTER",
    "UnsetTableProperties": "ALTER",
    "SetTableLocation": "ALTER",
    "AddPartitions": "ALTER",
    "DropPartitions": "ALTER",
    "RenamePartitions": "ALTER",
    "RecoverPartitions": "ALTER",
    "AddConstraint": "ALTER",
    "DropConstraint": "ALTER",
    "SetViewProperties": "ALTER",
    "UnsetViewProperties": "ALTER",
}
_FIELDS = ("table", "targetTable", "tableName", "tableIdent", "oldName", "name", "child", "ident")


def change_of(command: str) -> str | None:
    """What a statement does to its table; None where it is none of these."""
    if command.startswith("Alter") and command.endswith("Command") and command != "AlterViewAsCommand":
        return CHANGES.get(command, "ALTER")
    return CHANGES.get(command)


def statement(plan: Plan, before: Tables, after: Tables) -> Effect | None:
    """What a statement about tables changes; None for any other plan."""
    n = plan.nodes[-1]
    if n["n"] == "LoadDataCommand":
        return _load(plan, n, before, after)
    if n["n"] == "CreateDeltaTableCommand":
        return _clone(plan, n)
    if n["n"] == "RestoreTableCommand":
        return _restore(plan, n)
    change = change_of(n["n"])
    if change is None:
        return None
    found = _table(plan, n, before if change in ("DROP", "RENAME") else {**before, **after}, change)
    if found is None:
        return None
    named, schema = found
    out = Output(named, [(name, kind, NONE) for name, kind in schema], change=change)
    if change == "RENAME":
        return _renamed(plan, n, out, {**before, **after})
    return Effect(n["n"], {}, [out])


def _table(plan: Plan, n: Node, told: Tables, change: str) -> tuple[Named, list[tuple[str, str]]] | None:
    for field in _FIELDS:
        if field in told:
            return names.table(plan.naming, _kind(told[field], n))[0], _schema(told[field])
    for field in _FIELDS:
        value = n.get(field)
        if not isinstance(value, dict):
            continue
        if value.get("t") == "table":
            return names.table(plan.naming, value)[0], _schema(value)
        if "#" in value:
            return _resolved(plan, plan.nodes[value["#"]], n)
        if value.get("t") == "ident":
            return names.table(plan.naming, {"ident": value, "location": None})[0], []
    return None


def _kind(table: Node, n: Node) -> Node:
    return {**table, "type": "VIEW"} if n.get("isView") is True else table


def _resolved(plan: Plan, ident: Node, n: Node) -> tuple[Named, list[tuple[str, str]]] | None:
    """A table of a v2 catalog: known (ResolvedTable), or only by its identifier."""
    catalog, parts = ident.get("catalog") or {}, (ident.get("identifier") or {}).get("id")
    if not parts:
        return None
    table = ident.get("table") if isinstance(ident.get("table"), dict) else {}
    where = (table or {}).get("location") or ((table or {}).get("properties") or {}).get("location")
    spec = n.get("tableSpec")
    if where is None and isinstance(spec, list) and len(spec) > 1 and isinstance(spec[1], str):
        where = spec[1]
    where = where or ident.get("location")
    schema = [(each[0], each[1]) for each in n.get("tableSchema") or [] if isinstance(each, list)]
    for each in n.get("columns") or []:
        if isinstance(each, list) and len(each) > 2 and each[0] == "ColumnDefinition":
            schema.append((each[1], each[2]))
    schema = schema or [(each[1], each[2]) for each in ident.get("o") or [] if len(each) == 3]
    return plan.naming.catalog(str(catalog.get("name") or ""), parts, where), schema


def _schema(table: Node) -> list[tuple[str, str]]:
    return [(each[0], each[1]) for each in table.get("schema") or []]


def _renamed(plan: Plan, n: Node, old: Output, told_of: Tables) -> Effect:
    """The table under its new name, and what it was called; a table by location may keep its identity."""
    told = told_of.get("newName")
    if told is not None:
        new = names.table(plan.naming, _kind(told, n))[0]
        schema: list[Any] = [(name, kind, NONE) for name, kind in _schema(told)] or old.columns
    else:
        parts = n.get("newName") or n.get("newIdent") or []
        parts = parts.get("id", []) if isinstance(parts, dict) else parts
        ident = plan.nodes[n["child"]["#"]] if isinstance(n.get("child"), dict) and "#" in n["child"] else {}
        catalog = str((ident.get("catalog") or {}).get("name") or "")
        space = (ident.get("identifier") or {}).get("id", [])[:-1]
        new = plan.naming.catalog(catalog, [*space, parts[-1]] if len(parts) == 1 else list(parts), None)
        schema = old.columns
    return Effect(n["n"], {}, [Output(new, schema, change="RENAME", previous=old.named.identity)])


def _load(plan: Plan, n: Node, before: Tables, after: Tables) -> Effect:
    """LOAD DATA: files that a table takes over."""
    told = {**before, **after}
    target = next((told[field] for field in ("table", "tableIdent", "tableName") if field in told), None)
    if target is None:
        return Effect(n["n"])
    source = names.path(str(n.get("path")))
    plan.named.setdefault(source.identity, source)
    named = names.table(plan.naming, target)[0]
    change = "OVERWRITE" if n.get("isOverwrite") is True else None
    columns: list[Any] = [(name, kind, NONE) for name, kind in _schema(target)]
    return Effect(n["n"], {source.identity: []}, [Output(named, columns, change=change)])


def _clone(plan: Plan, n: Node) -> Effect | None:
    """CLONE of Delta: a table that takes over all columns of another, as that is or was."""
    into, at = n.get("table"), refs(n.get("query"))
    source = plan.nodes[at[0]].get("sourceTable") if at else None
    if not isinstance(into, dict) or not isinstance(source, dict) or source.get("t") != "clone":
        return None
    if n.get("mode") == "Ignore" and n.get("existingTableOpt"):  # IF NOT EXISTS, and it does
        return Effect(n["n"])
    told = source.get("table")
    found = names.table(plan.naming, told)[0] if told else names.path(source["location"])
    plan.ground.note([replace(found, version=source.get("version"))])
    by_path = n.get("tableByPath") is True
    target = names.path(into["location"], encoded=True) if by_path else names.table(plan.naming, into)[0]
    schema = _schema(into)
    of = plan.ground.sources.of
    columns: list[Any] = [(name, kind, {of(found.identity, name): IDENTITY | OPEN}) for name, kind in schema]
    change = "OVERWRITE" if n.get("existingTableOpt") else "CREATE"
    return Effect(n["n"], {found.identity: schema}, [Output(target, columns, change=change)])


def _restore(plan: Plan, n: Node) -> Effect | None:
    """RESTORE of Delta: a table that becomes again what it was, from files of its own."""
    told, known = n.get("sourceTable"), n.get("table")
    if not isinstance(told, dict):
        return None
    named = names.table(plan.naming, known) if known else names.v2(plan.naming, {"table": told})
    columns: list[Any] = [(name, kind, NONE) for name, kind in _schema(n)]
    return Effect(n["n"], {}, [Output(each, columns, change="OVERWRITE") for each in named])
