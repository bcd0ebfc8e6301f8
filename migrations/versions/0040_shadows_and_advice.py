"""Adds policies that decide beside the real ones and start nothing, and advice about settings of tables."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0040"
down_revision = "0039"
works_with = "0039"


def upgrade() -> None:
    moment = sa.DateTime(timezone=True)
    op.create_table(
        "policy_shadows",
        sa.Column("pattern", sa.String(255), primary_key=True),
        sa.Column("precedence", sa.Integer, nullable=False),
        sa.Column("settings", sa.JSON, nullable=False),
        sa.Column("started_at", moment, nullable=False),
    )
    op.create_table(
        "advice",
        sa.Column("table_id", sa.String(64), sa.ForeignKey("tables.id", ondelete="CASCADE"), primary_key=True),
        sa.Column("computed_at", moment, nullable=False),
        sa.Column("state", sa.String(16), nullable=False),
        sa.Column("setting", sa.String(64)),
        sa.Column("before", sa.Integer),
        sa.Column("after", sa.Integer),
        sa.Column("figures", sa.JSON, nullable=False),
        sa.Column("because", sa.Text, nullable=False),
        sa.Column("own_before", sa.Integer),
        sa.Column("changed_at", moment),
    )
    op.create_index("ix_advice_computed_at", "advice", ["computed_at"])


def downgrade() -> None:
    op.drop_table("advice")
    op.drop_table("policy_shadows")
