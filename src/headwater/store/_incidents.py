"""store._incidents: a time -> how the tests and jobs that ever failed have ended since.

What never failed is not looked at: partial indexes name the rest. Of each test only what came after its last pass
before the time is read, so the cost follows what is wrong and how long it lasts, not how often things ran.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from itertools import groupby
from operator import itemgetter
from typing import Any, NamedTuple

import msgspec
from sqlalchemy import Connection, Select, and_, func, select

from headwater.facts.flows import NOW
from headwater.store._endings import (
    attempts_before,
    runs_before,
    runs_since,
    runs_since_of_some,
    since_last_pass,
    tests_of_jobs,
    told_in,
)
from headwater.store._passes import ALONE, FAILED, GROUPED
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
        """The outcomes of data-quality tests that ever failed, each from its last pass before `since` on.

        A pass counts for every name of its dataset. Of a failure all attempts under its root are told, those before the pass, too.
        """
        rows = [
            each for names in (ALONE, GROUPED) for each in self._told(since_last_pass(names), since=since)
        ]
        leaders = self.leaders({each.owner for each in rows})
        again = _undecided((leaders[each.owner], each) for each in rows)
        rows = [each for each in rows if (leaders[each.owner], each.test, each.field) not in again]
        members, table = self.members({leader for leader, _, _ in again}), _assertions.c
        for leader, test, field in again:
            rows += self._told(
                told_in(table.dataset.in_(members[leader]), table.assertion == test, table.field == field)
            )
        before = [
            each for names in (ALONE, GROUPED) for each in self._told(attempts_before(names), since=since)
        ]
        return rows + before

    def _told(self, statement: Select[Any], **values: Any) -> list[Ended]:
        return [_made(row) for row in self._connection.execute(statement, values)]

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
            for row in self._connection.execute(
                select(table.dataset).where(table.failed == FAILED).distinct()
            )
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
        return self._told(tests_of_jobs())

    def runs(self, since: int = NOW) -> list[Ended]:
        """How the runs of jobs that ever failed ended, each job's from its last success before `since` on.

        A run whose child failed, or whose own test did, is left out: it is a consequence that its cause tells of. So is one with
        an error of its own, where its job is nothing but a test: dbt tells the test's failure as the error of its run.
        """
        rows = self._ended_runs(runs_since, since=since)
        if again := {key[0] for key in _undecided((row.owner, row) for _, row in rows)}:
            rows = [row for row in rows if row[1].owner not in again]
            for part in parts(again):
                rows += self._ended_runs(runs_since_of_some, since=-NOW, jobs=part)
        rows += self._ended_runs(runs_before, since=since)
        above, tested = self._consequences() if any(each.failed for _, each in rows) else (set(), set())
        testing = set(self._connection.execute(select(_jobs.c.id).where(_jobs.c.kind == "TEST")).scalars())
        return [
            each
            for number, each in rows
            if not each.failed
            or (number not in above and (number not in tested or (each.error and each.owner not in testing)))
        ]

    def _ended_runs(self, statement: Callable[[str], Select[Any]], **values: Any) -> list[tuple[int, Ended]]:
        return [
            (number, Ended(run, top, job, "", "", state == "FAIL", ended, ended, None, error))
            for state in ("FAIL", "COMPLETE")
            for number, run, top, job, ended, error in self._connection.execute(statement(state), values)
        ]

    def _consequences(self) -> tuple[set[int], set[int]]:
        """Runs whose children failed, or whose children's tests did; and runs whose own tests did."""
        runs, table = _runs.c, _assertions.c
        tested = set(
            self._connection.execute(select(table.run).where(table.failed == FAILED).distinct()).scalars()
        )
        tested |= set(
            self._connection.execute(select(_tests.c.run).where(_tests.c.failed == FAILED)).scalars()
        )
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

    def every_dataset(self) -> Iterable[tuple[int, list[tuple[str, str]]]]:
        """Every dataset that stands for itself, with all its names, its own first."""
        table = _datasets.c
        leader = func.coalesce(table.canonical, table.id)
        query = select(leader, table.namespace, table.name).order_by(leader, table.id != leader, table.id)
        rows = self._connection.execute(query)
        return [
            (number, [(row[1], row[2]) for row in names]) for number, names in groupby(rows, itemgetter(0))
        ]


def _made(row: Any) -> Ended:
    run, root, owner, test, field, failed, at, since, severity = row
    return Ended(run, root, owner, test, field, bool(failed), at, since, severity)


def _undecided(rows: Iterable[tuple[int, Ended]]) -> set[tuple[int, str, str]]:
    """Tests whose last pass was tried again under the same root, and so is not the last word."""
    tests: dict[tuple[int, str, str], list[Ended]] = {}
    for leader, each in rows:
        tests.setdefault((leader, each.test, each.field), []).append(each)
    found = set()
    for test, told in tests.items():
        first = min(each.at for each in told)
        passed = {each.root for each in told if each.at == first and not each.failed}
        if any(each.root in passed and (each.failed or each.at > first) for each in told):
            found.add(test)
    return found
