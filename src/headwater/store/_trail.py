"""store._trail: a run, a dataset, a time -> who wrote it last, who read it then, and what the raw log tells.

A run has written a dataset when it last named it as an output, and has read one when it first named it as an input. What
it read is what the last run had written by then that did not fail. Each question is a look-up by index: its cost
does not follow the number of runs.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec
from sqlalchemy import Connection, Select, and_, func, or_, select
from sqlalchemy.sql import ColumnElement

from headwater.facts.flows import NOW
from headwater.store._driver import among, cursor_of, listed
from headwater.store._packing import unpack
from headwater.store._schema import TABLE, log

FAILED = ("6 FAIL", "5 ABORT")
_runs, _inputs, _outputs = TABLE["runs"].c, TABLE["inputs"].c, TABLE["outputs"].c
_done = or_(_runs.state.is_(None), _runs.state.not_in(FAILED))


_WRITES = (
    "SELECT o.last_seen, r.run_id, o.run FROM outputs AS o JOIN runs AS r ON r.id = o.run WHERE o.dataset = ?{}"
    " ORDER BY o.last_seen DESC, r.run_id DESC LIMIT "
)
_LAST_WRITE = (
    _WRITES.format(" AND o.last_seen <= ? AND o.run <> ? AND (r.state IS NULL OR r.state NOT IN (?, ?))")
    + "1"
)
_FAILED_WRITES = _WRITES.format(" AND o.last_seen > ? AND o.last_seen <= ? AND r.state IN (?, ?)") + "?"


class Write(NamedTuple):
    """A run wrote a dataset."""

    at: int
    run_id: str
    run: int


class Io(NamedTuple):
    """A run read or wrote a dataset: under which name, since when, until when."""

    run: int
    dataset: int
    first: int
    last: int
    rows: int | None
    version: str | None


class Trail:
    """Runs and what they read and wrote, at one moment of the store."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._groups: dict[int, tuple[int, tuple[int, ...]]] = {}

    def group(self, dataset: int) -> tuple[int, tuple[int, ...]]:
        """The number that a dataset is known under, and the numbers of all its names."""
        if dataset not in self._groups:
            table = TABLE["datasets"].c
            found = self._connection.execute(select(table.canonical).where(table.id == dataset)).scalar()
            leader = dataset if found is None else found
            query = select(table.id).where(table.canonical == leader)
            members = tuple(sorted({leader, *self._connection.execute(query).scalars()}))
            for each in members:
                self._groups[each] = (leader, members)
        return self._groups[dataset]

    def io(self, side: str, runs: Collection[int]) -> list[Io]:
        """What these runs read (`in`) or wrote (`out`)."""
        table = "inputs" if side == "in" else "outputs"
        cursor = cursor_of(self._connection)
        cursor.execute(
            f'SELECT run, dataset, first_seen, last_seen, "rows", version FROM {table} WHERE run IN {among()}'
            " ORDER BY run, dataset",
            (listed(runs),),
        )
        return [Io(*row) for row in cursor.fetchall()]

    @staticmethod
    def write_of(wrote: Io, run_id: str) -> Write:
        """What a run left behind, as `writer` would tell it."""
        return Write(wrote.last, run_id, wrote.run)

    def run_ids(self, runs: Collection[int]) -> dict[int, str]:
        """The ids of runs by their numbers."""
        cursor = cursor_of(self._connection)
        cursor.execute(f"SELECT id, run_id FROM runs WHERE id IN {among()}", (listed(runs),))
        return dict(cursor.fetchall())

    def writer(self, dataset: int, by: int, reader: int | None = None) -> Write | None:
        """The run that had written a dataset last by a time, of those that did not fail; the reader itself is not meant."""
        own = -1 if reader is None else reader
        found = [
            Write(*row)
            for member in self.group(dataset)[1]
            for row in self._rows(_LAST_WRITE, (member, by, own, *FAILED))
        ]
        return max(found, default=None)

    def failures(self, dataset: int, after: int, by: int, limit: int = 5) -> list[Write]:
        """The runs that meant to write a dataset between two times and failed, newest first."""
        found = [
            Write(*row)
            for member in self.group(dataset)[1]
            for row in self._rows(_FAILED_WRITES, (member, after, by, *FAILED, limit))
        ]
        return sorted(found, reverse=True)[:limit]

    def _rows(self, sql: str, parameters: Sequence[Any]) -> list[Any]:
        """A question that is asked once for each input of each run: the toolkit would cost more than the answer."""
        cursor = cursor_of(self._connection)
        cursor.execute(sql, parameters)
        return cursor.fetchall()

    def readers(self, dataset: int, write: Write, limit: int) -> list[Io]:
        """The runs that read what a run wrote: those whose last writer it was."""
        members = self.group(dataset)[1]
        later = sorted(
            each
            for member in members
            for each in self._writes(
                _outputs.dataset == member,
                or_(
                    _outputs.last_seen > write.at,
                    and_(_outputs.last_seen == write.at, _runs.run_id > write.run_id),
                ),
                _outputs.run != write.run,
                _done,
                limit=2,
            )
        )
        # a run that writes what it reads does not hide what came before from itself: so two later writes do
        until = later[1].at if len(later) > 1 else NOW
        query = (
            select(
                _inputs.run,
                _inputs.dataset,
                _inputs.first_seen,
                _inputs.last_seen,
                _inputs.rows,
                _inputs.version,
            )
            .where(
                _inputs.dataset.in_(members),
                _inputs.first_seen >= write.at,
                _inputs.first_seen <= until,
                _inputs.run != write.run,
            )
            .order_by(_inputs.first_seen, _inputs.run)
        )
        found: list[Io] = []
        for row in self._connection.execute(query.limit(limit * 4)):
            each = Io(*row)
            if self.writer(dataset, each.first, each.run) == write:
                found.append(each)
                if len(found) >= limit:
                    break
        return found

    def _writes(self, *where: ColumnElement[bool], limit: int) -> list[Write]:
        """Writes, the oldest first."""
        query = (
            select(_outputs.last_seen, _runs.run_id, _outputs.run)
            .join(TABLE["runs"], _runs.id == _outputs.run)
            .where(*where)
            .order_by(_outputs.last_seen, _runs.run_id)
            .limit(limit)
        )
        return [Write(*row) for row in self._connection.execute(query)]

    def last_writes(self, leader: Mapping[int, int]) -> dict[int, tuple[int, int]]:
        """For each dataset the run that named it last as an output, failed or not: (when, run)."""
        cursor = cursor_of(self._connection)
        cursor.execute(
            "SELECT d.id, (SELECT o.run FROM outputs AS o WHERE o.dataset = d.id"
            " ORDER BY o.last_seen DESC, o.run DESC LIMIT 1),"
            " (SELECT max(o.last_seen) FROM outputs AS o WHERE o.dataset = d.id)"
            f" FROM datasets AS d WHERE d.id IN {among()}",
            (listed(leader),),
        )
        found: dict[int, tuple[int, int]] = {}
        for dataset, run, at in cursor.fetchall():
            if run is not None:
                found[leader[dataset]] = max(found.get(leader[dataset], (at, run)), (at, run))
        return found

    def last_runs(self, jobs: Collection[int]) -> dict[int, int]:
        """For each job its newest run."""
        cursor = cursor_of(self._connection)
        cursor.execute(
            "SELECT j.id, (SELECT r.id FROM runs AS r WHERE r.job = j.id"
            " ORDER BY r.first_seen DESC, r.run_id DESC LIMIT 1)"
            f" FROM jobs AS j WHERE j.id IN {among()}",
            (listed(jobs),),
        )
        return {job: run for job, run in cursor.fetchall() if run is not None}

    def leading(self, jobs: Collection[int]) -> set[int]:
        """Those of the jobs that others call their parent."""
        cursor = cursor_of(self._connection)
        cursor.execute(
            f"SELECT j.id FROM jobs AS j WHERE j.id IN {among()}"
            " AND EXISTS (SELECT 1 FROM jobs AS c WHERE c.parent = j.id)",
            (listed(jobs),),
        )
        return {row[0] for row in cursor.fetchall()}

    def parts(self, job: int) -> list[int]:
        """The jobs that call this one their parent."""
        table = TABLE["jobs"].c
        return list(self._connection.execute(select(table.id).where(table.parent == job)).scalars())

    def children(self, run: int, job: int, limit: int = 200) -> list[int]:
        """The runs that call this run of this job their parent: looked for among those of the job's parts."""
        query = (
            select(_runs.id)
            .where(_runs.job.in_(self.parts(job)), _runs.parent == run)
            .order_by(_runs.first_seen)
            .limit(limit)
        )
        return list(self._connection.execute(query).scalars())

    def told_by_columns(self, jobs: Collection[int]) -> set[int]:
        """Those of the jobs that have told at least one column relation."""
        cursor = cursor_of(self._connection)
        cursor.execute(f"SELECT DISTINCT job FROM column_edges WHERE job IN {among()}", (listed(jobs),))
        return {row[0] for row in cursor.fetchall()}

    def active(self, after: int, until: int) -> list[int]:
        """The jobs that something was told of between two times, or may have been."""
        table = TABLE["jobs"].c
        query = select(table.id).where(table.last_seen > after, table.first_seen <= until)
        return list(self._connection.execute(query).scalars())

    # ---- schemas

    def brought(self, members: Sequence[int], schema: bytes, first: int) -> dict[str, Any] | None:
        """The run that wrote a dataset with a schema first, and its job."""
        jobs = TABLE["jobs"].c
        query = (
            select(_runs.run_id, jobs.namespace, jobs.name, _outputs.first_seen)
            .select_from(
                TABLE["outputs"].join(TABLE["runs"], _runs.id == _outputs.run)
                .join(TABLE["jobs"], jobs.id == _runs.job, isouter=True)
            )
            .where(_outputs.dataset.in_(members), _outputs.schema == schema, _outputs.last_seen >= first)
            .order_by(_outputs.last_seen, _runs.run_id)
            .limit(1)
        )  # fmt: skip
        found = self._connection.execute(query).mappings().first()
        return dict(found) if found else None

    def schema_moves(self, after: int, until: int) -> list[int]:
        """The datasets whose schema may differ between two times."""
        table = TABLE["schemas"].c
        new = select(table.dataset).where(table.first_seen > after, table.first_seen <= until)
        several = (
            select(table.dataset)
            .group_by(table.dataset)
            .having(func.count() > 1, func.max(table.last_seen) > after)
        )
        return sorted(
            {*self._connection.execute(new).scalars(), *self._connection.execute(several).scalars()}
        )

    def schema_at(self, members: Collection[int], at: int) -> tuple[bytes, list[dict[str, Any]]] | None:
        """The schema that a dataset had at a time: the one that was told last by then."""
        table, contents = TABLE["schemas"].c, TABLE["contents"].c
        rows = self._connection.execute(
            select(table.schema, table.first_seen, table.last_seen).where(
                table.dataset.in_(members), table.first_seen <= at
            )
        ).all()
        if not rows:
            return None
        stamps: dict[bytes, int] = {}
        for schema, first, last in rows:
            stamp = (
                last if last <= at else first
            )  # seen again later: when it was last seen before is looked up
            if last > at and len(rows) > 1:
                stamp = max(first, self._schema_seen(members, schema, at))
            stamps[schema] = max(stamps.get(schema, stamp), stamp)
        best = max((stamp, schema) for schema, stamp in stamps.items())[1]
        body = self._connection.execute(select(contents.body).where(contents.digest == best)).scalar_one()
        return best, msgspec.json.decode(unpack(body))

    def _schema_seen(self, members: Collection[int], schema: bytes, by: int) -> int:
        stamps = [0]
        for table in (_inputs, _outputs):
            query = select(func.max(table.schema_at)).where(
                table.dataset.in_(members), table.schema == schema, table.schema_at <= by
            )
            stamps.append(self._connection.execute(query).scalar() or 0)
        return max(stamps)

    # ---- the raw log

    def entries(
        self, after: tuple[int, int], since: int, until: int, limit: int
    ) -> Iterator[tuple[int, int, str, bytes]]:
        """Entries of the log in order of their times: number, time, kind, body; from a time and number on."""
        query: Select[Any] = (
            select(log.c.id, log.c.time, log.c.kind, log.c.body)
            .where(log.c.time >= max(since, after[0]), log.c.time <= until)
            .where(or_(log.c.time > after[0], log.c.id > after[1]))
            .order_by(log.c.time, log.c.id)
            .limit(limit)
        )
        return ((row[0], row[1], row[2], unpack(row[3])) for row in self._connection.execute(query))

    def datasets(self) -> Iterable[tuple[str, str]]:
        """The namespace and name of every dataset that an event told of."""
        table = TABLE["datasets"].c
        query = select(table.namespace, table.name).where(table.last_seen.is_not(None))
        return [(row[0], row[1]) for row in self._connection.execute(query)]

    def symlinks(self) -> list[tuple[str, str]]:
        """Every (dataset, alias) that an event told of, as references."""
        links, one, two = TABLE["symlinks"].c, TABLE["datasets"].alias(), TABLE["datasets"].alias()
        query = (
            select(one.c.namespace, one.c.name, two.c.namespace, two.c.name)
            .select_from(
                TABLE["symlinks"].join(one, one.c.id == links.dataset).join(two, two.c.id == links.alias)
            )
        )  # fmt: skip
        return [(f"{a}\n{b}", f"{c}\n{d}") for a, b, c, d in self._connection.execute(query)]


__all__ = ["FAILED", "Io", "Trail", "Write"]
