"""Adds consumers of tables, and the last instants that they have seen."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from service.db.schema import UtcDateTime

revision = "0014"
down_revision = "0013"
works_with = "0010"


def upgrade() -> None:
    op.create_table(
        "consumers",
        sa.Column("table_id", sa.String(64), nullable=False),
        sa.Column("name", sa.String(64), nullable=False),
        sa.Column("instant", sa.String(32), nullable=False),
        sa.Column("created_at", UtcDateTime, nullable=False),
        sa.Column("seen_at", UtcDateTime, nullable=False),
        sa.ForeignKeyConstraint(["table_id"], ["tables.id"], name="fk_consumers_table_id", ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("table_id", "name", name="pk_consumers"),
    )


def downgrade() -> None:
    op.drop_table("consumers")
