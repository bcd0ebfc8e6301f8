"""Adds indexes for the lists of jobs by state and kind, and of commits by action.

Without them the query for one page read all rows if only few rows matched the filter.
"""

from __future__ import annotations

from alembic import op

revision = "0012"
down_revision = "0011"
works_with = "0010"


def upgrade() -> None:
    op.create_index("ix_jobs_state_created_at", "jobs", ["state", "created_at", "id"])
    op.create_index("ix_jobs_kind_created_at", "jobs", ["kind", "created_at", "id"])
    op.create_index("ix_jobs_kind_state_created_at", "jobs", ["kind", "state", "created_at", "id"])
    op.create_index("ix_commits_action", "commits", ["action", "id"])


def downgrade() -> None:
    op.drop_index("ix_commits_action", "commits")
    op.drop_index("ix_jobs_kind_state_created_at", "jobs")
    op.drop_index("ix_jobs_kind_created_at", "jobs")
    op.drop_index("ix_jobs_state_created_at", "jobs")
