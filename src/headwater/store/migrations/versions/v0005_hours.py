"""store.migrations.versions.v0005_hours: a log that is counted entry by entry -> the same, with a count for each hour beside it.

Triggers keep the counts, so whatever writes or takes out entries keeps them true, and none of it need know.
"""

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"

_WORDS = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
_SPAN = 3_600_000_000
# a remainder has the sign of what is divided: hours before 1970 are rounded down all the same
_HOUR = "({0}time - ((({0}time % {1}) + {1}) % {1})) / {1}".format("{0}", _SPAN)
_ADD = "ON CONFLICT (kind, hour) DO UPDATE SET entries = log_hours.entries + excluded.entries"


def upgrade() -> None:
    """Count what is there, and have the database count what comes and goes."""
    op.create_table(
        "log_hours",
        sa.Column("kind", _WORDS, nullable=False),
        sa.Column("hour", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("entries", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("kind", "hour"),
        sqlite_with_rowid=False,
    )
    hour = _HOUR.format("")
    op.execute(
        f"INSERT INTO log_hours (kind, hour, entries) SELECT kind, {hour}, count(*) FROM log GROUP BY kind, {hour}"
    )
    if op.get_bind().dialect.name == "postgresql":
        _count_statements()
    else:
        _count_rows()


def _count_rows() -> None:
    """SQLite: row by row."""
    for happens, name, row, sign in (
        ("INSERT", "log_inserted", "NEW.", ""),
        ("DELETE", "log_deleted", "OLD.", "-"),
    ):
        op.execute(
            f"CREATE TRIGGER {name} AFTER {happens} ON log BEGIN"
            f" INSERT INTO log_hours (kind, hour, entries) VALUES ({row}kind, {_HOUR.format(row)}, {sign}1) {_ADD};"
            " END"
        )


def _count_statements() -> None:
    """Postgres: all rows of a statement at once; kinds and hours in one order, whoever writes."""
    hour = _HOUR.format("")
    for happens, name, rows, sign in (
        ("INSERT", "log_inserted", "NEW", ""),
        ("DELETE", "log_deleted", "OLD", "-"),
    ):
        op.execute(
            f"CREATE FUNCTION {name}() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN"
            f" INSERT INTO log_hours (kind, hour, entries) SELECT kind, {hour}, {sign}count(*) FROM changed"
            f" GROUP BY kind, {hour} ORDER BY 1, 2 {_ADD};"
            " RETURN NULL; END $$"
        )
        op.execute(
            f"CREATE TRIGGER {name} AFTER {happens} ON log REFERENCING {rows} TABLE AS changed"
            f" FOR EACH STATEMENT EXECUTE FUNCTION {name}()"
        )
