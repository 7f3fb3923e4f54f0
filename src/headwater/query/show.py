"""query.show: a node or a run -> all that is known of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from headwater.errors import NotFound
from headwater.facts import ref
from headwater.facts.flows import When
from headwater.query.nodes import Node, iso, node_id, resolve
from headwater.query.runs import related_ids, run_id_of, run_line
from headwater.store import Store

if TYPE_CHECKING:
    from headwater.store import Reader


def show(store: Store, text: str, *, when: When = When(), runs: int = 10) -> dict[str, Any]:  # noqa: B008 - frozen
    """A dataset, a job, or a run (`run:UUID`, or the UUID alone)."""
    with store.read() as reader:
        run_id = run_id_of(text)
        if run_id is not None:
            return _run(reader, run_id)
        node = resolve(reader, text)
        return _job(reader, node, when, runs) if node.kind == "job" else _dataset(reader, node, when)


def _head(reader: Reader, node: Node) -> dict[str, Any]:
    row = reader.nodes(node.kind, [node.number])[node.number]
    told = reader.told(node.kind, [node.number])[node.number]
    owners = [ref(row["namespace"], row["name"])]
    if node.kind == "dataset":
        owners = [ref(*each[1:]) for each in reader.names_of(node.number)]
    return {
        "id": node_id(node.kind, row["namespace"], row["name"]),
        "type": node.kind.upper(),
        "namespace": row["namespace"],
        "name": row["name"],
        "firstSeen": iso(row["first_seen"]),
        "lastSeen": iso(row["last_seen"]),
        "description": told.description or None,
        "owners": told.owners,
        "tags": reader.tags(node.kind, owners),
        "facets": reader.facets(node.kind, node.number),
    }


def _ids(reader: Reader, kind: str, numbers: set[int]) -> list[str]:
    return sorted(
        node_id(kind, row["namespace"], row["name"]) for row in reader.nodes(kind, numbers).values()
    )


def _job(reader: Reader, node: Node, when: When, limit: int) -> dict[str, Any]:
    edges = reader.edges(when)
    row = reader.nodes("job", [node.number])[node.number]
    model = _head(reader, node)
    if row["parent"] is not None:
        model["parent"] = _ids(reader, "job", {row["parent"]})[0]
    for side, direction in (("inputs", "in"), ("outputs", "out")):
        model[side] = _ids(
            reader, "dataset", {flow.dataset for flow in edges.datasets_of([node.number], direction)}
        )
    model["versions"] = [
        {
            "version": each["version"],
            "firstSeen": iso(each["first_seen"]),
            "lastSeen": iso(each["last_seen"]),
            "runs": each["runs"],
        }
        for each in reader.versions(node.number)
    ]
    found = reader.runs(job=node.number, limit=limit)
    related = related_ids(reader, found)
    model["runs"] = [run_line(related, run) for run in found]
    return model


def _dataset(reader: Reader, node: Node, when: When) -> dict[str, Any]:
    edges = reader.edges(when)
    model = _head(reader, node)
    model["aliases"] = [f"{namespace}/{name}" for _, namespace, name in reader.names_of(node.number)[1:]]
    trail = reader.trail()
    schema = trail.schema_at(trail.group(node.number)[1], when.until)
    model["fields"] = schema[1] if schema else []
    told = reader.told("dataset", [node.number])[node.number]
    model["columns"] = [each for each in told.columns if each["description"] or each["tags"]]
    model["schemas"] = [
        {**each, "first_seen": iso(each["first_seen"]), "last_seen": iso(each["last_seen"])}
        for each in reader.schemas(node.number)
    ]
    for side, direction in (("producers", "out"), ("consumers", "in")):
        model[side] = _ids(reader, "job", {flow.job for flow in edges.jobs_of([node.number], direction)})
    model["assertions"] = [_assertion(each) for each in reader.assertions(dataset=node.number, limit=20)]
    return model


def _run(reader: Reader, run_id: str) -> dict[str, Any]:
    row = reader.run(run_id)
    if row is None:
        raise NotFound(f"no run has the id {run_id}")
    model = run_line(related_ids(reader, [row]), row)
    model["type"] = "RUN"
    model["facets"] = reader.facets("run", row["id"])
    for side, rows in reader.io(row["id"]).items():
        model[side] = [
            {
                "dataset": node_id("dataset", each["namespace"], each["name"]),
                **{
                    key: each[key]
                    for key in ("rows", "bytes", "files", "version", "lifecycle")
                    if each.get(key) is not None
                },
            }
            for each in rows
        ]
    model["assertions"] = [_assertion(each) for each in reader.assertions(run=row["id"])]
    below = reader.trail().children(row["id"], row["job"]) if row["job"] is not None else []
    found = sorted(reader.runs_of(below).values(), key=lambda each: (each["first_seen"], each["run_id"]))
    ids = related_ids(reader, found)
    model["children"] = [run_line(ids, each) for each in found]
    return model


def _assertion(row: dict[str, Any]) -> dict[str, Any]:
    return {
        "assertion": row["assertion"],
        "column": row["field"] or None,
        "success": row["failed"] == 0,
        "severity": row["severity"],
        "at": iso(row["last_seen"]),
    }
