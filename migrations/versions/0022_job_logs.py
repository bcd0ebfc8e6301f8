"""Adds the logs and traces of jobs, the jobs that they repeat, and the ids of requests in the audit trail."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from service.db.schema import UtcDateTime

revision = "0022"
down_revision = "0021"
works_with = "0010"


def upgrade() -> None:
    op.create_table(
        "job_log_lines",
        sa.Column("job_id", sa.String(64), nullable=False),
        sa.Column("attempt", sa.Integer, nullable=False, autoincrement=False),
        sa.Column("number", sa.Integer, nullable=False, autoincrement=False),
        sa.Column("at", UtcDateTime, nullable=False),
        sa.Column("level", sa.SmallInteger, nullable=False),
        sa.Column("logger", sa.String(128), nullable=False),
        sa.Column("message", sa.Text, nullable=False),
        sa.Column("bytes_so_far", sa.BigInteger, nullable=False),
        sa.ForeignKeyConstraint(["job_id"], ["jobs.id"], name="fk_job_log_lines_job_id", ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("job_id", "attempt", "number", name="pk_job_log_lines"),
    )
    op.add_column("audit_entries", sa.Column("request_id", sa.String(128)))
    op.add_column("jobs", sa.Column("retry_of", sa.String(64)))
    op.add_column("jobs", sa.Column("traceparent", sa.String(64)))


def downgrade() -> None:
    op.drop_column("jobs", "traceparent")
    op.drop_column("jobs", "retry_of")
    op.drop_column("audit_entries", "request_id")
    op.drop_table("job_log_lines")
