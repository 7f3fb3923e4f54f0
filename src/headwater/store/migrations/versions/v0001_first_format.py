"""store.migrations.versions.v0001_first_format: an empty database -> the first format."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None


def upgrade() -> None:
    """Make the tables of the first format."""
    op.create_table(
        "aliases",
        sa.Column("match", sa.Text().with_variant(sa.Text(collation="C"), "postgresql"), nullable=False),
        sa.Column("rule_at", sa.BigInteger(), nullable=True),
        sa.Column("rule", sa.Text().with_variant(sa.Text(collation="C"), "postgresql"), nullable=True),
        sa.PrimaryKeyConstraint("match"),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "assertions",
        sa.Column("run", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("dataset", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("assertion", sa.Text().with_variant(sa.Text(collation="C"), "postgresql"), nullable=False),
        sa.Column("field", sa.Text().with_variant(sa.Text(collation="C"), "postgresql"), nullable=False),
        sa.Column("first_seen", sa.BigInteger(), nullable=True),
        sa.Column("last_seen", sa.BigInteger(), nullable=True),
        sa.Column("failed_at", sa.BigInteger(), nullable=True),
        sa.Column("failed", sa.BigInteger(), nullable=True),
        sa.Column("severity_at", sa.BigInteger(), nullable=True),
        sa.Column("severity", sa.Text().with_variant(sa.Text(collation="C"), "postgresql"), nullable=True),
        sa.Column("details_at", sa.BigInteger(), nullable=True),
        sa.Column("details", sa.Text().with_variant(sa.Text(collation="C"), "postgresql"), nullable=True),
        sa.PrimaryKeyConstraint("run", "dataset", "assertion", "field"),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "column_edges",
        sa.Column("job", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("dataset", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("fingerprint", sa.LargeBinary(), nullable=False),
        sa.Column("first_seen", sa.BigInteger(), nullable=True),
        sa.Column("last_seen", sa.BigInteger(), nullable=True),
        sa.PrimaryKeyConstraint("job", "dataset", "fingerprint"),
        sqlite_with_rowid=False,
    )
    op.create_index("ix_column_edges_fingerprint", "column_edges", ["fingerprint"], unique=False)
    op.create_table(
        "column_sources",
        sa.Column("fingerprint", sa.LargeBinary(), nullable=False),
        sa.Column("dataset", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.PrimaryKeyConstraint("fingerprint", "dataset"),
        sqlite_with_rowid=False,
    )
    op.create_index("ix_column_sources_dataset", "column_sources", ["dataset"], unique=False)
    op.create_table(
        "contents",
        sa.Column("digest", sa.LargeBinary(), nullable=False),
        sa.Column("body", sa.LargeBinary(), nullable=True),
        sa.PrimaryKeyConstraint("digest"),
        sqlite_with_rowid=True,
    )
    op.create_table(
        "dataset_facets",
        sa.Column("dataset", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("name", sa.Text().with_variant(sa.Text(collation="C"), "postgresql"), nullable=False),
        sa.Column("body", sa.LargeBinary(), nullable=False),
        sa.Column("first_seen", sa.BigInteger(), nullable=True),
        sa.Column("last_seen", sa.BigInteger(), nullable=True),
        sa.PrimaryKeyConstraint("dataset", "name", "body"),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "datasets",
        sa.Column(
            "id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), autoincrement=True, nullable=False
        ),
        sa.Column("namespace", sa.Text().with_variant(sa.Text(collation="C"), "postgresql"), nullable=False),
        sa.Column("name", sa.Text().with_variant(sa.Text(collation="C"), "postgresql"), nullable=False),
        sa.Column("first_seen", sa.BigInteger(), nullable=True),
        sa.Column("last_seen", sa.BigInteger(), nullable=True),
        sa.Column("hidden_at", sa.BigInteger(), nullable=True),
        sa.Column("shown_at", sa.BigInteger(), nullable=True),
        sa.Column("kind_at", sa.BigInteger(), nullable=True),
        sa.Column("kind", sa.Text().with_variant(sa.Text(collation="C"), "postgresql"), nullable=True),
        sa.Column("source_at", sa.BigInteger(), nullable=True),
        sa.Column("source", sa.Text().with_variant(sa.Text(collation="C"), "postgresql"), nullable=True),
        sa.Column("lifecycle_at", sa.BigInteger(), nullable=True),
        sa.Column("lifecycle", sa.Text().with_variant(sa.Text(collation="C"), "postgresql"), nullable=True),
        sa.Column("alias_of", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=True),
        sa.Column("canonical", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=True),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("namespace", "name"),
    )
    op.create_index(
        op.f("ix_datasets_alias_of"),
        "datasets",
        ["alias_of"],
        unique=False,
        sqlite_where=sa.text("alias_of IS NOT NULL"),
        postgresql_where=sa.text("alias_of IS NOT NULL"),
    )
    op.create_index(
        op.f("ix_datasets_canonical"),
        "datasets",
        ["canonical"],
        unique=False,
        sqlite_where=sa.text("canonical IS NOT NULL"),
        postgresql_where=sa.text("canonical IS NOT NULL"),
    )
    op.create_table(
        "declared",
        sa.Column("job", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("at", sa.BigInteger(), nullable=False),
        sa.Column("direction", sa.Text().with_variant(sa.Text(collation="C"), "postgresql"), nullable=False),
        sa.Column("dataset", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.PrimaryKeyConstraint("job", "at", "direction", "dataset"),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "edges",
        sa.Column("job", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("direction", sa.Text().with_variant(sa.Text(collation="C"), "postgresql"), nullable=False),
        sa.Column("dataset", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("first_seen", sa.BigInteger(), nullable=True),
        sa.Column("last_seen", sa.BigInteger(), nullable=True),
        sa.PrimaryKeyConstraint("job", "direction", "dataset"),
        sqlite_with_rowid=False,
    )
    op.create_index("ix_edges_dataset", "edges", ["dataset", "direction", "job"], unique=False)
    op.create_table(
        "inputs",
        sa.Column("run", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("dataset", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("first_seen", sa.BigInteger(), nullable=True),
        sa.Column("last_seen", sa.BigInteger(), nullable=True),
        sa.Column("rows_at", sa.BigInteger(), nullable=True),
        sa.Column("rows", sa.BigInteger(), nullable=True),
        sa.Column("bytes_at", sa.BigInteger(), nullable=True),
        sa.Column("bytes", sa.BigInteger(), nullable=True),
        sa.Column("files_at", sa.BigInteger(), nullable=True),
        sa.Column("files", sa.BigInteger(), nullable=True),
        sa.Column("version_at", sa.BigInteger(), nullable=True),
        sa.Column("version", sa.Text().with_variant(sa.Text(collation="C"), "postgresql"), nullable=True),
        sa.Column("schema_at", sa.BigInteger(), nullable=True),
        sa.Column("schema", sa.LargeBinary(), nullable=True),
        sa.PrimaryKeyConstraint("run", "dataset"),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "io_facets",
        sa.Column("run", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("direction", sa.Text().with_variant(sa.Text(collation="C"), "postgresql"), nullable=False),
        sa.Column("dataset", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("name", sa.Text().with_variant(sa.Text(collation="C"), "postgresql"), nullable=False),
        sa.Column("body", sa.LargeBinary(), nullable=False),
        sa.Column("first_seen", sa.BigInteger(), nullable=True),
        sa.Column("last_seen", sa.BigInteger(), nullable=True),
        sa.PrimaryKeyConstraint("run", "direction", "dataset", "name", "body"),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "job_facets",
        sa.Column("job", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("name", sa.Text().with_variant(sa.Text(collation="C"), "postgresql"), nullable=False),
        sa.Column("body", sa.LargeBinary(), nullable=False),
        sa.Column("first_seen", sa.BigInteger(), nullable=True),
        sa.Column("last_seen", sa.BigInteger(), nullable=True),
        sa.PrimaryKeyConstraint("job", "name", "body"),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "jobs",
        sa.Column(
            "id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), autoincrement=True, nullable=False
        ),
        sa.Column("namespace", sa.Text().with_variant(sa.Text(collation="C"), "postgresql"), nullable=False),
        sa.Column("name", sa.Text().with_variant(sa.Text(collation="C"), "postgresql"), nullable=False),
        sa.Column("first_seen", sa.BigInteger(), nullable=True),
        sa.Column("last_seen", sa.BigInteger(), nullable=True),
        sa.Column("hidden_at", sa.BigInteger(), nullable=True),
        sa.Column("shown_at", sa.BigInteger(), nullable=True),
        sa.Column("processing_at", sa.BigInteger(), nullable=True),
        sa.Column("processing", sa.Text().with_variant(sa.Text(collation="C"), "postgresql"), nullable=True),
        sa.Column("integration_at", sa.BigInteger(), nullable=True),
        sa.Column("integration", sa.Text().with_variant(sa.Text(collation="C"), "postgresql"), nullable=True),
        sa.Column("kind_at", sa.BigInteger(), nullable=True),
        sa.Column("kind", sa.Text().with_variant(sa.Text(collation="C"), "postgresql"), nullable=True),
        sa.Column("parent_at", sa.BigInteger(), nullable=True),
        sa.Column("parent", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=True),
        sa.Column("root_at", sa.BigInteger(), nullable=True),
        sa.Column("root", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=True),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("namespace", "name"),
    )
    op.create_table(
        "log",
        sa.Column(
            "id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), autoincrement=True, nullable=False
        ),
        sa.Column("digest", sa.LargeBinary(), nullable=False),
        sa.Column("kind", sa.Text().with_variant(sa.Text(collation="C"), "postgresql"), nullable=False),
        sa.Column("time", sa.BigInteger(), nullable=False),
        sa.Column("received_at", sa.BigInteger(), nullable=False),
        sa.Column("body", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("digest"),
    )
    op.create_index("ix_log_time", "log", ["time"], unique=False)
    op.create_table(
        "meta",
        sa.Column("key", sa.Text().with_variant(sa.Text(collation="C"), "postgresql"), nullable=False),
        sa.Column("value", sa.Text().with_variant(sa.Text(collation="C"), "postgresql"), nullable=False),
        sa.PrimaryKeyConstraint("key"),
    )
    op.create_table(
        "outputs",
        sa.Column("run", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("dataset", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("first_seen", sa.BigInteger(), nullable=True),
        sa.Column("last_seen", sa.BigInteger(), nullable=True),
        sa.Column("rows_at", sa.BigInteger(), nullable=True),
        sa.Column("rows", sa.BigInteger(), nullable=True),
        sa.Column("bytes_at", sa.BigInteger(), nullable=True),
        sa.Column("bytes", sa.BigInteger(), nullable=True),
        sa.Column("files_at", sa.BigInteger(), nullable=True),
        sa.Column("files", sa.BigInteger(), nullable=True),
        sa.Column("version_at", sa.BigInteger(), nullable=True),
        sa.Column("version", sa.Text().with_variant(sa.Text(collation="C"), "postgresql"), nullable=True),
        sa.Column("lifecycle_at", sa.BigInteger(), nullable=True),
        sa.Column("lifecycle", sa.Text().with_variant(sa.Text(collation="C"), "postgresql"), nullable=True),
        sa.Column("schema_at", sa.BigInteger(), nullable=True),
        sa.Column("schema", sa.LargeBinary(), nullable=True),
        sa.Column("columns_at", sa.BigInteger(), nullable=True),
        sa.Column("columns", sa.LargeBinary(), nullable=True),
        sa.PrimaryKeyConstraint("run", "dataset"),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "rejects",
        sa.Column(
            "id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), autoincrement=True, nullable=False
        ),
        sa.Column("digest", sa.LargeBinary(), nullable=False),
        sa.Column("path", sa.Text().with_variant(sa.Text(collation="C"), "postgresql"), nullable=False),
        sa.Column("reason", sa.Text().with_variant(sa.Text(collation="C"), "postgresql"), nullable=False),
        sa.Column("first_seen", sa.BigInteger(), nullable=False),
        sa.Column("last_seen", sa.BigInteger(), nullable=False),
        sa.Column("times", sa.BigInteger(), nullable=False),
        sa.Column("size", sa.BigInteger(), nullable=False),
        sa.Column("body", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("digest"),
    )
    op.create_table(
        "run_facets",
        sa.Column("run", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("name", sa.Text().with_variant(sa.Text(collation="C"), "postgresql"), nullable=False),
        sa.Column("body", sa.LargeBinary(), nullable=False),
        sa.Column("first_seen", sa.BigInteger(), nullable=True),
        sa.Column("last_seen", sa.BigInteger(), nullable=True),
        sa.PrimaryKeyConstraint("run", "name", "body"),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "runs",
        sa.Column(
            "id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), autoincrement=True, nullable=False
        ),
        sa.Column("run_id", sa.Text().with_variant(sa.Text(collation="C"), "postgresql"), nullable=False),
        sa.Column("first_seen", sa.BigInteger(), nullable=True),
        sa.Column("last_seen", sa.BigInteger(), nullable=True),
        sa.Column("started_at", sa.BigInteger(), nullable=True),
        sa.Column("ended_at", sa.BigInteger(), nullable=True),
        sa.Column("job_at", sa.BigInteger(), nullable=True),
        sa.Column("job", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=True),
        sa.Column("state_at", sa.BigInteger(), nullable=True),
        sa.Column("state", sa.Text().with_variant(sa.Text(collation="C"), "postgresql"), nullable=True),
        sa.Column("nominal_start_at", sa.BigInteger(), nullable=True),
        sa.Column("nominal_start", sa.BigInteger(), nullable=True),
        sa.Column("nominal_end_at", sa.BigInteger(), nullable=True),
        sa.Column("nominal_end", sa.BigInteger(), nullable=True),
        sa.Column("parent_at", sa.BigInteger(), nullable=True),
        sa.Column("parent", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=True),
        sa.Column("root_at", sa.BigInteger(), nullable=True),
        sa.Column("root", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=True),
        sa.Column("error_at", sa.BigInteger(), nullable=True),
        sa.Column("error", sa.Text().with_variant(sa.Text(collation="C"), "postgresql"), nullable=True),
        sa.Column("producer_at", sa.BigInteger(), nullable=True),
        sa.Column("producer", sa.Text().with_variant(sa.Text(collation="C"), "postgresql"), nullable=True),
        sa.Column("io", sa.LargeBinary(), nullable=True),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("run_id"),
    )
    op.create_index(
        "ix_runs_job_ended",
        "runs",
        ["job", "ended_at"],
        unique=False,
        sqlite_where=sa.text("io IS NOT NULL"),
        postgresql_where=sa.text("io IS NOT NULL"),
    )
    op.create_index("ix_runs_job_first_seen", "runs", ["job", "first_seen"], unique=False)
    op.create_table(
        "schemas",
        sa.Column("dataset", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("schema", sa.LargeBinary(), nullable=False),
        sa.Column("first_seen", sa.BigInteger(), nullable=True),
        sa.Column("last_seen", sa.BigInteger(), nullable=True),
        sa.PrimaryKeyConstraint("dataset", "schema"),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "symlinks",
        sa.Column("dataset", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("alias", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("type", sa.Text().with_variant(sa.Text(collation="C"), "postgresql"), nullable=False),
        sa.Column("first_seen", sa.BigInteger(), nullable=True),
        sa.Column("last_seen", sa.BigInteger(), nullable=True),
        sa.PrimaryKeyConstraint("dataset", "alias", "type"),
        sqlite_with_rowid=False,
    )
    op.create_index("ix_symlinks_alias", "symlinks", ["alias"], unique=False)
    op.create_table(
        "tags",
        sa.Column("kind", sa.Text().with_variant(sa.Text(collation="C"), "postgresql"), nullable=False),
        sa.Column("owner", sa.Text().with_variant(sa.Text(collation="C"), "postgresql"), nullable=False),
        sa.Column("field", sa.Text().with_variant(sa.Text(collation="C"), "postgresql"), nullable=False),
        sa.Column("tag", sa.Text().with_variant(sa.Text(collation="C"), "postgresql"), nullable=False),
        sa.Column("live_at", sa.BigInteger(), nullable=True),
        sa.Column("live", sa.BigInteger(), nullable=True),
        sa.Column("value_at", sa.BigInteger(), nullable=True),
        sa.Column("value", sa.Text().with_variant(sa.Text(collation="C"), "postgresql"), nullable=True),
        sa.Column("source_at", sa.BigInteger(), nullable=True),
        sa.Column("source", sa.Text().with_variant(sa.Text(collation="C"), "postgresql"), nullable=True),
        sa.PrimaryKeyConstraint("kind", "owner", "field", "tag"),
        sqlite_with_rowid=False,
    )
