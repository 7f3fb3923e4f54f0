"""store.migrations.versions.v0002_backend: the first format -> what a server for years keeps besides."""

from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"

_WORDS = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
_ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
_TIMES = ("first_seen", "last_seen", "hidden_at", "shown_at")


def upgrade() -> None:
    """Add the tables and indexes of the backend."""
    _partition()  # first: what follows is made on the whole tables, and so on each partition
    op.create_table(
        "said",
        sa.Column("kind", _WORDS, nullable=False),
        sa.Column("owner", _WORDS, nullable=False),
        sa.Column("field", _WORDS, nullable=False),
        sa.Column("name", _WORDS, nullable=False),
        sa.Column("value_at", sa.BigInteger(), nullable=True),
        sa.Column("value", _WORDS, nullable=True),
        sa.PrimaryKeyConstraint("kind", "owner", "field", "name"),
        sqlite_with_rowid=False,
    )
    commands = sa.text("kind = 'command'")
    op.create_index("ix_log_commands", "log", ["id"], sqlite_where=commands, postgresql_where=commands)
    op.create_table(
        "offsets",
        sa.Column("consumer", _WORDS, nullable=False),
        sa.Column("topic", _WORDS, nullable=False),
        sa.Column("partition", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("next", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("consumer", "topic", "partition"),
    )
    _keys()
    _catalogue()
    _incidents()
    _search()


def _keys() -> None:
    """Who may call the server, and what was done to their keys."""
    op.create_table(
        "api_keys",
        sa.Column("id", _WORDS, nullable=False),
        sa.Column("name", _WORDS, nullable=False),
        sa.Column("digest", sa.LargeBinary(), nullable=False),
        sa.Column("scopes", _WORDS, nullable=False),
        sa.Column("rate", sa.BigInteger(), nullable=True),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("created_by", _WORDS, nullable=False),
        sa.Column("expires_at", sa.BigInteger(), nullable=True),
        sa.Column("revoked_at", sa.BigInteger(), nullable=True),
        sa.Column("used_at", sa.BigInteger(), nullable=True),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index("ix_api_keys_name", "api_keys", ["name"])
    op.create_table(
        "key_audit",
        sa.Column("id", _ID, nullable=False, autoincrement=True),
        sa.Column("at", sa.BigInteger(), nullable=False),
        sa.Column("by", _WORDS, nullable=False),
        sa.Column("what", _WORDS, nullable=False),
        sa.Column("key_id", _WORDS, nullable=False),
        sa.Column("name", _WORDS, nullable=False),
        sa.Column("detail", _WORDS, nullable=False),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index("ix_key_audit_at", "key_audit", ["at"])


_BY_RUN = ("inputs", "outputs", "io_facets", "run_facets", "assertions")


def _partition() -> None:
    """On Postgres, what is kept by run becomes partitions; the table of before is the first of them."""
    connection = op.get_bind()
    if connection.dialect.name != "postgresql":
        return
    (last,) = connection.execute(sa.text("SELECT coalesce(max(id), 0) FROM runs")).one()
    upto = (last // 50_000 + 1) * 50_000
    for table in _BY_RUN:
        first = f"{table}_to_{upto}"
        op.execute(f"ALTER TABLE {table} RENAME TO {first}")
        op.execute(f"ALTER TABLE {first} RENAME CONSTRAINT {table}_pkey TO {first}_pkey")
        op.execute(f"CREATE TABLE {table} (LIKE {first} INCLUDING ALL) PARTITION BY RANGE (run)")
        op.execute(f"ALTER TABLE {table} ATTACH PARTITION {first} FOR VALUES FROM (MINVALUE) TO ({upto})")
    connection.execute(
        sa.text("INSERT INTO meta (key, value) VALUES ('partitions', :upto)"), {"upto": str(upto)}
    )


def _catalogue() -> None:
    """What is told of things by themselves, and what makes the lists of a catalogue quick."""
    op.create_table(
        "described",
        sa.Column("dataset", _ID, nullable=False),
        sa.Column("at", sa.BigInteger(), nullable=False),
        sa.Column("schema_at", sa.BigInteger(), nullable=True),
        sa.Column("schema", sa.LargeBinary(), nullable=True),
        sa.PrimaryKeyConstraint("dataset", "at"),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "named",
        sa.Column("kind", _WORDS, nullable=False),
        sa.Column("name", _WORDS, nullable=False),
        *(sa.Column(each, sa.BigInteger(), nullable=True) for each in _TIMES),
        sa.PrimaryKeyConstraint("kind", "name"),
        sqlite_with_rowid=False,
    )
    op.create_index("ix_outputs_dataset", "outputs", ["dataset", "first_seen"])
    op.create_index("ix_runs_started_at", "runs", ["started_at"])
    op.create_index("ix_runs_ended_at", "runs", ["ended_at", "state"])
    op.create_index("ix_log_kind_time", "log", ["kind", "time"])
    child = sa.text("parent IS NOT NULL")
    op.create_index("ix_jobs_parent", "jobs", ["parent"], sqlite_where=child, postgresql_where=child)
    op.drop_index("ix_runs_job_first_seen", "runs")
    op.create_index("ix_runs_job_first_seen", "runs", ["job", "first_seen", "state"])


def _incidents() -> None:
    number = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
    told: list[tuple[str, Any]] = [("failed", sa.BigInteger()), ("severity", _WORDS), ("details", _WORDS)]

    def latest(names: list[tuple[str, Any]]) -> list[sa.Column[Any]]:
        return [
            column
            for name, kind in names
            for column in (sa.Column(f"{name}_at", sa.BigInteger()), sa.Column(name, kind))
        ]

    for column in ("first_written", "last_written"):
        op.add_column("schemas", sa.Column(column, sa.BigInteger(), nullable=True))
    # who wrote with a schema is known of each run that did; exact after the next replay
    written = 'FROM outputs AS o WHERE o.dataset = schemas.dataset AND o."schema" = schemas."schema"'
    op.execute(
        f"UPDATE schemas SET first_written = (SELECT min(o.first_seen) {written}),"
        f" last_written = (SELECT max(o.schema_at) {written})"
    )
    op.create_table(
        "checks",
        sa.Column("dataset", number, nullable=False),
        sa.Column("at", sa.BigInteger(), nullable=False),
        sa.Column("assertion", _WORDS, nullable=False),
        sa.Column("field", _WORDS, nullable=False),
        sa.Column("failed", sa.BigInteger()),
        *latest(told[1:]),
        sa.PrimaryKeyConstraint("dataset", "at", "assertion", "field"),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "tests",
        sa.Column("run", number, nullable=False),
        sa.Column("test", _WORDS, nullable=False),
        sa.Column("first_seen", sa.BigInteger()),
        sa.Column("last_seen", sa.BigInteger()),
        *latest(told),
        sa.PrimaryKeyConstraint("run", "test"),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "verdicts",
        sa.Column("incident", sa.BigInteger(), nullable=False),
        sa.Column("at", sa.BigInteger(), nullable=False),
        sa.Column("by", _WORDS, nullable=False),
        sa.Column("status", _WORDS, nullable=False),
        *latest([("reason", _WORDS), ("note", _WORDS), ("until", sa.BigInteger())]),
        sa.PrimaryKeyConstraint("incident", "at", "by", "status"),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "watches",
        sa.Column("pattern", _WORDS, nullable=False),
        sa.Column("measure", _WORDS, nullable=False),
        *latest([("rule", _WORDS)]),
        sa.PrimaryKeyConstraint("pattern", "measure"),
        sqlite_with_rowid=False,
    )
    failed = sa.text("failed = 1")
    for table, parts in (
        ("assertions", ["dataset", "assertion", "field"]),
        ("checks", ["dataset", "assertion", "field"]),
        ("tests", ["test"]),
    ):
        op.create_index(f"ix_{table}_failed", table, parts, sqlite_where=failed, postgresql_where=failed)
    op.create_index("ix_assertions_test", "assertions", ["dataset", "assertion", "field", "failed_at"])
    op.create_index("ix_runs_state", "runs", ["state", "job", "ended_at"])
    op.create_table(
        "leases",
        sa.Column("name", _WORDS, primary_key=True),
        sa.Column("holder", _WORDS, nullable=False),
        sa.Column("until", sa.BigInteger(), nullable=False),
    )
    op.create_table(
        "hooks",
        sa.Column("name", _WORDS, primary_key=True),
        sa.Column("url", _WORDS, nullable=False),
        sa.Column("secret", _WORDS, nullable=False),
        sa.Column("options", _WORDS, nullable=False),
        sa.Column("since", sa.BigInteger(), nullable=False),
    )
    op.create_table(
        "outbox",
        sa.Column("id", number, primary_key=True, autoincrement=True),
        *(sa.Column(name, _WORDS, nullable=False) for name in ("hook", "key", "event")),
        sa.Column("body", sa.LargeBinary(), nullable=False),
        *(sa.Column(name, sa.BigInteger(), nullable=False) for name in ("made_at", "due_at", "tries")),
        *(sa.Column(name, _WORDS, nullable=False) for name in ("state", "fault")),
        sa.UniqueConstraint("hook", "key"),
    )
    waiting = sa.text("state = 'waiting'")
    op.create_index("ix_outbox_due", "outbox", ["due_at"], sqlite_where=waiting, postgresql_where=waiting)


def _search() -> None:
    """The search index, and what the graph of runs looks up."""
    op.create_table(
        "documents",
        sa.Column(
            "id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), autoincrement=False, nullable=False
        ),
        *(sa.Column(name, _WORDS, nullable=False) for name in ("label", "tail", "names", "words", "marks")),
        sa.Column("slots", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index("ix_documents_label", "documents", ["label"])
    op.create_index("ix_documents_tail", "documents", ["tail"])
    op.create_index("ix_outputs_written", "outputs", ["dataset", "last_seen"])
    op.create_index("ix_inputs_read", "inputs", ["dataset", "first_seen"])
    op.create_index("ix_runs_first_seen", "runs", ["first_seen"])
