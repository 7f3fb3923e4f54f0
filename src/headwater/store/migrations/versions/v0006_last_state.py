"""store.migrations.versions.v0006_last_state: jobs whose last run is looked for -> jobs that know how it stands.

And runs lose an index that no question asks: they are looked up by their job and when they were first seen, never by that alone.
"""

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"

_WORDS = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")


def upgrade() -> None:
    """Look for each job's last run once."""
    op.add_column("jobs", sa.Column("last_state", _WORDS))
    op.execute(
        "UPDATE jobs SET last_state = coalesce((SELECT coalesce(r.state, '3 RUNNING') FROM runs AS r"
        " WHERE r.job = jobs.id AND coalesce(r.state, '') <> '0 NEW'"
        " ORDER BY r.first_seen DESC, coalesce(r.state, '3 RUNNING') DESC LIMIT 1),"
        " (SELECT r.state FROM runs AS r WHERE r.job = jobs.id LIMIT 1))"
    )
    op.drop_index("ix_runs_first_seen", "runs")
