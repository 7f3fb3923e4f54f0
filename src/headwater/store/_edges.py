"""store._edges: a frontier of numbers and a time -> the edges that held then.

As of a time, a job's edges are those of the last run before it that completed and named datasets (or of the
job event, if that came later), and those that runs have named since. A job that has shown no such run has all
edges ever seen. So an edge is gone when a later completed run lacks it, and never because an event says nothing.

Each step is one statement for the whole frontier, by index: its cost follows the edges, not runs or catalogue.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import Any, NamedTuple

import msgspec
from sqlalchemy import Connection

from headwater.facts.flows import ColumnKey, Flow, Relation, When
from headwater.store._driver import among, cursor_of, listed
from headwater.store._identities import numbers_of
from headwater.store._upsert import unpack


class _Edge(NamedTuple):
    job: int
    dataset: int
    first: int
    last: int


class _Base(NamedTuple):
    """What a job's edges rest on: a run, or a job event, and its time."""

    run: int | None
    at: int


_TABLE = {"in": "inputs", "out": "outputs"}
_IDS = among()
_CANDIDATES = (
    "SELECT job, dataset, first_seen, last_seen FROM edges WHERE {column} IN " + _IDS + " AND direction = ?"
)
VISIBLE = (
    "(t.hidden_at IS NULL OR t.hidden_at < coalesce(t.last_seen, 0) OR t.hidden_at < coalesce(t.shown_at, 0))"
)
_BASE_RUN = (
    "SELECT r.job, r.id, r.ended_at FROM jobs AS j JOIN runs AS r ON r.id = ("
    " SELECT id FROM runs WHERE job = j.id AND io IS NOT NULL AND ended_at <= ?"
    " ORDER BY ended_at DESC, run_id DESC LIMIT 1) WHERE j.id IN " + _IDS
)
_BASE_WORD = "SELECT job, max(at) FROM declared WHERE job IN " + _IDS + " AND at <= ? GROUP BY job"


class Edges:
    """The edges of a store at a time; a `graph.Source`."""

    def __init__(self, connection: Connection, when: When, relations: Relations | None = None) -> None:
        self._cursor, self._when = cursor_of(connection), when
        self._bases: dict[int, _Base | None] = {}
        self._relations = relations if relations is not None else RELATIONS

    def rows(self, sql: str, *parameters: Any) -> Iterator[Any]:
        """The rows that a statement of this dialect finds."""
        self._cursor.execute(sql, parameters)
        return iter(self._cursor.fetchall())

    def jobs_of(self, datasets: Collection[int], direction: str) -> list[Flow]:
        """Who reads or writes these datasets, under any of their names."""
        leader = self._members(datasets)
        flows = self._held(_CANDIDATES.format(column="dataset"), leader, direction)
        seen = self._shown("jobs", {job for job, _ in flows})
        return [Flow(job, leader[dataset]) for job, dataset in flows if job in seen]

    def datasets_of(self, jobs: Collection[int], direction: str, *, hidden: bool = False) -> list[Flow]:
        """What these jobs read or write; with `hidden`, datasets that were hidden too."""
        flows = self._held(_CANDIDATES.format(column="job"), jobs, direction)
        leader = self._leaders({dataset for _, dataset in flows}, hidden=hidden)
        return [Flow(job, leader[dataset]) for job, dataset in flows if dataset in leader]

    def shown_jobs(self, jobs: Collection[int]) -> set[int]:
        """Those of the jobs that were not hidden."""
        return self._shown("jobs", jobs)

    def _members(self, datasets: Collection[int]) -> dict[int, int]:
        """Every name of these datasets -> the one that was asked for."""
        leader = {number: number for number in datasets}
        leader.update(
            self.rows(f"SELECT id, canonical FROM datasets WHERE canonical IN {_IDS}", listed(datasets))
        )
        return leader

    def _leaders(self, datasets: Collection[int], *, hidden: bool = False) -> dict[int, int]:
        """Each dataset -> the one that stands for it; those that were hidden are left out, unless asked for."""
        found = self.rows(
            f"SELECT d.id, coalesce(d.canonical, d.id) FROM datasets AS d JOIN datasets AS t"
            f" ON t.id = coalesce(d.canonical, d.id) WHERE d.id IN {_IDS}{'' if hidden else f' AND {VISIBLE}'}",
            listed(datasets),
        )
        return dict(tuple(row) for row in found)

    def _shown(self, table: str, numbers: Collection[int]) -> set[int]:
        return {
            row[0]
            for row in self.rows(
                f"SELECT t.id FROM {table} AS t WHERE t.id IN {_IDS} AND {VISIBLE}", listed(numbers)
            )
        }

    def _held(self, sql: str, numbers: Collection[int], direction: str) -> list[tuple[int, int]]:
        """The candidates that held at the time: by what is on the edge itself where that decides, else by a look."""
        until = self._when.until
        candidates = [
            e for row in self.rows(sql, listed(numbers), direction) if (e := _Edge(*row)).first <= until
        ]
        bases = self._base({edge.job for edge in candidates})
        held: list[tuple[int, int]] = []
        doubtful: list[_Edge] = []
        for edge in candidates:
            base = bases[edge.job]
            if base is None or base.at <= edge.first or base.at <= edge.last <= until:
                held.append((edge.job, edge.dataset))
            else:
                doubtful.append(edge)
        held.extend(self._named(doubtful, bases, direction))
        return held

    def _base(self, jobs: Collection[int]) -> dict[int, _Base | None]:
        missing = [job for job in jobs if job not in self._bases]
        if missing:
            at, asked = self._when.base, listed(missing)
            self._bases.update(dict.fromkeys(missing, None))
            for job, run, ended in self.rows(_BASE_RUN, at, asked):
                self._bases[job] = _Base(run, ended)
            for job, word in self.rows(_BASE_WORD, asked, at):
                have = self._bases[job]
                if have is None or word >= have.at:
                    self._bases[job] = _Base(None, word)
        return self._bases

    def _named(
        self, edges: list[_Edge], bases: dict[int, _Base | None], direction: str
    ) -> list[tuple[int, int]]:
        """Those of the edges that the base itself names, or a run since."""
        if not edges:
            return []
        runs = {
            base.run: job for job in {e.job for e in edges} if (base := bases[job]) and base.run is not None
        }
        words = {job: base.at for job in {e.job for e in edges} if (base := bases[job]) and base.run is None}
        named = {
            (runs[run], dataset)
            for run, dataset in self.rows(
                f"SELECT run, dataset FROM {_TABLE[direction]} WHERE run IN {_IDS} AND first_seen <= ?",
                listed(runs),
                self._when.until,
            )
        }
        for job, at in words.items():
            said = self.rows(
                "SELECT dataset FROM declared WHERE job = ? AND at = ? AND direction = ?", job, at, direction
            )
            named.update((job, row[0]) for row in said)
        return [
            (edge.job, edge.dataset)
            for edge in edges
            if (edge.job, edge.dataset) in named or self._since(edge, bases[edge.job], direction)
        ]

    def _since(self, edge: _Edge, base: _Base | None, direction: str) -> bool:
        """Whether a run named it between the base and the time asked for, though it was named before and after."""
        until = self._when.until
        if edge.last <= until or base is None:
            return False  # its last word was before the base: `_held` would have seen it otherwise
        start = base.at
        found = self.rows(
            f"SELECT 1 FROM runs AS r JOIN {_TABLE[direction]} AS io ON io.run = r.id AND io.dataset = ?"
            " WHERE r.job = ? AND r.first_seen <= ?"
            " AND (io.first_seen BETWEEN ? AND ? OR io.last_seen BETWEEN ? AND ?) LIMIT 1",
            edge.dataset, edge.job, until, start, until, start, until,
        )  # fmt: skip
        declared = self.rows(
            "SELECT 1 FROM declared WHERE job = ? AND direction = ? AND dataset = ? AND at BETWEEN ? AND ? LIMIT 1",
            edge.job, direction, edge.dataset, start, until,
        )  # fmt: skip
        return any(True for _ in found) or any(True for _ in declared)

    def relations_to(self, columns: Collection[ColumnKey]) -> list[Relation]:
        """What makes these columns."""
        leader = self._members({dataset for dataset, _ in columns})
        wanted = set(columns)
        found = self.rows(
            f"SELECT c.job, c.dataset, c.fingerprint, c.first_seen, c.last_seen FROM edges AS e"
            f" JOIN column_edges AS c ON c.job = e.job AND c.dataset = e.dataset"
            f" WHERE e.dataset IN {_IDS} AND e.direction = 'out'",
            listed(leader),
        )
        relations = self._told(self._sets(list(found)))
        return [each for each in relations if each.target in wanted]

    def relations_from(self, columns: Collection[ColumnKey]) -> list[Relation]:
        """What these columns make."""
        leader = self._members({dataset for dataset, _ in columns})
        wanted = set(columns)
        found = self.rows(
            f"SELECT DISTINCT c.job, c.dataset, c.fingerprint, c.first_seen, c.last_seen FROM column_sources AS s"
            f" JOIN column_edges AS c ON c.fingerprint = s.fingerprint WHERE s.dataset IN {_IDS}",
            listed(leader),
        )
        rows = list(found)
        pairs = {(row[0], row[1]) for row in rows}
        if rows:  # whether a set still holds depends on the other sets of its job and dataset
            asked = listed({job for job, _ in pairs})
            every = self.rows(
                f"SELECT job, dataset, fingerprint, first_seen, last_seen FROM column_edges WHERE job IN {_IDS}",
                asked,
            )
            rows = [row for row in every if (row[0], row[1]) in pairs]
        relations = self._told(self._sets(rows))
        return [each for each in relations if each.source in wanted]

    def all_relations(self, flows: Iterable[tuple[int, int]]) -> list[Relation]:
        """Every column relation by which these jobs make these datasets."""
        wanted = set(flows)
        leader = self._members({dataset for _, dataset in wanted})
        found = self.rows(
            f"SELECT job, dataset, fingerprint, first_seen, last_seen FROM column_edges WHERE job IN {_IDS}",
            listed({job for job, _ in wanted}),
        )
        return self._told(self._sets([row for row in found if (row[0], leader.get(row[1])) in wanted]))

    def _sets(self, rows: list[Any]) -> list[tuple[int, int, bytes]]:
        """Which sets of column relations held: the base run's own, and what was seen since; else the latest."""
        until = self._when.until
        pairs: dict[tuple[int, int], list[tuple[bytes, int, int]]] = {}
        for job, dataset, fingerprint, first, last in rows:
            if first <= until:
                pairs.setdefault((job, dataset), []).append((fingerprint, first, last))
        held_flows = set(self._still({job for job, _ in pairs}))
        bases = self._base({job for job, _ in pairs})
        runs = {
            base.run: job for job in {j for j, _ in pairs} if (base := bases[job]) and base.run is not None
        }
        own = {
            (runs[run], dataset): fingerprint
            for run, dataset, fingerprint in self.rows(
                f"SELECT run, dataset, columns FROM outputs WHERE run IN {_IDS} AND columns IS NOT NULL"
                " AND columns_at <= ?",
                listed(runs),
                until,
            )
        }
        out: list[tuple[int, int, bytes]] = []
        for (job, dataset), sets in pairs.items():
            if (job, dataset) not in held_flows:
                continue
            base = bases[job]
            chosen = {
                f for f, first, last in sets if base is None or base.at <= first or base.at <= last <= until
            }
            if (job, dataset) in own:
                chosen.add(own[job, dataset])
            elif not chosen:
                chosen.add(max((min(last, until), fingerprint) for fingerprint, _, last in sets)[1])
            out.extend((job, dataset, fingerprint) for fingerprint in chosen)
        return out

    def _still(self, jobs: Collection[int]) -> list[tuple[int, int]]:
        return self._held(_CANDIDATES.format(column="job"), jobs, "out")

    def _told(self, sets: list[tuple[int, int, bytes]]) -> list[Relation]:
        bodies = self._relations.load(self, {fingerprint for _, _, fingerprint in sets})
        names = {row[1] for fingerprint in bodies for row in bodies[fingerprint]}
        numbers = numbers_of(self._cursor, names)
        leader = self._leaders({dataset for _, dataset, _ in sets} | set(numbers.values()))
        out: list[Relation] = []
        for job, dataset, fingerprint in sets:
            rows = bodies.get(fingerprint, [])
            fields = sorted({row[0] for row in rows if row[0]}) or ["*"]
            for target, source, column, kind, subtype, masking, description in rows:
                origin = leader.get(numbers.get(source, -1))
                if origin is None or dataset not in leader:
                    continue
                # a relation with the whole dataset (a filter, a join) decides on every column
                for each in (target,) if target else fields:
                    out.append(
                        Relation(
                            job,
                            (origin, column),
                            (leader[dataset], each),
                            kind,
                            subtype,
                            masking,
                            description,
                        )
                    )
        return out


class Relations:
    """Decoded sets of column relations, remembered by fingerprint: they never change."""

    def __init__(self, size: int = 4_096) -> None:
        self._size = size
        self._known: dict[bytes, list[Any]] = {}

    def load(self, edges: Edges, fingerprints: Collection[bytes]) -> dict[bytes, list[Any]]:
        """The relations under each fingerprint."""
        found = {each: known for each in fingerprints if (known := self._known.get(each)) is not None}
        missing = [each for each in fingerprints if each not in found]
        if len(self._known) > self._size:
            self._known.clear()
        for start in range(0, len(missing), 500):
            part = missing[start : start + 500]
            marks = ", ".join("?" for _ in part)
            for digest, body in edges.rows(
                f"SELECT digest, body FROM contents WHERE digest IN ({marks})", *part
            ):
                found[digest] = self._known[digest] = msgspec.json.decode(unpack(body))
        return found


RELATIONS = Relations()
