"""store._incidents: a time -> how the tests and jobs that ever failed have ended since.

What never failed is not looked at: partial indexes name the rest. Of each test only what came after its last pass
before the time is read, so the cost follows what is wrong and how long it lasts, not how often things ran.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any, NamedTuple

import msgspec
from sqlalchemy import Connection, and_, exists, func, literal, or_, select
from sqlalchemy.sql import ColumnElement

from headwater.facts.flows import NOW
from headwater.store._schema import TABLE
from headwater.store._written import STATE, parts

_assertions, _checks, _tests, _runs = (TABLE[name] for name in ("assertions", "checks", "tests", "runs"))
_datasets, _jobs = TABLE["datasets"], TABLE["jobs"]


class Ended(NamedTuple):
    """How a test or a run ended once."""

    run: str | None
    root: str | None
    """What attempts share."""
    owner: int
    """A dataset's number, of a run or a test without one its job's."""
    test: str
    field: str
    failed: bool
    at: int
    since: int
    severity: str | None
    error: str | None = None


class Faults:
    """One moment of the store, asked for what went wrong."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def leaders(self, datasets: Collection[int]) -> dict[int, int]:
        """Each dataset -> the one that stands for it."""
        number = func.coalesce(_datasets.c.canonical, _datasets.c.id)
        return {
            row[0]: row[1]
            for part in parts(datasets)
            for row in self._connection.execute(
                select(_datasets.c.id, number).where(_datasets.c.id.in_(part))
            )
        }

    def members(self, datasets: Collection[int]) -> dict[int, set[int]]:
        """Every name of these datasets, by number; a dataset is a name of its own."""
        found: dict[int, set[int]] = {each: {each} for each in datasets}
        for part in parts(datasets):
            query = select(_datasets.c.canonical, _datasets.c.id).where(_datasets.c.canonical.in_(part))
            for leader, number in self._connection.execute(query):
                found[leader].add(number)
        return found

    def named(self, kind: str, numbers: Collection[int]) -> dict[int, tuple[str, str]]:
        """The namespaces and names of jobs or datasets."""
        table = (_datasets if kind == "dataset" else _jobs).c
        return {
            row[0]: (row[1], row[2])
            for part in parts(numbers)
            for row in self._connection.execute(
                select(table.id, table.namespace, table.name).where(table.id.in_(part))
            )
        }

    def assertions(self, since: int = NOW) -> list[Ended]:
        """The outcomes of data-quality tests that ever failed, each from its last pass before `since` on."""
        rows = self._since_last_pass(since)
        if again := _undecided(rows):  # the pass was tried again under the same root: it is not the last word
            rows = [each for each in rows if (each.owner, each.test, each.field) not in again]
            for test in again:
                rows += self._ended(_same(test))
        return rows + self._of_groups()

    def _since_last_pass(self, since: int) -> list[Ended]:
        """Of datasets with one name: all of it in one statement."""
        table, before = _assertions.c, _assertions.alias("before").c
        failed = (
            select(table.dataset, table.assertion, table.field)
            .join(_datasets, _datasets.c.id == table.dataset)
            .where(table.failed == 1, _datasets.c.canonical.is_(None))
            .distinct()
            .cte("failed")
        )
        last = (
            select(before.failed_at)
            .where(
                before.dataset == failed.c.dataset,
                before.assertion == failed.c.assertion,
                before.field == failed.c.field,
                before.failed == 0,
                before.failed_at < literal(since),
            )
            .order_by(before.failed_at.desc())
            .limit(1)
            .scalar_subquery()
        )
        cut = select(failed, func.coalesce(last, -NOW).label("at")).cte("cut")
        return self._ended(
            table.dataset == cut.c.dataset,
            table.assertion == cut.c.assertion,
            table.field == cut.c.field,
            table.failed_at >= cut.c.at,
        )

    def _of_groups(self) -> list[Ended]:
        """Of datasets with several names another may have passed: all of them, as far back as they go."""
        table, names = _assertions.c, _datasets.c
        query = select(names.canonical, table.assertion, table.field).join(
            _datasets, names.id == table.dataset
        )
        wanted = {
            tuple(row)
            for row in self._connection.execute(
                query.where(table.failed == 1, names.canonical.is_not(None)).distinct()
            )
        }
        leader = {
            name: number
            for number, every in self.members({row[0] for row in wanted}).items()
            for name in every
        }
        return [
            each
            for part in parts(leader)
            for each in self._ended(table.dataset.in_(part))
            if (leader[each.owner], each.test, each.field) in wanted
        ]

    def _ended(self, *where: ColumnElement[bool]) -> list[Ended]:
        table, root = _assertions.c, _runs.alias("root").c
        query = (
            select(
                _runs.c.run_id,
                root.run_id,
                table.dataset,
                table.assertion,
                table.field,
                table.failed,
                table.failed_at,
                table.first_seen,
                table.severity,
            )
            .where(*where)
            .where(
                _runs.c.id == table.run, root.id == func.coalesce(_runs.c.root, _runs.c.parent, _runs.c.id)
            )
        )
        return [_made(row) for row in self._connection.execute(query)]

    def details(
        self, run: str, names: Collection[int], test: str, field: str
    ) -> tuple[str | None, str | None]:
        """What was told of a test that a run made (JSON), and by which producer."""
        table = _assertions.c
        for told, where in (
            (
                table.details,
                and_(table.assertion == test, table.field == field, table.dataset.in_(list(names))),
            ),
            (_tests.c.details, _tests.c.test == test),
        ):
            query = select(told, _runs.c.producer).join(_runs, _runs.c.id == told.table.c.run)
            found = self._connection.execute(query.where(_runs.c.run_id == run, where).limit(1)).first()
            if found is not None:
                return found[0], found[1]
        return None, None

    def check_details(self, names: Collection[int], at: int, test: str, field: str) -> str | None:
        """What was told of a test that no run made (JSON)."""
        table = _checks.c
        query = select(table.details).where(
            table.dataset.in_(list(names)), table.at == at, table.assertion == test, table.field == field
        )
        return self._connection.execute(query.limit(1)).scalar()

    def checks(self) -> list[Ended]:
        """The outcomes of tests that no run told, of those that ever failed under any name of the dataset."""
        table = _checks.c
        failed = {
            row[0]
            for row in self._connection.execute(select(table.dataset).where(table.failed == 1).distinct())
        }
        names = {
            name for every in self.members(set(self.leaders(failed).values())).values() for name in every
        }
        columns = (table.dataset, table.assertion, table.field, table.failed, table.at, table.severity)
        return [
            Ended(None, None, row[0], row[1], row[2], bool(row[3]), row[4], row[4], row[5])
            for part in parts(names)
            for row in self._connection.execute(select(*columns).where(table.dataset.in_(part)))
        ]

    def tests(self) -> list[Ended]:
        """The outcomes of tests that runs tell of without a dataset, by job, of those that ever failed."""
        table, root = _tests.c, _runs.alias("root").c
        named = exists().where(_assertions.c.run == table.run, _assertions.c.assertion == table.test)
        failed = (
            select(_runs.c.job, table.test)
            .join(_runs, _runs.c.id == table.run)
            .where(table.failed == 1, _runs.c.job.is_not(None), ~named)
            .distinct()
            .subquery()
        )
        query = (
            select(
                _runs.c.run_id,
                root.run_id,
                _runs.c.job,
                table.test,
                literal(""),
                table.failed,
                table.failed_at,
                table.first_seen,
                table.severity,
            )
            .select_from(failed.join(_runs, _runs.c.job == failed.c.job))
            .join(_tests, and_(table.run == _runs.c.id, table.test == failed.c.test))
            .join(root.id.table, root.id == func.coalesce(_runs.c.root, _runs.c.parent, _runs.c.id))
            .where(~named)
        )
        return [_made(row) for row in self._connection.execute(query)]

    def runs(self, since: int = NOW) -> list[Ended]:
        """How the runs of jobs that ever failed ended, each job's from its last success before `since` on.

        A run whose child failed, or whose own test did, is left out: it is a consequence that its cause tells of. So is one with
        an error of its own, where its job is nothing but a test: dbt tells the test's failure as the error of its run.
        """
        rows = self._runs_since(since)
        if again := {key[0] for key in _undecided(row for _, row in rows)}:  # as for tests
            rows = [row for row in rows if row[1].owner not in again]
            rows += [row for part in parts(again) for row in self._runs_since(-NOW, part)]
        above, tested = self._consequences() if any(each.failed for _, each in rows) else (set(), set())
        testing = set(self._connection.execute(select(_jobs.c.id).where(_jobs.c.kind == "TEST")).scalars())
        return [
            each
            for number, each in rows
            if not each.failed
            or (number not in above and (number not in tested or (each.error and each.owner not in testing)))
        ]

    def _runs_since(self, since: int, jobs: Collection[int] | None = None) -> list[tuple[int, Ended]]:
        failed, before, root = _runs.alias("failed").c, _runs.alias("before").c, _runs.alias("root").c
        which = failed.job.in_(jobs) if jobs is not None else failed.job.is_not(None)
        ever = (
            select(failed.job.label("job")).where(failed.state == STATE["FAIL"], which).distinct().subquery()
        )
        last = (
            select(func.max(before.ended_at))
            .where(
                before.state == STATE["COMPLETE"], before.job == ever.c.job, before.ended_at < literal(since)
            )
            .scalar_subquery()
        )
        cut = select(ever.c.job, func.coalesce(last, -NOW).label("at")).subquery()
        found: list[tuple[int, Ended]] = []
        for state in ("FAIL", "COMPLETE"):
            on = and_(_runs.c.job == cut.c.job, _runs.c.state == STATE[state], _runs.c.ended_at >= cut.c.at)
            query = (
                select(_runs.c.id, _runs.c.run_id, root.run_id, _runs.c.job, _runs.c.ended_at, _runs.c.error)
                .select_from(cut.join(_runs, on))
                .join(root.id.table, root.id == func.coalesce(_runs.c.root, _runs.c.parent, _runs.c.id))
            )
            for number, run, top, job, ended, error in self._connection.execute(query):
                found.append(
                    (number, Ended(run, top, job, "", "", state == "FAIL", ended, ended, None, error))
                )
        return found

    def _consequences(self) -> tuple[set[int], set[int]]:
        """Runs whose children failed, or whose children's tests did; and runs whose own tests did."""
        runs, table = _runs.c, _assertions.c
        tested = set(
            self._connection.execute(select(table.run).where(table.failed == 1).distinct()).scalars()
        )
        tested |= set(self._connection.execute(select(_tests.c.run).where(_tests.c.failed == 1)).scalars())
        above = set(
            self._connection.execute(
                select(runs.parent).where(runs.state == STATE["FAIL"], runs.parent.is_not(None)).distinct()
            ).scalars()
        )
        for part in parts(tested):
            query = select(runs.parent).where(runs.id.in_(part), runs.parent.is_not(None))
            above |= set(self._connection.execute(query).scalars())
        return above, tested

    def tested(self) -> list[tuple[int, int, int, int]]:
        """(dataset, tests, how many of them failed, when the last was) of every dataset with a test."""
        table = _assertions.c
        query = select(
            table.dataset, func.count(), func.sum(table.failed), func.max(table.last_seen)
        ).group_by(table.dataset)
        more = select(_checks.c.dataset, func.count(), func.sum(_checks.c.failed), func.max(_checks.c.at))
        return [
            (number, count, int(failed or 0), last)
            for each in (query, more.group_by(_checks.c.dataset))
            for number, count, failed, last in self._connection.execute(each)
        ]

    def testers(self, dataset: int) -> str | None:
        """The producer of the newest test of a dataset."""
        table = _assertions.c
        query = select(_runs.c.producer).join(_runs, _runs.c.id == table.run).where(table.dataset == dataset)
        return self._connection.execute(query.order_by(table.last_seen.desc()).limit(1)).scalar()

    def verdicts(self) -> list[dict[str, Any]]:
        """What people decided, in no order."""
        return [dict(row) for row in self._connection.execute(select(TABLE["verdicts"])).mappings()]

    def watches(self) -> list[tuple[str, str, dict[str, Any]]]:
        """(pattern, measure, rule) of what is held against its own history."""
        table = TABLE["watches"].c
        found = self._connection.execute(
            select(table.pattern, table.measure, table.rule)
            .where(table.rule != "")
            .order_by(table.pattern, table.measure)
        )
        return [(pattern, measure, msgspec.json.decode(rule)) for pattern, measure, rule in found]

    def every_dataset(self) -> Iterable[tuple[int, str, str]]:
        """Every dataset that stands for itself."""
        table = _datasets.c
        alone = or_(table.canonical.is_(None), table.canonical == table.id)
        return [tuple(row) for row in self._connection.execute(select(table.id, table.namespace, table.name).where(alone))]  # fmt: skip


def _made(row: Any) -> Ended:
    run, root, owner, test, field, failed, at, since, severity = row
    return Ended(run, root, owner, test, field, bool(failed), at, since, severity)


def _same(test: tuple[Any, ...]) -> ColumnElement[bool]:
    table = _assertions.c
    return and_(table.dataset == test[0], table.assertion == test[1], table.field == test[2])


def _undecided(rows: Iterable[Ended]) -> set[tuple[int, str, str]]:
    """Tests whose oldest row is a pass that a later attempt under the same root stands above."""
    first: dict[tuple[int, str, str], Ended] = {}
    for each in rows:
        key = (each.owner, each.test, each.field)
        if key not in first or each.at < first[key].at:
            first[key] = each
    return {
        (each.owner, each.test, each.field)
        for each in rows
        if (one := first[each.owner, each.test, each.field]) is not each and one.root == each.root
    }
