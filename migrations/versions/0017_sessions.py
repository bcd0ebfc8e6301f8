"""Adds sessions of browsers."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from service.db.schema import UtcDateTime

revision = "0017"
down_revision = "0016"
works_with = "0010"


def upgrade() -> None:
    op.create_table(
        "sessions",
        sa.Column("id", sa.String(32), nullable=False),
        sa.Column("token_id", sa.String(32), nullable=False),
        sa.Column("digest", sa.String(64), nullable=False),
        sa.Column("created_at", UtcDateTime, nullable=False),
        sa.Column("expires_at", UtcDateTime, nullable=False),
        sa.ForeignKeyConstraint(["token_id"], ["tokens.id"], name="fk_sessions_token_id", ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id", name="pk_sessions"),
    )
    op.create_index("ix_sessions_token", "sessions", ["token_id", "created_at"])


def downgrade() -> None:
    op.drop_table("sessions")
