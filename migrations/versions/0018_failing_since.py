"""Adds the moment since which the polls of a table have been failing."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0018"
down_revision = "0017"
works_with = "0010"


def upgrade() -> None:
    op.add_column("watches", sa.Column("failing_since", sa.DateTime(timezone=True)))


def downgrade() -> None:
    op.drop_column("watches", "failing_since")
