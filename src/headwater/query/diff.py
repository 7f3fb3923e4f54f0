"""query.diff: two times, and a node if it is about one -> the nodes, edges, column relations and schemas that differ.

Only jobs that something was told of between the times can differ: the others are not looked at.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING, Any

from headwater.errors import ConfigError
from headwater.facts.flows import Flow, Relation, When
from headwater.graph import compare, walk
from headwater.query.nodes import iso, node_id, resolve
from headwater.query.schemas import changes_of
from headwater.store import Store

if TYPE_CHECKING:
    from headwater.store import Reader
    from headwater.store._edges import Edges

Directed = tuple[str, Flow]
"""`in` or `out`, and who reads or writes what."""


def diff(
    store: Store, before: int, after: int, *, node: str | None = None, depth: int = 20
) -> dict[str, Any]:
    """What was added, removed and changed from one time to another; around a node, or everywhere.

    A node is there at a time if it has an edge then. Around a node means: of the graph around it, as it was at either time.
    """
    if before > after:
        raise ConfigError("the first time is after the second: write the earlier one first")
    with store.read() as reader:
        trail = reader.trail()
        old, new = reader.edges(When(before)), reader.edges(When(after))
        jobs = set(trail.active(before, after))
        moved = set(trail.schema_moves(before, after))
        if node is not None:
            near_jobs, near = _around(reader, [old, new], node, depth)
            jobs &= near_jobs
            moved = {each for each in moved if trail.group(each)[0] in near}
        was, now = _flows(old, jobs), _flows(new, jobs)
        added, removed = compare(was, now)
        columns_added, columns_removed = compare(_relations(old, was), _relations(new, now))
        made = _Naming(reader)
        made.learn(added | removed, columns_added | columns_removed)
        return {
            "from": iso(before),
            "to": iso(after),
            "nodes": {
                "added": made.nodes(_alone(old, added)),
                "removed": made.nodes(_alone(new, removed)),
            },
            "edges": {"added": made.edges(added), "removed": made.edges(removed)},
            "columns": {"added": made.columns(columns_added), "removed": made.columns(columns_removed)},
            "schemas": _schemas(reader, moved, before, after),
        }


def _around(reader: Reader, moments: list[Edges], text: str, depth: int) -> tuple[set[int], set[int]]:
    node = resolve(reader, text)
    datasets_at, jobs_at = ([node.number], []) if node.kind == "dataset" else ([], [node.number])
    jobs: set[int] = set()
    datasets: set[int] = set()
    for edges in moments:
        # the whole of it: a gate that did not look everywhere would be open
        found = walk(edges, datasets=datasets_at, jobs=jobs_at, depth=depth, limit=None)
        jobs |= found.jobs.keys()
        datasets |= found.datasets.keys()
    return jobs, datasets


def _flows(edges: Edges, jobs: Collection[int]) -> set[Directed]:
    seen = edges.shown_jobs(jobs)
    return (
        {(side, flow) for side in ("in", "out") for flow in edges.datasets_of(seen, side)} if seen else set()
    )


def _relations(edges: Edges, flows: Collection[Directed]) -> set[Relation]:
    return set(edges.all_relations([flow for side, flow in flows if side == "out"]))


def _alone(other: Edges, flows: Collection[Directed]) -> set[tuple[str, int]]:
    """The ends of these edges that have no edge at all at the other time."""
    datasets, jobs = {flow.dataset for _, flow in flows}, {flow.job for _, flow in flows}
    busy: set[tuple[str, int]] = set()
    for side in ("in", "out"):
        if datasets:
            busy.update(("dataset", flow.dataset) for flow in other.jobs_of(datasets, side))
        if jobs:
            busy.update(("job", flow.job) for flow in other.datasets_of(jobs, side))
    return {*(("dataset", each) for each in datasets), *(("job", each) for each in jobs)} - busy


def _schemas(reader: Reader, moved: Collection[int], before: int, after: int) -> list[dict[str, Any]]:
    trail = reader.trail()
    groups = dict(map(trail.group, moved))
    rows = reader.nodes("dataset", groups)
    found = []
    for leader, members in groups.items():
        was, now = trail.schema_at(members, before), trail.schema_at(members, after)
        if now is None or (was is not None and was[0] == now[0]):
            continue
        changes = changes_of(was[1], now[1]) if was is not None else []
        found.append(
            {
                "dataset": node_id("dataset", rows[leader]["namespace"], rows[leader]["name"]),
                "change": "changed" if was is not None else "added",
                "before": was[0].hex() if was is not None else None,
                "after": now[0].hex(),
                "changes": changes,
                "breaking": any(each["breaking"] for each in changes),
            }
        )
    return sorted(found, key=lambda each: each["dataset"])


class _Naming:
    """Numbers -> ids."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader
        self._ids: dict[tuple[str, int], str] = {}

    def learn(self, flows: Collection[Directed], relations: Collection[Relation]) -> None:
        """Look all names up at once."""
        datasets = {flow.dataset for _, flow in flows}
        datasets |= {each for relation in relations for each in (relation.source[0], relation.target[0])}
        jobs = {flow.job for _, flow in flows} | {relation.job for relation in relations}
        for kind, numbers in (("dataset", datasets), ("job", jobs)):
            for number, row in self._reader.nodes(kind, numbers).items():
                self._ids[kind, number] = node_id(kind, row["namespace"], row["name"])

    def nodes(self, keys: Collection[tuple[str, int]]) -> list[str]:
        """The ids of nodes."""
        return sorted(self._ids[key] for key in keys)

    def edges(self, flows: Collection[Directed]) -> list[dict[str, str]]:
        """Edges as the graph writes them."""
        pairs = []
        for side, flow in flows:
            dataset, job = self._ids["dataset", flow.dataset], self._ids["job", flow.job]
            pairs.append((dataset, job) if side == "in" else (job, dataset))
        return [{"from": source, "to": target} for source, target in sorted(pairs)]

    def columns(self, relations: Collection[Relation]) -> list[dict[str, Any]]:
        """Column relations, each with the job that makes it and how."""
        out = [
            {
                "from": {"dataset": self._ids["dataset", each.source[0]], "field": each.source[1]},
                "to": {"dataset": self._ids["dataset", each.target[0]], "field": each.target[1]},
                "kind": ":".join(part for part in (each.kind, each.subtype) if part),
                "masked": each.masking,
                "job": self._ids["job", each.job],
            }
            for each in relations
        ]
        return sorted(
            out,
            key=lambda each: (
                *each["to"].values(), *each["from"].values(), each["job"], each["kind"], each["masked"],
            ),
        )  # fmt: skip
