"""Adds the figures of ended attempts, for reports."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0032"
down_revision = "0031"
works_with = "0010"


def upgrade() -> None:
    op.create_table(
        "attempt_figures",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer, "sqlite"), primary_key=True, autoincrement=True),
        sa.Column("ended_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("table_id", sa.String(64), nullable=False),
        sa.Column("kind", sa.String(32), nullable=False),
        sa.Column("succeeded", sa.Integer, nullable=False),
        sa.Column("failed", sa.Integer, nullable=False),
        sa.Column("seconds", sa.Double, nullable=False),
        sa.Column("gb_seconds", sa.Double, nullable=False),
        sa.Column("freed_bytes", sa.Double, nullable=False),
        sa.Column("files_deleted", sa.Double, nullable=False),
        sa.Column("files_before", sa.Double, nullable=False),
        sa.Column("files_after", sa.Double, nullable=False),
        sa.Column("log_files", sa.Double, nullable=False),
        sa.Column("log_bytes", sa.Double, nullable=False),
        sa.Column("locked_seconds", sa.Double, nullable=False),
        sa.Column("stopped_seconds", sa.Double, nullable=False),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_attempt_figures_ended_at", "attempt_figures", ["ended_at"])


def downgrade() -> None:
    op.drop_table("attempt_figures")
