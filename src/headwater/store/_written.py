"""store._written: a dataset and a time -> the runs that had written it by then, and the schemas it was written with."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from functools import cache
from typing import Any, NamedTuple

import msgspec
from sqlalchemy import BindParameter, Connection, Integer, Select, and_, bindparam, func, select

from headwater.facts.derive import RANK
from headwater.store._packing import unpack
from headwater.store._schema import TABLE

_runs, _datasets, _edges, _outputs = (TABLE[name] for name in ("runs", "datasets", "edges", "outputs"))
_MOST_WRITERS = 200
PART = 400
"""Values in one statement."""
STATE = {name: f"{rank} {name}" for name, rank in RANK.items()}
"""The states of runs, as rows keep them."""


class Wrote(NamedTuple):
    """A run that wrote a dataset, and when it ended; one that only says it runs, when it last said so."""

    id: int
    run: str
    root: str
    job: int
    ended_at: int
    state: str
    error: str | None
    rows: int | None
    schema: bytes | None
    names: tuple[int, ...]
    """The dataset by the names that the run gave it."""


class Writes:
    """One moment of the store, asked for who wrote what."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def schemas(self) -> list[tuple[int, bytes, int, int, tuple[str, str]]]:
        """(dataset, schema, first and last written, first under which name) of datasets that were written with more than one."""
        found: dict[tuple[int, bytes], tuple[int, tuple[str, str], int]] = {}
        for number, schema, first, last, *name in self._connection.execute(_several_schemas()):
            told = (first, (name[0], name[1]))
            had = found.get((number, schema))
            began = told if had is None else min(had[:2], told)
            found[number, schema] = (*began, last if had is None else max(had[2], last))
        return [(*key, first, last, name) for key, (first, name, last) in found.items()]

    def fields(self, schemas: Collection[bytes]) -> dict[bytes, list[dict[str, Any]]]:
        """The fields of schemas."""
        contents = TABLE["contents"].c
        return {
            row[0]: msgspec.json.decode(unpack(row[1]))
            for part in parts(schemas)
            for row in self._connection.execute(
                select(contents.digest, contents.body).where(contents.digest.in_(part))
            )
        }

    def produced(self, datasets: Collection[int]) -> set[int]:
        """Those of the names that some job writes."""
        return {
            number
            for part in parts(datasets)
            for number in self._connection.execute(
                select(_edges.c.dataset)
                .where(_edges.c.direction == "out", _edges.c.dataset.in_(part))
                .distinct()
            ).scalars()
        }

    def produced_datasets(self) -> set[int]:
        """Every dataset that some job writes, by the one that stands for it."""
        number = func.coalesce(_datasets.c.canonical, _datasets.c.id)
        query = select(number).join(_edges, _edges.c.dataset == _datasets.c.id)
        return set(self._connection.execute(query.where(_edges.c.direction == "out").distinct()).scalars())

    def writers(self, names: Collection[int]) -> list[int]:
        """The jobs that write a dataset under any of these names; of very many, those that did so last."""
        seen = func.max(_edges.c.last_seen)
        query = (
            select(_edges.c.job)
            .where(_edges.c.direction == "out", _edges.c.dataset.in_(list(names)))
            .group_by(_edges.c.job)
            .order_by(seen.desc(), _edges.c.job)
            .limit(_MOST_WRITERS)
        )
        return list(self._connection.execute(query).scalars())

    def written(self, jobs: Iterable[int], names: Collection[int], until: int, limit: int = 1) -> list[Wrote]:
        """The last `limit` runs of each job that ended by then and wrote one of the names, newest first.

        Two index look-ups a job, whatever number of runs it has had. A run that never says it ended (some tools
        only say that it runs) counts from when it last said so.
        """
        found: list[Wrote] = []
        for job in jobs:
            mine: dict[str, Wrote] = {}
            asked = {"asked": job, "until": until, "names": list(names), "most": limit}
            for statement in _last_written():
                for row in self._connection.execute(statement, asked):
                    at = row[4] if row[4] is not None else min(row[5], until)
                    each = Wrote._make((*row[:4], at, *row[6:10], (row[10],)))
                    mine[each.run] = _joined(mine[each.run], each) if each.run in mine else each
            found += sorted(mine.values(), key=lambda each: (-each.ended_at, each.run))[:limit]
        return sorted(found, key=lambda each: (-each.ended_at, each.run))

    def last_failed(self, job: int, until: int) -> tuple[str, int, str | None] | None:
        """(run, when, why) of the last run of a job that failed by then, whatever it named."""
        runs = _runs.c
        query = (
            select(runs.run_id, runs.ended_at, runs.error)
            .where(runs.state == STATE["FAIL"], runs.job == job, runs.ended_at <= until)
            .order_by(runs.ended_at.desc(), runs.run_id.desc())
            .limit(1)
        )
        found = self._connection.execute(query).first()
        return tuple(found) if found is not None else None

    def with_schema(self, jobs: Iterable[int], names: Collection[int], schema: bytes, at: int) -> str | None:
        """The run that first told a schema of what it wrote, at that time."""
        runs = _runs.c
        for job in jobs:
            on = and_(_outputs.c.run == runs.id, _outputs.c.dataset.in_(list(names)))
            query = (
                select(runs.run_id)
                .join(_outputs, and_(on, _outputs.c.schema == schema, _outputs.c.first_seen <= at))
                .where(runs.job == job, runs.first_seen <= at, runs.last_seen >= at)
                .order_by(runs.first_seen.desc(), runs.run_id)
                .limit(1)
            )
            if found := self._connection.execute(query).scalar():
                return str(found)
        return None

    def producers(self, datasets: Mapping[int, Collection[int]]) -> dict[int, str]:
        """Of each dataset (with its names), the producer that the newest run of the job that wrote it last named."""
        leader = {name: number for number, names in datasets.items() for name in names}
        last: dict[int, int] = {}
        for part in parts(leader):
            query = (
                select(_edges.c.dataset, _edges.c.job)
                .where(_edges.c.direction == "out", _edges.c.dataset.in_(part))
                .order_by(_edges.c.last_seen, _edges.c.job)
            )
            last.update({leader[dataset]: job for dataset, job in self._connection.execute(query)})
        runs, found = _runs.c, dict[int, str]()
        for dataset, job in last.items():
            newest = select(runs.producer).where(runs.job == job).order_by(runs.first_seen.desc()).limit(1)
            found[dataset] = self._connection.execute(newest).scalar() or ""
        return found

    def of_run(self, run: str) -> dict[str, Any] | None:
        """A run with its job's name and the run it belongs to."""
        found = self._connection.execute(_of_run(), {"asked": run}).mappings().first()
        return dict(found) if found is not None else None

    def touched(self, run: str) -> dict[str, set[int]]:
        """The datasets that a run read (`in`) and wrote (`out`), by the names it gave them."""
        number = select(_runs.c.id).where(_runs.c.run_id == run).scalar_subquery()
        return {
            side: set(
                self._connection.execute(select(table.c.dataset).where(table.c.run == number)).scalars()
            )
            for side, table in (("in", TABLE["inputs"]), ("out", _outputs))
        }


def _joined(one: Wrote, other: Wrote) -> Wrote:
    """What a run told of a dataset that it wrote under two names: of one of them perhaps no rows."""
    rows = [each.rows for each in (one, other) if each.rows is not None]
    schemas = [each.schema for each in (one, other) if each.schema is not None]
    names = tuple({*one.names, *other.names})
    return one._replace(rows=max(rows, default=None), schema=max(schemas, default=None), names=names)


# ---- statements that are asked for often, each made once: that takes longer than to have it answered


@cache
def _last_written() -> list[Select[Any]]:
    """The last runs of a job that wrote one of some names, for each way in which a run may have ended."""
    runs, root = _runs.c, _runs.alias("root").c
    job = bindparam("asked", type_=runs.job.type)
    until = bindparam("until", type_=runs.ended_at.type)
    names: BindParameter[Any] = bindparam("names", expanding=True)
    query = (
        select(
            runs.id,
            runs.run_id,
            root.run_id,
            runs.job,
            runs.ended_at,
            runs.last_seen,
            runs.state,
            runs.error,
            _outputs.c.rows,
            _outputs.c.schema,
            _outputs.c.dataset,
        )
        .select_from(_runs)
        .join(root.id.table, root.id == func.coalesce(runs.root, runs.parent, runs.id))
        .join(_outputs, and_(_outputs.c.run == runs.id, _outputs.c.dataset.in_(names)))
    )
    endings = (
        (runs.io.is_not(None), runs.ended_at),
        (runs.state == STATE["FAIL"], runs.ended_at),
        (runs.state == STATE["ABORT"], runs.ended_at),
        (runs.state == STATE["RUNNING"], runs.first_seen),
    )
    return [
        query.where(runs.job == job, which, clock <= until)
        .order_by(clock.desc(), runs.run_id.desc())
        .limit(bindparam("most", type_=Integer))
        for which, clock in endings
    ]


@cache
def _of_run() -> Select[Any]:
    runs, jobs, above = _runs.c, TABLE["jobs"].c, _runs.alias("above").c
    return (
        select(
            runs.run_id,
            runs.state,
            runs.started_at,
            runs.first_seen,
            runs.ended_at,
            runs.error,
            runs.producer,
            runs.job,
            jobs.namespace,
            jobs.name,
            above.run_id.label("parent"),
        )
        .select_from(_runs.join(TABLE["jobs"], jobs.id == runs.job, isouter=True))
        .join(above.id.table, above.id == runs.parent, isouter=True)
        .where(runs.run_id == bindparam("asked", type_=runs.run_id.type))
    )


@cache
def _several_schemas() -> Select[Any]:
    table, number = TABLE["schemas"].c, func.coalesce(_datasets.c.canonical, _datasets.c.id)
    every = (
        select(
            number.label("dataset"),
            table.schema,
            table.first_written,
            table.last_written,
            _datasets.c.namespace,
            _datasets.c.name,
        )
        .join(_datasets, _datasets.c.id == table.dataset)
        .where(table.first_written.is_not(None))
        .cte("every")
    )
    several = func.count(every.c.schema.distinct()) > 1
    many = select(every.c.dataset).group_by(every.c.dataset).having(several)
    return select(every).where(every.c.dataset.in_(many))


def parts(values: Iterable[Any]) -> Iterable[list[Any]]:
    """Values, some at a time."""
    listed = sorted(values)
    return (listed[start : start + PART] for start in range(0, len(listed), PART))
