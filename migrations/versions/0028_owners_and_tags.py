"""Adds the owners and tags of tables."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0028"
down_revision = "0027"
works_with = "0010"


def upgrade() -> None:
    op.add_column("tables", sa.Column("owner", sa.Text))
    op.add_column("tables", sa.Column("tags", sa.JSON, nullable=False, server_default="{}"))


def downgrade() -> None:
    op.drop_column("tables", "tags")
    op.drop_column("tables", "owner")
