"""Adds the slot-seconds that tables have used, work that keeps failing, and locks that were examined."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0025"
down_revision = "0024"
works_with = "0010"


def _table_id(of: str) -> tuple[sa.Column[str], sa.ForeignKeyConstraint]:
    name = f"fk_{of}_table_id"
    return (
        sa.Column("table_id", sa.String(64), nullable=False),
        sa.ForeignKeyConstraint(["table_id"], ["tables.id"], name=name, ondelete="CASCADE"),
    )


def upgrade() -> None:
    moment = sa.DateTime(timezone=True)
    op.create_table(
        "turns",
        *_table_id("turns"),
        sa.Column("used", sa.Double),
        sa.Column("mended_at", moment),
        sa.PrimaryKeyConstraint("table_id", name="pk_turns"),
    )
    op.create_table(
        "breakers",
        *_table_id("breakers"),
        sa.Column("kind", sa.String(32), nullable=False),
        sa.Column("worker_group", sa.String(24), nullable=False),
        sa.Column("failures", sa.Integer, nullable=False),
        sa.Column("seconds", sa.Double, nullable=False),
        sa.Column("since", moment, nullable=False),
        sa.Column("failed_at", moment, nullable=False),
        sa.Column("next_try_at", moment, nullable=False),
        sa.Column("error", sa.JSON(none_as_null=True)),
        sa.PrimaryKeyConstraint("table_id", "kind", name="pk_breakers"),
    )
    op.create_index("ix_breakers_failed_at", "breakers", ["failed_at"])
    op.create_table(
        "lock_looks",
        *_table_id("lock_looks"),
        sa.Column("next_look_at", moment, nullable=False),
        sa.Column("looked_at", moment),
        sa.Column("holds_back", sa.Boolean, nullable=False),
        sa.Column("state", sa.String(16), nullable=False),
        sa.Column("holder", sa.Text),
        sa.Column("since", moment),
        sa.Column("detail", sa.Text),
        sa.Column("token", sa.Text),
        sa.Column("token_since", moment),
        sa.PrimaryKeyConstraint("table_id", name="pk_lock_looks"),
    )
    op.create_index("ix_lock_looks_next_look_at", "lock_looks", ["next_look_at"])
    # The reason why a queued job that is due is held back.
    op.add_column("jobs", sa.Column("held_back", sa.Text))


def downgrade() -> None:
    op.drop_column("jobs", "held_back")
    for table in ("lock_looks", "breakers", "turns"):
        op.drop_table(table)
