"""Reads of tables, gains of jobs, and how well objectives are kept. See `service.outcome`."""

import sqlalchemy as sa

from service.db.schema.core import UtcDateTime, metadata

# The reads of each table by source and hour, which is the time in units of 3600 seconds.
table_reads = sa.Table(
    "table_reads",
    metadata,
    sa.Column("table_id", sa.String(64), sa.ForeignKey("tables.id", ondelete="CASCADE"), primary_key=True),
    sa.Column("source", sa.String(16), primary_key=True),
    sa.Column("hour", sa.BigInteger, primary_key=True),
    sa.Column("reads", sa.BigInteger, nullable=False),
    sa.Index("ix_table_reads_hour", "hour"),
)

# The runs that have been counted, so that each counts only once. `run` is a digest of the run's id.
read_runs = sa.Table(
    "read_runs",
    metadata,
    sa.Column("run", sa.String(32), primary_key=True),
    sa.Column("table_id", sa.String(64), sa.ForeignKey("tables.id", ondelete="CASCADE"), primary_key=True),
    sa.Column("seen_at", UtcDateTime, nullable=False),
    sa.Index("ix_read_runs_seen_at", "seen_at"),
)

# How long in each hour the state of each table's objective was known, and how long the objective was missed.
objective_hours = sa.Table(
    "objective_hours",
    metadata,
    sa.Column("table_id", sa.String(64), sa.ForeignKey("tables.id", ondelete="CASCADE"), primary_key=True),
    sa.Column("hour", sa.BigInteger, primary_key=True),
    sa.Column("seconds", sa.Double, nullable=False),
    sa.Column("missed_seconds", sa.Double, nullable=False),
    sa.Index("ix_objective_hours_hour", "hour"),
)

# The result of the last check of each table's objective: whether it was missed, why, and since when.
objective_states = sa.Table(
    "objective_states",
    metadata,
    sa.Column("table_id", sa.String(64), sa.ForeignKey("tables.id", ondelete="CASCADE"), primary_key=True),
    sa.Column("looked_at", UtcDateTime, nullable=False),
    sa.Column("overhead", sa.Double, nullable=False),
    sa.Column("missed", sa.Text),
    sa.Column("missed_since", UtcDateTime),
    # The three columns are about reads that may cost more (`of_reads`, `service.outcome.read_share`). `level` is the
    # level of the policy whose tables share these reads. `price` is null unless the table waits for its compaction.
    sa.Column("level", sa.Text),
    sa.Column("reads_per_day", sa.Double),
    sa.Column("price", sa.Double),
)

# The gain of each job of a policy, expected and actual, in seconds of one read.
job_gains = sa.Table(
    "job_gains",
    metadata,
    sa.Column("job_id", sa.String(64), sa.ForeignKey("jobs.id", ondelete="CASCADE"), primary_key=True),
    sa.Column("table_id", sa.String(64), nullable=False),
    sa.Column("kind", sa.String(32), nullable=False),
    sa.Column("created_at", UtcDateTime, nullable=False),
    sa.Column("expected_seconds", sa.Double, nullable=False),
    sa.Column("reads_per_day", sa.Double, nullable=False),
    sa.Column("overhead_before", sa.Double, nullable=False),
    # `saved_seconds` is null until the job has succeeded, `overhead_after` until a poll has seen the table after the
    # job.
    sa.Column("saved_seconds", sa.Double),
    sa.Column("ended_at", UtcDateTime),
    sa.Column("overhead_after", sa.Double),
    sa.Index("ix_job_gains_table", "table_id", "kind", "created_at"),
)
