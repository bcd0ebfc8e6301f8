"""Adds reads of tables, gains of jobs, and how well objectives are kept."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0038"
down_revision = "0037"
works_with = "0037"


def _of_table(**more: bool) -> sa.Column[str]:
    return sa.Column("table_id", sa.String(64), sa.ForeignKey("tables.id", ondelete="CASCADE"), **more)


def upgrade() -> None:
    moment = sa.DateTime(timezone=True)
    op.create_table(
        "table_reads",
        _of_table(primary_key=True),
        sa.Column("source", sa.String(16), primary_key=True),
        sa.Column("hour", sa.BigInteger, primary_key=True),
        sa.Column("reads", sa.BigInteger, nullable=False),
    )
    op.create_index("ix_table_reads_hour", "table_reads", ["hour"])
    op.create_table(
        "read_runs",
        sa.Column("run", sa.String(32), primary_key=True),
        _of_table(primary_key=True),
        sa.Column("seen_at", moment, nullable=False),
    )
    op.create_index("ix_read_runs_seen_at", "read_runs", ["seen_at"])
    op.create_table(
        "objective_hours",
        _of_table(primary_key=True),
        sa.Column("hour", sa.BigInteger, primary_key=True),
        sa.Column("seconds", sa.Double, nullable=False),
        sa.Column("missed_seconds", sa.Double, nullable=False),
    )
    op.create_index("ix_objective_hours_hour", "objective_hours", ["hour"])
    op.create_table(
        "objective_states",
        _of_table(primary_key=True),
        sa.Column("looked_at", moment, nullable=False),
        sa.Column("overhead", sa.Double, nullable=False),
        sa.Column("missed", sa.Text),
        sa.Column("missed_since", moment),
    )
    op.create_table(
        "job_gains",
        sa.Column("job_id", sa.String(64), sa.ForeignKey("jobs.id", ondelete="CASCADE"), primary_key=True),
        sa.Column("table_id", sa.String(64), nullable=False),
        sa.Column("kind", sa.String(32), nullable=False),
        sa.Column("created_at", moment, nullable=False),
        sa.Column("expected_seconds", sa.Double, nullable=False),
        sa.Column("reads_per_day", sa.Double, nullable=False),
        sa.Column("overhead_before", sa.Double, nullable=False),
        sa.Column("saved_seconds", sa.Double),
        sa.Column("ended_at", moment),
        sa.Column("overhead_after", sa.Double),
    )
    op.create_index("ix_job_gains_table", "job_gains", ["table_id", "kind", "created_at"])
    # The benefit for readers per second of the job's work, and the time at which the job starts whatever its benefit.
    op.add_column("jobs", sa.Column("worth", sa.Double))
    op.add_column("jobs", sa.Column("starts_by", moment))
    op.add_column("workers", sa.Column("read_rates", sa.JSON(none_as_null=True)))


def downgrade() -> None:
    op.drop_column("workers", "read_rates")
    op.drop_column("jobs", "starts_by")
    op.drop_column("jobs", "worth")
    for name in ("job_gains", "objective_states", "objective_hours", "read_runs", "table_reads"):
        op.drop_table(name)
