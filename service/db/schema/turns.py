"""State by which the queue orders and delays jobs: the slot use of tables, the breakers of failing work, and the last
sightings of locks."""

import sqlalchemy as sa

from service.db.schema.core import UtcDateTime, metadata

# One row for each table that had a job. `used` orders tables by their slot-seconds (`service.queue.slot_use`).
turns = sa.Table(
    "turns",
    metadata,
    sa.Column("table_id", sa.String(64), sa.ForeignKey("tables.id", ondelete="CASCADE"), primary_key=True),
    sa.Column("used", sa.Double),
    # Failures of jobs that were submitted before this time do not count.
    sa.Column("mended_at", UtcDateTime),
)

# One row for each table and kind whose last attempts have failed (`service.queue.breaker`).
breakers = sa.Table(
    "breakers",
    metadata,
    sa.Column("table_id", sa.String(64), sa.ForeignKey("tables.id", ondelete="CASCADE"), primary_key=True),
    sa.Column("kind", sa.String(32), primary_key=True),
    sa.Column("worker_group", sa.String(24), nullable=False),
    sa.Column("failures", sa.Integer, nullable=False),
    sa.Column("seconds", sa.Double, nullable=False),
    sa.Column("since", UtcDateTime, nullable=False),
    sa.Column("failed_at", UtcDateTime, nullable=False),
    sa.Column("next_try_at", UtcDateTime, nullable=False),
    sa.Column("error", sa.JSON(none_as_null=True)),
    sa.Index("ix_breakers_failed_at", "failed_at"),
)

# One row for each table whose lock is checked while jobs wait (`service.locks.lock_watch`).
lock_looks = sa.Table(
    "lock_looks",
    metadata,
    sa.Column("table_id", sa.String(64), sa.ForeignKey("tables.id", ondelete="CASCADE"), primary_key=True),
    # A claim moves this time forward at once, so that replicas check different locks.
    sa.Column("next_look_at", UtcDateTime, nullable=False),
    # When the last completed check began; null before the first.
    sa.Column("looked_at", UtcDateTime),
    # Whether jobs that take the lock are held back.
    sa.Column("holds_back", sa.Boolean, nullable=False),
    sa.Column("state", sa.String(16), nullable=False),
    sa.Column("holder", sa.Text),
    sa.Column("since", UtcDateTime),
    sa.Column("detail", sa.Text),
    # A value that changes each time the lock is taken or renewed, and when the service first saw the present value.
    sa.Column("token", sa.Text),
    sa.Column("token_since", UtcDateTime),
    sa.Index("ix_lock_looks_next_look_at", "next_look_at"),
)
