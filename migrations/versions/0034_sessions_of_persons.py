"""Adds the ID tokens of sessions that an OpenID provider has opened."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0034"
down_revision = "0033"
works_with = "0010"


def upgrade() -> None:
    op.add_column("sessions", sa.Column("id_token", sa.Text))


def downgrade() -> None:
    op.drop_column("sessions", "id_token")
