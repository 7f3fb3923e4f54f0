"""store.migrations.versions.v0004_packing: a store whose bodies stand by themselves -> one whose bodies may need a dictionary.

Nothing is rewritten: what is there is read as before. The number keeps an older Headwater, which knows no dictionary, away.
"""

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    """Nothing to do but to say so."""
