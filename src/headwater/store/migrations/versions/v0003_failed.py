"""store.migrations.versions.v0003_failed: indexes of what failed -> the same, which answer without the rows themselves."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    """Put `failed` into the indexes: SQLite reads every row for a column that it does not find there."""
    failed = sa.text("failed = 1")
    for table, parts in (
        ("assertions", ["dataset", "assertion", "field", "failed"]),
        ("checks", ["dataset", "assertion", "field", "failed"]),
        ("tests", ["test", "failed"]),
    ):
        op.drop_index(f"ix_{table}_failed", table)
        op.create_index(f"ix_{table}_failed", table, parts, sqlite_where=failed, postgresql_where=failed)
