"""store._schema: the tables of `facts` -> the tables of a database, and those that only a store has.

A reference is an integer there: `jobs`, `datasets` and `runs` number their identities, the others use the
numbers. A LATEST column `c` is two: `c_at`, its stamp, and `c`. What is settled from whole tables rather
than merged stands in columns and tables of its own (`SETTLED`).
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import (
    BigInteger,
    Column,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    PrimaryKeyConstraint,
    Table,
    Text,
    UniqueConstraint,
)
from sqlalchemy.types import TypeEngine

from headwater.facts import tables as facts
from headwater.facts.tables import TABLES, Rule, Type

PARTITIONED = ("inputs", "outputs", "io_facets", "run_facets", "assertions")
"""The tables that are kept by run: partitions of Postgres, so that old runs go at once."""

BY_RUN = [
    (name, part)
    for name, table in TABLES.items()
    for part, kind in table.key.items()
    if kind is Type.RUN and name != "runs"
]
"""Every table that is kept by run, and the column that says so."""

metadata = MetaData(naming_convention={"ix": "ix_%(table_name)s_%(column_0_N_name)s"})

Id = BigInteger().with_variant(Integer, "sqlite")  # only INTEGER is SQLite's row id
Words = Text().with_variant(Text(collation="C"), "postgresql")  # compared bytewise everywhere

_TYPES: dict[Type, TypeEngine[Any]] = {
    Type.INT: BigInteger(),
    Type.TEXT: Words,
    Type.DIGEST: LargeBinary(),
    Type.BODY: LargeBinary(),
    Type.JOB: Id,
    Type.DATASET: Id,
    Type.RUN: Id,
}
IDENTITIES = {"jobs": ("namespace", "name"), "datasets": ("namespace", "name"), "runs": ("run_id",)}
"""The tables that number an identity, and the columns that hold it."""
OWNER = {Type.JOB: "jobs", Type.DATASET: "datasets", Type.RUN: "runs"}
SETTLED: dict[str, dict[str, TypeEngine[Any]]] = {
    "jobs": {"last_state": Words},
    "runs": {"io": LargeBinary()},
    "datasets": {"alias_of": Id, "canonical": Id},
}
"""jobs.last_state: how the last run stands that has begun, none of a job that never ran; runs.io: the version a completed
run shows; datasets.canonical: the one that stands for it, where it is another."""


def _merged(table: facts.Table) -> list[Column[Any]]:
    columns: list[Column[Any]] = []
    for name, column in table.columns.items():
        if column.rule is Rule.LATEST:
            columns.append(Column(f"{name}_at", BigInteger()))
        columns.append(Column(name, _TYPES[column.type]))
    return columns


def _table(table: facts.Table) -> Table:
    if table.name in IDENTITIES:
        identity = IDENTITIES[table.name]
        return Table(
            table.name,
            metadata,
            Column("id", Id, primary_key=True, autoincrement=True),
            *(Column(name, Words, nullable=False) for name in identity),
            *_merged(table),
            *(Column(name, kind) for name, kind in SETTLED.get(table.name, {}).items()),
            UniqueConstraint(*identity),
        )
    return Table(
        table.name,
        metadata,
        *(Column(name, _TYPES[kind], nullable=False) for name, kind in table.key.items()),
        *_merged(table),
        PrimaryKeyConstraint(*table.key),
        sqlite_with_rowid=table.name == "contents",  # rows with a body are better kept outside the key's tree
        postgresql_partition_by="RANGE (run)" if table.name in PARTITIONED else None,
    )


TABLE: dict[str, Table] = {name: _table(table) for name, table in TABLES.items()}

log = Table(
    "log",
    metadata,
    Column("id", Id, primary_key=True, autoincrement=True),
    Column("digest", LargeBinary(), nullable=False, unique=True),
    Column("kind", Words, nullable=False),
    Column("time", BigInteger(), nullable=False),
    Column("received_at", BigInteger(), nullable=False),
    Column("body", LargeBinary(), nullable=False),
)
log_hours = Table(
    "log_hours",
    metadata,
    Column("kind", Words, primary_key=True),
    Column("hour", BigInteger(), primary_key=True, autoincrement=False),
    Column("entries", BigInteger(), nullable=False),
    sqlite_with_rowid=False,
)
"""How many entries the log has of each hour since 1970, by their time; triggers keep it."""
rejects = Table(
    "rejects",
    metadata,
    Column("id", Id, primary_key=True, autoincrement=True),
    Column("digest", LargeBinary(), nullable=False, unique=True),
    Column("path", Words, nullable=False),
    Column("reason", Words, nullable=False),
    Column("first_seen", BigInteger(), nullable=False),
    Column("last_seen", BigInteger(), nullable=False),
    Column("times", BigInteger(), nullable=False),
    Column("size", BigInteger(), nullable=False),
    Column("body", LargeBinary(), nullable=False),
)
documents = Table(
    "documents",
    metadata,
    Column("id", Id, primary_key=True, autoincrement=False),
    *(Column(name, Words, nullable=False) for name in ("label", "tail", "names", "words", "marks")),
    Column("slots", LargeBinary(), nullable=False),
)
"""The search index: what `_search` keeps of each job and dataset."""
meta = Table("meta", metadata, Column("key", Words, primary_key=True), Column("value", Words, nullable=False))
offsets = Table(
    "offsets",
    metadata,
    Column("consumer", Words, primary_key=True),
    Column("topic", Words, primary_key=True),
    Column("partition", BigInteger(), primary_key=True, autoincrement=False),
    Column("next", BigInteger(), nullable=False),
)

# Who may call the server. They stand outside the log: a copy of the log gives nobody access.
api_keys = Table(
    "api_keys",
    metadata,
    Column("id", Words, primary_key=True),
    Column("name", Words, nullable=False),
    Column("digest", LargeBinary(), nullable=False),
    Column("scopes", Words, nullable=False),
    Column("rate", BigInteger()),
    Column("created_at", BigInteger(), nullable=False),
    Column("created_by", Words, nullable=False),
    Column("expires_at", BigInteger()),
    Column("revoked_at", BigInteger()),
    Column("used_at", BigInteger()),
)
Index("ix_api_keys_name", api_keys.c.name)
key_audit = Table(
    "key_audit",
    metadata,
    Column("id", Id, primary_key=True, autoincrement=True),
    Column("at", BigInteger(), nullable=False),
    Column("by", Words, nullable=False),
    Column("what", Words, nullable=False),
    Column("key_id", Words, nullable=False),
    Column("name", Words, nullable=False),
    Column("detail", Words, nullable=False),
)
Index("ix_key_audit_at", key_audit.c.at)

_runs, _datasets = TABLE["runs"], TABLE["datasets"]
# As of a time, a job's edges are those of the last run before it that showed a version: one look-up here.
_shows: Any = {"sqlite_where": _runs.c.io.is_not(None), "postgresql_where": _runs.c.io.is_not(None)}
Index("ix_runs_job_ended", _runs.c.job, _runs.c.ended_at, **_shows)
Index("ix_runs_started_at", _runs.c.started_at)
Index("ix_runs_ended_at", _runs.c.ended_at, _runs.c.state)
# a job's newest runs; and, without a look at the runs themselves, how the last of them stands
Index("ix_runs_job_first_seen", _runs.c.job, _runs.c.first_seen, _runs.c.state)
Index("ix_edges_dataset", TABLE["edges"].c.dataset, TABLE["edges"].c.direction, TABLE["edges"].c.job)
# the last run that wrote a dataset before a time
Index("ix_outputs_dataset", TABLE["outputs"].c.dataset, TABLE["outputs"].c.first_seen)
Index("ix_symlinks_alias", TABLE["symlinks"].c.alias)
Index("ix_column_edges_fingerprint", TABLE["column_edges"].c.fingerprint)
Index("ix_column_sources_dataset", TABLE["column_sources"].c.dataset)
for _column in (_datasets.c.canonical, _datasets.c.alias_of):
    Index(None, _column, sqlite_where=_column.is_not(None), postgresql_where=_column.is_not(None))
# who wrote what a run read, and who read what it wrote: the last before a time, the first after it
Index("ix_outputs_written", TABLE["outputs"].c.dataset, TABLE["outputs"].c.last_seen)
Index("ix_inputs_read", TABLE["inputs"].c.dataset, TABLE["inputs"].c.first_seen)
Index("ix_documents_label", documents.c.label)
Index("ix_documents_tail", documents.c.tail)
Index("ix_log_time", log.c.time)
Index("ix_log_kind_time", log.c.kind, log.c.time)
_jobs = TABLE["jobs"]
_child: Any = {"sqlite_where": _jobs.c.parent.is_not(None), "postgresql_where": _jobs.c.parent.is_not(None)}
Index("ix_jobs_parent", _jobs.c.parent, **_child)
# the audit trail: the commands among a log of events
_commands: Any = {"sqlite_where": log.c.kind == "command", "postgresql_where": log.c.kind == "command"}
Index("ix_log_commands", log.c.id, **_commands)


# incidents: the tests and jobs that ever failed, and when each last passed, without a look at the rest; `failed` is in them
# though all have it, because SQLite reads every row for a column that its index does not hold
_assertions, _tests, _checks = TABLE["assertions"], TABLE["tests"], TABLE["checks"]
for _table_of, _parts in (
    (_assertions, ("dataset", "assertion", "field", "failed")),
    (_checks, ("dataset", "assertion", "field", "failed")),
    (_tests, ("test", "failed")),
):
    _failed: Any = {"sqlite_where": _table_of.c.failed == 1, "postgresql_where": _table_of.c.failed == 1}
    Index(f"ix_{_table_of.name}_failed", *(_table_of.c[part] for part in _parts), **_failed)
Index(
    "ix_assertions_test",
    _assertions.c.dataset,
    _assertions.c.assertion,
    _assertions.c.field,
    _assertions.c.failed_at,
)
Index("ix_runs_state", _runs.c.state, _runs.c.job, _runs.c.ended_at)

leases = Table(
    "leases",
    metadata,
    Column("name", Words, primary_key=True),
    Column("holder", Words, nullable=False),
    Column("until", BigInteger(), nullable=False),
)
hooks = Table(
    "hooks",
    metadata,
    Column("name", Words, primary_key=True),
    Column("url", Words, nullable=False),
    Column("secret", Words, nullable=False),
    Column("options", Words, nullable=False),
    Column("since", BigInteger(), nullable=False),
)
outbox = Table(
    "outbox",
    metadata,
    Column("id", Id, primary_key=True, autoincrement=True),
    Column("hook", Words, nullable=False),
    Column("key", Words, nullable=False),
    Column("event", Words, nullable=False),
    Column("body", LargeBinary(), nullable=False),
    Column("made_at", BigInteger(), nullable=False),
    Column("due_at", BigInteger(), nullable=False),
    Column("tries", BigInteger(), nullable=False),
    Column("state", Words, nullable=False),
    Column("fault", Words, nullable=False),
    UniqueConstraint("hook", "key"),
)
_waiting: Any = {"sqlite_where": outbox.c.state == "waiting", "postgresql_where": outbox.c.state == "waiting"}
Index("ix_outbox_due", outbox.c.due_at, **_waiting)

FOLDED = list(TABLE.values())
"""What a replay makes anew from the log."""
