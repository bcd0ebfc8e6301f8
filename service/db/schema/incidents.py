"""Incidents of tables."""

import sqlalchemy as sa

from service.db.schema.core import UtcDateTime, literals, metadata

INCIDENT_INSTANT = "uq_incidents_instant"

# Problems of a table that somebody must resolve. Each instant that has caused a problem has one row.
incidents = sa.Table(
    "incidents",
    metadata,
    sa.Column("id", sa.String(64), primary_key=True),
    sa.Column("table_id", sa.String(64), sa.ForeignKey("tables.id", ondelete="CASCADE"), nullable=False),
    sa.Column("kind", sa.String(32), nullable=False),
    sa.Column("instant", sa.String(32), nullable=False),
    sa.Column("state", sa.String(16), nullable=False),
    sa.Column("operation", sa.String(32)),
    sa.Column("details", sa.JSON, nullable=False),
    sa.Column("opened_at", UtcDateTime, nullable=False),
    sa.Column("closed_at", UtcDateTime),
    # The reason for closing, as a sentence.
    sa.Column("because", sa.Text),
    sa.UniqueConstraint("table_id", "kind", "instant", name=INCIDENT_INSTANT),
    sa.Index("ix_incidents_table_opened_at", "table_id", "opened_at", "id"),
    sa.Index("ix_incidents_opened_at", "opened_at", "id"),
)

INCIDENT_IS_STANDING = incidents.c.state.in_(literals(["suspected", "open"]))
sa.Index(
    "ix_incidents_standing",
    incidents.c.table_id,
    incidents.c.kind,
    incidents.c.state,
    sqlite_where=INCIDENT_IS_STANDING,
    postgresql_where=INCIDENT_IS_STANDING,
)

INCIDENT_IS_OF_LATE_FILES = incidents.c.kind == "late-files"
