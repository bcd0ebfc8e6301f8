"""What each attempt worked on, from which the cost of further jobs is learned."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0033"
down_revision = "0032"
works_with = "0010"

_TABLE = "attempt_figures"


def upgrade() -> None:
    op.add_column(_TABLE, sa.Column("dry_run", sa.Boolean, nullable=False, server_default=sa.false()))
    for name in ("work_bytes", "work_files"):
        op.add_column(_TABLE, sa.Column(name, sa.BigInteger, nullable=False, server_default="0"))


def downgrade() -> None:
    with op.batch_alter_table(_TABLE) as table:
        for name in ("dry_run", "work_bytes", "work_files"):
            table.drop_column(name)
