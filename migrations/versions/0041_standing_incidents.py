"""Adds an index of the unresolved incidents, because they are counted often and are few."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0041"
down_revision = "0040"
works_with = "0039"


def upgrade() -> None:
    standing = sa.text("state IN ('suspected', 'open')")
    op.create_index(
        "ix_incidents_standing",
        "incidents",
        ["table_id", "kind", "state"],
        sqlite_where=standing,
        postgresql_where=standing,
    )


def downgrade() -> None:
    op.drop_index("ix_incidents_standing", "incidents")
