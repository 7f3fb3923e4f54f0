"""query.show: a node or a run -> all that is known of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from uuid import UUID

from headwater.errors import NotFound
from headwater.facts import ref
from headwater.facts.flows import When
from headwater.query.nodes import Node, iso, node_id, resolve
from headwater.store import Store

if TYPE_CHECKING:
    from headwater.store import Reader


def show(store: Store, text: str, *, when: When = When(), runs: int = 10) -> dict[str, Any]:  # noqa: B008 - frozen
    """A dataset, a job, or a run (`run:UUID`, or the UUID alone)."""
    with store.read() as reader:
        run_id = _run_id(text)
        if run_id is not None:
            return _run(reader, run_id)
        node = resolve(reader, text)
        return _job(reader, node, when, runs) if node.kind == "job" else _dataset(reader, node, when)


def _run_id(text: str) -> str | None:
    try:
        return str(UUID(text.removeprefix("run:")))
    except ValueError:
        return None


def _head(reader: Reader, node: Node) -> dict[str, Any]:
    row = reader.nodes(node.kind, [node.number])[node.number]
    return {
        "id": node_id(node.kind, row["namespace"], row["name"]),
        "type": node.kind.upper(),
        "namespace": row["namespace"],
        "name": row["name"],
        "firstSeen": iso(row["first_seen"]),
        "lastSeen": iso(row["last_seen"]),
        "tags": reader.tags(node.kind, ref(row["namespace"], row["name"])),
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
    model["runs"] = [_run_line(reader, run) for run in reader.runs(job=node.number, limit=limit)]
    return model


def _dataset(reader: Reader, node: Node, when: When) -> dict[str, Any]:
    edges = reader.edges(when)
    model = _head(reader, node)
    model["aliases"] = [f"{namespace}/{name}" for _, namespace, name in reader.names_of(node.number)[1:]]
    schemas = reader.schemas(node.number)
    model["fields"] = schemas[0]["fields"] if schemas else []
    model["schemas"] = [
        {**each, "first_seen": iso(each["first_seen"]), "last_seen": iso(each["last_seen"])}
        for each in schemas
    ]
    for side, direction in (("producers", "out"), ("consumers", "in")):
        model[side] = _ids(reader, "job", {flow.job for flow in edges.jobs_of([node.number], direction)})
    model["assertions"] = [_assertion(each) for each in reader.assertions(dataset=node.number, limit=20)]
    return model


def _run(reader: Reader, run_id: str) -> dict[str, Any]:
    row = reader.run(run_id)
    if row is None:
        raise NotFound(f"no run has the id {run_id}")
    model = _run_line(reader, row)
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
    return model


def _run_line(reader: Reader, row: dict[str, Any]) -> dict[str, Any]:
    ids = reader.run_ids({number for number in (row["parent"], row["root"]) if number is not None})
    started = row["started_at"] if row["started_at"] is not None else row["first_seen"]
    return {
        "id": row["run_id"],
        "job": node_id("job", row["job_namespace"], row["job_name"]) if row["job_name"] is not None else None,
        "state": row["state"].split(" ", 1)[1] if row["state"] else None,
        "startedAt": iso(started),
        "endedAt": iso(row["ended_at"]),
        "durationMs": (row["ended_at"] - started) // 1000 if row["ended_at"] is not None else None,
        "nominalStart": iso(row["nominal_start"]),
        "nominalEnd": iso(row["nominal_end"]),
        "parent": ids.get(row["parent"]),
        "root": ids.get(row["root"]),
        "error": row["error"],
        "producer": row["producer"],
    }


def _assertion(row: dict[str, Any]) -> dict[str, Any]:
    return {
        "assertion": row["assertion"],
        "column": row["field"] or None,
        "success": row["failed"] == 0,
        "severity": row["severity"],
        "at": iso(row["last_seen"]),
    }
