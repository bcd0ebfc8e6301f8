"""Adds the plans of table services that writers delegate to this service."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0013"
down_revision = "0012"
works_with = "0010"


def upgrade() -> None:
    op.create_table(
        "delegated_plans",
        sa.Column("id", sa.String(64), nullable=False),
        sa.Column("base_path", sa.Text, nullable=False),
        sa.Column("service", sa.String(16), nullable=False),
        sa.Column("instant", sa.String(32), nullable=False),
        sa.Column("table_id", sa.String(64)),
        sa.Column("is_metadata", sa.Boolean, nullable=False),
        sa.Column("table_name", sa.Text, nullable=False),
        sa.Column("wishes", sa.JSON, nullable=False),
        sa.Column("requested_by", sa.Text, nullable=False),
        sa.Column("requested_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("last_requested_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("state", sa.String(16), nullable=False),
        sa.Column("because", sa.Text),
        sa.Column("job_id", sa.String(64)),
        sa.Column("ended_at", sa.DateTime(timezone=True)),
        sa.PrimaryKeyConstraint("id", name="pk_delegated_plans"),
        sa.ForeignKeyConstraint(["table_id"], ["tables.id"], name="fk_delegated_plans_table_id", ondelete="CASCADE"),
    )
    op.create_index("ix_delegated_plans_requested_at", "delegated_plans", ["requested_at", "id"])
    op.create_index("ix_delegated_plans_table_id", "delegated_plans", ["table_id", "state", "requested_at", "id"])
    op.create_index("ix_delegated_plans_base_path", "delegated_plans", ["base_path", "requested_at"])


def downgrade() -> None:
    op.drop_table("delegated_plans")
