"""Adds counters for monitoring."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0019"
down_revision = "0018"
works_with = "0010"


def upgrade() -> None:
    op.create_table(
        "tallies",
        sa.Column("name", sa.String(64), nullable=False),
        sa.Column("labels", sa.String(128), nullable=False),
        sa.Column("value", sa.Double, nullable=False),
        sa.PrimaryKeyConstraint("name", "labels", name="pk_tallies"),
    )


def downgrade() -> None:
    op.drop_table("tallies")
