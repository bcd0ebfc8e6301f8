"""Adds the service's clock, which goes on from the stored time after a restart."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"


def upgrade() -> None:
    moment = sa.DateTime(timezone=True)
    op.create_table(
        "service_clock",
        sa.Column("id", sa.Integer, nullable=False),
        sa.Column("at", moment, nullable=False),
        sa.Column("reference_at", moment, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_service_clock"),
    )


def downgrade() -> None:
    op.drop_table("service_clock")
