"""query.impact: a dataset, a job or a column -> what breaks downstream if it does: ranked, with owners and last writers."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any

from headwater.errors import ConfigError
from headwater.facts.flows import ColumnKey, Flow, Relation, When
from headwater.graph import paths, walk, walk_columns
from headwater.query.lineage import MAX_DEPTH
from headwater.query.nodes import Node, identify, iso, node_id, require_column, resolve
from headwater.query.runs import related_ids, run_line
from headwater.store import Store

if TYPE_CHECKING:
    from headwater.store import Reader

_LIMIT = 100_000
_UNSURE = 1_000


def impact(
    store: Store,
    text: str,
    *,
    column: str | None = None,
    depth: int = MAX_DEPTH,
    when: When = When(),  # noqa: B008 - frozen
) -> dict[str, Any]:
    """What is downstream of a node: datasets and jobs, the nearest first; then those somebody owns; then the freshest.

    With a column: what is made of that column, by which columns on the way. Readers that never told column lineage are
    listed as `unsure`.
    """
    with store.read() as reader:
        start = resolve(reader, text)
        if column is not None:
            if start.kind != "dataset" or start.field is not None:
                raise ConfigError("a column can be named of a dataset only")
            start = Node("dataset", start.number, column)
        edges = reader.edges(when)
        require_column(reader, start, edges)
        model: dict[str, Any] = {"start": identify(reader, start)}
        if start.field is not None:
            found = walk_columns(
                edges, [(start.number, start.field)], direction="down", depth=depth, limit=_LIMIT
            )
            hops = _nearest(found.columns)
            jobs = _job_hops(found.relations, found.columns)
            model |= _ranked(reader, start, hops, jobs, _column_flows(found.relations))
            _add_columns(reader, model, start, found.columns, found.relations)
            near = set(hops)
            reads = {flow.job for flow in edges.jobs_of(near, "in")} - jobs.keys()
            silent = sorted(reads - reader.trail().told_by_columns(reads))
            model["unsure"] = _named(reader, "job", silent[:_UNSURE])
            model["cut"] = found.cut
        else:
            datasets, jobs_at = ([start.number], []) if start.kind == "dataset" else ([], [start.number])
            around = walk(edges, datasets=datasets, jobs=jobs_at, direction="down", depth=depth, limit=_LIMIT)
            model |= _ranked(reader, start, around.datasets, around.jobs, (around.reads, around.writes))
            model["unsure"] = []
            model["cut"] = around.cut
        return model


def _nearest(columns: Mapping[ColumnKey, int]) -> dict[int, int]:
    hops: dict[int, int] = {}
    for (dataset, _), hop in columns.items():
        hops[dataset] = min(hop, hops.get(dataset, hop))
    return hops


def _job_hops(relations: Collection[Relation], columns: Mapping[ColumnKey, int]) -> dict[int, int]:
    hops: dict[int, int] = {}
    for each in relations:
        hop = columns[each.source] + 1
        hops[each.job] = min(hop, hops.get(each.job, hop))
    return hops


def _column_flows(relations: Collection[Relation]) -> tuple[set[Flow], set[Flow]]:
    return (
        {Flow(each.job, each.source[0]) for each in relations},
        {Flow(each.job, each.target[0]) for each in relations},
    )


def _ranked(
    reader: Reader,
    start: Node,
    datasets: Mapping[int, int],
    jobs: Mapping[int, int],
    flows: tuple[Collection[Flow], Collection[Flow]],
) -> dict[str, Any]:
    trail = reader.trail()
    ids = _ids(reader, datasets, jobs)
    reads, writes = flows
    steps = [*((("dataset", d), ("job", j)) for j, d in sorted(reads)), *((("job", j), ("dataset", d)) for j, d in sorted(writes))]  # fmt: skip
    ways = paths([(start.kind, start.number)], steps)
    wrote = trail.last_writes(reader.leaders("dataset", datasets))
    ran = trail.last_runs(jobs)
    rows = reader.runs_of({*(run for _, run in wrote.values()), *ran.values()})
    ids_of_runs = related_ids(reader, rows.values())
    out: dict[str, list[Any]] = {"dataset": [], "job": []}
    for kind, hops in (("dataset", datasets), ("job", jobs)):
        told = reader.told(kind, hops)
        for number, hop in hops.items():
            if (kind, number) == (start.kind, start.number) or (kind, number) not in ids:
                continue
            node = told[number]
            run = wrote[number][1] if kind == "dataset" and number in wrote else ran.get(number)
            last = rows.get(run) if run is not None and (kind == "job" or number in wrote) else None
            fresh = (
                wrote[number][0] if number in wrote and kind == "dataset" else (last or {}).get("last_seen")
            )
            entry = {
                "id": ids[kind, number],
                "type": kind.upper(),
                "namespace": node.namespace,
                "name": node.name,
                "distance": hop,
                "owners": node.owners,
                "tags": node.tags,
                "lastWritten" if kind == "dataset" else "lastRunAt": iso(fresh),
                "lastRun": run_line(ids_of_runs, last) if last else None,
                "path": [ids[each] for each in ways.get((kind, number), ()) if each in ids],
            }
            out[kind].append(((hop, not node.owners, -(fresh or 0), ids[kind, number]), entry))
    ranked = {
        kind: [entry for _, entry in sorted(found, key=lambda each: each[0])] for kind, found in out.items()
    }
    return {
        "datasets": ranked["dataset"],
        "jobs": ranked["job"],
        "owners": _owners([*ranked["dataset"], *ranked["job"]]),
        "counts": {"datasets": len(ranked["dataset"]), "jobs": len(ranked["job"])},
    }


def _ids(reader: Reader, datasets: Collection[int], jobs: Collection[int]) -> dict[tuple[str, int], str]:
    return {
        (kind, number): node_id(kind, row["namespace"], row["name"])
        for kind, numbers in (("dataset", datasets), ("job", jobs))
        for number, row in reader.nodes(kind, numbers).items()
    }


def _owners(entries: Collection[dict[str, Any]]) -> list[dict[str, Any]]:
    """Whom to tell: each owner with what is theirs, those hit most first."""
    found: dict[str, list[str]] = {}
    for each in entries:
        for owner in each["owners"]:
            found.setdefault(owner["name"], []).append(each["id"])
    return [
        {"name": name, "nodes": len(ids), "first": ids[0]}
        for name, ids in sorted(found.items(), key=lambda item: (-len(item[1]), item[0]))
    ]


def _add_columns(
    reader: Reader,
    model: dict[str, Any],
    start: Node,
    columns: Mapping[ColumnKey, int],
    relations: Collection[Relation],
) -> None:
    """To each dataset the columns that are hit, and the way to each."""
    names = {
        number: node_id("dataset", row["namespace"], row["name"])
        for number, row in reader.nodes("dataset", {dataset for dataset, _ in columns}).items()
    }
    ways = paths(
        [(start.number, start.field or "")], sorted({(each.source, each.target) for each in relations})
    )
    hit: dict[str, list[dict[str, Any]]] = {}
    for key in sorted(columns, key=lambda key: (columns[key], key[1])):
        if columns[key]:
            way = [{"dataset": names[each[0]], "field": each[1]} for each in ways[key]]
            hit.setdefault(names[key[0]], []).append({"field": key[1], "distance": columns[key], "path": way})
    for each in model["datasets"]:
        each["columns"] = hit.get(each["id"], [])
    model["counts"]["columns"] = sum(map(len, hit.values()))


def _named(reader: Reader, kind: str, numbers: Collection[int]) -> list[str]:
    return sorted(
        node_id(kind, row["namespace"], row["name"]) for row in reader.nodes(kind, numbers).values()
    )
