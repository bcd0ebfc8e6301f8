"""Adds groups of workers: a table's policy names the group that gets its jobs."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"


def upgrade() -> None:
    op.add_column("jobs", sa.Column("worker_group", sa.String(24), nullable=False, server_default="default"))
    op.add_column("workers", sa.Column("group", sa.String(24), nullable=False, server_default="default"))
    _widen(64)
    # A table that waits for jobs of other tables is planned again when any job ends.
    op.execute("UPDATE planning SET deferred_for = '*' WHERE deferred_for IS NOT NULL")


def downgrade() -> None:
    op.execute("UPDATE planning SET deferred_for = 'any' WHERE deferred_for IS NOT NULL")
    _widen(32)
    op.drop_column("workers", "group")
    op.drop_column("jobs", "worker_group")


def _widen(length: int) -> None:
    with op.batch_alter_table("planning") as table:
        table.alter_column("deferred_for", type_=sa.String(length))
