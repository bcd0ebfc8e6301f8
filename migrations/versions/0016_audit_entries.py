"""Adds the audit trail."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from service.db.schema import UtcDateTime

revision = "0016"
down_revision = "0015"
works_with = "0010"

_REFUSED = sa.text("status >= 400")


def upgrade() -> None:
    op.create_table(
        "audit_entries",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer, "sqlite"), nullable=False),
        sa.Column("at", UtcDateTime, nullable=False),
        sa.Column("who", sa.Text, nullable=False),
        sa.Column("token_id", sa.String(32)),
        sa.Column("role", sa.String(16)),
        sa.Column("address", sa.String(64)),
        sa.Column("method", sa.String(16), nullable=False),
        sa.Column("route", sa.Text, nullable=False),
        sa.Column("operation", sa.String(64), nullable=False),
        sa.Column("object_type", sa.String(32)),
        sa.Column("object_id", sa.Text),
        sa.Column("object_name", sa.Text),
        sa.Column("before", sa.JSON),
        sa.Column("after", sa.JSON),
        sa.Column("status", sa.Integer),
        sa.Column("problem", sa.String(64)),
        sa.Column("repeats", sa.Integer, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_audit_entries"),
    )
    op.create_index("ix_audit_entries_at", "audit_entries", ["at", "id"])
    op.create_index("ix_audit_entries_token", "audit_entries", ["token_id", "at", "id"])
    op.create_index("ix_audit_entries_object", "audit_entries", ["object_id", "at", "id"])
    op.create_index(
        "ix_audit_entries_refused", "audit_entries", ["id"], sqlite_where=_REFUSED, postgresql_where=_REFUSED
    )


def downgrade() -> None:
    op.drop_table("audit_entries")
