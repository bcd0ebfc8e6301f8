"""Adds what is declared about the readers of tables."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0024"
down_revision = "0023"
works_with = "0010"


def upgrade() -> None:
    op.add_column("tables", sa.Column("readers", sa.JSON(none_as_null=True)))


def downgrade() -> None:
    op.drop_column("tables", "readers")
