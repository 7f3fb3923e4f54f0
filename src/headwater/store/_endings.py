"""store._endings: tests and jobs that ever failed -> the statements that tell how each has ended since.

Each is made once: to put one together takes longer than to have it answered.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from sqlalchemy import Select, and_, exists, literal, select
from sqlalchemy.sql import ColumnElement

from headwater.facts.flows import NOW
from headwater.store._passes import FAILED, last_passes, last_successes, root_of, told_of
from headwater.store._schema import TABLE
from headwater.store._written import STATE

_assertions, _tests, _runs = (TABLE[name] for name in ("assertions", "tests", "runs"))


@cache
def since_last_pass(names: Select[Any]) -> Select[Any]:
    """Of each test that ever failed: how it ended from its last pass before SINCE on."""
    cut, name, table = last_passes(names), names.subquery("name").c, _assertions.c
    return told_in(*told_of(table, name, cut), table.failed_at >= cut.at)


@cache
def attempts_before(names: Select[Any]) -> Select[Any]:
    """Of failures since the last pass: what else was told under their roots before it."""
    cut, name, table = last_passes(names), names.subquery("name").c, _assertions.c
    late, run = _assertions.alias("late").c, _runs.alias("run").c
    failed = (
        select(cut.leader, cut.assertion, cut.field, cut.at, root_of(run).label("root"))
        .where(*told_of(late, name, cut), late.failed == FAILED, late.failed_at >= cut.at, run.id == late.run)
        .where(cut.at > -NOW)  # where nothing ever passed, nothing was before
        .distinct()
        .cte("again")
        .c
    )
    other = names.subquery("other").c
    return told_in(
        *told_of(table, other, failed), table.failed_at < failed.at, root_of(_runs.c) == failed.root
    )


def told_in(*where: ColumnElement[bool]) -> Select[Any]:
    """How tests of datasets ended, of those rows."""
    table, root = _assertions.c, _runs.alias("root").c
    return (
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
        .where(_runs.c.id == table.run, root.id == root_of(_runs.c))
    )


@cache
def tests_of_jobs() -> Select[Any]:
    """How tests ended that runs tell of without a dataset, of those that ever failed."""
    table, root = _tests.c, _runs.alias("root").c
    named = exists().where(_assertions.c.run == table.run, _assertions.c.assertion == table.test)
    failed = (
        select(_runs.c.job, table.test)
        .join(_runs, _runs.c.id == table.run)
        .where(table.failed == FAILED, _runs.c.job.is_not(None), ~named)
        .distinct()
        .subquery()
    )
    return (
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
        .join(root.id.table, root.id == root_of(_runs.c))
        .where(~named)
    )


@cache
def runs_since(state: str) -> Select[Any]:
    """The runs in a state of each job that ever failed, from its last success before SINCE on."""
    cut = last_successes()
    return _runs_in(state, _runs.c.job == cut.job, _runs.c.ended_at >= cut.at)


@cache
def runs_since_of_some(state: str) -> Select[Any]:
    """The same, of JOBS alone."""
    cut = last_successes(some=True)
    return _runs_in(state, _runs.c.job == cut.job, _runs.c.ended_at >= cut.at)


@cache
def runs_before(state: str) -> Select[Any]:
    """Of runs that failed since the last success: what else of their jobs ended under their roots before it."""
    cut, late = last_successes(), _runs.alias("late").c
    failed = (
        select(cut.job, cut.at, root_of(late).label("root"))
        .where(late.job == cut.job, late.state == STATE["FAIL"], late.ended_at >= cut.at, cut.at > -NOW)
        .distinct()
        .cte("again")
        .c
    )
    return _runs_in(
        state, _runs.c.job == failed.job, _runs.c.ended_at < failed.at, root_of(_runs.c) == failed.root
    )


def _runs_in(state: str, *where: ColumnElement[bool]) -> Select[Any]:
    root = _runs.alias("root").c
    return select(
        _runs.c.id, _runs.c.run_id, root.run_id, _runs.c.job, _runs.c.ended_at, _runs.c.error
    ).where(*where, _runs.c.state == STATE[state], root.id == root_of(_runs.c))
