"""query.marquez.lineage: a job or dataset and a depth -> the graph around it, as Marquez draws it.

`depth` counts hops from job to job, in whatever direction: two jobs that share a dataset are neighbours. Asked for
a dataset, all jobs that write it are the start, else all that read it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from headwater.facts.flows import Flow
from headwater.query.marquez.datasets import dataset_models
from headwater.query.marquez.jobs import About
from headwater.query.marquez.nodes import find_node, parse_node
from headwater.query.marquez.runs import run_models
from headwater.query.nodes import node_id
from headwater.store import Store

if TYPE_CHECKING:
    from headwater.store import Reader

MAX_DEPTH = 1_000
_MOST = 10_000
"""How many nodes a graph has at most: a browser draws no more."""


def lineage(store: Store, text: str, depth: int) -> dict[str, Any]:
    """The nodes of the graph, by id, each with its edges."""
    node = parse_node(text)
    with store.read() as reader:
        start = find_node(reader, node)
        jobs, datasets, flows = _walk(reader, node.kind, start, min(depth, MAX_DEPTH))
        return {"graph": _graph(reader, jobs, datasets, flows)}


_Flows = dict[str, set[Flow]]


def _walk(reader: Reader, kind: str, start: int, depth: int) -> tuple[set[int], set[int], _Flows]:
    edges = reader.edges()
    flows: _Flows = {"in": set(), "out": set()}
    datasets: set[int] = set()
    if kind == "job":
        frontier = {start}
    else:
        datasets.add(start)
        frontier = set()
        for direction in ("out", "in"):
            frontier = frontier or {flow.job for flow in edges.jobs_of([start], direction)}
    jobs: set[int] = set()
    for hop in range(max(0, depth) + 1):
        jobs |= frontier
        near: set[int] = set()
        for direction in ("in", "out"):
            found = edges.datasets_of(frontier, direction)
            flows[direction].update(found)
            near.update(flow.dataset for flow in found)
        fresh = near - datasets if hop or kind == "job" else near
        datasets |= near
        if hop == depth or not fresh or len(jobs) + len(datasets) > _MOST:
            break
        frontier = {
            flow.job for direction in ("in", "out") for flow in edges.jobs_of(fresh, direction)
        } - jobs
        if not frontier:
            break
    return jobs, datasets, flows


def _graph(reader: Reader, jobs: set[int], datasets: set[int], flows: _Flows) -> list[dict[str, Any]]:
    job_rows = reader.catalogue().nodes("job", jobs)
    dataset_rows = reader.catalogue().nodes("dataset", datasets)
    nodes: dict[str, dict[str, Any]] = {}
    ids: dict[tuple[str, int], str] = {}
    about = About(reader, job_rows, brief=True)
    latest = {number: found[0] for number, found in reader.history().latest(job_rows, 1).items()}
    runs = run_models(reader, list(latest.values()), brief=True).models
    models = dataset_models(reader, dataset_rows, brief=True)
    for number, row in job_rows.items():
        run = latest.get(number)
        data = about.model(number)
        data["latestRun"] = None if run is None else runs[run["id"]]
        data["currentRunUuid"] = None if run is None else run["run_id"]
        _put(nodes, ids, "job", number, row, data)
    for number, row in dataset_rows.items():
        _put(nodes, ids, "dataset", number, row, models[number])
    for direction, found in flows.items():
        for flow in found:
            job, dataset = ids.get(("job", flow.job)), ids.get(("dataset", flow.dataset))
            if job is None or dataset is None:
                continue
            origin, destination = (dataset, job) if direction == "in" else (job, dataset)
            edge = {"origin": origin, "destination": destination}
            nodes[origin]["outEdges"].append(edge)
            nodes[destination]["inEdges"].append(edge)
    for each in nodes.values():
        for side in ("inEdges", "outEdges"):
            each[side].sort(key=lambda edge: (edge["origin"], edge["destination"]))
    return [nodes[name] for name in sorted(nodes)]


def _put(
    nodes: dict[str, dict[str, Any]],
    ids: dict[tuple[str, int], str],
    kind: str,
    number: int,
    row: dict[str, Any],
    data: dict[str, Any],
) -> None:
    ids[kind, number] = name = node_id(kind, row["namespace"], row["name"])
    nodes[name] = {"id": name, "type": kind.upper(), "data": data, "inEdges": [], "outEdges": []}
