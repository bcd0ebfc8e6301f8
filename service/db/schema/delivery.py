"""The outbox of events, webhooks, and the deliveries between them."""

import sqlalchemy as sa

from service.db.schema.core import Serial, UtcDateTime, metadata

EVENT_ID = "uq_events_id"

QUEUE_OF_WEBHOOK = "uq_lanes_webhook_key"

DELIVERY_OF_EVENT = "uq_deliveries_webhook_event"

# The outbox. `seq` grows in the order of the transactions' commits (see `service.delivery.outbox`). No `seq` is reused.
events = sa.Table(
    "events",
    metadata,
    sa.Column("seq", Serial, primary_key=True, autoincrement=True),
    sa.Column("id", sa.String(64), nullable=False),
    sa.Column("type", sa.String(64), nullable=False),
    sa.Column("at", UtcDateTime, nullable=False),
    # There is no foreign key, because an event stays when its table is unregistered.
    sa.Column("table_id", sa.String(64)),
    sa.Column("data", sa.JSON, nullable=False),
    sa.UniqueConstraint("id", name=EVENT_ID),
    sa.Index("ix_events_at", "at"),
    sqlite_autoincrement=True,
)

# Values are literals, because SQLite uses a partial index only if it sees that the condition holds.
EVENT_IS_OF_PROBLEM = events.c.type.in_(
    [sa.literal_column("'problem.opened'"), sa.literal_column("'problem.resolved'")]
)

sa.Index("ix_events_problems", events.c.at, sqlite_where=EVENT_IS_OF_PROBLEM, postgresql_where=EVENT_IS_OF_PROBLEM)

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
    sa.Column("id", Serial, primary_key=True, autoincrement=True),
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
    sa.Column("lane_id", Serial, sa.ForeignKey("lanes.id", ondelete="CASCADE"), nullable=False),
    sa.Column("event_seq", Serial, sa.ForeignKey("events.seq", ondelete="CASCADE"), nullable=False),
    sa.Column("state", sa.String(16), nullable=False),
    sa.Column("tries", sa.Integer, nullable=False),
    sa.Column("first_tried_at", UtcDateTime),
    sa.Column("created_at", UtcDateTime, nullable=False),
    sa.Column("ended_at", UtcDateTime),
    # A webhook has one delivery of an event, however often the event is published or replayed.
    sa.UniqueConstraint("webhook_id", "event_seq", name=DELIVERY_OF_EVENT),
    sa.Index("ix_deliveries_event", "event_seq"),
)

# Values are literals, because SQLite uses a partial index only if it sees that the condition holds.
DELIVERY_IS_PENDING = deliveries.c.state == sa.literal_column("'pending'")

DELIVERY_IS_OPEN = deliveries.c.state != sa.literal_column("'delivered'")

sa.Index(
    "ix_deliveries_pending",
    deliveries.c.lane_id,
    deliveries.c.event_seq,
    sqlite_where=DELIVERY_IS_PENDING,
    postgresql_where=DELIVERY_IS_PENDING,
)

# Indexes for the most frequent queries: pending deliveries, and those that were given up.
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
    sa.Column("id", Serial, primary_key=True, autoincrement=True),
    sa.Column("delivery_id", sa.String(64), sa.ForeignKey("deliveries.id", ondelete="CASCADE"), nullable=False),
    sa.Column("at", UtcDateTime, nullable=False),
    sa.Column("milliseconds", sa.Integer, nullable=False),
    sa.Column("status", sa.Integer),
    sa.Column("error", sa.Text),
    sa.Column("excerpt", sa.Text, nullable=False),
    sa.Column("retry_at", UtcDateTime),
    sa.Index("ix_delivery_attempts_delivery", "delivery_id", "id"),
)

# Notifications for people. Each owns the webhook that sends its messages.
notifications = sa.Table(
    "notifications",
    metadata,
    sa.Column("name", sa.String(64), primary_key=True),
    sa.Column("webhook_id", sa.String(64), sa.ForeignKey("webhooks.id", ondelete="CASCADE"), nullable=False),
    sa.Column("events", sa.JSON, nullable=False),
    sa.Column("least_severity", sa.String(16), nullable=False),
    sa.Column("kinds", sa.JSON, nullable=False),
    sa.Column("tables", sa.JSON, nullable=False),
    sa.Column("most_per_hour", sa.Integer, nullable=False),
    sa.Column("quiet_hours", sa.JSON, nullable=False),
    sa.Column("time_zone", sa.Text, nullable=False),
    sa.Column("link", sa.Text, nullable=False),
    sa.Column("snoozed_until", UtcDateTime),
    sa.Column("snoozed_because", sa.Text),
    # The `seq` up to which events were searched for failed jobs.
    sa.Column("read_to", Serial, nullable=False),
    # Times of the messages of the last hour.
    sa.Column("sent", sa.JSON, nullable=False),
    # When the weekly report is due, and when the last one was sent.
    sa.Column("report", sa.JSON(none_as_null=True)),
    sa.Column("reported_at", UtcDateTime),
    sa.Column("created_at", UtcDateTime, nullable=False),
    sa.Column("updated_at", UtcDateTime, nullable=False),
)

# The open problems that a notification has reported, each with the alert whose message named the problem.
reported_problems = sa.Table(
    "told_problems",
    metadata,
    sa.Column("notification", sa.String(64), sa.ForeignKey("notifications.name", ondelete="CASCADE"), primary_key=True),
    sa.Column("problem_id", sa.String(32), primary_key=True),
    sa.Column("alert", sa.String(64), nullable=False),
    sa.Column("cause", sa.Text, nullable=False),
    sa.Column("kind", sa.String(64), nullable=False),
    sa.Column("severity", sa.String(16), nullable=False),
    sa.Column("title", sa.Text, nullable=False),
    sa.Column("about_type", sa.String(16), nullable=False),
    sa.Column("name", sa.Text, nullable=False),
    sa.Column("began_at", UtcDateTime, nullable=False),
    # Null if the problem was added to an alert without another message.
    sa.Column("told_at", UtcDateTime, key="reported_at"),
    sa.Column("acknowledged_at", UtcDateTime),
)
