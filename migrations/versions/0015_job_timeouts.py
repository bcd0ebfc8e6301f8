"""Adds time limits of single jobs."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0015"
down_revision = "0014"
works_with = "0010"


def upgrade() -> None:
    op.add_column("jobs", sa.Column("timeout_seconds", sa.Integer))


def downgrade() -> None:
    op.drop_column("jobs", "timeout_seconds")
