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
    # search, and the run graph
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
    op.create_index("ix_outputs_dataset", "outputs", ["dataset", "last_seen"])
    op.create_index("ix_inputs_dataset", "inputs", ["dataset", "first_seen"])
    op.create_index("ix_runs_first_seen", "runs", ["first_seen"])
    op.create_index("ix_jobs_parent", "jobs", ["parent"])
