"""store._history: a page of runs or versions -> its rows, with facets, inputs and outputs, in a few statements.

Every question takes a whole page of runs, jobs or datasets: how many statements there are never follows its length.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from sqlalchemy import Connection

from headwater.facts.contents import facet_of
from headwater.facts.definitions import NEW
from headwater.facts.versions import COMPLETE, RUNNING
from headwater.store import _versions as versions
from headwater.store._bodies import BODIES
from headwater.store._driver import among, cursor_of, listed
from headwater.store._trail import FAILED

Row = dict[str, Any]
_IDS = among()
_RUN = [
    "id",
    "run_id",
    "job",
    "first_seen",
    "last_seen",
    "started_at",
    "ended_at",
    "state",
    "nominal_start",
    "nominal_end",
    "parent",
    "error",
    "io",
]
_LINES = ", ".join(f"r.{name}" for name in _RUN)
_NEWEST = "ORDER BY {}first_seen DESC, {}run_id DESC"
"""A store's own number of a run tells when it came, not when it was."""
_FIRST = -(1 << 62)  # before any time


def _newest(job: str, count: int) -> str:
    """That `r` is one of the newest runs of a job; or of the same moment as the oldest of them.

    That one's time is looked up in the index, and all from there on are read. Asked whether `r` is among so many, Postgres would
    read all runs for each job.
    """
    oldest = f"SELECT x.first_seen FROM runs AS x WHERE x.job = {job} ORDER BY x.first_seen DESC LIMIT 1 OFFSET {count - 1}"
    return f"r.job = {job} AND r.first_seen >= coalesce(({oldest}), {_FIRST})"


class Told(NamedTuple):
    """A facet: its digest and its JSON."""

    digest: bytes
    body: bytes

    def read(self) -> dict[str, Any]:
        """The facet as a mapping."""
        return facet_of(self.digest, self.body)


Facets = dict[str, Told]


class Io(NamedTuple):
    """What a run read or wrote."""

    run: int
    dataset: int
    first_seen: int
    schema: bytes | None
    lifecycle: str | None


class Write(NamedTuple):
    """A version of a dataset: what a run wrote, or what was told of the dataset by itself (no run)."""

    dataset: int
    at: int
    run: int | None
    run_id: str | None
    schema: bytes | None
    lifecycle: str | None
    until: int
    """When it was last spoken of."""


class History:
    """Runs and versions, page by page."""

    def __init__(self, connection: Connection) -> None:
        self._cursor = cursor_of(connection)

    def rows(self, sql: str, *parameters: Any) -> Iterator[Any]:
        """The rows that a statement finds."""
        self._cursor.execute(sql, parameters)
        return iter(self._cursor.fetchall())

    # -- runs

    def run(self, run_id: str) -> Row | None:
        """One run by its id."""
        return next(
            (_row(row) for row in self.rows(f"SELECT {_LINES} FROM runs AS r WHERE r.run_id = ?", run_id)),
            None,
        )

    def runs(self, numbers: Collection[int]) -> dict[int, Row]:
        """Runs by their numbers."""
        found = self.rows(f"SELECT {_LINES} FROM runs AS r WHERE r.id IN {_IDS}", listed(numbers))
        return {row[0]: _row(row) for row in found}

    def page(self, job: int, limit: int, offset: int) -> tuple[list[Row], int]:
        """A job's runs, the newest first; and how many it has."""
        order = _NEWEST.format("r.", "r.")
        found = self.rows(
            f"SELECT {_LINES} FROM runs AS r WHERE r.job = ? {order} LIMIT ? OFFSET ?", job, limit, offset
        )
        rows = [_row(row) for row in found]
        return rows, next(self.rows("SELECT count(*) FROM runs WHERE job = ?", job))[0]

    def latest(self, jobs: Collection[int], limit: int) -> dict[int, list[Row]]:
        """The newest runs of each of these jobs; those that were made by hand and have not begun come last."""
        found: dict[int, list[Row]] = {}
        for row in self.rows(
            f"SELECT {_LINES} FROM jobs AS j JOIN runs AS r ON {_newest('j.id', limit)} WHERE j.id IN {_IDS}",
            listed(jobs),
        ):
            found.setdefault(row[2], []).append(_row(row))
        for job, rows in found.items():
            # of those of one moment that which `jobs.last_state` tells, so that a list by state shows this state
            rows.sort(
                key=lambda row: (row["first_seen"], row["state"] or RUNNING, row["run_id"]), reverse=True
            )
            newest = rows[:limit]  # more where some were first heard of in the same microsecond
            found[job] = sorted(newest, key=lambda row: bool(row["state"] == NEW))
        return found

    def io(self, runs: Collection[int]) -> dict[str, list[Io]]:
        """What these runs read (`in`) and wrote (`out`)."""
        asked = listed(runs)
        return {
            "in": [
                Io(row[0], row[1], row[2], row[3], None)
                for row in self.rows(
                    f'SELECT run, dataset, first_seen, "schema" FROM inputs WHERE run IN {_IDS}', asked
                )
            ],
            "out": [
                Io(*row)
                for row in self.rows(
                    f'SELECT run, dataset, first_seen, "schema", lifecycle FROM outputs WHERE run IN {_IDS}',
                    asked,
                )
            ],
        }

    # -- facets

    def facets(
        self,
        kind: str,
        owners: Collection[int],
        *,
        most: int | None = None,
        heads: Mapping[int, int] | None = None,
    ) -> dict[int, Facets]:
        """The current facets of jobs, datasets or runs; none whose JSON is longer than `most`.

        `heads` names for each owner the one that stands for it: their facets are one's.
        """
        heads = heads if heads is not None else {}
        found = self.rows(
            f"SELECT {kind}, name, body FROM {kind}_facets WHERE {kind} IN {_IDS} ORDER BY last_seen, body",
            listed(owners),
        )
        return self._facets(((heads.get(row[0], row[0]), row[1], row[2]) for row in found), most)

    def facets_until(self, datasets: Collection[int], moments: Collection[int]) -> dict[int, Facets]:
        """The facets of one dataset (all of its names) as they stood at each of these times."""
        every = [
            (name, bytes(body), first, last)
            for name, body, first, last in self.rows(
                f"SELECT name, body, first_seen, last_seen FROM dataset_facets WHERE dataset IN {_IDS}",
                listed(datasets),
            )
        ]
        chosen: list[tuple[int, str, bytes]] = []
        for moment in moments:
            best: dict[str, tuple[int, bytes]] = {}
            for name, body, first, last in every:
                if first <= moment:
                    best[name] = max(best.get(name, (0, b"")), (min(last, moment), body))
            chosen += [(moment, name, body) for name, (_, body) in best.items()]
        return self._facets(chosen, None)

    def io_facets(self, runs: Collection[int]) -> dict[tuple[int, str, int], Facets]:
        """Input and output facets of these runs: (run, direction, dataset) -> facets."""
        found = self.rows(
            f"SELECT run, direction, dataset, name, body FROM io_facets WHERE run IN {_IDS} ORDER BY last_seen, body",
            listed(runs),
        )
        return self._facets((((row[0], row[1], row[2]), row[3], row[4]) for row in found), None)

    def input_facets(self, heads: Mapping[int, int]) -> dict[int, Facets]:
        """The input facets that the last runs of their readers gave these datasets: checks, metrics."""
        found = self.rows(
            f"SELECT e.dataset, f.name, f.body FROM edges AS e JOIN runs AS r ON {_newest('e.job', 3)}"
            " JOIN io_facets AS f ON f.run = r.id AND f.direction = 'in' AND f.dataset = e.dataset"
            f" WHERE e.dataset IN {_IDS} AND e.direction = 'in' ORDER BY f.last_seen, f.body",
            listed(heads),
        )
        return self._facets(((heads[row[0]], row[1], row[2]) for row in found), None)

    def _facets(self, rows: Iterable[tuple[Any, str, bytes]], most: int | None) -> dict[Any, Facets]:
        latest: dict[Any, dict[str, bytes]] = {}
        for owner, name, digest in rows:
            latest.setdefault(owner, {})[name] = digest
        bodies = self.contents({digest for named in latest.values() for digest in named.values()})
        return {
            owner: {
                name: told
                for name, digest in sorted(named.items())
                if digest in bodies
                and (most is None or len(bodies[digest]) <= most)
                and not _deleted(told := Told(digest, bodies[digest]))
            }
            for owner, named in latest.items()
        }

    def contents(self, digests: Collection[bytes]) -> dict[bytes, bytes]:
        """The bodies under these digests."""
        return BODIES.load(self._cursor, digests)

    # -- versions

    def writes(self, datasets: Collection[int], limit: int, offset: int) -> tuple[list[Write], int]:
        """The versions of one dataset (all of its names), the newest first; and how many there are."""
        asked = listed(datasets)
        if len(datasets) > 1:
            total = next(self.rows(f"SELECT count(*) FROM ({versions.WRITES_ONCE}) AS w", asked, asked))[0]
        else:
            total = sum(
                next(self.rows(f"SELECT count(*) FROM {table} WHERE dataset IN {_IDS}", asked))[0]
                for table in ("outputs", "described")
            )
        select = versions.WRITES_ONCE if len(datasets) > 1 else versions.WRITES
        found = self.rows(f"{select} ORDER BY 2 DESC, 4 DESC LIMIT ? OFFSET ?", asked, asked, limit, offset)
        return [Write(*row)._replace(run_id=row[3] or None) for row in found], total

    def current(self, leader: dict[int, int]) -> dict[int, Write]:
        """The current version of datasets, given every name of theirs with the one that stands for it.

        It is the newest that a completed run wrote or that was told by itself; else the newest that any run wrote.
        """
        best: dict[int, Write] = {}

        def choose(sql: str, names: Iterable[int]) -> None:
            for row in self.rows(sql, listed(names)):
                write = Write(*row)
                have = best.get(leader[write.dataset])
                if have is None or _rank(write) > _rank(have):
                    best[leader[write.dataset]] = write

        choose(versions.CURRENT.format(also=f"AND x.state = '{COMPLETE}'"), leader)
        choose(versions.DESCRIBED, leader)
        choose(versions.CURRENT.format(also=""), [name for name, head in leader.items() if head not in best])
        return best

    def seen(self, dataset: int, first: int, schema: bytes | None, last: int | None) -> Write:
        """The version of a dataset that nobody wrote: that it was seen."""
        return Write(dataset, first, None, "", schema, None, first if last is None else last)

    def read_versions(self, inputs: Collection[Io]) -> dict[tuple[int, int], Write]:
        """(run, dataset) -> the version that the run read: the newest when it began to; of a failed run, if there is no other."""
        runs = {each.run for each in inputs}
        if not runs:
            return {}
        found: dict[tuple[int, int], Write] = {}

        def choose(asked: Iterable[int], *statements: str) -> None:
            known = set(found)
            for sql in statements:
                for reader, dataset, *rest in self.rows(sql, listed(asked)):
                    write, key = Write(*rest), (reader, dataset)
                    if key not in known and (key not in found or _rank(write) > _rank(found[key])):
                        found[key] = write

        done = f"AND (x.state IS NULL OR x.state NOT IN {FAILED})"
        choose(
            runs, versions.READ.format(also=done), versions.READ_ALIAS.format(also=done), versions.READ_TOLD
        )
        left = {(each.run, each.dataset) for each in inputs if (each.run, each.dataset) not in found}
        written = self._written(
            {dataset for _, dataset in left}
        )  # most of them are sources, which no run writes
        if again := {run for run, dataset in left if dataset in written}:
            choose(again, versions.READ.format(also=""), versions.READ_ALIAS.format(also=""))
        return found

    def _written(self, datasets: Collection[int]) -> set[int]:
        """Those that some job writes, under any of their names."""
        asked = listed(datasets)
        return {row[0] for row in self.rows(versions.WRITTEN, asked, asked)} if datasets else set()

    def schemas(self, heads: Mapping[int, int]) -> dict[int, bytes]:
        """The schema that each of these datasets was last seen with."""
        found = self.rows(
            f'SELECT dataset, "schema" FROM schemas WHERE dataset IN {_IDS} ORDER BY last_seen, "schema"',
            listed(heads),
        )
        return {heads[row[0]]: bytes(row[1]) for row in found}

    def shown(self, job: int) -> list[tuple[bytes, int, int, int]]:
        """(version, when first shown, when last, how often) of a job, by the runs that completed and named datasets."""
        return [
            tuple(row)
            for row in self.rows(
                "SELECT io, min(ended_at), max(ended_at), count(*) FROM runs WHERE job = ? AND io IS NOT NULL"
                " GROUP BY io",
                job,
            )
        ]

    def showing(self, job: int, version: bytes) -> Row | None:
        """The newest run that showed a version."""
        found = self.rows(
            f"SELECT {_LINES} FROM runs AS r WHERE r.job = ? AND r.io = ? ORDER BY r.ended_at DESC, r.run_id DESC LIMIT 1",
            job,
            version,
        )
        return next((_row(row) for row in found), None)

    def unsettled(self, job: int, limit: int) -> list[Row]:
        """The newest runs that show no version of their own: failed, running, or without datasets."""
        order = _NEWEST.format("r.", "r.")
        found = self.rows(
            f"SELECT {_LINES} FROM runs AS r WHERE r.job = ? AND r.io IS NULL {order} LIMIT ?", job, limit
        )
        return [_row(row) for row in found]

    def declared(self, job: int) -> dict[int, dict[str, list[int]]]:
        """What job events said of a job's inputs and outputs: time -> direction -> datasets."""
        found: dict[int, dict[str, list[int]]] = {}
        for at, direction, dataset in self.rows(
            "SELECT at, direction, dataset FROM declared WHERE job = ?", job
        ):
            found.setdefault(at, {"in": [], "out": []})[direction].append(dataset)
        return found


def _rank(write: Write) -> tuple[int, str, bytes, str]:
    """The newest is greatest; of one run's rows for one dataset, what they say decides."""
    return write.at, write.run_id or "", bytes(write.schema or b""), write.lifecycle or ""


def _row(row: Any) -> Row:
    return dict(zip(_RUN, row, strict=True))


def _deleted(told: Told) -> bool:
    return b'"_deleted"' in told.body and told.read().get("_deleted") is True
