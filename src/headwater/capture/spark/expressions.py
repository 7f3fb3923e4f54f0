"""capture.spark.expressions: an expression and what its attributes come from -> what it comes from.

An expression is a list: `["@", id, name]` an attribute, `["=", id, name, child]` an alias, `["L"]` a literal,
`["$", class, node, children…]` a subquery, `["{}", [names], values…]` a struct, `[".", field, child]` a field of a struct (or of each struct of an array),
`["[]", child, …]` an element of an array or map, `[class, children…]` all else.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from headwater.capture.spark.deps import (
    CONDITIONAL,
    DIRECT,
    IDENTITY,
    NONE,
    WINDOW,
    Deps,
    Sources,
    aggregated,
    indirect,
    masked,
    transformed,
    union,
)

Expression = list[Any]
Env = Mapping[int, Deps]

RANKS = frozenset({"RowNumber", "Rank", "DenseRank", "PercentRank", "CumeDist", "NTile"})
"""Their children are the sort order, not values."""
MASKS = frozenset(
    {"Sha1", "Sha2", "Md5", "Crc32", "Murmur3Hash", "XxHash64", "HiveHash", "CollationAwareMurmur3Hash"}
    | {"CollationAwareXxHash64", "Mask", "MaskExpressionsUtils", "AesEncrypt"}
)
NOTHING = frozenset({"L", "NamedLambdaVariable", "UnresolvedNamedLambdaVariable"})
DECODERS = frozenset(
    {"JsonToStructs", "AvroDataToCatalyst", "FromAvro", "ProtobufDataToCatalyst", "FromProtobuf"}
)
"""Functions that make a struct of a record's bytes; the later names stand in for them until a plan is optimized."""
IN_RECORD = {"value": "", "key": "__key."}
"""The two columns that Spark sees of a record in Kafka -> where its fields stand among a topic's columns."""
PASSING = frozenset(
    {"KnownNotNull", "KnownNullable", "KnownFloatingPointNormalized", "UpCast", "TempResolvedColumn"}
)


class Reader:
    """Reads the expressions of one node; subqueries that it meets are told to `subquery`."""

    def __init__(
        self, sources: Sources, seen: Env, subquery: Callable[[int], Deps], *, leaves: bool = True
    ) -> None:
        self._sources, self._seen, self._subquery, self._leaves = sources, seen, subquery, leaves
        self.structs: dict[int, tuple[Expression, Env]] = {}
        """Attributes that are structs put together, or decoded, in this plan, and how."""

    def read(self, e: Expression, env: Env) -> Deps:
        """What an expression comes from."""
        tag = e[0]
        if tag == "@":
            found = env.get(e[1])
            return found if found is not None else self._seen.get(e[1], NONE)  # an outer reference
        if tag in NOTHING:
            return NONE
        if tag == "=":
            return self.read(e[3], env)
        if tag == "$":
            columns = self._subquery(e[2])
            return NONE if e[1] == "Exists" else transformed(columns)
        if tag == ".":
            inner = self._member(e[2], str(e[1]), env)
            return inner if inner is not None else self.field(str(e[1]), self.read(e[2], env))
        if tag == "{}":
            return transformed(union([self.read(each, env) for each in e[2:]]))
        kids = [each for each in e[1:] if isinstance(each, list)]
        if tag == "[]":  # an element is the value's own; what chooses it decides
            return union(
                [self.read(kids[0], env), *(indirect(self.read(k, env), CONDITIONAL) for k in kids[1:])]
            )
        special = _SPECIAL.get(tag)
        if special is not None:
            return special(self, kids, env)
        if tag in PASSING and kids:
            return self.read(kids[0], env)
        whole = transformed(
            self.read(kids[0], env) if len(kids) == 1 else union([self.read(k, env) for k in kids])
        )
        return masked(whole) if tag in MASKS else whole

    def _member(self, e: Expression, name: str, env: Env) -> Deps | None:
        """A field taken out of a struct that was put together before: what went in under that name."""
        if e[0] == "=":
            return self._member(e[3], name, env)
        if e[0] == "@" and e[1] in self.structs:
            made, its_env = self.structs[e[1]]
            return self._member(made, name, its_env)
        if e[0] == "UpdateFields":  # the last change of that field, else the field as it was
            new = next((op[2] for op in reversed(e[2:]) if op[0] == "WithField" and op[1] == name), None)
            return self.read(new if new is not None else [".", name, e[1]], env)
        if e[0] == "{}" and name in e[1]:
            return self.read(e[2 + e[1].index(name)], env)
        if e[0] in DECODERS:
            return self._decoded(name, self.read(e, env))
        return None

    def _decoded(self, name: str, whole: Deps) -> Deps:
        """A field of a decoded record: besides the bytes, the topic's column that everybody else calls by that name.

        Connect and the registry know a topic by the fields of its records, Spark by `key` and `value`. Here both meet.
        """
        fields = {
            self._sources.of(source.dataset, f"{IN_RECORD[source.column]}{name}"): mask & ~DIRECT | IDENTITY
            for source, mask in whole.items()
            if mask & DIRECT and source.column in IN_RECORD and source.dataset.namespace.startswith("kafka:")
        }
        return union([whole, fields])

    def field(self, name: str, deps: Deps) -> Deps:
        """A field of what passes unchanged is a column of its own; of anything else, a part of it."""
        if not self._leaves:
            return transformed(deps)
        out: Deps = {}
        for source, mask in deps.items():
            if mask & DIRECT == IDENTITY:
                source = self._sources.of(source.dataset, f"{source.column}.{name}")
            out[source] = out.get(source, 0) | mask
        return out


def _aggregate(reader: Reader, kids: list[Expression], env: Env) -> Deps:
    filters = (indirect(reader.read(k, env), CONDITIONAL) for k in kids[1:])
    return union([aggregated(reader.read(kids[0], env)), *filters])


def _window(reader: Reader, kids: list[Expression], env: Env) -> Deps:
    value = NONE if kids[0][0] in RANKS else transformed(reader.read(kids[0], env))
    return union([value, indirect(reader.read(kids[1], env), WINDOW)])


def _case(reader: Reader, kids: list[Expression], env: Env) -> Deps:
    last = len(kids) - 1
    return union(
        transformed(reader.read(k, env))
        if at % 2 or (at == last and len(kids) % 2)
        else indirect(reader.read(k, env), CONDITIONAL)
        for at, k in enumerate(kids)
    )


def _if(reader: Reader, kids: list[Expression], env: Env) -> Deps:
    values = (transformed(reader.read(k, env)) for k in kids[1:])
    return union([indirect(reader.read(kids[0], env), CONDITIONAL), *values])


_SPECIAL: dict[str, Callable[[Reader, list[Expression], Env], Deps]] = {
    "AggregateExpression": _aggregate,
    "WindowExpression": _window,
    "CaseWhen": _case,
    "If": _if,
    "PivotFirst": _if,  # its first child is the pivot column
}


def constants(e: Expression) -> frozenset[str]:
    """The texts that an expression can only be; none where it may be anything else, or the probe kept them back.

    >>> sorted(constants(["CaseWhen", ["IsNull", ["@", 1, "x"]], ["L", "a"], ["L", "b"]]))
    ['a', 'b']
    """
    if e[0] == "L":
        return frozenset(e[1:])
    kids = [each for each in e[1:] if isinstance(each, list)]
    if e[0] == "CaseWhen":
        kids = [each for at, each in enumerate(kids) if at % 2 or at == len(kids) - 1]
    elif e[0] == "If":
        kids = kids[1:]
    elif e[0] not in ("Coalesce", "=", "Cast"):
        return frozenset()
    found = [constants(each) for each in kids]
    return frozenset().union(*found) if found and all(found) else frozenset()
