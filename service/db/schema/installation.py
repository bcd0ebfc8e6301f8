"""The installation itself: the last reading of its clock, and the revisions of the schema."""

import sqlalchemy as sa

from service.db.schema.core import UtcDateTime, metadata

# The table has one row.
service_clock = sa.Table(
    "service_clock",
    metadata,
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("at", UtcDateTime, nullable=False),
    # Time of the clock that the service's clock follows, at the same moment.
    sa.Column("reference_at", UtcDateTime, nullable=False),
)

# What the revisions of the schema declare about earlier versions of the service.
schema_revisions = sa.Table(
    "schema_revisions",
    metadata,
    sa.Column("revision", sa.String(32), primary_key=True),
    # An earlier version can work with this revision if it knows the revision in this column.
    sa.Column("works_with", sa.String(32), nullable=False),
)
