"""Adds the earlier versions of the service that can work with the schema of each revision."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision = "0009"
# The newest revision of the oldest version of the service that can work with the database after this migration. Each
# migration from here on has to say it; `service.db.migrate` records it. See "Upgrading replicas" in .docs/operation.md.
works_with = "0010"


def upgrade() -> None:
    op.create_table(
        "schema_revisions",
        sa.Column("revision", sa.String(32), nullable=False),
        sa.Column("works_with", sa.String(32), nullable=False),
        sa.PrimaryKeyConstraint("revision", name="pk_schema_revisions"),
    )


def downgrade() -> None:
    op.drop_table("schema_revisions")
