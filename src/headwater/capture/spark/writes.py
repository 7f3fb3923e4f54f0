"""capture.spark.writes: an understood plan -> what its root command reads and writes."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from headwater.capture.spark import names
from headwater.capture.spark.columns import Plan
from headwater.capture.spark.deps import (
    CONDITIONAL,
    FILTER,
    JOIN,
    NONE,
    Deps,
    Source,
    indirect,
    transformed,
    union,
)
from headwater.capture.spark.names import Named, Node
from headwater.capture.spark.relation import Rel, Schema, refs
from headwater.naming import Identity

Counts = tuple[int | None, int | None, int | None]
"""Rows, bytes, files."""


@dataclass(slots=True)
class Output:
    """A dataset that is written: its columns with types and where each comes from, and what decided on its rows."""

    named: Named
    columns: list[tuple[str, str | None, Deps]] = field(default_factory=list)
    rows: Deps = field(default_factory=dict)
    change: str | None = None
    """CREATE, OVERWRITE, DROP … for the lifecycleStateChange facet"""
    previous: Identity | None = None
    """What it was called before a RENAME."""
    counts: Counts = (None, None, None)
    texts: dict[str, str] = field(default_factory=dict)
    """How a column was made, as SQL; where that was asked for"""
    reasons: tuple[tuple[int, str, frozenset[Source]], ...] = ()
    """Kind, SQL and sources of what decided on rows; likewise"""


@dataclass(slots=True)
class Effect:
    """What a plan does."""

    command: str
    inputs: dict[Identity, Schema] = field(default_factory=dict)
    outputs: list[Output] = field(default_factory=list)
    gives: Rel | None = None
    """What may come back later under the same attribute ids."""
    unknown: frozenset[str] = frozenset()
    missed: tuple[str, ...] = ()
    """What could not be told, and why."""


def merged(outputs: list[Output]) -> list[Output]:
    """What is written to one dataset several times, as by the INSERTs of one statement, told as one output."""
    out: dict[Identity, Output] = {}
    for each in outputs:
        have = out.get(each.named.identity)
        out[each.named.identity] = each if have is None else _both(have, each)
    return list(out.values())


def _both(one: Output, other: Output) -> Output:
    columns = {name: (kind, deps) for name, kind, deps in one.columns}
    for name, kind, deps in other.columns:
        known, sources = columns.get(name, (None, NONE))
        columns[name] = (known or kind, union([sources, deps]))
    return replace(
        one,
        columns=[(name, kind, deps) for name, (kind, deps) in columns.items()],
        rows=union([one.rows, other.rows]),
        change=one.change or other.change,
        counts=added(one.counts, other.counts),
        texts={**other.texts, **one.texts},
        reasons=tuple(dict.fromkeys((*one.reasons, *other.reasons))),
    )


def added(one: Counts, other: Counts) -> Counts:
    """Two counts of rows, bytes and files together; what neither knows stays unknown."""
    rows, size, files = (
        None if a is None and b is None else (a or 0) + (b or 0) for a, b in zip(one, other, strict=True)
    )
    return rows, size, files


def effect(plan: Plan) -> Effect:
    """What the root of a plan does; a plan without a command only reads."""
    n = plan.nodes[-1]
    made = COMMANDS.get(n["n"])
    commands = [plan.nodes[at] for at in refs(n.get("children"))] if n["n"] == "Union" else []
    if commands and all(each["n"] in COMMANDS for each in commands):  # FROM t INSERT … INSERT …
        parts = [COMMANDS[each["n"]](plan, each) for each in commands]
        inputs = {d: s for part in parts for d, s in part.inputs.items()}
        return Effect("multi_insert", inputs, [out for part in parts for out in part.outputs])
    if made is None:
        rel = plan.rels[-1]
        out = Effect(n["n"], rel.inputs, [], rel)
    else:
        try:
            out = made(plan, n)
        except (KeyError, IndexError, TypeError, AttributeError, AssertionError):  # other fields than we know
            plan.unknown.add(n["n"])
            out = Effect("", plan.rels[-1].inputs, [], plan.rels[-1])
        out.command = n["n"]
    out.inputs = {dataset: plan.read.get(dataset, schema) for dataset, schema in out.inputs.items()}
    out.unknown, out.missed = frozenset(plan.unknown), tuple(dict.fromkeys(plan.missed))
    for each in out.outputs:
        each.reasons = tuple(plan.reasons)
        if plan.texts:
            pairs = zip(each.columns, n.get("q") or (), strict=False)
            each.texts = {column[0]: plan.texts[made[0]] for column, made in pairs if made[0] in plan.texts}
    plan.ground.note([plan.named.get(each.named.identity, each.named) for each in out.outputs])
    return out


def aim(plan: Plan, made: Effect, at: int, named: list[Named]) -> None:
    """Let a node write where an extension says; its columns are those we know it writes, else those it is given."""
    n = plan.nodes[at]
    if at == len(plan.nodes) - 1 and made.outputs:
        made.outputs = [replace(made.outputs[0], named=each) for each in named]
        return
    below = [ref for name in ("query", "plan", "child", "children") for ref in refs(n.get(name))]
    rel = plan.rels[below[0] if below else at]
    kinds = {each[1]: each[2] for each in n.get("q") or n.get("o") or ()}
    columns = [(name, kinds.get(name), deps) for (_, name), deps in zip(rel.outs, rel.columns(), strict=True)]
    made.inputs = {**made.inputs, **rel.inputs}
    made.outputs += [Output(each, columns, rel.rows) for each in named]


def _typed(n: Node, only: list[str] | None = None) -> list[tuple[str, str | None]]:
    return [(name, each[2]) for name, each in zip(only or [a[1] for a in n["q"]], n["q"], strict=False)]


def _query(
    plan: Plan,
    n: Node,
    named: list[Named],
    columns: list[str] | None = None,
    change: str | None = None,
    at: str = "query",
) -> Effect:
    """The usual command: columns of a query go, in order, to columns of a target."""
    rel = plan.rels[n[at]["#"]]
    made = [(name, kind, d) for (name, kind), d in zip(_typed(n, columns), rel.columns(), strict=False)]
    return Effect("", rel.inputs, [Output(each, made, rel.rows, change) for each in named], rel)


def _target(plan: Plan, reference: Node) -> tuple[list[Named], Node]:
    """The table a command writes to, under its aliases."""
    n = plan.nodes[reference["#"]]
    while "child" in n and isinstance(n["child"], dict):
        n = plan.nodes[n["child"]["#"]]
    return names.leaf(plan.naming, n)[0], n


def _overwrites(n: Node) -> str | None:
    return "OVERWRITE" if n.get("mode") == "Overwrite" or n.get("overwrite") is True else None


def _insert_files(plan: Plan, n: Node) -> Effect:
    if n.get("catalogTable"):
        named = names.table(plan.naming, n["catalogTable"])
    else:
        named = [names.path(plan.naming.above(n["outputPath"]))]
    return _query(plan, n, named, n.get("outputColumnNames"), _overwrites(n))


def _create_table(plan: Plan, n: Node) -> Effect:
    named = names.table(plan.naming, n.get("table") or n.get("tableDesc") or n["catalogTable"])
    change = _overwrites(n)
    if n["n"].startswith(("Create", "Optimized", "SaveAs")) and n.get("mode") not in ("Append", "Overwrite"):
        change = "CREATE"
    return _query(plan, n, named, n.get("outputColumnNames"), change)


def _insert_directory(plan: Plan, n: Node) -> Effect:
    where = str(n.get("storage"))
    return _query(plan, n, [names.path(where, encoded=True)] if "/" in where else [], None, _overwrites(n))


def _save(plan: Plan, n: Node) -> Effect:
    options = _topics(plan, n, n.get("options") or {})
    return _query(plan, n, names.option_target(options), None, _overwrites(n))


def _topics(plan: Plan, n: Node, options: dict[str, Any]) -> dict[str, Any]:
    """Options of Kafka's sink with the topics of its rows, where no option names one and they can be known."""
    low = names.lower(options)
    if "kafka.bootstrap.servers" not in low or low.get("topic"):
        return options
    found = [plan.constants.get(each[0], frozenset()) for each in n["q"] if each[1].lower() == "topic"]
    texts = sorted(frozenset().union(*found))
    if not texts:
        plan.missed.append("the topics that are written to stand in the data, so no output is told")
        return options
    return {**options, "topic": ",".join(texts)}


def _insert_relation(plan: Plan, n: Node) -> Effect:
    named, table = _target(plan, n["logicalRelation"])
    return _query(plan, n, named, [each[1] for each in table["o"]], _overwrites(n))


def _write_v2(plan: Plan, n: Node) -> Effect:
    named, table = _target(plan, n["table"])
    same = len(table.get("o") or ()) == len(n["q"])
    change = None if n["n"] == "AppendData" else "OVERWRITE"
    return _query(plan, n, named, [each[1] for each in table["o"]] if same else None, change)


def _row_level(plan: Plan, n: Node) -> Effect:
    """MERGE, UPDATE, DELETE as the analyzer rewrites them: the query carries row operations and metadata besides."""
    named, table = _target(plan, n["originalTable"])
    rel = plan.rels[n["query"]["#"]]
    at = {name: d for (_, name), d in zip(rel.outs, rel.columns(), strict=False)}
    made = [(each[1], each[2], at.get(each[1], NONE)) for each in table["o"] if len(each) == 3]
    return Effect("", rel.inputs, [Output(each, made, rel.rows) for each in named], rel)


def _create_v2(plan: Plan, n: Node) -> Effect:
    change = "CREATE" if n["n"].startswith("Create") else "OVERWRITE"
    return _query(plan, n, [_identified(plan, plan.nodes[n["name"]["#"]], n.get("tableSpec"))], None, change)


def _identified(plan: Plan, ident: Node, spec: Any = None) -> Named:
    """A table of a v2 catalog that may not exist yet."""
    catalog, parts = ident.get("catalog") or {}, (ident.get("identifier") or {}).get("id", [])
    where = spec[1] if isinstance(spec, list) and len(spec) > 1 and isinstance(spec[1], str) else None
    where = where or ident.get("location")
    return plan.naming.catalog(str(catalog.get("name") or ""), parts, where)


def _view(plan: Plan, n: Node) -> Effect:
    if not str(n.get("viewType", "")).endswith("PersistedView$"):  # a temporary view is a name, not a dataset
        return Effect("")
    given = [each[0] if isinstance(each, list) else None for each in n.get("userSpecifiedColumns") or []]
    named = names.table(plan.naming, {"ident": n["name"], "type": "VIEW"})
    return _query(plan, n, named, given if given and all(given) else None, "CREATE", "plan")  # type: ignore[arg-type]


def _alter_view(plan: Plan, n: Node) -> Effect:
    return _query(plan, n, names.table(plan.naming, {"ident": n["name"], "type": "VIEW"}), None, "ALTER")


def _micro_batch(plan: Plan, n: Node) -> Effect:
    sink = n.get("sink") if isinstance(n.get("sink"), dict) else {}
    where = re.search(r"(?:FileSink|DeltaSink)\[(.*)\]$", str((sink or {}).get("text", "")))
    named: list[Named] = []
    if n.get("catalogTable"):
        named = names.table(plan.naming, n["catalogTable"])
    elif where:
        named = [names.path(where.group(1))]
    else:
        into = (
            plan.nodes[n["relation"]["#"]] if "relation" in n else n
        )  # since 4.2 a relation holds the table
        if isinstance(into.get("table"), dict) and into["table"].get("t") == "v2":
            options = _topics(plan, n, n.get("writeOptions") or {})
            named = names.v2(plan.naming, {**into, "options": options})
    return _query(plan, n, named)


def _merge(plan: Plan, n: Node) -> Effect:
    """MERGE kept whole: Delta's command, or MergeIntoTable of a source that rewrites nothing."""
    source, into = n.get("source") or n["sourceTable"], n.get("target") or n["targetTable"]
    s, t = plan.rels[source["#"]], plan.rels[into["#"]]
    named, table = _target(plan, into)
    if n.get("catalogTable"):
        named = names.table(plan.naming, n["catalogTable"])
    env = {**s.env, **t.env}
    per: dict[str, list[Deps]] = {
        name: [t.env.get(at, NONE)] for at, name in t.outs
    }  # rows without a match stay
    rows = [s.rows, indirect(plan.deps(n.get("condition") or n["mergeCondition"], env), JOIN)]
    for name, clauses in n.items():
        if not name.endswith(("Clauses", "Actions")) or not isinstance(clauses, list):
            continue
        for part in (each for clause in clauses for each in clause[1:] if isinstance(each, list) and each):
            if part[0] == "DeltaMergeAction":
                per.setdefault(part[1][0], []).append(plan.deps(part[2], env))
            elif part[0] == "Assignment":
                per.setdefault(_name_of(part[1]), []).append(plan.deps(part[2], env))
            else:
                rows.append(indirect(plan.deps(part, env), CONDITIONAL))
    kinds = {each[1]: each[2] for each in table.get("o", [])}
    made = [(column, kinds.get(column), union(sets)) for column, sets in per.items()]
    return Effect("", {**s.inputs, **t.inputs}, [Output(each, made, union(rows)) for each in named])


def _name_of(e: list[Any]) -> str:
    while e[0] not in ("@", "="):
        e = e[2] if e[0] == "." else e[1]
    return str(e[2])


def _change_rows(plan: Plan, n: Node) -> Effect:
    """UPDATE and DELETE kept whole."""
    into = n.get("target") or n.get("table") or n.get("child")
    assert isinstance(into, dict)
    t = plan.rels[into["#"]]
    named, table = _target(plan, into)
    if n.get("catalogTable"):
        named = names.table(plan.naming, n["catalogTable"])
    plan.subqueries = []
    new = {t.outs[at][1]: plan.deps(e, t.env) for at, e in enumerate(n.get("updateExpressions") or [])}
    new |= {_name_of(each[1]): plan.deps(each[2], t.env) for each in n.get("assignments") or []}
    rows = (
        indirect(plan.deps(n["condition"], t.env), FILTER) if isinstance(n.get("condition"), list) else NONE
    )
    made = [
        (each[1], each[2], transformed(new[each[1]]) if each[1] in new else t.env.get(each[0], NONE))
        for each in table.get("o", [])
        if len(each) == 3
    ]
    inputs = {d: s for rel in (t, *plan.subqueries) for d, s in rel.inputs.items()}
    decided = union([rows, *(rel.rows for rel in plan.subqueries)])
    return Effect("", inputs, [Output(each, made, decided) for each in named])


def _nothing(plan: Plan, n: Node) -> Effect:
    return Effect("")


COMMANDS: dict[str, Callable[[Plan, Node], Effect]] = {
    "InsertIntoHadoopFsRelationCommand": _insert_files,
    "InsertIntoHiveTable": _create_table,
    "CreateDataSourceTableAsSelectCommand": _create_table,
    "CreateHiveTableAsSelectCommand": _create_table,
    "OptimizedCreateHiveTableAsSelectCommand": _create_table,
    "SaveAsV1TableCommand": _create_table,  # 4.1 wraps saveAsTable in it
    "InsertIntoDataSourceDirCommand": _insert_directory,
    "InsertIntoHiveDirCommand": _insert_directory,
    "SaveIntoDataSourceCommand": _save,
    "InsertIntoDataSourceCommand": _insert_relation,
    "AppendData": _write_v2,
    "OverwriteByExpression": _write_v2,
    "OverwritePartitionsDynamic": _write_v2,
    "ReplaceData": _row_level,
    "WriteDelta": _row_level,
    "CreateTableAsSelect": _create_v2,
    "ReplaceTableAsSelect": _create_v2,
    "CreateViewCommand": _view,
    "AlterViewAsCommand": _alter_view,
    "WriteToMicroBatchDataSourceV1": _micro_batch,
    "WriteToMicroBatchDataSource": _micro_batch,
    "WriteToDataSourceV2": _micro_batch,
    "MergeIntoCommand": _merge,
    "MergeIntoTable": _merge,
    "DeltaMergeInto": _merge,
    "UpdateCommand": _change_rows,
    "DeleteCommand": _change_rows,
    "UpdateTable": _change_rows,
    "DeleteFromTable": _change_rows,
    "ExplainCommand": _nothing,
    "DescribeQueryCommand": _nothing,
}
