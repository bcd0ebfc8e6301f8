"""Adds freezes: times in which the service starts no jobs by itself on some tables."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from service.db.schema import UtcDateTime

revision = "0030"
down_revision = "0029"
works_with = "0010"


def upgrade() -> None:
    op.create_table(
        "freezes",
        sa.Column("name", sa.String(64), nullable=False),
        sa.Column("starts_at", UtcDateTime, nullable=False),
        sa.Column("ends_at", UtcDateTime, nullable=False),
        sa.Column("tables", sa.JSON, nullable=False),
        sa.Column("reason", sa.Text, nullable=False),
        sa.Column("set_by", sa.Text, nullable=False),
        sa.Column("created_at", UtcDateTime, nullable=False),
        sa.Column("updated_at", UtcDateTime, nullable=False),
        sa.PrimaryKeyConstraint("name", name="pk_freezes"),
    )


def downgrade() -> None:
    op.drop_table("freezes")
