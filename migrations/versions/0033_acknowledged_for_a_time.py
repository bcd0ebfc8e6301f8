"""Gives acknowledgements an end and a reason, which notifications report as well."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from service.db.schema.core import UtcDateTime

revision = "0033"
down_revision = "0032"
works_with = "0010"


def upgrade() -> None:
    op.add_column("acknowledgements", sa.Column("until", UtcDateTime))
    op.add_column("acknowledgements", sa.Column("reason", sa.Text))
    op.add_column("told_problems", sa.Column("acknowledged_at", UtcDateTime))


def downgrade() -> None:
    op.drop_column("told_problems", "acknowledged_at")
    op.drop_column("acknowledgements", "reason")
    op.drop_column("acknowledgements", "until")
