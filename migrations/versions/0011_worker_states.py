"""Adds the state of workers: whether they have executors, and the options of their Spark."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0011"
down_revision = "0010"
works_with = "0010"


def upgrade() -> None:
    op.add_column("workers", sa.Column("state", sa.String(24)))
    op.add_column("workers", sa.Column("executors", sa.Integer))
    op.add_column("workers", sa.Column("spark_conf", sa.JSON, nullable=False, server_default="{}"))


def downgrade() -> None:
    for column in ("spark_conf", "executors", "state"):
        op.drop_column("workers", column)
