"""capture.spark.leaves: a leaf of a plan -> its attributes as columns of datasets."""

from __future__ import annotations

from headwater.capture.spark.deps import FILTER, IDENTITY, NONE, OPEN, TRANSFORMATION, Deps, Source, union
from headwater.capture.spark.names import CHANGES, Named, Node, jdbc_table, leaf, read_of, under_rdd
from headwater.capture.spark.relation import Attributes, Ground, Rel, attributes
from headwater.capture.spark.sqltext import parse

_OF_A_CHANGE = frozenset({"_change_type", "_change_ordinal", "_commit_snapshot_id"})


def leaf_rel(ground: Ground, n: Node) -> Rel:
    """A leaf: each attribute is a column of the datasets that it names."""
    listed = n.get("o") or []
    outs = attributes(n)
    if "named" in n:  # an extension knows it
        found, query = n["named"], None
    elif n["n"] in ("LogicalRDD", "ExternalRDD"):
        return _rdd(ground, n, outs)
    else:
        found, query = leaf(ground.naming, n)
    if query is not None:
        return _query(ground, n, outs, query)
    table = n.get("table")
    changes = isinstance(table, dict) and table.get("class") == CHANGES
    shown = [  # hidden metadata columns, and what tells how a row was changed, are nobody's source
        each for each in listed if len(each) == 3 and not (changes and each[1] in _OF_A_CHANGE)
    ]
    env = {
        each[0]: {ground.sources.of(f.identity, each[1]): IDENTITY | OPEN for f in found} for each in shown
    }
    ground.note(found)
    schema = [(each[1], each[2]) for each in shown]
    # what Spark sees of a record is the same for every topic; who has the registry knows its columns
    return Rel(outs, env, NONE, {each.identity: [] if each.kind == "TOPIC" else schema for each in found})


def _rdd(ground: Ground, n: Node, outs: Attributes) -> Rel:
    """Checkpoint and foreachBatch keep attribute ids: they were registered; else the files under it, all to all."""
    known = ground.given((n.get("rdd") or {}).get("id"), outs)
    if known:
        inputs = {d: s for each in known for d, s in each[2].items()}
        env = {number: each[0] for (number, _), each in zip(outs, known, strict=True)}
        return Rel(outs, env, union(each[1] for each in known), inputs)
    everything: Deps = {}
    inputs = {}
    for source in (n.get("rdd") or {}).get("sources", []):
        for dataset in under_rdd(ground.naming, source):
            ground.note([ground.named.get(dataset) or Named(dataset)])
            inputs[dataset] = read_of(source)
            everything.update(
                {ground.sources.of(dataset, c): TRANSFORMATION | OPEN for c, _ in inputs[dataset]}
            )
    return Rel(outs, dict.fromkeys((number for number, _ in outs), everything), NONE, inputs)


def _query(ground: Ground, n: Node, outs: Attributes, query: str) -> Rel:
    """A query that another database answers."""
    options = n["relation"].get("options") or {}
    parsed = parse(query, jdbc_table(options, "").identity.namespace.partition(":")[0])
    tables = {each: jdbc_table(options, each) for each in parsed.tables}
    ground.note(tables.values())

    def source(table: str, column: str) -> Source:
        return ground.sources.of(tables[table].identity, column)

    env = {
        attribute: {
            source(t, c): (IDENTITY if plain else TRANSFORMATION) | OPEN
            for t, c, plain in parsed.columns.get(
                name.lower(), [(parsed.all_of, name, True)] if parsed.all_of else []
            )
        }
        for attribute, name in outs
    }
    rows = {source(t, c): FILTER for t, c in parsed.rows}
    return Rel(outs, env, rows, {each.identity: [] for each in tables.values()})
