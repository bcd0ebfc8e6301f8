"""Adds the CPU seconds and the bytes of each attempt, from which the service learns the cost of jobs."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0044"
down_revision = "0043"
works_with = "0039"

_COLUMNS = ("cpu_seconds", "bytes_read", "bytes_written")


def upgrade() -> None:
    with op.batch_alter_table("attempt_costs") as table:
        for name in _COLUMNS:
            table.add_column(sa.Column(name, sa.Double))


def downgrade() -> None:
    with op.batch_alter_table("attempt_costs") as table:
        for name in _COLUMNS:
            table.drop_column(name)
