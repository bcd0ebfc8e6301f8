"""Adds samples of the metadata tables."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0043"
down_revision = "0042"
works_with = "0039"

_COLUMNS = ("metadata_commits", "metadata_log_files", "metadata_bytes")


def upgrade() -> None:
    for name in _COLUMNS:
        op.add_column("samples", sa.Column(name, sa.BigInteger))


def downgrade() -> None:
    for name in reversed(_COLUMNS):
        op.drop_column("samples", name)
