"""store._passes: a time -> when each test and job that ever failed last passed before it, as a part of a statement.

Each is a table that `store._incidents` joins with what came after: the database finds all of it in one statement.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from sqlalchemy import Select, func, literal, literal_column, select
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


def last_passes(names: Select[Any], since: int) -> Columns:
    """Each test that ever failed, and when it last passed before `since` under any name of its dataset."""
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
            before.failed_at < literal(since),
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


def last_successes(since: int, jobs: Collection[int] | None = None) -> Columns:
    """Each job that ever failed, and when it last succeeded before `since`."""
    failed, before = _runs.alias("failed").c, _runs.alias("before").c
    which = failed.job.in_(jobs) if jobs is not None else failed.job.is_not(None)
    ever = select(failed.job).where(failed.state == STATE["FAIL"], which).distinct().subquery().c
    last = (
        select(func.max(before.ended_at))
        .where(before.state == STATE["COMPLETE"], before.job == ever.job, before.ended_at < literal(since))
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
