"""Adds the slots of workers that take submitted jobs while all other slots are taken."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0027"
down_revision = "0026"
works_with = "0010"


def upgrade() -> None:
    op.add_column("workers", sa.Column("spare_slots", sa.Integer, nullable=False, server_default="0"))


def downgrade() -> None:
    op.drop_column("workers", "spare_slots")
