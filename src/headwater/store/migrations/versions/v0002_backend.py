"""store.migrations.versions.v0002_backend: the first format -> what a server for years keeps besides."""

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
    _search()


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
    child = sa.text("parent IS NOT NULL")
    op.create_index("ix_jobs_parent", "jobs", ["parent"], sqlite_where=child, postgresql_where=child)
