"""query.marquez.columns: a dataset, field or job and a depth -> the graph of columns, as Marquez draws it."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING, Any

import msgspec

from headwater.errors import NotFound
from headwater.facts.flows import ColumnKey, Relation, When
from headwater.graph import walk_columns
from headwater.query.marquez._words import dataset_version_uuid
from headwater.query.marquez.datasets import find_version
from headwater.query.marquez.nodes import find_node, parse_node
from headwater.query.nodes import node_id
from headwater.store import Store

if TYPE_CHECKING:
    from headwater.store import Edges, Reader

MAX_DEPTH = 1_000


def column_lineage(store: Store, text: str, depth: int, downstream: bool) -> dict[str, Any]:
    """The nodes of the graph of columns, by id, each with its edges.

    Upstream alone unless `downstream`. With a version, as of the time when it was written.
    """
    node = parse_node(text)
    with store.read() as reader:
        number = find_node(reader, node)
        when = When()
        if node.version is not None and node.kind != "job":
            when = When(find_version(reader, number, node.version).until)
        edges = reader.edges(when)
        if node.kind == "job":
            datasets = {flow.dataset for flow in edges.datasets_of([number], "out")}
        else:
            datasets = {number}
        start = _start(reader, edges, datasets, node.field)
        if node.field is not None and not start:
            raise NotFound(f"Field '{node.field}' not found for dataset '{node.names[-1][1]}'.")
        found = walk_columns(
            edges, start, direction="both" if downstream else "up", depth=max(0, min(depth, MAX_DEPTH))
        )
        return {"graph": _graph(reader, found.relations)}


def _start(reader: Reader, edges: Edges, datasets: Collection[int], field: str | None) -> list[ColumnKey]:
    """The columns asked for: those that the schema has, and those that relations tell of."""
    latest = reader.history().schemas(reader.catalogue().members(datasets))
    bodies = reader.history().contents(set(latest.values()))
    columns: set[ColumnKey] = {
        (number, each["name"])
        for number, digest in latest.items()
        for each in msgspec.json.decode(bodies.get(digest, b"[]"))
    }
    written = [(flow.job, flow.dataset) for flow in edges.jobs_of(datasets, "out")]
    columns.update(each.target for each in edges.all_relations(written))
    return sorted(each for each in columns if field is None or each[1] == field)


class _Nodes:
    """Nodes of columns, made as they are met."""

    def __init__(self, reader: Reader, datasets: Collection[int]) -> None:
        history, catalogue = reader.history(), reader.catalogue()
        heads = catalogue.members(datasets)
        self.rows = catalogue.nodes("dataset", datasets)
        current = history.current(heads)
        self._versions = {
            number: dataset_version_uuid(
                row["namespace"], row["name"], write and write.run_id, None if write is None else write.at
            )
            for number, row in self.rows.items()
            for write in [current.get(number)]
        }
        latest = history.schemas(heads)
        bodies = history.contents(set(latest.values()))
        self._types = {
            (number, each["name"]): each["type"]
            for number, digest in latest.items()
            for each in msgspec.json.decode(bodies.get(digest, b"[]"))
        }
        self.found: dict[str, dict[str, Any]] = {}

    def at(self, key: ColumnKey) -> dict[str, Any]:
        """The node of a column."""
        row = self.rows[key[0]]
        name = node_id("dataset", row["namespace"], row["name"], key[1])
        if name not in self.found:
            self.found[name] = {
                "id": name,
                "type": "DATASET_FIELD",
                "data": {
                    "namespace": row["namespace"],
                    "dataset": row["name"],
                    "datasetVersion": self._versions[key[0]],
                    "field": key[1],
                    "fieldType": self._types.get(key, ""),
                    "transformationDescription": None,
                    "transformationType": None,
                    "inputFields": [],
                },
                "inEdges": [],
                "outEdges": [],
            }
        return self.found[name]

    def order(self, relation: Relation) -> tuple[Any, ...]:
        """In what order relations are told: by names, never by numbers."""
        source, target = self.rows[relation.source[0]], self.rows[relation.target[0]]
        return (
            (target["namespace"], target["name"], relation.target[1]),
            (source["namespace"], source["name"], relation.source[1]),
            (relation.kind, relation.subtype, relation.masking, relation.description),
        )


def _graph(reader: Reader, relations: Collection[Relation]) -> list[dict[str, Any]]:
    nodes = _Nodes(reader, {key[0] for each in relations for key in (each.source, each.target)})
    drawn: set[tuple[str, str]] = set()
    told: set[tuple[str, str, str, str]] = set()
    for each in sorted(relations, key=nodes.order):
        source, target = nodes.at(each.source), nodes.at(each.target)
        kind, about = each.subtype or each.kind, target["data"]
        if (source["id"], target["id"], kind, each.description) not in told:
            told.add((source["id"], target["id"], kind, each.description))
            about["inputFields"].append(
                {
                    "namespace": source["data"]["namespace"],
                    "dataset": source["data"]["dataset"],
                    "datasetVersion": source["data"]["datasetVersion"],
                    "field": each.source[1],
                    "transformationDescription": each.description,
                    "transformationType": kind,
                }
            )
        if about["transformationType"] is None:
            about["transformationType"], about["transformationDescription"] = kind, each.description
        if (source["id"], target["id"]) not in drawn:
            drawn.add((source["id"], target["id"]))
            edge = {"origin": source["id"], "destination": target["id"]}
            source["outEdges"].append(edge)
            target["inEdges"].append(edge)
    return [nodes.found[name] for name in sorted(nodes.found)]
