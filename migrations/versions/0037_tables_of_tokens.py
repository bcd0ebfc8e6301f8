"""Adds the tables on which the role of a token holds."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0037"
down_revision = "0036"
# Earlier versions of the service would give such a token its role on all tables.
works_with = "0037"


def upgrade() -> None:
    op.add_column("tokens", sa.Column("tables", sa.JSON(none_as_null=True)))


def downgrade() -> None:
    """Revokes these tokens, because an earlier version would give them their role on all tables."""
    op.execute("UPDATE tokens SET revoked_at = CURRENT_TIMESTAMP WHERE tables IS NOT NULL AND revoked_at IS NULL")
    op.drop_column("tokens", "tables")
