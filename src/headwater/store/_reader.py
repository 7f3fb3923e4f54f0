"""store._reader: a question about nodes, runs, facets or edges -> rows of one moment of the store."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from functools import cache
from typing import Any

import msgspec
from sqlalchemy import Connection, and_, exists, func, or_, select
from sqlalchemy.sql import ColumnElement

from headwater.facts.flows import When
from headwater.naming import AliasRule
from headwater.store._catalogue import Catalogue
from headwater.store._driver import cursor_of, plan_once
from headwater.store._edges import Edges
from headwater.store._history import History
from headwater.store._incidents import Faults
from headwater.store._packing import unpack
from headwater.store._schema import TABLE, log, rejects
from headwater.store._search import Hit, find, mode_of
from headwater.store._times import Times
from headwater.store._told import Told, told
from headwater.store._trail import Trail
from headwater.store._written import Writes

Rows = list[dict[str, Any]]
_NODES = {"job": "jobs", "dataset": "datasets"}
_PART = 5_000


class Reader:
    """One moment of the store. Nodes are numbers; a dataset's number is that of its canonical name."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    @property
    def connection(self) -> Connection:
        """The same moment, for the questions of another module."""
        return self._connection

    def edges(self, when: When = When()) -> Edges:  # noqa: B008 - frozen
        """The edges that held at a time: what `graph.walk` walks on."""
        plan_once(self._connection)
        return Edges(self._connection, when)

    def catalogue(self) -> Catalogue:
        """Jobs, datasets, namespaces, sources and tags, page by page."""
        return Catalogue(self._connection)

    def history(self) -> History:
        """Runs and versions, page by page, with their facets."""
        return History(self._connection)

    def times(self) -> Times:
        """What happened when: the log's events, and counts of runs."""
        return Times(self._connection)

    def faults(self) -> Faults:
        """What went wrong: what incidents are made of."""
        return Faults(self._connection)

    def writes(self) -> Writes:
        """Who wrote what: whom incidents blame."""
        return Writes(self._connection)

    def trail(self) -> Trail:
        """Runs, what they read and wrote, and the raw log."""
        return Trail(self._connection)

    def told(self, kind: str, numbers: Collection[int]) -> dict[int, Told]:
        """What is told of jobs or datasets, under any of their names: description, owners, tags, columns, SQL."""
        return told(cursor_of(self._connection), kind, self.leaders(kind, numbers))

    def leaders(self, kind: str, numbers: Collection[int]) -> dict[int, int]:
        """Every name's number -> the one of these that it is a name of."""
        leader = {number: number for number in numbers}
        if kind == "dataset":
            table = TABLE["datasets"].c
            for part in _parts(numbers):
                query = select(table.id, table.canonical).where(table.canonical.in_(part))
                leader.update((row[0], row[1]) for row in self._connection.execute(query))
        return leader

    def search(self, query: str, **filters: Any) -> list[Hit]:
        """The nodes that a query means, the closest first."""
        return find(self._connection, query, **filters)

    def searchable(self) -> str:
        """How words are found: `fts5`, `gin`, or `names` where only names can be searched."""
        return mode_of(self._connection)

    def find(self, kind: str, names: Iterable[tuple[str, str]]) -> list[int]:
        """The nodes with exactly these (namespace, name) pairs."""
        table = TABLE[_NODES[kind]].c
        number = self._number(kind)
        wanted = [(table.namespace == namespace) & (table.name == name) for namespace, name in names]
        return self._numbers(select(number).where(or_(*wanted))) if wanted else []

    def match(
        self, kind: str, text: str, *, limit: int = 50, suffix: bool = False, namespace: str | None = None
    ) -> list[int]:
        """The nodes whose name holds `text`; with `suffix`, whose name ends with it at a boundary."""
        table = TABLE[_NODES[kind]].c
        if suffix:
            ends = [
                *(table.name.like(f"%{mark}{_escape(text)}", escape="\\") for mark in "./:"),
            ]
            where = or_(*ends)
        else:
            pattern = f"%{_escape(text)}%"
            where = or_(table.name.ilike(pattern, escape="\\"), table.namespace.ilike(pattern, escape="\\"))
        query = select(self._number(kind)).where(where, _visible(kind))
        if namespace is not None:
            query = query.where(table.namespace == namespace)
        return self._numbers(
            query.order_by(func.length(table.name), table.name, table.namespace).limit(limit)
        )

    def named(self, kind: str, name: str) -> list[int]:
        """The nodes with exactly this name, in whatever namespace."""
        return self._numbers(
            select(self._number(kind)).where(TABLE[_NODES[kind]].c.name == name, _visible(kind))
        )

    def nodes(self, kind: str, numbers: Collection[int]) -> dict[int, dict[str, Any]]:
        """What stands in the tables of jobs or datasets for these numbers."""
        columns, found = _kept(kind), dict[int, dict[str, Any]]()
        for part in _parts(numbers):
            query = select(*columns.values()).where(columns["id"].in_(part))
            found |= {row.id: dict(zip(columns, row, strict=True)) for row in self._connection.execute(query)}
        if kind == "dataset":
            self.catalogue().join(found)
        return found

    def names_of(self, dataset: int) -> list[tuple[int, str, str]]:
        """Every name of a dataset, its own first."""
        table = TABLE["datasets"].c
        query = select(table.id, table.namespace, table.name).where(
            or_(table.id == dataset, table.canonical == dataset)
        )
        rows = [tuple(row) for row in self._connection.execute(query.order_by(table.namespace, table.name))]
        return sorted(rows, key=lambda row: row[0] != dataset)

    def facets(self, kind: str, number: int) -> dict[str, Any]:
        """The current facets of a job, dataset (under any of its names) or run."""
        owners = [each[0] for each in self.names_of(number)] if kind == "dataset" else [number]
        table = TABLE[f"{kind}_facets"].c
        query = (
            select(table.name, TABLE["contents"].c.body)
            .join(TABLE["contents"], TABLE["contents"].c.digest == table.body)
            .where(table[kind].in_(owners))
            .order_by(table.last_seen, table.body)
        )
        latest = {name: unpack(body) for name, body in self._connection.execute(query)}
        decoded = {name: msgspec.json.decode(body) for name, body in sorted(latest.items())}
        return {
            name: body
            for name, body in decoded.items()
            if not (isinstance(body, dict) and body.get("_deleted") is True)
        }

    def schemas(self, dataset: int) -> Rows:
        """The schemas a dataset has had, the current one first."""
        owners = [each[0] for each in self.names_of(dataset)]
        table, contents = TABLE["schemas"].c, TABLE["contents"].c
        query = (
            select(table.schema, table.first_seen, table.last_seen, contents.body)
            .join(TABLE["contents"], contents.digest == table.schema)
            .where(table.dataset.in_(owners))
            .order_by(table.last_seen.desc(), table.schema.desc())
        )
        return [
            {
                "version": row[0].hex(),
                "first_seen": row[1],
                "last_seen": row[2],
                "fields": msgspec.json.decode(unpack(row[3])),
            }
            for row in self._connection.execute(query)
        ]

    def run(self, run_id: str) -> dict[str, Any] | None:
        """One run by its id."""
        found = self.runs(where=TABLE["runs"].c.run_id == run_id, limit=1)
        return found[0] if found else None

    def runs(
        self, *, job: int | None = None, where: ColumnElement[bool] | None = None, limit: int = 20
    ) -> Rows:
        """Runs, newest first."""
        table, jobs = TABLE["runs"], TABLE["jobs"].c
        query = select(table, jobs.namespace.label("job_namespace"), jobs.name.label("job_name")).join(
            TABLE["jobs"], jobs.id == table.c.job, isouter=True
        )
        if job is not None:
            query = query.where(table.c.job == job)
        if where is not None:
            query = query.where(where)
        rows = self._connection.execute(
            query.order_by(table.c.first_seen.desc(), table.c.run_id.desc()).limit(limit)
        )
        return [dict(row) for row in rows.mappings()]

    def runs_between(
        self,
        *,
        job: int | None = None,
        datasets: Collection[int] | None = None,
        state: str | None = None,
        since: int | None = None,
        until: int | None = None,
        limit: int = 50,
    ) -> Rows:
        """Runs that began between two times, newest first; those of a job, or that read or wrote one of the datasets."""
        table = TABLE["runs"].c
        where: list[ColumnElement[bool]] = [table.first_seen.is_not(None)]
        if datasets is not None:
            sides = [TABLE[side].c for side in ("inputs", "outputs")]
            touched = [select(side.run).where(side.dataset.in_(list(datasets))) for side in sides]
            where.append(table.id.in_(touched[0].union(touched[1])))
        if state is not None:
            where.append(table.state == state)
        if since is not None:
            where.append(table.first_seen >= since)
        if until is not None:
            where.append(table.first_seen <= until)
        return self.runs(job=job, where=and_(*where), limit=limit)

    def runs_of(self, numbers: Collection[int]) -> dict[int, dict[str, Any]]:
        """Runs by their numbers."""
        table = TABLE["runs"].c
        return {
            row["id"]: row
            for part in _parts(numbers)
            for row in self.runs(where=table.id.in_(part), limit=len(part))
        }

    def run_ids(self, numbers: Collection[int]) -> dict[int, str]:
        """The ids of runs by their numbers."""
        table = TABLE["runs"].c
        return {
            row[0]: row[1]
            for part in _parts(numbers)
            for row in self._connection.execute(select(table.id, table.run_id).where(table.id.in_(part)))
        }

    def io(self, run: int) -> dict[str, Rows]:
        """What a run read and wrote."""
        datasets = TABLE["datasets"].c
        out: dict[str, Rows] = {}
        for side in ("inputs", "outputs"):
            table = TABLE[side]
            query = (
                select(table, datasets.namespace, datasets.name)
                .join(TABLE["datasets"], datasets.id == table.c.dataset)
                .where(table.c.run == run)
                .order_by(datasets.namespace, datasets.name)
            )
            out[side] = [dict(row) for row in self._connection.execute(query).mappings()]
        return out

    def assertions(self, *, run: int | None = None, dataset: int | None = None, limit: int = 100) -> Rows:
        """Data-quality checks of a run or of a dataset, newest first."""
        table = TABLE["assertions"]
        query = select(table).order_by(table.c.last_seen.desc()).limit(limit)
        if run is not None:
            query = query.where(table.c.run == run)
        if dataset is not None:
            query = query.where(table.c.dataset.in_([each[0] for each in self.names_of(dataset)]))
        return [dict(row) for row in self._connection.execute(query).mappings()]

    def versions(self, job: int) -> Rows:
        """The versions of a job, the newest first: each a set of inputs and outputs, shown by completed runs."""
        runs = TABLE["runs"].c
        query = (
            select(runs.io, func.min(runs.ended_at), func.max(runs.ended_at), func.count(), func.max(runs.id))
            .where(runs.job == job, runs.io.is_not(None))
            .group_by(runs.io)
            .order_by(func.max(runs.ended_at).desc(), runs.io)
        )
        return [
            {
                "version": row[0].hex(),
                "first_seen": row[1],
                "last_seen": row[2],
                "runs": row[3],
                "run": row[4],
            }
            for row in self._connection.execute(query)
        ]

    def tags(self, kind: str, owners: Collection[str]) -> Rows:
        """The tags that are on a job or dataset now, by all of its references; told by several, as the last says."""
        table = TABLE["tags"].c
        query = select(table.field, table.tag, table.value, table.source).where(
            table.kind == kind, table.owner.in_(owners), table.live == 1
        )
        found = self._connection.execute(query.order_by(table.live_at, table.owner)).mappings()
        latest = {(row["field"], row["tag"]): dict(row) for row in found}
        return [latest[each] for each in sorted(latest)]

    def aliases(self) -> list[AliasRule]:
        """The alias rules that were set, in the order in which they are tried."""
        table = TABLE["aliases"].c
        found = self._connection.execute(select(table.rule).where(table.rule != "").order_by(table.match))
        return [AliasRule.from_dict(msgspec.json.decode(body)) for (body,) in found]

    def stats(self) -> dict[str, int]:
        """How much there is: what a status line shows."""
        tables = {
            "events": log,
            "rejects": rejects,
            **{name: TABLE[name] for name in ("jobs", "datasets", "runs", "edges")},
        }
        return {
            name: self._connection.execute(select(func.count()).select_from(table)).scalar_one()
            for name, table in tables.items()
        }

    def last_entry(self) -> int:
        """The number of the newest entry of the raw log; 0 where it is empty."""
        found: int = self._connection.execute(select(func.coalesce(func.max(log.c.id), 0))).scalar_one()
        return found

    def span(self) -> tuple[int, int] | None:
        """The times of the first and last event; None in an empty store."""
        first, last = self._connection.execute(select(func.min(log.c.time), func.max(log.c.time))).one()
        return None if first is None else (first, last)

    def _number(self, kind: str) -> ColumnElement[int]:
        table = TABLE[_NODES[kind]].c
        return func.coalesce(table.canonical, table.id) if kind == "dataset" else table.id

    def _numbers(self, query: Any) -> list[int]:
        return list(dict.fromkeys(self._connection.execute(query).scalars()))


_NAME = TABLE["datasets"].alias("other")
_TIMES = frozenset({"started_at", "ended_at", "hidden_at", "shown_at"})


def _visible(kind: str) -> ColumnElement[bool]:
    table = TABLE[_NODES[kind]].c
    shown = [table.hidden_at.is_(None), table.hidden_at < table.last_seen, table.hidden_at < table.shown_at]
    if kind == "dataset":  # it is one under all of its names: an event that gives any of them shows it
        since = or_(table.hidden_at < _NAME.c.last_seen, table.hidden_at < _NAME.c.shown_at)
        shown.append(exists().where(_NAME.c.canonical == table.id, since))
    return or_(*shown)


def _escape(text: str) -> str:
    return text.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")


@cache
def _kept(kind: str) -> dict[str, ColumnElement[Any]]:
    """The columns of jobs or datasets, but for the times that only merging needs."""
    columns = TABLE[_NODES[kind]].c
    return {each.name: each for each in columns if not each.name.endswith("_at") or each.name in _TIMES}


def _parts(numbers: Collection[int]) -> Iterable[Sequence[int]]:
    listed = sorted(numbers)
    return (listed[start : start + _PART] for start in range(0, len(listed), _PART))
