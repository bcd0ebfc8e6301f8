"""Adds problems that somebody has acknowledged."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from service.db.schema.core import UtcDateTime

revision = "0029"
down_revision = "0028"
works_with = "0010"


def upgrade() -> None:
    op.create_table(
        "acknowledgements",
        sa.Column("problem_id", sa.String(32), primary_key=True),
        sa.Column("acknowledged_by", sa.Text, nullable=False),
        sa.Column("at", UtcDateTime, nullable=False),
    )


def downgrade() -> None:
    op.drop_table("acknowledgements")
