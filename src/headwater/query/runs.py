"""query.runs: a job, a state, a time -> runs; a run -> the runs it got its data from, and those that got it from it."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import TYPE_CHECKING, Any
from uuid import UUID

from headwater.errors import ConfigError, NotFound
from headwater.facts.derive import RANK
from headwater.graph import Direction
from headwater.query.nodes import Node, iso, node_id, resolve
from headwater.store import Store

if TYPE_CHECKING:
    from headwater.store import Reader
    from headwater.store._trail import Io, Trail, Write

STATES = tuple(RANK)
MAX_DEPTH = 100


def run_id_of(text: str) -> str | None:
    """The run id that a text is (`run:UUID`, or the UUID alone), or None."""
    try:
        return str(UUID(text.removeprefix("run:")))
    except ValueError:
        return None


def related_ids(reader: Reader, rows: Iterable[dict[str, Any]]) -> dict[int, str]:
    """The ids of the runs that these belong to."""
    return reader.run_ids({row[key] for row in rows for key in ("parent", "root") if row[key] is not None})


def run_line(ids: Mapping[int, str], row: dict[str, Any]) -> dict[str, Any]:
    """One run, as lists show it; `ids` are those of `related_ids`."""
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


def runs(
    store: Store,
    *,
    job: str | None = None,
    dataset: str | None = None,
    state: str | None = None,
    since: int | None = None,
    until: int | None = None,
    limit: int = 50,
) -> list[dict[str, Any]]:
    """Runs, the newest first: of a job, that read or wrote a dataset, in a state, begun between two times."""
    if state is not None and state.upper() not in RANK:
        raise ConfigError(f"{state!r} is no state: write one of {', '.join(RANK)}")
    with store.read() as reader:
        node = resolve(reader, job) if job is not None else None
        if node is not None and node.kind != "job":
            raise ConfigError(f"{job!r} is a dataset, not a job")
        table = resolve(reader, dataset) if dataset is not None else None
        if table is not None and table.kind != "dataset":
            raise ConfigError(f"{dataset!r} is a job, not a dataset")
        found = reader.runs_between(
            job=node.number if node else None,
            datasets=reader.trail().group(table.number)[1] if table else None,
            state=f"{RANK[state.upper()]} {state.upper()}" if state else None,
            since=since,
            until=until,
            limit=limit,
        )
        ids = related_ids(reader, found)
        return [run_line(ids, row) for row in found]


def run_graph(
    store: Store, text: str, *, direction: Direction = "both", depth: int = 20, limit: int = 1_000
) -> dict[str, Any]:
    """The runs that wrote what a run read, and those that read what it wrote, hop by hop.

    Between them stand versions of datasets: `dataset:NAMESPACE:NAME#RUN`, what that run left behind.
    """
    with store.read() as reader:
        run_id = run_id_of(text)
        row = reader.run(run_id) if run_id else None
        if row is None:
            raise NotFound(f"no run has the id {text!r}")
        return graph_of_runs(reader, [row["id"]], f"run:{row['run_id']}", direction, depth, limit)


def graph_around(
    reader: Reader, node: Node, start: str, direction: Direction, depth: int, at: int, limit: int
) -> dict[str, Any]:
    """The graph of runs around a dataset (from the run that had written it last by `at`) or a job (from its last run)."""
    trail = reader.trail()
    if node.kind == "dataset":
        write = trail.writer(node.number, at)
        found = [write.run] if write else []
    else:
        found = [row["id"] for row in reader.runs_between(job=node.number, until=at, limit=1)]
    return graph_of_runs(reader, found, start, direction, depth, limit)


def graph_of_runs(
    reader: Reader, first: Collection[int], start: str, direction: Direction, depth: int, limit: int
) -> dict[str, Any]:
    """The graph of runs around some of them, as JSON-ready data."""
    made = _RunWalk(reader.trail(), first, limit)
    for side in ("up", "down") if direction == "both" else (direction,):
        made.go(side, max(0, min(depth, MAX_DEPTH)))
    return made.model(reader, start)


Version = tuple[int, int | None]
"""A dataset, and the run that left it so; None where nobody is known to have written it."""


class _RunWalk:
    def __init__(self, trail: Trail, first: Collection[int], limit: int) -> None:
        self._trail, self._limit = trail, limit
        self._first = list(first)
        self.runs: dict[int, int] = dict.fromkeys(first, 0)
        self.versions: dict[Version, dict[str, Any]] = {}
        self.edges: set[tuple[str, Any, str, Any]] = set()
        self.more: dict[int, dict[str, int]] = {}
        self.failed: dict[Version, dict[str, int]] = {}
        """Runs that meant to write it anew and failed, before one of those here read it, and when."""

    def go(self, side: str, depth: int) -> None:
        """Hop by hop away from the first runs."""
        edge, seen = set(self._first), set(self._first)
        for hop in range(1, depth + 1):
            if not edge:
                return
            met = self._before(edge) if side == "up" else self._after(edge)
            fresh: set[int] = set()
            for near, far in met:
                if far in seen or far in fresh:
                    continue
                if len(self.runs) >= self._limit:
                    told = self.more.setdefault(near, {})
                    told[side] = told.get(side, 0) + 1
                    continue
                fresh.add(far)
                self.runs.setdefault(far, hop)
            edge = fresh
            seen |= fresh

    def _before(self, runs: Collection[int]) -> list[tuple[int, int]]:
        met = []
        for read in self._trail.io("in", runs):
            leader = self._trail.group(read.dataset)[0]
            write = self._trail.writer(read.dataset, read.first, read.run)
            version = self._version(leader, write)
            failed = self._trail.failures(read.dataset, write.at if write else -1, read.first)
            others = {each.run_id: each.at for each in failed if each.run != read.run}
            self.failed.setdefault(version, {}).update(others)  # one reader came later than another
            self.edges.add(("version", version, "run", read.run))
            if write is not None:
                self.edges.add(("run", write.run, "version", version))
                met.append((read.run, write.run))
        return met

    def _after(self, runs: Collection[int]) -> list[tuple[int, int]]:
        met = []
        ids = self._ids(runs)
        for wrote in self._trail.io("out", runs):
            leader = self._trail.group(wrote.dataset)[0]
            write = self._trail.write_of(wrote, ids[wrote.run])
            version = self._version(leader, write, wrote)
            self.edges.add(("run", wrote.run, "version", version))
            for read in self._trail.readers(wrote.dataset, write, self._limit):
                self.edges.add(("version", version, "run", read.run))
                met.append((wrote.run, read.run))
        return met

    def _ids(self, runs: Collection[int]) -> dict[int, str]:
        return self._trail.run_ids(runs)

    def _version(self, leader: int, write: Write | None, wrote: Io | None = None) -> Version:
        version = (leader, write.run if write else None)
        told = self.versions.setdefault(version, {})
        if write is not None:
            told["writtenAt"] = iso(write.at)
        if wrote is not None:
            told.update(
                {
                    key: value
                    for key, value in (("rows", wrote.rows), ("version", wrote.version))
                    if value is not None
                }
            )
        return version

    def model(self, reader: Reader, start: str) -> dict[str, Any]:
        """All of it as JSON-ready data."""
        rows = reader.runs_of(self.runs)
        datasets = reader.nodes("dataset", {leader for leader, _ in self.versions})
        related = related_ids(reader, rows.values())
        runs = {number: f"run:{row['run_id']}" for number, row in rows.items()}
        writers = self._ids({run for _, run in self.versions if run is not None})
        names: dict[Any, str] = {}
        nodes = [
            {**run_line(related, row), "id": runs[number], "type": "RUN", "distance": self.runs[number],
             **({"more": self.more[number]} if number in self.more else {})}
            for number, row in rows.items()
        ]  # fmt: skip
        for (leader, run), told in self.versions.items():
            row, failed = datasets[leader], self.failed.get((leader, run))
            plain = node_id("dataset", row["namespace"], row["name"])
            if failed:
                told["failedSince"] = sorted(failed, key=lambda each: (-failed[each], each))
            names[leader, run] = f"{plain}#{writers[run]}" if run is not None else plain
            nodes.append(
                {
                    "id": names[leader, run],
                    "type": "DATASET_VERSION",
                    "dataset": plain,
                    "namespace": row["namespace"],
                    "name": row["name"],
                    "run": writers.get(run) if run is not None else None,
                    **told,
                }
            )
        where = {"run": runs, "version": names}
        edges = [
            {"from": where[one][a], "to": where[two][b]}
            for one, a, two, b in self.edges
            if a in where[one] and b in where[two]
        ]
        return {
            "start": start,
            "nodes": sorted(
                nodes, key=lambda each: (each.get("distance", 0), each["type"] != "RUN", each["id"])
            ),
            "edges": sorted(edges, key=lambda each: (each["from"], each["to"])),
            "columns": [],
            "cut": bool(self.more),
        }
