"""store._passes: a time -> when each test and job that ever failed last passed before it, as a part of a statement.

Each is a table that `store._incidents` joins with what came after: the database finds all of it in one statement. The time, and
the jobs where only some are meant, are parameters: to put such a statement together takes longer than to have it answered, so that each is made once.
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import BindParameter, Select, bindparam, func, literal_column, select
from sqlalchemy.sql import ColumnElement
from sqlalchemy.sql.base import ReadOnlyColumnCollection

from headwater.facts.flows import NOW
from headwater.store._schema import TABLE
from headwater.store._written import STATE

_assertions, _runs, _datasets = TABLE["assertions"], TABLE["runs"], TABLE["datasets"]
Columns = ReadOnlyColumnCollection[str, Any]
# a name of a dataset, and the number of the one that stands for it
ALONE = select(_datasets.c.id.label("name"), _datasets.c.id.label("leader")).where(
    _datasets.c.canonical.is_(None)
)
GROUPED = select(_datasets.c.id.label("name"), _datasets.c.canonical.label("leader")).where(
    _datasets.c.canonical.is_not(None)
)
# written out: SQLite takes a partial index only for what it can read in the statement
FAILED: ColumnElement[int] = literal_column("1")
SINCE: BindParameter[int] = bindparam("since", type_=_runs.c.ended_at.type)
JOBS: BindParameter[Any] = bindparam("jobs", expanding=True)


def last_passes(names: Select[Any]) -> Columns:
    """Each test that ever failed, and when it last passed before SINCE under any name of its dataset; never: -NOW."""
    table, before = _assertions.c, _assertions.alias("before").c
    name, other = names.subquery("failing").c, names.subquery("passing").c
    ever = (
        select(table.dataset, table.assertion, table.field)
        .where(table.failed == FAILED)
        .distinct()
        .subquery("ever")
        .c
    )
    failed = (
        select(name.leader, ever.assertion, ever.field)
        .where(name.name == ever.dataset)
        .distinct()
        .cte("failed")
    )
    last = (
        select(before.failed_at)
        .where(
            before.dataset == other.name,
            before.assertion == failed.c.assertion,
            before.field == failed.c.field,
            before.failed == 0,
            before.failed_at < SINCE,
        )
        .order_by(before.failed_at.desc())
        .limit(1)
        .correlate(failed, other.name.table)
        .scalar_subquery()
    )
    newest = select(func.max(last)).where(other.leader == failed.c.leader).correlate(failed).scalar_subquery()
    cut = select(failed, func.coalesce(newest, -NOW).label("at"))
    # distinct though each is: so it is worked out once, not again wherever it is named
    return cut.distinct().cte("cut").c


def last_successes(*, some: bool = False) -> Columns:
    """Each job that ever failed, or each of JOBS that did, and when it last succeeded before SINCE; never: -NOW."""
    failed, before = _runs.alias("failed").c, _runs.alias("before").c
    which = failed.job.in_(JOBS) if some else failed.job.is_not(None)
    ever = select(failed.job).where(failed.state == STATE["FAIL"], which).distinct().subquery().c
    last = (
        select(func.max(before.ended_at))
        .where(before.state == STATE["COMPLETE"], before.job == ever.job, before.ended_at < SINCE)
        .scalar_subquery()
    )
    return select(ever.job, func.coalesce(last, -NOW).label("at")).subquery().c


def told_of(table: Columns, name: Columns, test: Columns) -> tuple[ColumnElement[bool], ...]:
    """The rows of a test under every name of its dataset."""
    return (
        name.leader == test.leader,
        table.dataset == name.name,
        table.assertion == test.assertion,
        table.field == test.field,
    )


def root_of(run: Columns) -> ColumnElement[int]:
    """What the attempts of a run share."""
    return func.coalesce(run.root, run.parent, run.id)
