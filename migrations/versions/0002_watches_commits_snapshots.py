"""Adds the watches (when each table is polled), commits and snapshots of tables."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    moment = sa.DateTime(timezone=True)
    op.create_table(
        "watches",
        sa.Column("table_id", sa.String(64), nullable=False),
        sa.Column("next_poll_at", moment, nullable=False),
        sa.Column("fingerprint", sa.String(64)),
        sa.Column("looked_at", moment),
        sa.Column("timeline_path", sa.Text),
        sa.Column("active_from", sa.String(32)),
        sa.Column("schema_digest", sa.String(32)),
        sa.Column("has_pending", sa.Boolean, nullable=False),
        sa.Column("gap_at", moment),
        sa.Column("failures", sa.Integer, nullable=False),
        sa.Column("error", sa.JSON),
        sa.PrimaryKeyConstraint("table_id", name="pk_watches"),
        _of_table("watches"),
    )
    op.create_index("ix_watches_next_poll_at", "watches", ["next_poll_at"])
    op.execute(
        "INSERT INTO watches (table_id, next_poll_at, has_pending, failures)"
        " SELECT id, created_at, false, 0 FROM tables"
    )
    op.create_table(
        "commits",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), autoincrement=True, nullable=False),
        sa.Column("table_id", sa.String(64), nullable=False),
        sa.Column("requested_time", sa.String(32), nullable=False),
        sa.Column("action", sa.String(32), nullable=False),
        sa.Column("completion_time", sa.String(32)),
        sa.Column("completed_at", moment, nullable=False),
        sa.Column("seen_at", moment, nullable=False),
        sa.Column("operation", sa.String(32)),
        sa.Column("rows_written", sa.BigInteger),
        sa.Column("rows_deleted", sa.BigInteger),
        sa.Column("bytes_written", sa.BigInteger),
        sa.Column("partitions", sa.JSON, nullable=False),
        sa.Column("file_groups", sa.Integer, nullable=False),
        sa.Column("schema_changed", sa.Boolean, nullable=False),
        sa.Column("is_news", sa.Boolean, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_commits"),
        sa.UniqueConstraint("table_id", "requested_time", "action", name="uq_commits_instant"),
        _of_table("commits"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_commits_table_id", "commits", ["table_id", "id"])
    op.create_index("ix_commits_seen_at", "commits", ["seen_at"])
    op.create_table(
        "snapshots",
        sa.Column("table_id", sa.String(64), nullable=False),
        sa.Column("taken_at", moment, nullable=False),
        sa.Column("summary", sa.JSON, nullable=False),
        sa.PrimaryKeyConstraint("table_id", name="pk_snapshots"),
        _of_table("snapshots"),
    )
    op.create_table(
        "partitions",
        sa.Column("table_id", sa.String(64), nullable=False),
        sa.Column("path", sa.Text, nullable=False),
        sa.Column("state", sa.JSON, nullable=False),
        sa.Column("buckets", sa.JSON, nullable=False),
        sa.Column("base_rows", sa.JSON, nullable=False),
        sa.Column("replaced", sa.JSON, nullable=False),
        sa.PrimaryKeyConstraint("table_id", "path", name="pk_partitions"),
        _of_table("partitions"),
    )


def downgrade() -> None:
    for table in ("partitions", "snapshots", "commits", "watches"):
        op.drop_table(table)


def _of_table(table: str) -> sa.ForeignKeyConstraint:
    return sa.ForeignKeyConstraint(["table_id"], ["tables.id"], name=f"fk_{table}_table_id", ondelete="CASCADE")
