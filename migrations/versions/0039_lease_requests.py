"""Adds the requests of workers for their jobs: a repeated request brings the same job."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0039"
down_revision = "0038"
works_with = "0038"

_NAME = "uq_jobs_lease_request"


def upgrade() -> None:
    op.add_column("jobs", sa.Column("lease_request", sa.String(64)))
    is_held = sa.text("state IN ('leased', 'running')")
    op.create_index(_NAME, "jobs", ["lease_request"], unique=True, sqlite_where=is_held, postgresql_where=is_held)


def downgrade() -> None:
    op.drop_index(_NAME, "jobs")
    op.drop_column("jobs", "lease_request")
