"""store.migrations.${up_revision}: format ${down_revision} -> ${up_revision}, ${message}."""

import sqlalchemy as sa
from alembic import op

revision = ${repr(up_revision)}
down_revision = ${repr(down_revision)}


def upgrade() -> None:
    """Bring the store one format further."""
    ${upgrades if upgrades else "pass"}
