"""facts.tables: nothing -> the tables of the house, their keys, and column by column how two rows merge.

Two rows with one key become one. MIN and MAX keep the smaller or larger value, LATEST the value with the
greatest (stamp, value). All three are associative, commutative and idempotent, so order, repeats and splits
of a stream cannot matter. A missing value never wins: an event that says nothing of a column leaves it alone.
A set (inputs, facets, tags …) is rows of its own table.

From this one table come the fold in memory, the SQL schema and its upserts, and the Spark aggregation.
Values that can tie are compared the same way in all of them: numbers as numbers, texts and digests
bytewise (the order of Python's `str` is that of its UTF-8), references by the identity they stand for.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Any


class Rule(Enum):
    """How two values of one column become one."""

    MIN = "min"
    MAX = "max"
    LATEST = "latest"


class Type(Enum):
    """What a key part or a column holds. JOB, DATASET and RUN are references: integers in a store."""

    INT = "int"
    TEXT = "text"
    DIGEST = "digest"
    BODY = "body"
    """Bytes kept once under their digest; a store may compress them."""
    JOB = "job"
    DATASET = "dataset"
    RUN = "run"


REFERENCES = frozenset({Type.JOB, Type.DATASET, Type.RUN})


@dataclass(frozen=True, slots=True)
class Column:
    """A column that is merged: its rule and its type."""

    rule: Rule
    type: Type = Type.INT


@dataclass(frozen=True, slots=True)
class Table:
    """A row type: its key, and its merged columns."""

    name: str
    key: dict[str, Type]
    columns: dict[str, Column]
    about: str

    def of(self, rule: Rule) -> list[str]:
        """The columns that merge by `rule`."""
        return [name for name, column in self.columns.items() if column.rule is rule]


Row = tuple[str, tuple[Any, ...], dict[str, Any]]
"""Table, key, column -> value; a LATEST value is (stamp, value)."""

_INT, _TEXT, _DIGEST = Type.INT, Type.TEXT, Type.DIGEST
_JOB, _DATASET, _RUN = Type.JOB, Type.DATASET, Type.RUN
_MIN, _MAX = Column(Rule.MIN), Column(Rule.MAX)
_SEEN = {"first_seen": _MIN, "last_seen": _MAX}
_SHOWN = {"hidden_at": _MAX, "shown_at": _MAX}


def _latest(kind: Type = Type.TEXT) -> Column:
    return Column(Rule.LATEST, kind)


_STATISTICS = {"rows": _latest(_INT), "bytes": _latest(_INT), "files": _latest(_INT)}

TABLES: dict[str, Table] = {
    table.name: table
    for table in (
        Table(
            "jobs",
            {"job": _JOB},
            {
                **_SEEN,
                **_SHOWN,
                "processing": _latest(),
                "integration": _latest(),
                "kind": _latest(),
                "parent": _latest(_JOB),
                "root": _latest(_JOB),
            },
            "a job, and the job that its runs say they belong to",
        ),
        Table(
            "runs",
            {"run": _RUN},
            {
                **_SEEN,
                "started_at": _MIN,
                "ended_at": _MAX,
                "job": _latest(_JOB),
                "state": _latest(),
                "nominal_start": _latest(_INT),
                "nominal_end": _latest(_INT),
                "parent": _latest(_RUN),
                "root": _latest(_RUN),
                "error": _latest(),
                "producer": _latest(),
            },
            "one execution of a job",
        ),
        Table(
            "datasets",
            {"dataset": _DATASET},
            {**_SEEN, **_SHOWN, "kind": _latest(), "source": _latest(), "lifecycle": _latest()},
            "a dataset by the name an event gave it",
        ),
        Table(
            "symlinks",
            {"dataset": _DATASET, "alias": _DATASET, "type": _TEXT},
            _SEEN,
            "another name of a dataset",
        ),
        Table(
            "inputs",
            {"run": _RUN, "dataset": _DATASET},
            {**_SEEN, **_STATISTICS, "version": _latest(), "schema": _latest(_DIGEST)},
            "what a run read",
        ),
        Table(
            "outputs",
            {"run": _RUN, "dataset": _DATASET},
            {
                **_SEEN,
                **_STATISTICS,
                "version": _latest(),
                "lifecycle": _latest(),
                "schema": _latest(_DIGEST),
                "columns": _latest(_DIGEST),
            },
            "what a run wrote",
        ),
        Table(
            "edges",
            {"job": _JOB, "direction": _TEXT, "dataset": _DATASET},
            _SEEN,
            "a job reads (`in`) or writes (`out`) a dataset",
        ),
        Table(
            "declared",
            {"job": _JOB, "at": _INT, "direction": _TEXT, "dataset": _DATASET},
            {},
            "what a job event said of a job's inputs and outputs, at its time",
        ),
        Table(
            "described",
            {"dataset": _DATASET, "at": _INT},
            {"schema": _latest(_DIGEST)},
            "that a dataset event, or a person, told of a dataset by itself, at its time",
        ),
        Table(
            "column_edges",
            {"job": _JOB, "dataset": _DATASET, "fingerprint": _DIGEST},
            _SEEN,
            "a job makes a dataset's columns as the set under that fingerprint tells",
        ),
        Table(
            "column_sources",
            {"fingerprint": _DIGEST, "dataset": _DATASET},
            {},
            "the datasets that a set of column relations reads",
        ),
        Table(
            "schemas",
            {"dataset": _DATASET, "schema": _DIGEST},
            {**_SEEN, "first_written": _MIN, "last_written": _MAX},
            "the schemas a dataset has had, and when a run wrote it with them; a reader may know only some columns",
        ),
        Table(
            "assertions",
            {"run": _RUN, "dataset": _DATASET, "assertion": _TEXT, "field": _TEXT},
            {**_SEEN, "failed": _latest(_INT), "severity": _latest(), "details": _latest()},
            "a data-quality check and how it ended",
        ),
        Table(
            "checks",
            {"dataset": _DATASET, "at": _INT, "assertion": _TEXT, "field": _TEXT},
            {"failed": Column(Rule.MAX), "severity": _latest(), "details": _latest()},
            "a data-quality check that no run told: of a dataset or job event, at its time",
        ),
        Table(
            "tests",
            {"run": _RUN, "test": _TEXT},
            {**_SEEN, "failed": _latest(_INT), "severity": _latest(), "details": _latest()},
            "a test that a run tells of without naming a dataset",
        ),
        Table("run_facets", {"run": _RUN, "name": _TEXT, "body": _DIGEST}, _SEEN, "facets of a run"),
        Table("job_facets", {"job": _JOB, "name": _TEXT, "body": _DIGEST}, _SEEN, "facets of a job"),
        Table(
            "dataset_facets",
            {"dataset": _DATASET, "name": _TEXT, "body": _DIGEST},
            _SEEN,
            "facets of a dataset; the latest is the current one, the others its history",
        ),
        Table(
            "io_facets",
            {"run": _RUN, "direction": _TEXT, "dataset": _DATASET, "name": _TEXT, "body": _DIGEST},
            _SEEN,
            "input and output facets",
        ),
        Table(
            "tags",
            {"kind": _TEXT, "owner": _TEXT, "field": _TEXT, "tag": _TEXT},
            {"live": _latest(_INT), "value": _latest(), "source": _latest()},
            "a tag on a job, dataset or field; live is 0 when it was taken off",
        ),
        Table(
            "said",
            {"kind": _TEXT, "owner": _TEXT, "field": _TEXT, "name": _TEXT},
            {"value": _latest()},
            "what people said of a thing by hand: a description, an owner; empty when taken back",
        ),
        Table(
            "named",
            {"kind": _TEXT, "name": _TEXT},
            {**_SEEN, **_SHOWN},
            "a namespace, source or tag that people spoke of by itself",
        ),
        Table(
            "verdicts",
            {"incident": _INT, "at": _INT, "by": _TEXT, "status": _TEXT},
            {"reason": _latest(), "note": _latest(), "until": _latest(_INT)},
            "what people decided on an incident; the status is empty where only a note was left",
        ),
        Table(
            "watches",
            {"pattern": _TEXT, "measure": _TEXT},
            {"rule": _latest()},
            "datasets whose row counts or freshness are held against their own history; empty when taken back",
        ),
        Table("aliases", {"match": _TEXT}, {"rule": _latest()}, "alias rules; empty when taken back"),
        Table(
            "contents",
            {"digest": _DIGEST},
            {"body": Column(Rule.MAX, Type.BODY)},
            "facets, schemas, column sets and job versions, once each, under their digest",
        ),
    )
}


def ref(namespace: str, name: str) -> str:
    """An identity as one text, the form in which references are kept and compared.

    >>> ref("s3://lake", "orders")
    's3://lake\\norders'
    """
    return f"{namespace if chr(10) not in namespace else namespace.replace(chr(10), ' ')}\n{name}"


def unref(reference: str) -> tuple[str, str]:
    """The namespace and name of a reference."""
    namespace, _, name = reference.partition("\n")
    return namespace, name
