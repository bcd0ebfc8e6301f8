"""Counters of what has happened since the database was made, and the figures of ended attempts."""

import sqlalchemy as sa

from service.db.schema.core import Serial, UtcDateTime, metadata

# Not counted from the rows of jobs and events, which are deleted after some time: a counter must not go down.
tallies = sa.Table(
    "tallies",
    metadata,
    sa.Column("name", sa.String(64), primary_key=True),
    # The values of its labels, separated by commas.
    sa.Column("labels", sa.String(128), primary_key=True),
    # Exact for whole numbers up to 2^53, which is 9 PB.
    sa.Column("value", sa.Double, nullable=False),
)

# For reports and forecasts. Figures outlive their jobs and tables, and sums read no documents: so there are no foreign
# keys, and a column for each figure. Amounts are those of attempts that succeeded, without dry runs.
attempt_figures = sa.Table(
    "attempt_figures",
    metadata,
    sa.Column("id", Serial, primary_key=True, autoincrement=True),
    sa.Column("ended_at", UtcDateTime, nullable=False),
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
    # The cost of further jobs is learned from these, and from `seconds`. Work is what `KindResult.work` says.
    sa.Column("dry_run", sa.Boolean, nullable=False, server_default=sa.false()),
    sa.Column("work_bytes", sa.BigInteger, nullable=False, server_default="0"),
    sa.Column("work_files", sa.BigInteger, nullable=False, server_default="0"),
    sa.Index("ix_attempt_figures_ended_at", "ended_at"),
    sqlite_autoincrement=True,
)
