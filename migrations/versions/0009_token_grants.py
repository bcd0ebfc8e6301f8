"""Adds the expiry of tokens, the worker groups granted to them, and the token that holds a lease."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"


def upgrade() -> None:
    op.add_column("tokens", sa.Column("expires_at", sa.DateTime(timezone=True)))
    op.add_column("tokens", sa.Column("groups", sa.JSON(none_as_null=True)))
    op.add_column("jobs", sa.Column("lease_token", sa.String(32)))


def downgrade() -> None:
    op.drop_column("jobs", "lease_token")
    op.drop_column("tokens", "groups")
    op.drop_column("tokens", "expires_at")
