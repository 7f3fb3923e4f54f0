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
