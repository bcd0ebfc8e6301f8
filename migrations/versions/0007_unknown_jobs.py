"""Adds jobs of unknown outcome, which the next poll of their table settles."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"


def upgrade() -> None:
    is_unknown = sa.text("state = 'unknown'")
    op.create_index("ix_jobs_unknown", "jobs", ["table_id"], sqlite_where=is_unknown, postgresql_where=is_unknown)


def downgrade() -> None:
    op.drop_index("ix_jobs_unknown", "jobs")
    op.execute("UPDATE jobs SET state = 'failed' WHERE state = 'unknown'")
