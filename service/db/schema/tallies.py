"""Counters since the database was created, the figures of ended attempts, and samples of the fleet."""

import sqlalchemy as sa

from service.db.schema.core import Serial, UtcDateTime, metadata

# Counters are stored, because rows of jobs and events are deleted after some time, and a counter must not decrease.
tallies = sa.Table(
    "tallies",
    metadata,
    sa.Column("name", sa.String(64), primary_key=True),
    # The values of the counter's labels, separated by commas.
    sa.Column("labels", sa.String(128), primary_key=True),
    # A double is exact for whole numbers up to 2^53, which is 9 PB.
    sa.Column("value", sa.Double, nullable=False),
)


def _amounts() -> list[sa.Column[float]]:
    numbers = ("succeeded", "failed")
    measured = ("seconds", "gb_seconds", "freed_bytes", "files_deleted", "files_before", "files_after", "log_files")
    last = ("log_bytes", "locked_seconds", "stopped_seconds")
    return [
        *(sa.Column(name, sa.Integer, nullable=False) for name in numbers),
        *(sa.Column(name, sa.Double, nullable=False) for name in (*measured, *last)),
    ]


# The figures for reports. There are no foreign keys, because figures outlive their jobs and tables. Each figure has a
# column, so that sums need not read JSON. Amounts are those of attempts that succeeded, without dry runs. A row has the
# totals of all attempts of its table and kind up to this one, so the sum of a period is the difference of two rows.
attempt_figures = sa.Table(
    "attempt_figures",
    metadata,
    sa.Column("id", Serial, primary_key=True, autoincrement=True),
    # No row has an earlier time than the row before it of the same table and kind.
    sa.Column("ended_at", UtcDateTime, nullable=False),
    sa.Column("table_id", sa.String(64), nullable=False),
    sa.Column("kind", sa.String(32), nullable=False),
    *_amounts(),
    sa.Index("ix_attempt_figures_ended_at", "ended_at"),
    sa.Index("ix_attempt_figures_key", "table_id", "kind", "ended_at"),
    sqlite_autoincrement=True,
)

# Attempts from which the cost of further jobs is learned. The work comes from `KindResult.work`; `gib` is the memory of
# the slot. Amounts that the worker has not reported are null.
attempt_costs = sa.Table(
    "attempt_costs",
    metadata,
    sa.Column("id", Serial, primary_key=True, autoincrement=True),
    sa.Column("ended_at", UtcDateTime, nullable=False),
    sa.Column("table_id", sa.String(64), nullable=False),
    sa.Column("kind", sa.String(32), nullable=False),
    sa.Column("dry_run", sa.Boolean, nullable=False),
    sa.Column("succeeded", sa.Boolean, nullable=False),
    sa.Column("seconds", sa.Double, nullable=False),
    sa.Column("gib", sa.Double, nullable=False),
    sa.Column("work_bytes", sa.BigInteger, nullable=False),
    sa.Column("work_files", sa.BigInteger, nullable=False),
    sa.Column("cpu_seconds", sa.Double),
    sa.Column("bytes_read", sa.Double),
    sa.Column("bytes_written", sa.Double),
    sa.Column("jobs_before", sa.BigInteger),
    sa.Column("jobs_beside", sa.Double),
    sa.Index("ix_attempt_costs_ended_at", "ended_at"),
    sqlite_autoincrement=True,
)

# The newest totals of each table and kind.
figure_totals = sa.Table(
    "figure_totals",
    metadata,
    sa.Column("table_id", sa.String(64), primary_key=True),
    sa.Column("kind", sa.String(32), primary_key=True),
    sa.Column("ended_at", UtcDateTime, nullable=False),
    *_amounts(),
)

# The state of all tables and jobs together, one row for each slot of time. The numbers of ended jobs and the bytes are
# running totals.
fleet_samples = sa.Table(
    "fleet_samples",
    metadata,
    sa.Column("slot", sa.BigInteger, primary_key=True, autoincrement=False),
    sa.Column("at", UtcDateTime, nullable=False),
    sa.Column("tables", sa.Integer, nullable=False),
    sa.Column("log_bytes", sa.BigInteger, nullable=False),
    sa.Column("queued", sa.Integer, nullable=False),
    sa.Column("running", sa.Integer, nullable=False),
    sa.Column("slots", sa.Integer, nullable=False),
    sa.Column("succeeded", sa.Double, nullable=False),
    sa.Column("failed", sa.Double, nullable=False),
    sa.Column("cancelled", sa.Double, nullable=False),
    sa.Column("freed_bytes", sa.Double, nullable=False),
)
