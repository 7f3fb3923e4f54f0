"""query.lineage: a node, a direction, a depth and a time -> the graph around it, as JSON-ready data."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Literal

from headwater.facts.flows import ColumnKey, Flow, Relation, When
from headwater.graph import ColumnWalk, Direction, Walk, applications, walk, walk_columns
from headwater.query.nodes import Node, identify, iso, node_id, require_column, resolve
from headwater.query.runs import graph_around, related_ids, run_line
from headwater.store import Store

if TYPE_CHECKING:
    from headwater.store import Reader

MAX_DEPTH = 1_000
FAN = 500
"""How many nodes next to one are followed each way; how many more there are is told."""
Granularity = Literal["all", "dataset", "job", "application", "run"]


def lineage(
    store: Store,
    text: str,
    *,
    direction: Direction = "both",
    depth: int = 20,
    columns: bool = False,
    when: When = When(),  # noqa: B008 - frozen
    limit: int = 10_000,
    fan: int | None = FAN,
    granularity: Granularity = "all",
    states: bool = False,
) -> dict[str, Any]:
    """The graph around a node: `{"start", "nodes", "edges", "columns", "cut"}`.

    A start that names a column (`datasetField:…`) gives the graph of that column: its datasets, the jobs
    between them, and the relations from column to column.

    `granularity` folds it: `dataset` and `job` keep one kind and tell what stands between, `application` folds jobs
    into the one they are a part of, `run` is the graph of runs and of the versions they left behind. An application
    has the edges of its parts, so its graph begins at all of them. `states` tells each job's last run.
    """
    depth = max(0, min(depth, MAX_DEPTH))
    if granularity == "run":
        with store.read() as reader:
            start = resolve(reader, text)
            return graph_around(reader, start, identify(reader, start), direction, depth, when.until, limit)
    with store.read() as reader:
        start = resolve(reader, text)
        edges = reader.edges(when)
        require_column(reader, start, edges)
        relations: Iterable[Relation] = ()
        if start.field is not None:
            found = walk_columns(
                edges, [(start.number, start.field)], direction=direction, depth=depth, limit=limit
            )
            around, relations, cut = _along(found), found.relations, found.cut
        else:
            which = {"datasets" if start.kind == "dataset" else "jobs": [start.number]}
            if start.kind == "job" and granularity == "application":
                which["jobs"] += reader.trail().parts(start.number)
            around = walk(edges, **which, direction=direction, depth=depth, limit=limit, fan=fan)
            cut = around.cut
            if columns:
                inside = around.datasets
                relations = [
                    each
                    for each in edges.all_relations(around.writes)
                    if each.source[0] in inside and each.target[0] in inside
                ]
        model = _model(reader, start, around, relations, cut)
        if granularity == "application":
            model = _folded(reader, model, around)
        elif granularity != "all":
            model = _narrowed(model, granularity.upper())
        if states:
            _tell_states(reader, model["nodes"])
        return model


def _tell_states(reader: Reader, nodes: list[dict[str, Any]]) -> None:
    """Each job's last run, looked up for all of them at once."""
    jobs = {(each["namespace"], each["name"]): each for each in nodes if each["type"] == "JOB"}
    rows = reader.nodes("job", reader.find("job", jobs))
    last = reader.trail().last_runs(rows)
    runs = reader.runs_of(set(last.values()))
    ids = related_ids(reader, runs.values())
    for number, row in rows.items():
        node = jobs.get((row["namespace"], row["name"]))
        if node is not None and number in last:
            node["lastRun"] = run_line(ids, runs[last[number]])


def _folded(reader: Reader, model: dict[str, Any], around: Walk) -> dict[str, Any]:
    """Each job in the place of the one it is a part of: actions in their application, tasks in their DAG."""
    rows = reader.nodes("job", around.jobs)
    part_of = applications(
        {number: row["parent"] for number, row in rows.items()}, reader.trail().leading(rows)
    )
    wholes = reader.nodes("job", set(part_of.values()))
    known = {each["id"]: each for each in model["nodes"]}
    into: dict[str, str] = {}
    made: dict[str, dict[str, Any]] = {}
    for number, row in rows.items():
        own = node_id("job", row["namespace"], row["name"])
        whole = wholes[part_of[number]]
        into[own] = name = node_id("job", whole["namespace"], whole["name"])
        hop = known[own]["distance"]
        node = made.setdefault(name, {**_node("job", name, whole, hop), "jobs": 0})
        node["jobs"] += 1
        node["distance"] = min(node["distance"], hop)
        for side, count in known[own].get("more", {}).items():
            node.setdefault("more", {}).setdefault(side, 0)
            node["more"][side] += count
    nodes = [each for each in model["nodes"] if each["type"] != "JOB"] + list(made.values())
    edges = sorted({(into.get(e["from"], e["from"]), into.get(e["to"], e["to"])) for e in model["edges"]})
    for each in model["columns"]:
        each["jobs"] = sorted({into.get(job, job) for job in each["jobs"]})
    return {
        **model,
        "start": into.get(model["start"], model["start"]),
        "nodes": sorted(nodes, key=lambda node: (node["distance"], node["id"])),
        "edges": [{"from": source, "to": target} for source, target in edges],
    }


def _narrowed(model: dict[str, Any], keep: str) -> dict[str, Any]:
    """The nodes of one kind; an edge for each way from one to the next, and what stands between."""
    kept = {each["id"] for each in model["nodes"] if each["type"] == keep}
    into: dict[str, set[str]] = {}
    out_of: dict[str, set[str]] = {}
    for each in model["edges"]:
        if each["from"] in kept:
            into.setdefault(each["to"], set()).add(each["from"])
        else:
            out_of.setdefault(each["from"], set()).add(each["to"])
    via: dict[tuple[str, str], set[str]] = {}
    for between, sources in into.items():
        for target in out_of.get(between, ()):
            for source in sources:
                via.setdefault((source, target), set()).add(between)
    return {
        **model,
        "nodes": [each for each in model["nodes"] if each["type"] == keep],
        "edges": [
            {"from": source, "to": target, "via": sorted(between)}
            for (source, target), between in sorted(via.items())
        ],
        "columns": model["columns"] if keep == "DATASET" else [],
    }


def _along(found: ColumnWalk) -> Walk:
    """The datasets, jobs and edges that a walk along columns implies."""
    around = Walk()
    for (dataset, _), hop in found.columns.items():
        around.datasets[dataset] = min(hop, around.datasets.get(dataset, hop))
    for relation in found.relations:
        around.jobs.setdefault(relation.job, 1)
        around.reads.add(Flow(relation.job, relation.source[0]))
        around.writes.add(Flow(relation.job, relation.target[0]))
    return around


def _model(
    reader: Reader, start: Node, around: Walk, relations: Iterable[Relation], cut: bool
) -> dict[str, Any]:
    jobs, datasets = reader.nodes("job", around.jobs), reader.nodes("dataset", around.datasets)
    ids: dict[tuple[str, int], str] = {}
    nodes: list[dict[str, Any]] = []
    for kind, rows, hops in (("dataset", datasets, around.datasets), ("job", jobs, around.jobs)):
        for number, row in rows.items():
            ids[kind, number] = name = node_id(kind, row["namespace"], row["name"])
            node = _node(kind, name, row, hops[number])
            if (more := around.more.get((kind, number))) is not None:
                node["more"] = more
            nodes.append(node)
    parents = reader.nodes("job", {row["parent"] for row in jobs.values() if row["parent"] is not None})
    for node, row in zip(nodes[len(datasets) :], jobs.values(), strict=True):
        if row["parent"] in parents:
            parent = parents[row["parent"]]
            node["parent"] = node_id("job", parent["namespace"], parent["name"])
    flows = [
        (ids["dataset", dataset], ids["job", job])
        for job, dataset in around.reads
        if ("dataset", dataset) in ids and ("job", job) in ids
    ]
    flows += [
        (ids["job", job], ids["dataset", dataset])
        for job, dataset in around.writes
        if ("dataset", dataset) in ids and ("job", job) in ids
    ]
    return {
        "start": ids.get((start.kind, start.number)) if start.field is None else _field_id(reader, start),
        "nodes": sorted(nodes, key=lambda node: (node["distance"], node["id"])),
        "edges": [{"from": source, "to": target} for source, target in sorted(flows)],
        "columns": _columns(ids, relations),
        "cut": cut,
    }


def _field_id(reader: Reader, start: Node) -> str:
    row = reader.nodes("dataset", [start.number])[start.number]
    return node_id("dataset", row["namespace"], row["name"], start.field)


def _node(kind: str, name: str, row: dict[str, Any], distance: int) -> dict[str, Any]:
    node = {
        "id": name,
        "type": kind.upper(),
        "namespace": row["namespace"],
        "name": row["name"],
        "distance": distance,
        "firstSeen": iso(row["first_seen"]),
        "lastSeen": iso(row["last_seen"]),
    }
    keys = {"processing": "processingType", "integration": "integration", "kind": "jobType"}
    if kind == "dataset":
        keys = {"kind": "datasetType", "source": "source", "lifecycle": "lifecycle"}
    node.update({said: row[column] for column, said in keys.items() if row[column] is not None})
    return node


def _columns(ids: dict[tuple[str, int], str], relations: Iterable[Relation]) -> list[dict[str, Any]]:
    """One entry per pair of columns, with every way in which the one makes the other."""
    pairs: dict[tuple[ColumnKey, ColumnKey], dict[str, set[Any]]] = {}
    for each in relations:
        if ("dataset", each.source[0]) not in ids or ("dataset", each.target[0]) not in ids:
            continue
        told = pairs.setdefault(
            (each.source, each.target), {"kinds": set(), "jobs": set(), "descriptions": set()}
        )
        told["kinds"].add(
            ":".join(part for part in (each.kind, each.subtype) if part) + ("+MASKED" if each.masking else "")
        )
        told["jobs"].add(ids["job", each.job])
        if each.description:
            told["descriptions"].add(each.description)
    out = [
        {
            "from": {"dataset": ids["dataset", source[0]], "field": source[1]},
            "to": {"dataset": ids["dataset", target[0]], "field": target[1]},
            "kinds": sorted(told["kinds"]),
            "masked": any(kind.endswith("+MASKED") for kind in told["kinds"]),
            "jobs": sorted(told["jobs"]),
            "descriptions": sorted(told["descriptions"]),
        }
        for (source, target), told in pairs.items()
    ]
    return sorted(
        out,
        key=lambda each: (
            each["to"]["dataset"],
            each["to"]["field"],
            each["from"]["dataset"],
            each["from"]["field"],
        ),
    )
