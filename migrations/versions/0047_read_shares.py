"""Adds the state of tables whose reads may cost more than the objective allows, because few of all reads concern
them."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0047"
down_revision = "0046"
works_with = "0039"

_COLUMNS = {"level": sa.Text, "reads_per_day": sa.Double, "price": sa.Double}


def upgrade() -> None:
    with op.batch_alter_table("objective_states") as table:
        for name, kind in _COLUMNS.items():
            table.add_column(sa.Column(name, kind))


def downgrade() -> None:
    with op.batch_alter_table("objective_states") as table:
        for name in _COLUMNS:
            table.drop_column(name)
