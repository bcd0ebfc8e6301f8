"""Adds notifications, and the problems that each of them has reported."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0031"
down_revision = "0030"
works_with = "0010"


def upgrade() -> None:
    moment = sa.DateTime(timezone=True)
    counted = sa.BigInteger().with_variant(sa.Integer, "sqlite")
    op.create_table(
        "notifications",
        sa.Column("name", sa.String(64), nullable=False),
        sa.Column("webhook_id", sa.String(64), nullable=False),
        sa.Column("events", sa.JSON, nullable=False),
        sa.Column("least_severity", sa.String(16), nullable=False),
        sa.Column("kinds", sa.JSON, nullable=False),
        sa.Column("tables", sa.JSON, nullable=False),
        sa.Column("most_per_hour", sa.Integer, nullable=False),
        sa.Column("quiet_hours", sa.JSON, nullable=False),
        sa.Column("time_zone", sa.Text, nullable=False),
        sa.Column("link", sa.Text, nullable=False),
        sa.Column("snoozed_until", moment),
        sa.Column("snoozed_because", sa.Text),
        sa.Column("read_to", counted, nullable=False),
        sa.Column("sent", sa.JSON, nullable=False),
        sa.Column("created_at", moment, nullable=False),
        sa.Column("updated_at", moment, nullable=False),
        sa.PrimaryKeyConstraint("name", name="pk_notifications"),
        sa.ForeignKeyConstraint(
            ["webhook_id"], ["webhooks.id"], name="fk_notifications_webhook_id", ondelete="CASCADE"
        ),
    )
    op.create_table(
        "told_problems",
        sa.Column("notification", sa.String(64), nullable=False),
        sa.Column("problem_id", sa.String(32), nullable=False),
        sa.Column("alert", sa.String(64), nullable=False),
        sa.Column("cause", sa.Text, nullable=False),
        sa.Column("kind", sa.String(64), nullable=False),
        sa.Column("severity", sa.String(16), nullable=False),
        sa.Column("title", sa.Text, nullable=False),
        sa.Column("about_type", sa.String(16), nullable=False),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("began_at", moment, nullable=False),
        sa.Column("told_at", moment),
        sa.PrimaryKeyConstraint("notification", "problem_id", name="pk_told_problems"),
        sa.ForeignKeyConstraint(
            ["notification"], ["notifications.name"], name="fk_told_problems_notification", ondelete="CASCADE"
        ),
    )


def downgrade() -> None:
    op.drop_table("told_problems")
    op.drop_table("notifications")
