"""Adds the duration and the amount of work of each attempt, from which the service learns the cost of jobs."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0036"
down_revision = "0035"
works_with = "0035"


def upgrade() -> None:
    op.create_table(
        "attempt_costs",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer, "sqlite"), primary_key=True, autoincrement=True),
        sa.Column("ended_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("table_id", sa.String(64), nullable=False),
        sa.Column("kind", sa.String(32), nullable=False),
        sa.Column("dry_run", sa.Boolean, nullable=False),
        sa.Column("succeeded", sa.Boolean, nullable=False),
        sa.Column("seconds", sa.Double, nullable=False),
        sa.Column("gib", sa.Double, nullable=False),
        sa.Column("work_bytes", sa.BigInteger, nullable=False),
        sa.Column("work_files", sa.BigInteger, nullable=False),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_attempt_costs_ended_at", "attempt_costs", ["ended_at"])


def downgrade() -> None:
    op.drop_table("attempt_costs")
