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
from headwater.store._packing import unpack


class _Edge(NamedTuple):
    """An edge, and the name by which its dataset is asked for or shown."""

    job: int
    dataset: int
    first: int
    last: int
    leader: int


class _Base(NamedTuple):
    """What a job's edges rest on: a run, or a job event, and its time."""

    run: int | None
    at: int


_TABLE = {"in": "inputs", "out": "outputs"}
_IDS = among()
VISIBLE = (
    "(t.hidden_at IS NULL OR t.hidden_at < coalesce(t.last_seen, 0) OR t.hidden_at < coalesce(t.shown_at, 0))"
)
"""That a job was not hidden, or that an event named it since."""
VISIBLE_DATASET = (
    f"({VISIBLE} OR EXISTS (SELECT 1 FROM datasets AS m WHERE m.canonical = t.id"
    " AND (t.hidden_at < m.last_seen OR t.hidden_at < m.shown_at)))"
)
"""The same of a dataset: it is one under all of its names, so an event that gives any of them shows it."""
_MEMBERS = (
    f"SELECT id, id AS leader FROM datasets WHERE id IN {_IDS}"
    f" UNION SELECT id, canonical FROM datasets WHERE canonical IN {_IDS}"
)
"""Every name of these datasets, and the one of them that was asked for."""
_LEADER = "JOIN datasets AS t ON t.id = coalesce(d.canonical, d.id)"
"""`t` stands for the dataset `d`."""
_OF_DATASETS = (
    f"SELECT e.job, e.dataset, e.first_seen, e.last_seen, m.leader FROM ({_MEMBERS}) AS m"
    f" JOIN edges AS e ON e.dataset = m.id AND e.direction = ? JOIN jobs AS t ON t.id = e.job AND {VISIBLE}"
)
_OF_JOBS = (
    f"SELECT e.job, e.dataset, e.first_seen, e.last_seen, t.id FROM edges AS e JOIN datasets AS d ON d.id = e.dataset {_LEADER}"
    f" WHERE e.job IN {_IDS} AND e.direction = ?"
)
_BASES = (
    "SELECT j.id, r.id, r.ended_at, (SELECT max(w.at) FROM declared AS w WHERE w.job = j.id AND w.at <= ?) FROM jobs AS j"
    " LEFT JOIN runs AS r ON r.id = (SELECT id FROM runs WHERE job = j.id AND io IS NOT NULL AND ended_at <= ?"
    f" ORDER BY ended_at DESC, run_id DESC LIMIT 1) WHERE j.id IN {_IDS}"
)


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
        asked = listed(datasets)
        held = self._held(self.rows(_OF_DATASETS, asked, asked, direction), direction)
        return [Flow(edge.job, edge.leader) for edge in held]

    def datasets_of(self, jobs: Collection[int], direction: str, *, hidden: bool = False) -> list[Flow]:
        """What these jobs read or write; with `hidden`, datasets that were hidden too."""
        also = "" if hidden else f" AND {VISIBLE_DATASET}"
        held = self._held(self.rows(_OF_JOBS + also, listed(jobs), direction), direction)
        return [Flow(edge.job, edge.leader) for edge in held]

    def shown_jobs(self, jobs: Collection[int]) -> set[int]:
        """Those of the jobs that were not hidden."""
        found = self.rows(f"SELECT t.id FROM jobs AS t WHERE t.id IN {_IDS} AND {VISIBLE}", listed(jobs))
        return {row[0] for row in found}

    def _members(self, datasets: Collection[int]) -> dict[int, int]:
        """Every name of these datasets -> the one that was asked for."""
        asked = listed(datasets)
        return dict(tuple(row) for row in self.rows(_MEMBERS, asked, asked))

    def _leaders(self, datasets: Collection[int]) -> dict[int, int]:
        """Each dataset -> the one that stands for it; those that were hidden are left out."""
        found = self.rows(
            f"SELECT d.id, t.id FROM datasets AS d {_LEADER} WHERE d.id IN {_IDS} AND {VISIBLE_DATASET}",
            listed(datasets),
        )
        return dict(tuple(row) for row in found)

    def _held(self, rows: Iterable[Any], direction: str) -> list[_Edge]:
        """The edges that held at the time: by what is on the edge itself where that decides, else by a look."""
        until = self._when.until
        candidates = [edge for row in rows if (edge := _Edge(*row)).first <= until]
        bases = self._base({edge.job for edge in candidates})
        held: list[_Edge] = []
        doubtful: list[_Edge] = []
        for edge in candidates:
            base = bases[edge.job]
            if base is None or base.at <= edge.first or base.at <= edge.last <= until:
                held.append(edge)
            else:
                doubtful.append(edge)
        held.extend(self._named(doubtful, bases, direction))
        return held

    def _base(self, jobs: Collection[int]) -> dict[int, _Base | None]:
        missing = [job for job in jobs if job not in self._bases]
        if missing:
            at = self._when.base
            self._bases.update(dict.fromkeys(missing, None))
            for job, run, ended, word in self.rows(_BASES, at, at, listed(missing)):
                if word is not None and (run is None or word >= ended):
                    self._bases[job] = _Base(None, word)
                elif run is not None:
                    self._bases[job] = _Base(run, ended)
        return self._bases

    def _named(self, edges: list[_Edge], bases: dict[int, _Base | None], direction: str) -> list[_Edge]:
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
            edge
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

    def told_columns(self, dataset: int) -> bool:
        """Whether a column relation ever named a column of this dataset."""
        asked = listed(self._members([dataset]))
        found = self.rows(
            f"SELECT 1 WHERE EXISTS (SELECT 1 FROM column_sources WHERE dataset IN {_IDS})"
            f" OR EXISTS (SELECT 1 FROM column_edges WHERE dataset IN {_IDS})",
            asked, asked,
        )  # fmt: skip
        return any(True for _ in found)

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
        candidates = self.rows(_OF_JOBS, listed({job for job, _ in pairs}), "out")
        held_flows = {(edge.job, edge.dataset) for edge in self._held(candidates, "out")}
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
