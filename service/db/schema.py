"""The tables of the service's database, and the rules that the database itself enforces.

A business rule that two concurrent calls could break together is a named constraint here; `service.db.violation` maps a
violation to its name. The migrations must build exactly this schema (a test compares them).
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

import sqlalchemy as sa

if TYPE_CHECKING:
    from sqlalchemy.engine import Dialect

metadata = sa.MetaData(
    naming_convention={
        "pk": "pk_%(table_name)s",
        "fk": "fk_%(table_name)s_%(column_0_name)s",
    }
)


class UtcDateTime(sa.TypeDecorator[datetime]):
    """Aware datetimes in UTC. SQLite stores no time zone, so writing removes it and reading adds it again."""

    impl = sa.DateTime(timezone=True)
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> datetime | None:  # noqa: ARG002
        return None if value is None else value.astimezone(UTC)

    def process_result_value(self, value: datetime | None, dialect: Dialect) -> datetime | None:  # noqa: ARG002
        if value is None:
            return None
        return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)


TABLE_BASE_PATH = "uq_tables_base_path"
JOB_PER_KIND = "uq_jobs_active_kind"
JOB_REWRITING = "uq_jobs_active_rewriting"
JOB_HOLDING_TABLE = "uq_jobs_held_mutating"
JOB_IDEMPOTENCY = "uq_jobs_idempotency_key"
COMMIT_INSTANT = "uq_commits_instant"
INCIDENT_INSTANT = "uq_incidents_instant"

EVENT_ID = "uq_events_id"
QUEUE_OF_WEBHOOK = "uq_lanes_webhook_key"
DELIVERY_OF_EVENT = "uq_deliveries_webhook_event"

# SQLite generates values only for a column of exactly this type.
_serial = sa.BigInteger().with_variant(sa.Integer, "sqlite")

tables = sa.Table(
    "tables",
    metadata,
    sa.Column("id", sa.String(64), primary_key=True),
    sa.Column("base_path", sa.Text, nullable=False),
    sa.Column("name", sa.Text, nullable=False),
    sa.Column("index", sa.JSON(none_as_null=True)),
    sa.Column("lock", sa.JSON, nullable=False),
    sa.Column("writers", sa.JSON, nullable=False),
    sa.Column("hudi_options", sa.JSON, nullable=False),
    sa.Column("profile", sa.JSON, nullable=False),
    sa.Column("created_at", UtcDateTime, nullable=False),
    sa.Column("updated_at", UtcDateTime, nullable=False),
    sa.UniqueConstraint("base_path", name=TABLE_BASE_PATH),
    sa.Index("ix_tables_created_at", "created_at", "id"),
)

jobs = sa.Table(
    "jobs",
    metadata,
    sa.Column("id", sa.String(64), primary_key=True),
    sa.Column("table_id", sa.String(64), sa.ForeignKey("tables.id", ondelete="CASCADE"), nullable=False),
    sa.Column("kind", sa.String(32), nullable=False),
    sa.Column("params", sa.JSON, nullable=False),
    sa.Column("dry_run", sa.Boolean, nullable=False),
    # Derived from kind and dry_run; stored because constraints use them. `rewriting` is true or null, never false:
    # nulls are not equal, so only the jobs that replace file groups exclude each other.
    sa.Column("mutating", sa.Boolean, nullable=False),
    sa.Column("rewriting", sa.Boolean),
    sa.Column("priority", sa.Integer, nullable=False, server_default="0"),
    sa.Column("worker_group", sa.String(24), nullable=False, server_default="default"),
    sa.Column("requested_by", sa.Text),
    # Why the service created the job by itself; null for a job that a user requested.
    sa.Column("reason", sa.Text),
    sa.Column("state", sa.String(16), nullable=False),
    sa.Column("attempt", sa.Integer, nullable=False),
    sa.Column("max_attempts", sa.Integer, nullable=False),
    sa.Column("not_before", UtcDateTime, nullable=False),
    sa.Column("lease_deadline", UtcDateTime),
    sa.Column("worker_id", sa.Text),
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
    sa.UniqueConstraint("table_id", "idempotency_key", name=JOB_IDEMPOTENCY),
    sa.Index("ix_jobs_created_at", "created_at", "id"),
    sa.Index("ix_jobs_table_created_at", "table_id", "created_at", "id"),
    # Find the table whose last lease is the longest ago, and the jobs that are old.
    sa.Index("ix_jobs_table_leased_at", "table_id", "leased_at"),
    sa.Index("ix_jobs_finished_at", "finished_at"),
)

_is_active = jobs.c.state.in_(["queued", "leased", "running"])
_is_held = jobs.c.state.in_(["leased", "running"])
_is_queued = jobs.c.state == "queued"
_is_real = sa.not_(jobs.c.dry_run)

# One active job of a kind on a table; dry runs do not count.
sa.Index(
    JOB_PER_KIND,
    jobs.c.table_id,
    jobs.c.kind,
    unique=True,
    sqlite_where=_is_active & _is_real,
    postgresql_where=_is_active & _is_real,
)
# At most one of compaction, clustering and bucket expansion is active on a table.
sa.Index(
    JOB_REWRITING,
    jobs.c.table_id,
    jobs.c.rewriting,
    unique=True,
    sqlite_where=_is_active,
    postgresql_where=_is_active,
)
# At most one writing job of a table is held by a worker: a cleaning waits for the compaction to end.
sa.Index(
    JOB_HOLDING_TABLE,
    jobs.c.table_id,
    unique=True,
    sqlite_where=_is_held & jobs.c.mutating,
    postgresql_where=_is_held & jobs.c.mutating,
)
# Every lease and every recovery searches these; ended jobs are not in them.
sa.Index("ix_jobs_queued", jobs.c.created_at, jobs.c.id, sqlite_where=_is_queued, postgresql_where=_is_queued)
sa.Index("ix_jobs_held", jobs.c.lease_deadline, sqlite_where=_is_held, postgresql_where=_is_held)

# The watch of each table: one row, inserted at registration.
watches = sa.Table(
    "watches",
    metadata,
    sa.Column("table_id", sa.String(64), sa.ForeignKey("tables.id", ondelete="CASCADE"), primary_key=True),
    # A claim advances this at once, so a claimer that dies only delays the next poll.
    sa.Column("next_poll_at", UtcDateTime, nullable=False),
    # Fingerprint of the timeline's files at the last recorded poll, and when that poll began.
    sa.Column("fingerprint", sa.String(64)),
    sa.Column("looked_at", UtcDateTime),
    sa.Column("timeline_path", sa.Text),
    # The oldest instant of the active timeline: commits from there on must be kept to recognize new ones.
    sa.Column("active_from", sa.String(32)),
    sa.Column("schema_digest", sa.String(32)),
    sa.Column("has_pending", sa.Boolean, nullable=False),
    sa.Column("gap_at", UtcDateTime),
    sa.Column("failures", sa.Integer, nullable=False),
    sa.Column("error", sa.JSON(none_as_null=True)),
    # The engines that write the table, by the marks of its commits: engine -> sighting.
    sa.Column("engines", sa.JSON, nullable=False, server_default="{}"),
    sa.Index("ix_watches_next_poll_at", "next_poll_at"),
)

# Problems of a table that must be resolved: one row for each instant that caused one.
incidents = sa.Table(
    "incidents",
    metadata,
    sa.Column("id", sa.String(64), primary_key=True),
    sa.Column("table_id", sa.String(64), sa.ForeignKey("tables.id", ondelete="CASCADE"), nullable=False),
    sa.Column("kind", sa.String(32), nullable=False),
    sa.Column("instant", sa.String(32), nullable=False),
    sa.Column("state", sa.String(16), nullable=False),
    sa.Column("operation", sa.String(32)),
    sa.Column("details", sa.JSON, nullable=False),
    sa.Column("opened_at", UtcDateTime, nullable=False),
    sa.Column("closed_at", UtcDateTime),
    # The reason for closing, as a sentence.
    sa.Column("because", sa.Text),
    sa.UniqueConstraint("table_id", "kind", "instant", name=INCIDENT_INSTANT),
    sa.Index("ix_incidents_table_opened_at", "table_id", "opened_at", "id"),
    sa.Index("ix_incidents_opened_at", "opened_at", "id"),
)

INCIDENT_IS_STANDING = incidents.c.state.in_(["suspected", "open"])
INCIDENT_IS_OF_LATE_FILES = incidents.c.kind == "late-files"

_big = sa.BigInteger().with_variant(sa.Integer(), "sqlite")

commits = sa.Table(
    "commits",
    metadata,
    # Grows in the order in which a table's commits completed.
    sa.Column("id", _big, primary_key=True, autoincrement=True),
    sa.Column("table_id", sa.String(64), sa.ForeignKey("tables.id", ondelete="CASCADE"), nullable=False),
    sa.Column("requested_time", sa.String(32), nullable=False),
    sa.Column("action", sa.String(32), nullable=False),
    sa.Column("completion_time", sa.String(32)),
    sa.Column("completed_at", UtcDateTime, nullable=False),
    sa.Column("seen_at", UtcDateTime, nullable=False),
    sa.Column("operation", sa.String(32)),
    sa.Column("rows_written", sa.BigInteger),
    sa.Column("rows_deleted", sa.BigInteger),
    sa.Column("bytes_written", sa.BigInteger),
    sa.Column("partitions", sa.JSON, nullable=False),
    sa.Column("file_groups", sa.Integer, nullable=False),
    sa.Column("schema_changed", sa.Boolean, nullable=False),
    sa.Column("is_news", sa.Boolean, nullable=False),
    sa.UniqueConstraint("table_id", "requested_time", "action", name=COMMIT_INSTANT),
    sa.Index("ix_commits_table_id", "table_id", "id"),
    sa.Index("ix_commits_seen_at", "seen_at"),
    sqlite_autoincrement=True,
)

snapshots = sa.Table(
    "snapshots",
    metadata,
    sa.Column("table_id", sa.String(64), sa.ForeignKey("tables.id", ondelete="CASCADE"), primary_key=True),
    sa.Column("taken_at", UtcDateTime, nullable=False),
    sa.Column("summary", sa.JSON, nullable=False),
)

partitions = sa.Table(
    "partitions",
    metadata,
    sa.Column("table_id", sa.String(64), sa.ForeignKey("tables.id", ondelete="CASCADE"), primary_key=True),
    sa.Column("path", sa.Text, primary_key=True),
    sa.Column("state", sa.JSON, nullable=False),
    # The buckets, and what the next listing of this partition needs.
    sa.Column("buckets", sa.JSON, nullable=False),
    sa.Column("base_rows", sa.JSON, nullable=False),
    sa.Column("replaced", sa.JSON, nullable=False),
)

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
)

# One row per level of a policy: first the levels of patterns, then those of tables.
policies = sa.Table(
    "policies",
    metadata,
    sa.Column("pattern", sa.String(255), primary_key=True),
    sa.Column("precedence", sa.Integer, nullable=False),
    sa.Column("settings", sa.JSON, nullable=False),
    sa.Column("created_at", UtcDateTime, nullable=False),
    sa.Column("updated_at", UtcDateTime, nullable=False),
)

table_policies = sa.Table(
    "table_policies",
    metadata,
    sa.Column("table_id", sa.String(64), sa.ForeignKey("tables.id", ondelete="CASCADE"), primary_key=True),
    sa.Column("settings", sa.JSON, nullable=False),
    sa.Column("updated_at", UtcDateTime, nullable=False),
)

# The time of each table's next decision. `due_since` orders the due tables: one that waits for capacity keeps its
# place.
planning = sa.Table(
    "planning",
    metadata,
    sa.Column("table_id", sa.String(64), sa.ForeignKey("tables.id", ondelete="CASCADE"), primary_key=True),
    sa.Column("next_decision_at", UtcDateTime, nullable=False),
    sa.Column("due_since", UtcDateTime, nullable=False),
    # Set while it waits for other tables' jobs: for any to end, or for one of a kind or worker group.
    sa.Column("deferred_for", sa.String(64)),
    sa.Index("ix_planning_next_decision_at", "next_decision_at"),
)

decisions = sa.Table(
    "decisions",
    metadata,
    # Counts up, so that the order does not depend on the clocks of several replicas.
    sa.Column("id", sa.BigInteger().with_variant(sa.Integer, "sqlite"), primary_key=True, autoincrement=True),
    sa.Column("table_id", sa.String(64), sa.ForeignKey("tables.id", ondelete="CASCADE"), nullable=False),
    sa.Column("kind", sa.String(32), nullable=False),
    sa.Column("verdict", sa.String(16), nullable=False),
    sa.Column("code", sa.String(64), nullable=False),
    sa.Column("because", sa.Text, nullable=False),
    sa.Column("warning", sa.Text),
    sa.Column("params", sa.JSON, nullable=False),
    sa.Column("first_at", UtcDateTime, nullable=False),
    sa.Column("last_at", UtcDateTime, nullable=False),
    sa.Column("count", sa.Integer, nullable=False),
    sa.Column("wanted_since", UtcDateTime),
    sa.Column("job_id", sa.String(64)),
    sa.Index("ix_decisions_table_kind", "table_id", "kind", "id"),
    sa.Index("ix_decisions_last_at", "last_at"),
)

# The one row that each automatic start of jobs locks first, so that limits hold and a pause takes effect at once.
automation = sa.Table(
    "automation",
    metadata,
    sa.Column("id", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("paused_since", UtcDateTime),
    sa.Column("paused_by", sa.Text),
    sa.Column("reason", sa.Text),
)

workers = sa.Table(
    "workers",
    metadata,
    sa.Column("id", sa.String(255), primary_key=True),
    sa.Column("version", sa.Text),
    sa.Column("master", sa.Text),
    sa.Column("slots", sa.Integer),
    sa.Column("driver_memory", sa.Text),
    sa.Column("group", sa.String(24), nullable=False, server_default="default"),
    sa.Column("first_seen", UtcDateTime, nullable=False),
    sa.Column("last_seen", UtcDateTime, nullable=False),
)

tokens = sa.Table(
    "tokens",
    metadata,
    sa.Column("id", sa.String(32), primary_key=True),
    sa.Column("name", sa.Text, nullable=False),
    sa.Column("role", sa.String(16), nullable=False),
    sa.Column("digest", sa.String(64), nullable=False),
    sa.Column("created_at", UtcDateTime, nullable=False),
    sa.Column("revoked_at", UtcDateTime),
)

# The outbox. `seq` grows in the order of the commits (see `service.delivery.outbox`), and is never reused.
events = sa.Table(
    "events",
    metadata,
    sa.Column("seq", _serial, primary_key=True, autoincrement=True),
    sa.Column("id", sa.String(64), nullable=False),
    sa.Column("type", sa.String(64), nullable=False),
    sa.Column("at", UtcDateTime, nullable=False),
    # No foreign key: an event stays true when its table is unregistered.
    sa.Column("table_id", sa.String(64)),
    sa.Column("data", sa.JSON, nullable=False),
    sa.UniqueConstraint("id", name=EVENT_ID),
    sa.Index("ix_events_at", "at"),
    sqlite_autoincrement=True,
)

webhooks = sa.Table(
    "webhooks",
    metadata,
    sa.Column("id", sa.String(64), primary_key=True),
    sa.Column("url", sa.Text, nullable=False),
    sa.Column("types", sa.JSON, nullable=False),
    sa.Column("tables", sa.JSON, nullable=False),
    sa.Column("description", sa.Text, nullable=False),
    sa.Column("sealed_secret", sa.Text, nullable=False),
    sa.Column("sealed_headers", sa.Text, nullable=False),
    sa.Column("sealed_old_secret", sa.Text),
    sa.Column("old_secret_until", UtcDateTime),
    sa.Column("disabled_because", sa.Text),
    sa.Column("disabled_at", UtcDateTime),
    sa.Column("failing_since", UtcDateTime),
    sa.Column("last_success_at", UtcDateTime),
    sa.Column("created_at", UtcDateTime, nullable=False),
    sa.Column("updated_at", UtcDateTime, nullable=False),
    sa.Index("ix_webhooks_created_at", "created_at", "id"),
)

# The delivery queues: the deliveries of one table to one webhook are sent one after the other. `next_at` is when the
# first one is due, null when none is pending. The process that has claimed a queue (`claimed_by`) may send from it
# until `claimed_until`.
queues = sa.Table(
    "lanes",
    metadata,
    sa.Column("id", _serial, primary_key=True, autoincrement=True),
    sa.Column("webhook_id", sa.String(64), sa.ForeignKey("webhooks.id", ondelete="CASCADE"), nullable=False),
    sa.Column("key", sa.String(64), nullable=False),
    sa.Column("next_at", UtcDateTime),
    sa.Column("claimed_by", sa.String(64)),
    sa.Column("claimed_until", UtcDateTime),
    sa.UniqueConstraint("webhook_id", "key", name=QUEUE_OF_WEBHOOK),
)
_has_pending = queues.c.next_at.is_not(None)
sa.Index("ix_lanes_due", queues.c.next_at, sqlite_where=_has_pending, postgresql_where=_has_pending)

deliveries = sa.Table(
    "deliveries",
    metadata,
    sa.Column("id", sa.String(64), primary_key=True),
    sa.Column("webhook_id", sa.String(64), sa.ForeignKey("webhooks.id", ondelete="CASCADE"), nullable=False),
    sa.Column("lane_id", _serial, sa.ForeignKey("lanes.id", ondelete="CASCADE"), nullable=False),
    sa.Column("event_seq", _serial, sa.ForeignKey("events.seq", ondelete="CASCADE"), nullable=False),
    sa.Column("state", sa.String(16), nullable=False),
    sa.Column("tries", sa.Integer, nullable=False),
    sa.Column("first_tried_at", UtcDateTime),
    sa.Column("created_at", UtcDateTime, nullable=False),
    sa.Column("ended_at", UtcDateTime),
    # An event is sent to a webhook as one delivery, however often it is published or replayed.
    sa.UniqueConstraint("webhook_id", "event_seq", name=DELIVERY_OF_EVENT),
    sa.Index("ix_deliveries_event", "event_seq"),
)
# A literal, not a bound value: SQLite uses a partial index only where it sees that the condition holds.
DELIVERY_IS_PENDING = deliveries.c.state == sa.literal_column("'pending'")
DELIVERY_IS_OPEN = deliveries.c.state != sa.literal_column("'delivered'")
sa.Index(
    "ix_deliveries_pending",
    deliveries.c.lane_id,
    deliveries.c.event_seq,
    sqlite_where=DELIVERY_IS_PENDING,
    postgresql_where=DELIVERY_IS_PENDING,
)
# For the most frequent queries: pending deliveries, and those that were given up.
sa.Index(
    "ix_deliveries_open",
    deliveries.c.webhook_id,
    deliveries.c.state,
    deliveries.c.event_seq,
    sqlite_where=DELIVERY_IS_OPEN,
    postgresql_where=DELIVERY_IS_OPEN,
)

delivery_attempts = sa.Table(
    "delivery_attempts",
    metadata,
    sa.Column("id", _serial, primary_key=True, autoincrement=True),
    sa.Column("delivery_id", sa.String(64), sa.ForeignKey("deliveries.id", ondelete="CASCADE"), nullable=False),
    sa.Column("at", UtcDateTime, nullable=False),
    sa.Column("milliseconds", sa.Integer, nullable=False),
    sa.Column("status", sa.Integer),
    sa.Column("error", sa.Text),
    sa.Column("excerpt", sa.Text, nullable=False),
    sa.Column("retry_at", UtcDateTime),
    sa.Index("ix_delivery_attempts_delivery", "delivery_id", "id"),
)
