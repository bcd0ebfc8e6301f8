"""Adds the jobs that a worker has run before an attempt and beside it, because the cost of a job depends on them."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0045"
down_revision = "0044"
works_with = "0039"

_CHANGED = ("job_attempts", "attempt_costs")


def upgrade() -> None:
    op.add_column("workers", sa.Column("jobs_taken", sa.BigInteger, nullable=False, server_default="0"))
    for table in _CHANGED:
        op.add_column(table, sa.Column("jobs_before", sa.BigInteger))
        op.add_column(table, sa.Column("jobs_beside", sa.Double))


def downgrade() -> None:
    for table in _CHANGED:
        op.drop_column(table, "jobs_beside")
        op.drop_column(table, "jobs_before")
    op.drop_column("workers", "jobs_taken")
