"""Adds the reasons for which workers did not start."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0026"
down_revision = "0025"
works_with = "0010"


def upgrade() -> None:
    op.add_column("workers", sa.Column("error", sa.JSON(none_as_null=True)))


def downgrade() -> None:
    op.drop_column("workers", "error")
