"""Adds the state of catalogs in which tables are found, and the tables that they list."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0042"
down_revision = "0041"
works_with = "0039"


def upgrade() -> None:
    moment = sa.DateTime(timezone=True)
    op.create_table(
        "catalogs",
        sa.Column("name", sa.String(63), primary_key=True),
        sa.Column("next_at", moment, nullable=False),
        sa.Column("synced_at", moment),
        sa.Column("failing_since", moment),
        sa.Column("differs_since", moment),
        sa.Column("failures", sa.Integer, nullable=False),
        sa.Column("error", sa.JSON),
        sa.Column("report", sa.JSON),
    )
    op.create_table(
        "catalog_tables",
        sa.Column("catalog", sa.String(63), primary_key=True),
        sa.Column("name", sa.String(400), primary_key=True),
        sa.Column("base_path", sa.Text, nullable=False),
        sa.Column("table_id", sa.String(64), nullable=False),
        sa.Column("is_ours", sa.Boolean, nullable=False),
        sa.Column("missing_since", moment),
    )


def downgrade() -> None:
    op.drop_table("catalog_tables")
    op.drop_table("catalogs")
