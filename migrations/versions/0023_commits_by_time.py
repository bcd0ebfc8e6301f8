"""Adds the indexes for pages of commits by the time of their completion."""

from __future__ import annotations

from alembic import op

revision = "0023"
down_revision = "0022"
works_with = "0010"


def upgrade() -> None:
    op.create_index("ix_commits_completed_at", "commits", ["completed_at", "id"])
    op.create_index("ix_commits_table_completed_at", "commits", ["table_id", "completed_at", "id"])
    op.create_index("ix_commits_action_completed_at", "commits", ["action", "completed_at", "id"])
    op.drop_index("ix_commits_action", "commits")


def downgrade() -> None:
    op.create_index("ix_commits_action", "commits", ["action", "id"])
    for name in ("ix_commits_completed_at", "ix_commits_table_completed_at", "ix_commits_action_completed_at"):
        op.drop_index(name, "commits")
