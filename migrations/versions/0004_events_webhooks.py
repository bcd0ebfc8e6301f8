"""Adds the outbox (events to send), webhooks, and their deliveries."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    moment = sa.DateTime(timezone=True)
    counted = sa.BigInteger().with_variant(sa.Integer, "sqlite")
    op.create_table(
        "events",
        sa.Column("seq", counted, nullable=False, autoincrement=True),
        sa.Column("id", sa.String(64), nullable=False),
        sa.Column("type", sa.String(64), nullable=False),
        sa.Column("at", moment, nullable=False),
        sa.Column("table_id", sa.String(64)),
        sa.Column("data", sa.JSON, nullable=False),
        sa.PrimaryKeyConstraint("seq", name="pk_events"),
        sa.UniqueConstraint("id", name="uq_events_id"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_events_at", "events", ["at"])
    op.create_table(
        "webhooks",
        sa.Column("id", sa.String(64), nullable=False),
        sa.Column("url", sa.Text, nullable=False),
        sa.Column("types", sa.JSON, nullable=False),
        sa.Column("tables", sa.JSON, nullable=False),
        sa.Column("description", sa.Text, nullable=False),
        sa.Column("sealed_secret", sa.Text, nullable=False),
        sa.Column("sealed_headers", sa.Text, nullable=False),
        sa.Column("sealed_old_secret", sa.Text),
        sa.Column("old_secret_until", moment),
        sa.Column("disabled_because", sa.Text),
        sa.Column("disabled_at", moment),
        sa.Column("failing_since", moment),
        sa.Column("last_success_at", moment),
        sa.Column("created_at", moment, nullable=False),
        sa.Column("updated_at", moment, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_webhooks"),
    )
    op.create_index("ix_webhooks_created_at", "webhooks", ["created_at", "id"])
    op.create_table(
        "lanes",
        sa.Column("id", counted, nullable=False, autoincrement=True),
        sa.Column("webhook_id", sa.String(64), nullable=False),
        sa.Column("key", sa.String(64), nullable=False),
        sa.Column("next_at", moment),
        sa.Column("claimed_by", sa.String(64)),
        sa.Column("claimed_until", moment),
        sa.PrimaryKeyConstraint("id", name="pk_lanes"),
        sa.ForeignKeyConstraint(["webhook_id"], ["webhooks.id"], name="fk_lanes_webhook_id", ondelete="CASCADE"),
        sa.UniqueConstraint("webhook_id", "key", name="uq_lanes_webhook_key"),
    )
    _partial("ix_lanes_due", "lanes", ["next_at"], "next_at IS NOT NULL")
    op.create_table(
        "deliveries",
        sa.Column("id", sa.String(64), nullable=False),
        sa.Column("webhook_id", sa.String(64), nullable=False),
        sa.Column("lane_id", counted, nullable=False),
        sa.Column("event_seq", counted, nullable=False),
        sa.Column("state", sa.String(16), nullable=False),
        sa.Column("tries", sa.Integer, nullable=False),
        sa.Column("first_tried_at", moment),
        sa.Column("created_at", moment, nullable=False),
        sa.Column("ended_at", moment),
        sa.PrimaryKeyConstraint("id", name="pk_deliveries"),
        sa.ForeignKeyConstraint(["webhook_id"], ["webhooks.id"], name="fk_deliveries_webhook_id", ondelete="CASCADE"),
        sa.ForeignKeyConstraint(["lane_id"], ["lanes.id"], name="fk_deliveries_lane_id", ondelete="CASCADE"),
        sa.ForeignKeyConstraint(["event_seq"], ["events.seq"], name="fk_deliveries_event_seq", ondelete="CASCADE"),
        sa.UniqueConstraint("webhook_id", "event_seq", name="uq_deliveries_webhook_event"),
    )
    op.create_index("ix_deliveries_event", "deliveries", ["event_seq"])
    _partial("ix_deliveries_pending", "deliveries", ["lane_id", "event_seq"], "state = 'pending'")
    _partial("ix_deliveries_open", "deliveries", ["webhook_id", "state", "event_seq"], "state != 'delivered'")
    op.create_table(
        "delivery_attempts",
        sa.Column("id", counted, nullable=False, autoincrement=True),
        sa.Column("delivery_id", sa.String(64), nullable=False),
        sa.Column("at", moment, nullable=False),
        sa.Column("milliseconds", sa.Integer, nullable=False),
        sa.Column("status", sa.Integer),
        sa.Column("error", sa.Text),
        sa.Column("excerpt", sa.Text, nullable=False),
        sa.Column("retry_at", moment),
        sa.PrimaryKeyConstraint("id", name="pk_delivery_attempts"),
        sa.ForeignKeyConstraint(
            ["delivery_id"], ["deliveries.id"], name="fk_delivery_attempts_delivery_id", ondelete="CASCADE"
        ),
    )
    op.create_index("ix_delivery_attempts_delivery", "delivery_attempts", ["delivery_id", "id"])


def downgrade() -> None:
    for table in ("delivery_attempts", "deliveries", "lanes", "webhooks", "events"):
        op.drop_table(table)


def _partial(name: str, table: str, columns: list[str], where: str) -> None:
    condition = sa.text(where)
    op.create_index(name, table, columns, sqlite_where=condition, postgresql_where=condition)
