"""Bearer tokens."""

import sqlalchemy as sa

from service.db.schema.core import UtcDateTime, metadata

tokens = sa.Table(
    "tokens",
    metadata,
    sa.Column("id", sa.String(32), primary_key=True),
    sa.Column("name", sa.Text, nullable=False),
    sa.Column("role", sa.String(16), nullable=False),
    sa.Column("digest", sa.String(64), nullable=False),
    sa.Column("created_at", UtcDateTime, nullable=False),
    sa.Column("expires_at", UtcDateTime),
    sa.Column("revoked_at", UtcDateTime),
    # Worker groups whose jobs it may lease; null means any.
    sa.Column("groups", sa.JSON(none_as_null=True)),
)
