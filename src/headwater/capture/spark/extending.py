"""capture.spark.extending: raw records, extensions -> what the extensions add to a run, each function isolated.

A function that raises, or answers what is no dataset or facet, is named in the run (facet `headwater_extensions`) and
in the log; the others go on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec

from headwater.capture.spark.extension import (
    ActiveJob,
    Context,
    Dataset,
    Extension,
    Function,
    JobEnd,
    JobStart,
    Node,
    Rdd,
    SqlEnd,
    SqlStart,
    Stage,
    StageInfo,
    asked,
    meant,
    named,
)
from headwater.capture.spark.facets import facet
from headwater.guard import guard
from headwater.naming import Identity, scrub

DATASETS = ("input_visitors", "output_visitors", "input_builders", "output_builders")
FACETS = ("input_facets", "output_facets", "dataset_facets", "run_facets", "job_facets")
_SIDES = {
    "input_visitors": "inputs", "input_builders": "inputs",
    "output_visitors": "outputs", "output_builders": "outputs",
}  # fmt: skip
_FAULTS = 20  # told in one run
ByNode = dict[int, list[Dataset]]


@dataclass(slots=True)
class Added:
    """What extensions add to one run, up to now."""

    inputs: dict[Identity, Dataset] = field(default_factory=dict)
    outputs: dict[Identity, Dataset] = field(default_factory=dict)
    facets: dict[str, dict[str, Any]] = field(default_factory=dict)
    """Kind (`run_facets` …) -> name -> facet."""
    faults: list[dict[str, str]] = field(default_factory=list)

    def names_datasets(self) -> bool:
        """Whether the run reads or writes anything because of them."""
        return bool(self.inputs or self.outputs)

    def join(self, other: Added) -> None:
        """What came later: its names overwrite."""
        self.inputs.update(other.inputs)
        self.outputs.update(other.outputs)
        for kind, told in other.facets.items():
            self.facets.setdefault(kind, {}).update(told)
        self.faults = [*self.faults, *(each for each in other.faults if each not in self.faults)][:_FAULTS]

    def of_run(self) -> dict[str, Any]:
        """Facets of the run, with the faults of extensions."""
        told = dict(self.facets.get("run_facets", {}))
        if self.faults:
            told["headwater_extensions"] = facet("headwater_extensions", faults=self.faults)
        return told

    def onto(self, side: str, datasets: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """The datasets of one side with those of the extensions, and their facets on every one."""
        found: dict[Identity, Dataset] = getattr(self, side)
        place = "inputFacets" if side == "inputs" else "outputFacets"
        out = {Identity(each["namespace"], each["name"]): each for each in datasets}
        for identity, one in found.items():
            have = out.setdefault(
                identity, {"namespace": identity.namespace, "name": identity.name, "facets": {}}
            )
            have["facets"] = {**_told(one.facets), **have["facets"], **_told(one.facets)}
            if one.schema and "schema" not in have["facets"]:
                columns = [{"name": name, "type": kind} for name, kind in one.schema]
                have["facets"]["schema"] = facet("schema", fields=columns)
            if one.side_facets:
                have[place] = {**have.get(place, {}), **_told(one.side_facets)}
        whole, part = self.facets.get("dataset_facets"), self.facets.get(place[:-6] + "_facets")
        for have in out.values():
            if whole:
                have["facets"] = {**have["facets"], **whole}
            if part:
                have[place] = {**have.get(place, {}), **part}
        return list(out.values())


class Extensions:
    """The functions of all extensions, asked for each record."""

    def __init__(self, context: Context | None = None) -> None:
        self._context = context or Context("default", "unknown", "")
        self._functions: dict[str, list[tuple[str, Function, tuple[type, ...] | None]]] = {}
        self._broken: list[dict[str, str]] = []

    def __bool__(self) -> bool:
        return bool(self._functions or self._broken)

    def add(self, name: str, make: Callable[[], Extension]) -> None:
        """Take up an extension; one that cannot be made is named in every run."""
        found: list[tuple[str, tuple[str, Function, tuple[type, ...] | None]]] = []
        with guard(f"starting the extension {name}") as starting:
            extension = make()
            found = [
                (kind, (name, function, asked(function)))
                for kind in (*DATASETS, *FACETS)
                for function in getattr(extension, kind)(self._context)
            ]
        if starting.fault is not None:
            self._broken.append(_fault(name, "start", "", starting.fault))
        for kind, function in found:
            self._functions[kind] = [*self._functions.get(kind, ()), function]  # a reader may be looking

    def visit(self, plan: list[dict[str, Any]]) -> tuple[ByNode, ByNode, Added]:
        """Ask the visitors about every node of a plan: what is read and written at each, and all together."""
        read: ByNode = {}
        written: ByNode = {}
        added = Added()
        if self._functions.keys() & {"input_visitors", "output_visitors"}:
            for at, node in enumerate(self._shown(lambda: _nodes(plan), added)):
                for kind, found in (("input_visitors", read), ("output_visitors", written)):
                    if told := self._ask(kind, node, added):
                        found[at] = told
        return read, written, added

    def build(self, record: dict[str, Any]) -> Added:
        """Ask the builders and facet functions about what a record tells of."""
        added = Added(faults=list(self._broken))
        for given in self._shown(lambda: _GIVEN[record["kind"]](record), added):
            for kind in ("input_builders", "output_builders", *FACETS):
                self._ask(kind, given, added)
        return added

    def _shown(self, make: Callable[[], Iterable[Any]], added: Added) -> list[Any]:
        """A record as extensions see it; one that is too deep for that goes its way without them."""
        made: list[Any] = []
        with guard("showing a record to extensions") as showing:
            made = list(make())
        if showing.fault is not None:
            added.faults.append(_fault("all", "all", "", showing.fault))
        return made

    def _ask(self, kind: str, given: Any, added: Added) -> list[Dataset]:
        out: list[Dataset] = []
        for extension, function, kinds in self._functions.get(kind, ()):
            with guard(f"asking the extension {extension}, {named(function)}") as asking:
                fitting = meant(function, kinds, given)
                answer = None if fitting is None else function(fitting)
                if answer is None:
                    continue
                if kind in FACETS:
                    added.facets.setdefault(kind, {}).update(_told(answer))
                else:
                    found = _datasets(answer)
                    getattr(added, _SIDES[kind]).update({Identity(d.namespace, d.name): d for d in found})
                    out += found
            if asking.fault is not None and len(added.faults) < _FAULTS:
                what = getattr(given, "name", "") if isinstance(given, Node) else type(given).__name__
                told = _fault(extension, named(function), what, asking.fault)
                if told not in added.faults:
                    added.faults.append(told)
        return out


def _fault(extension: str, function: str, given: str, fault: Exception) -> dict[str, str]:
    return {
        "extension": extension,
        "function": function,
        "given": given,
        "error": scrub(f"{type(fault).__name__}: {fault}")[:1_000],
    }


def _datasets(answer: Any) -> list[Dataset]:
    found = [answer] if isinstance(answer, Dataset) else list(answer)
    for one in found:
        if not isinstance(one, Dataset) or not one.namespace or not one.name:
            raise TypeError(f"answered {one!r:.200}, which is no Dataset with a namespace and a name")
        _told(one.facets), _told(one.side_facets)
    return found


def _told(facets: Any) -> dict[str, Any]:
    """Facets as they stand in an event; what cannot be written as JSON raises here, not later."""
    if not isinstance(facets, Mapping) or not all(isinstance(each, Mapping) for each in facets.values()):
        raise TypeError(f"answered {facets!r:.200}: facets are a mapping of name to fields")
    made = {str(name): facet(str(name), **fields) for name, fields in facets.items()}
    plain: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(made))
    return plain


def _nodes(raw: list[dict[str, Any]]) -> list[Node]:
    """Raw nodes, children before parents, as an extension sees them."""
    made: list[Node] = []

    def opened(value: Any) -> Any:
        if isinstance(value, dict):
            if "#" in value:
                return made[value["#"]] if value["#"] < len(made) else None
            return {key: opened(each) for key, each in value.items()}
        return [opened(each) for each in value] if isinstance(value, list) else value

    for node in raw:
        rest = {key: opened(value) for key, value in node.items() if key not in ("n", "c", "o", "q")}
        below: list[Node] = []
        for value in rest.values():
            below += [
                each for each in (value if isinstance(value, list) else [value]) if isinstance(each, Node)
            ]
        columns = tuple((each[1], each[2]) for each in node.get("o") or node.get("q") or ())
        made.append(Node(node["n"], node.get("c") or node["n"], columns, rest, tuple(below)))
    return made


def _plan(record: dict[str, Any]) -> Node | None:
    nodes = _nodes(record.get("plan") or [])
    return nodes[-1] if nodes else None


def _info(raw: dict[str, Any]) -> StageInfo:
    return StageInfo(**raw)


def _stage(raw: dict[str, Any]) -> Stage:
    return Stage(raw["id"], raw["kind"], raw["name"], raw["tasks"], tuple(_rdd(each) for each in raw["rdds"]))


def _rdd(raw: dict[str, Any]) -> Rdd:
    source = raw.get("source") or {}
    columns = tuple((each[0], each[1]) for each in source.get("schema") or ())
    return Rdd(
        raw["id"], raw.get("name"), tuple(raw["classes"]), tuple(source.get("paths") or ()), columns, raw["fields"]
    )  # fmt: skip


def _sql_start(r: dict[str, Any]) -> list[Any]:
    plan = _plan(r)
    return [SqlStart(r["id"], r["time"], r.get("root"), r.get("description", ""), r.get("sql"), plan)]


def _sql_end(r: dict[str, Any]) -> list[Any]:
    metrics = tuple(tuple(each) for each in r.get("metrics") or ())
    return [SqlEnd(r["id"], r["time"], r.get("error"), _plan(r), metrics)]


def _job_start(r: dict[str, Any]) -> list[Any]:
    begun = JobStart(r["id"], r["time"], r.get("execution"), tuple(_info(each) for each in r["stages"]))
    active = r.get("active")
    return [begun, *([ActiveJob(r["id"], _stage(active["stage"]))] if active else [])]


def _stage_end(r: dict[str, Any]) -> list[Any]:
    stage = _stage(r["stage"]) if r.get("stage") else None
    return [_info(r["info"]), *([stage, *stage.rdds] if stage else [])]


def _job_end(r: dict[str, Any]) -> list[Any]:
    return [JobEnd(r["id"], r["time"], r.get("error")), *([_stage(r["stage"])] if r.get("stage") else [])]


_GIVEN: dict[str, Callable[[dict[str, Any]], Iterable[Any]]] = {
    "start": _sql_start,
    "end": _sql_end,
    "x_job_start": _job_start,
    "x_stage_end": _stage_end,
    "x_job_end": _job_end,
}
