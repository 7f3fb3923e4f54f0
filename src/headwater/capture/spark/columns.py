"""capture.spark.columns: the nodes of a dumped plan -> for each output attribute the source columns it comes from.

One pass over the nodes, children before parents. Each gives a `Rel`: its attributes, what each comes from, what decided
on its rows, and the datasets read. A node nobody knows passes what its children give, and a new attribute of it may come
from all of that: coarse, never silent; its class is noted in `unknown`.
"""

from __future__ import annotations

from collections.abc import Callable

from headwater.capture.spark.deps import (
    CONDITIONAL,
    FILTER,
    GROUP_BY,
    JOIN,
    NONE,
    SORT,
    Deps,
    Source,
    indirect,
    transformed,
    union,
)
from headwater.capture.spark.expressions import DECODERS, Env, Expression, Reader, constants
from headwater.capture.spark.leaves import leaf_rel
from headwater.capture.spark.names import Node
from headwater.capture.spark.relation import Attributes, Ground, Rel, Schema, attributes, refs
from headwater.naming import Identity

_REASONS = {
    "Filter": (FILTER, "condition"),
    "Join": (JOIN, "condition"),
    "Aggregate": (GROUP_BY, "groupingExpressions"),
    "Sort": (SORT, "order"),
}


class Plan:
    """A plan, understood node by node."""

    def __init__(self, nodes: list[Node], ground: Ground) -> None:
        self.nodes, self.ground = nodes, ground
        self.naming, self.named = ground.naming, ground.named
        self.unknown: set[str] = set()
        self.missed: list[str] = []
        """What could not be told, and why."""
        self.seen: dict[int, Deps] = {}
        self.subqueries: list[Rel] = []
        self.read: dict[Identity, Schema] = {}
        """All columns read of each dataset, by whichever leaf."""
        self.rels: list[Rel] = []
        self.texts: dict[int, str] = {}
        """How an attribute was made, as SQL; only where the probe was asked for it."""
        self.reasons: list[tuple[int, str, frozenset[Source]]] = []
        """Kind, SQL and sources of what decided on rows; likewise."""
        self.constants: dict[int, frozenset[str]] = {}
        """Attributes that can only be one of some texts, and these."""
        self._reader = Reader(ground.sources, self.seen, self._subquery, leaves=ground.leaves)
        self._cte: dict[int, Rel] = {}
        self._loops = {n["id"]: n["anchor"]["#"] for n in nodes if n["n"] == "UnionLoop"}
        for node in nodes:
            rel = self._visit(node)
            self.rels.append(rel)
            self.seen.update(rel.env)

    def deps(self, e: Expression, env: Env) -> Deps:
        """What an expression comes from."""
        return self._reader.read(e, env)

    def child(self, node: Node, field: str = "child") -> Rel:
        """What a child gives."""
        at: int = node[field]["#"]
        return self.rels[at]

    def _subquery(self, at: int) -> Deps:
        rel = self.rels[at]
        self.subqueries.append(rel)
        return union(rel.columns())

    def _visit(self, node: Node) -> Rel:
        self.subqueries = []
        try:
            told = leaf_rel(self.ground, node) if "named" in node else None
            rel: Rel = told or _NODES.get(node["n"], Plan._other)(self, node)
        except (
            KeyError,
            IndexError,
            TypeError,
            AttributeError,
        ):  # a node we know, with other fields than we know
            self.unknown.add(node["n"])
            rel = self._other(node)
        if "text" in node:
            self._reason(node)
        if self.subqueries:
            every = [rel, *self.subqueries]
            rows = union(each.rows for each in every)
            rel = Rel(rel.outs, rel.env, rows, {d: s for each in every for d, s in each.inputs.items()})
        return rel

    def _reason(self, node: Node) -> None:
        """What a node decides on rows by, with the columns that this is about."""
        kind, field = _REASONS[node["n"]]
        by = node.get(field) or []
        env = {number: deps for at in self._below(node) for number, deps in self.rels[at].env.items()}
        listed = [by] if by and isinstance(by[0], str) else by
        sources = {source for e in listed for source in self.deps(e, env)}
        self.reasons.append((kind, node["text"], frozenset(sources)))

    @staticmethod
    def _below(node: Node) -> list[int]:
        return [at for value in node.values() for at in refs(value)]

    def _listed(self, exprs: list[Expression], c: Rel) -> tuple[Attributes, dict[int, Deps]]:
        outs, env = [], {}
        for e in exprs:
            while (
                e[0] not in ("@", "=") and len(e) > 1 and isinstance(e[1], list)
            ):  # an outer reference in a select list
                e = e[1]
            if e[0] in ("@", "="):
                outs.append((e[1], e[2]))
                env[e[1]] = self.deps(e if e[0] == "@" else e[3], c.env)
                if len(e) > 4:
                    self.texts[e[1]] = e[4]
                elif e[0] == "=" and e[3][0] == "@" and e[3][1] in self.texts:
                    self.texts[e[1]] = self.texts[e[3][1]]
                if e[0] == "=" and (texts := constants(e[3])):
                    self.constants[e[1]] = texts
                if e[0] == "=" and (e[3][0] in ("{}", "UpdateFields") or e[3][0] in DECODERS):
                    self._reader.structs[e[1]] = (e[3], c.env)
        return outs, env

    def _project(self, n: Node) -> Rel:
        c = self.child(n)
        outs, env = self._listed(n["projectList"], c)
        return Rel(outs, env, c.rows, c.inputs)

    def _filter(self, n: Node) -> Rel:
        c = self.child(n)
        return Rel(
            c.outs, c.env, union([c.rows, indirect(self.deps(n["condition"], c.env), FILTER)]), c.inputs
        )

    def _aggregate(self, n: Node) -> Rel:
        c = self.child(n)
        outs, env = self._listed(n["aggregateExpressions"], c)
        keys = union(self.deps(e, c.env) for e in n["groupingExpressions"])
        return Rel(outs, env, union([c.rows, indirect(keys, GROUP_BY)]), c.inputs)

    def _window(self, n: Node) -> Rel:
        c = self.child(n)
        outs, env = self._listed(n["windowExpressions"], c)
        return Rel(c.outs + outs, {**c.env, **env}, c.rows, c.inputs)

    def _generate(self, n: Node) -> Rel:
        c = self.child(n)
        outs = [(e[1], e[2]) for e in n["generatorOutput"]]
        gone = set(n.get("unrequiredChildIndex") or ())
        made = self._generated(n["generator"], outs, c.env)
        kept = [out for at, out in enumerate(c.outs) if at not in gone]
        return Rel(kept + outs, {**c.env, **made}, c.rows, c.inputs)

    def _generated(self, e: Expression, outs: Attributes, env: Env) -> dict[int, Deps]:
        """An element of an array is the array's own value; `inline` gives the fields of its structs."""
        kids = [each for each in e[1:] if isinstance(each, list)]
        if e[0] in ("Explode", "PosExplode", "Inline") and len(kids) == 1:
            whole = self.deps(kids[0], env)
            if e[0] == "Inline":
                return {number: self._reader.field(name, whole) for number, name in outs}
            values = outs[1:] if e[0] == "PosExplode" else outs
            return {
                **dict.fromkeys((number for number, _ in outs), transformed(whole)),
                **dict.fromkeys((number for number, _ in values), whole),
            }
        if e[0] == "Stack" and outs:  # by position: each row takes as many values as there are columns
            per = [kids[1 + at :: len(outs)] for at in range(len(outs))]
            return {
                number: transformed(union(self.deps(k, env) for k in values))
                for (number, _), values in zip(outs, per, strict=True)
            }
        return dict.fromkeys((number for number, _ in outs), transformed(self.deps(e, env)))

    def _expand(self, n: Node) -> Rel:  # ROLLUP, CUBE, GROUPING SETS, unpivot
        c = self.child(n)
        outs = [(e[1], e[2]) for e in n["output"]]
        env = {
            number: union(self.deps(p[at], c.env) for p in n["projections"])
            for at, (number, _) in enumerate(outs)
        }
        return Rel(outs, env, c.rows, c.inputs)

    def _sort(self, n: Node) -> Rel:
        c = self.child(n)
        order = union(self.deps(e, c.env) for e in n["order"])
        return Rel(c.outs, c.env, union([c.rows, indirect(order, SORT)]), c.inputs)

    def _deduplicate(self, n: Node) -> Rel:
        c = self.child(n)
        keys = union(self.deps(e, c.env) for e in n["keys"])
        return Rel(c.outs, c.env, union([c.rows, indirect(keys, GROUP_BY)]), c.inputs)

    def _join(self, n: Node) -> Rel:
        return self._joined(n, self.child(n, "left"), self.child(n, "right"))

    def _lateral(self, n: Node) -> Rel:  # its right side is an expression, not a child
        return self._joined(n, self.child(n, "left"), self.rels[n["right"][2]])

    def _joined(self, n: Node, left: Rel, right: Rel) -> Rel:
        env = {**left.env, **right.env}
        on = indirect(self.deps(n["condition"], env), JOIN) if n.get("condition") else NONE
        outs = left.outs if str(n.get("joinType")) in ("LeftSemi", "LeftAnti") else left.outs + right.outs
        return Rel(outs, env, union([left.rows, right.rows, on]), {**left.inputs, **right.inputs})

    def _union(self, n: Node) -> Rel:
        kids = [self.rels[at] for at in refs(n["children"])]
        columns = zip(*(k.columns() for k in kids), strict=False)
        env = {number: union(sets) for (number, _), sets in zip(kids[0].outs, columns, strict=False)}
        return Rel(
            kids[0].outs, env, union(k.rows for k in kids), {d: s for k in kids for d, s in k.inputs.items()}
        )

    def _either(self, n: Node) -> Rel:  # INTERSECT, EXCEPT: values of the left, rows decided by the right
        left, right = self.child(n, "left"), self.child(n, "right")
        decided = indirect(union(right.columns()), FILTER)
        return Rel(
            left.outs, left.env, union([left.rows, right.rows, decided]), {**left.inputs, **right.inputs}
        )

    def _cte_definition(self, n: Node) -> Rel:
        self._cte[n["id"]] = found = self.child(n)
        return found

    def _with_cte(self, n: Node) -> Rel:
        return self.child(n, "plan")

    def _renamed(self, n: Node, c: Rel) -> Rel:
        outs = attributes(n)
        return Rel(
            outs, {number: d for (number, _), d in zip(outs, c.columns(), strict=False)}, c.rows, c.inputs
        )

    def _cte_reference(self, n: Node) -> Rel:
        found = self._cte.get(n["cteId"])
        return self._renamed(n, found) if found else Rel(attributes(n), {}, NONE, {})

    def _loop_reference(self, n: Node) -> Rel:  # inside a recursive CTE: what the anchor gave
        return self._renamed(n, self.rels[self._loops[n["loopId"]]])

    def _loop(self, n: Node) -> Rel:
        a, r = self.child(n, "anchor"), self.child(n, "recursion")
        both = [union(pair) for pair in zip(a.columns(), r.columns(), strict=False)]
        outs = attributes(n)
        env = {number: d for (number, _), d in zip(outs, both, strict=False)}
        return Rel(outs, env, union([a.rows, r.rows]), {**a.inputs, **r.inputs})

    def _merge_rows(self, n: Node) -> Rel:
        c = self.child(n)
        outs = [(e[1], e[2]) for e in n["output"]]
        per: list[list[Deps]] = [[] for _ in outs]
        conditions = []
        for group in ("matchedInstructions", "notMatchedInstructions", "notMatchedBySourceInstructions"):
            for instruction in n.get(group) or []:
                kids = [each for each in instruction[1:] if isinstance(each, list)]
                conditions.append(self.deps(kids[0], c.env))
                for start in range(1, len(kids), len(outs) or 1):  # Keep has one row, Split two
                    for at, e in enumerate(kids[start : start + len(outs)]):
                        per[at].append(self.deps(e, c.env))
        env = {number: union(sets) for (number, _), sets in zip(outs, per, strict=True)}
        return Rel(outs, env, union([c.rows, indirect(union(conditions), CONDITIONAL)]), c.inputs)

    def _result(self, n: Node) -> Rel:
        return Rel(attributes(n), {}, NONE, {})

    def _grouped(self, n: Node) -> Rel:  # applyInPandas and its kin
        rel = self._other(n)
        keys = [self.deps(e, self.seen) for e in n.get("groupingAttributes") or []]
        for side, count in _FIRST.items():  # the first columns of a side are its keys
            if count in n and side in n:
                keys += self.child(n, side).columns()[: n[count]]
        return Rel(rel.outs, rel.env, union([rel.rows, indirect(union(keys), GROUP_BY)]), rel.inputs)

    def _other(self, n: Node) -> Rel:
        kids = [self.rels[at] for field, value in n.items() if field not in ("o", "q") for at in refs(value)]
        if not kids:
            found = leaf_rel(self.ground, n)
            for dataset, schema in found.inputs.items():
                have = self.read.get(dataset, [])
                self.read[dataset] = list(dict.fromkeys([*have, *schema])) if have else schema
            return found
        one = kids[0]
        if len(kids) > 1:
            env = {number: d for k in kids for number, d in k.env.items()}
            inputs = {d: s for k in kids for d, s in k.inputs.items()}
            one = Rel([out for k in kids for out in k.outs], env, union(k.rows for k in kids), inputs)
        outs = attributes(n)
        if not outs:
            return one
        if all(number in one.env for number, _ in outs):
            return Rel(outs, one.env, one.rows, one.inputs)
        if n["n"] not in _OPAQUE:
            self.unknown.add(n["n"])
        everything = transformed(union(one.columns()))
        new = {number: everything for number, _ in outs if number not in one.env}
        return Rel(outs, {**one.env, **new}, one.rows, one.inputs)


_FIRST = {"left": "leftGroupingLen", "right": "rightGroupingLen", "child": "groupingAttributesLen"}

_OPAQUE = frozenset(
    {"MapInPandas", "MapInArrow", "PythonMapInArrow", "FlatMapGroupsInPandas", "FlatMapGroupsInArrow"}
    | {
        "FlatMapCoGroupsInPandas",
        "FlatMapCoGroupsInArrow",
        "SerializeFromObject",
        "DeserializeToObject",
        "MapElements",
    }
    | {
        "MapPartitions",
        "BatchEvalPython",
        "ArrowEvalPython",
        "BatchEvalPythonUDTF",
        "ArrowEvalPythonUDTF",
        "AppendColumns",
    }
    | {
        "MapGroups",
        "TransformWithStateInPandas",
        "TransformWithStateInPySpark",
        "FlatMapGroupsInPandasWithState",
    }
)
"""Nodes known to be opaque: what a function does inside is nobody's to know."""

_NODES: dict[str, Callable[[Plan, Node], Rel]] = {
    "Project": Plan._project,
    "Filter": Plan._filter,
    "Aggregate": Plan._aggregate,
    "Window": Plan._window,
    "Generate": Plan._generate,
    "Expand": Plan._expand,
    "Sort": Plan._sort,
    "Deduplicate": Plan._deduplicate,
    "DeduplicateWithinWatermark": Plan._deduplicate,
    "Join": Plan._join,
    "LateralJoin": Plan._lateral,
    "Union": Plan._union,
    "Intersect": Plan._either,
    "Except": Plan._either,
    "CTERelationDef": Plan._cte_definition,
    "WithCTE": Plan._with_cte,
    "CTERelationRef": Plan._cte_reference,
    "UnionLoopRef": Plan._loop_reference,
    "UnionLoop": Plan._loop,
    "MergeRows": Plan._merge_rows,
    "CommandResult": Plan._result,
    "FlatMapGroupsInPandas": Plan._grouped,
    "FlatMapGroupsInArrow": Plan._grouped,
    "FlatMapCoGroupsInPandas": Plan._grouped,
    "FlatMapCoGroupsInArrow": Plan._grouped,
    "FlatMapGroupsInPandasWithState": Plan._grouped,
    "TransformWithStateInPandas": Plan._grouped,
    "TransformWithStateInPySpark": Plan._grouped,
}
