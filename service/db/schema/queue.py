"""Jobs, their attempts, and the workers that run them."""

import sqlalchemy as sa

from service.db.schema.core import UtcDateTime, literals, metadata

JOB_PER_KIND = "uq_jobs_active_kind"

JOB_REWRITING = "uq_jobs_active_rewriting"

JOB_HOLDING_TABLE = "uq_jobs_held_mutating"

JOB_OF_REQUEST = "uq_jobs_lease_request"

JOB_IDEMPOTENCY = "uq_jobs_idempotency_key"

jobs = sa.Table(
    "jobs",
    metadata,
    sa.Column("id", sa.String(64), primary_key=True),
    sa.Column("table_id", sa.String(64), sa.ForeignKey("tables.id", ondelete="CASCADE"), nullable=False),
    sa.Column("kind", sa.String(32), nullable=False),
    sa.Column("params", sa.JSON, nullable=False),
    sa.Column("dry_run", sa.Boolean, nullable=False),
    # Both are derived from kind and dry_run, and stored because constraints use them. `rewriting` is true or null,
    # never false. Nulls are not equal, so only the jobs that replace file groups exclude each other.
    sa.Column("mutating", sa.Boolean, nullable=False),
    sa.Column("rewriting", sa.Boolean),
    sa.Column("priority", sa.Integer, nullable=False, server_default="0"),
    sa.Column("worker_group", sa.String(24), nullable=False, server_default="default"),
    # The time limit of an attempt; null for the limit of the service's setting.
    sa.Column("timeout_seconds", sa.Integer),
    sa.Column("requested_by", sa.Text),
    # Why the service created the job by itself; null for a job that a user requested.
    sa.Column("reason", sa.Text),
    sa.Column("state", sa.String(16), nullable=False),
    sa.Column("attempt", sa.Integer, nullable=False),
    sa.Column("max_attempts", sa.Integer, nullable=False),
    sa.Column("not_before", UtcDateTime, nullable=False),
    sa.Column("lease_deadline", UtcDateTime),
    sa.Column("worker_id", sa.Text),
    # The token with which the worker leased the job; null if the service needed no token.
    sa.Column("lease_token", sa.String(32)),
    # The id of the worker's request that was answered with this lease.
    sa.Column("lease_request", sa.String(64)),
    sa.Column("progress", sa.JSON(none_as_null=True)),
    sa.Column("instants", sa.JSON, nullable=False),
    sa.Column("result", sa.JSON(none_as_null=True)),
    sa.Column("error", sa.JSON(none_as_null=True)),
    sa.Column("cancel_requested", sa.Boolean, nullable=False),
    sa.Column("idempotency_key", sa.String(255)),
    sa.Column("created_at", UtcDateTime, nullable=False),
    sa.Column("leased_at", UtcDateTime),
    sa.Column("started_at", UtcDateTime),
    sa.Column("finished_at", UtcDateTime),
    # A job that waits until the writers have been stopped is leased to no worker; `hand_over` is its progress.
    sa.Column("waits_for_writers", sa.Boolean, nullable=False, server_default=sa.false()),
    sa.Column("hand_over", sa.JSON(none_as_null=True)),
    # The job that this one repeats. There is no foreign key, because that job may be deleted first.
    sa.Column("retry_of", sa.String(64)),
    # W3C Trace Context of the call that submitted the job.
    sa.Column("traceparent", sa.String(64)),
    # Why a queued job is held back although its time has come: by a pause, or by a closed window.
    sa.Column("held_back", sa.Text),
    # `worth` is the time that readers have lost because the job has not run, divided by the time of its work. Jobs with
    # a higher `worth` go first, and from `starts_by` on the job goes first whatever its `worth`.
    sa.Column("worth", sa.Double),
    sa.Column("starts_by", UtcDateTime),
    sa.UniqueConstraint("table_id", "idempotency_key", name=JOB_IDEMPOTENCY),
    sa.Index("ix_jobs_created_at", "created_at", "id"),
    sa.Index("ix_jobs_table_created_at", "table_id", "created_at", "id"),
    # Pages of the list by state and kind.
    sa.Index("ix_jobs_state_created_at", "state", "created_at", "id"),
    sa.Index("ix_jobs_kind_created_at", "kind", "created_at", "id"),
    sa.Index("ix_jobs_kind_state_created_at", "kind", "state", "created_at", "id"),
    # The index finds the table whose last lease was the longest ago, and old jobs.
    sa.Index("ix_jobs_table_leased_at", "table_id", "leased_at"),
    sa.Index("ix_jobs_finished_at", "finished_at"),
)

_is_active = jobs.c.state.in_(["queued", "leased", "running"])

# States are literals, because SQLite uses a partial index only if it sees that the condition holds.
JOB_IS_QUEUED = jobs.c.state == sa.literal_column("'queued'")

JOB_HAS_WORKER = jobs.c.state.in_(literals(["leased", "running"]))

JOB_IS_UNKNOWN = jobs.c.state == sa.literal_column("'unknown'")

_is_real = sa.not_(jobs.c.dry_run)

# A table has at most one active job of a kind; dry runs do not count.
sa.Index(
    JOB_PER_KIND,
    jobs.c.table_id,
    jobs.c.kind,
    unique=True,
    sqlite_where=_is_active & _is_real,
    postgresql_where=_is_active & _is_real,
)

# At most one job that replaces file groups (compaction, clustering, bucket expansion and so on) is active on a table.
sa.Index(
    JOB_REWRITING,
    jobs.c.table_id,
    jobs.c.rewriting,
    unique=True,
    sqlite_where=_is_active,
    postgresql_where=_is_active,
)

# Workers hold at most one writing job of a table. So a cleaning waits for the compaction to end.
sa.Index(
    JOB_HOLDING_TABLE,
    jobs.c.table_id,
    unique=True,
    sqlite_where=JOB_HAS_WORKER & jobs.c.mutating,
    postgresql_where=JOB_HAS_WORKER & jobs.c.mutating,
)

# A request that is repeated, because its answer was lost, gets the same job.
sa.Index(
    JOB_OF_REQUEST, jobs.c.lease_request, unique=True, sqlite_where=JOB_HAS_WORKER, postgresql_where=JOB_HAS_WORKER
)

# Every lease and every recovery searches these indexes, which do not contain ended jobs.
sa.Index("ix_jobs_queued", jobs.c.created_at, jobs.c.id, sqlite_where=JOB_IS_QUEUED, postgresql_where=JOB_IS_QUEUED)

sa.Index("ix_jobs_held", jobs.c.lease_deadline, sqlite_where=JOB_HAS_WORKER, postgresql_where=JOB_HAS_WORKER)

sa.Index("ix_jobs_unknown", jobs.c.table_id, sqlite_where=JOB_IS_UNKNOWN, postgresql_where=JOB_IS_UNKNOWN)

job_attempts = sa.Table(
    "job_attempts",
    metadata,
    sa.Column("job_id", sa.String(64), sa.ForeignKey("jobs.id", ondelete="CASCADE"), primary_key=True),
    sa.Column("attempt", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("worker_id", sa.Text, nullable=False),
    sa.Column("started_at", UtcDateTime, nullable=False),
    sa.Column("ended_at", UtcDateTime),
    sa.Column("outcome", sa.String(16)),
    sa.Column("error", sa.JSON(none_as_null=True)),
    # The Spark application that ran the attempt, and the address of its UI.
    sa.Column("application_id", sa.String(128)),
    sa.Column("ui_url", sa.Text),
    # How many jobs the worker had taken before, and how many others it held at the lease.
    sa.Column("jobs_before", sa.BigInteger),
    sa.Column("jobs_beside", sa.Double),
)

job_log_lines = sa.Table(
    "job_log_lines",
    metadata,
    sa.Column("job_id", sa.String(64), sa.ForeignKey("jobs.id", ondelete="CASCADE"), primary_key=True),
    sa.Column("attempt", sa.Integer, primary_key=True, autoincrement=False),
    # The worker numbers the lines, so that a line that is sent again is not stored again.
    sa.Column("number", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("at", UtcDateTime, nullable=False),
    # Python's number of the level: 30 is WARNING.
    sa.Column("level", sa.SmallInteger, nullable=False),
    sa.Column("logger", sa.String(128), nullable=False),
    sa.Column("message", sa.Text, nullable=False),
    # Bytes of all lines of the job up to this one. The number shows which lines to drop, without reading their texts.
    sa.Column("bytes_so_far", sa.BigInteger, nullable=False),
)

workers = sa.Table(
    "workers",
    metadata,
    sa.Column("id", sa.String(255), primary_key=True),
    sa.Column("version", sa.Text),
    sa.Column("master", sa.Text),
    sa.Column("slots", sa.Integer),
    sa.Column("spare_slots", sa.Integer, nullable=False, server_default="0"),
    sa.Column("driver_memory", sa.Text),
    sa.Column("group", sa.String(24), nullable=False, server_default="default"),
    sa.Column("first_seen", UtcDateTime, nullable=False),
    sa.Column("last_seen", UtcDateTime, nullable=False),
    sa.Column("state", sa.String(24)),
    sa.Column("executors", sa.Integer),
    sa.Column("spark_conf", sa.JSON, nullable=False, server_default="{}"),
    sa.Column("error", sa.JSON(none_as_null=True)),
    sa.Column("application_id", sa.String(128)),
    sa.Column("ui_url", sa.Text),
    # The cost of reads where the worker runs, as the worker has measured it (`jobs.worker.read_probe`).
    sa.Column("read_rates", sa.JSON(none_as_null=True)),
    sa.Column("jobs_taken", sa.BigInteger, nullable=False, server_default="0"),
)
