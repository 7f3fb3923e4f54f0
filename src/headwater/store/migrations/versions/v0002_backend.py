"""store.migrations.versions.v0002_backend: the first format -> what a server for years keeps besides."""

from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"

_WORDS = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")


def upgrade() -> None:
    """Add the tables and indexes of the backend."""
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
    _partition()
    _incidents()


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
