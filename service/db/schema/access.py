"""Bearer tokens, sessions of browsers, and the audit trail."""

import sqlalchemy as sa

from service.db.schema.core import Serial, UtcDateTime, metadata

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
    # Worker groups whose jobs the token may lease; null means any.
    sa.Column("groups", sa.JSON(none_as_null=True)),
    # Patterns of the tables for which the token's role holds; null means all.
    sa.Column("tables", sa.JSON(none_as_null=True)),
)

sessions = sa.Table(
    "sessions",
    metadata,
    sa.Column("id", sa.String(32), primary_key=True),
    sa.Column("token_id", sa.String(32), sa.ForeignKey("tokens.id", ondelete="CASCADE"), nullable=False),
    sa.Column("digest", sa.String(64), nullable=False),
    sa.Column("created_at", UtcDateTime, nullable=False),
    sa.Column("expires_at", UtcDateTime, nullable=False),
    # Encrypted; null for a session of a token.
    sa.Column("id_token", sa.Text),
    sa.Index("ix_sessions_token", "token_id", "created_at"),
)

# Calls that changed something, or were refused. Entries have no foreign keys, because they stay when the objects that
# they name are deleted.
audit_entries = sa.Table(
    "audit_entries",
    metadata,
    sa.Column("id", Serial, primary_key=True),
    sa.Column("at", UtcDateTime, nullable=False),
    sa.Column("who", sa.Text, nullable=False),
    sa.Column("token_id", sa.String(32)),
    sa.Column("role", sa.String(16)),
    sa.Column("address", sa.String(64)),
    sa.Column("method", sa.String(16), nullable=False),
    sa.Column("route", sa.Text, nullable=False),
    sa.Column("operation", sa.String(64), nullable=False),
    sa.Column("object_type", sa.String(32)),
    sa.Column("object_id", sa.Text),
    sa.Column("object_name", sa.Text),
    sa.Column("before", sa.JSON(none_as_null=True)),
    sa.Column("after", sa.JSON(none_as_null=True)),
    # The status of HTTP; an entry of a command has none.
    sa.Column("status", sa.Integer),
    sa.Column("problem", sa.String(64)),
    sa.Column("repeats", sa.Integer, nullable=False),
    sa.Column("request_id", sa.String(128)),
    sa.Index("ix_audit_entries_at", "at", "id"),
    sa.Index("ix_audit_entries_token", "token_id", "at", "id"),
    sa.Index("ix_audit_entries_object", "object_id", "at", "id"),
    sa.Index(
        "ix_audit_entries_refused",
        "id",
        sqlite_where=sa.text("status >= 400"),
        postgresql_where=sa.text("status >= 400"),
    ),
)

AUDIT_IS_REFUSED = audit_entries.c.status >= 400
