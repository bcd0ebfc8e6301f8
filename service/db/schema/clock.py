"""The last reading of the service's clock: one row."""

import sqlalchemy as sa

from service.db.schema.core import UtcDateTime, metadata

service_clock = sa.Table(
    "service_clock",
    metadata,
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("at", UtcDateTime, nullable=False),
    # Time of the clock that the service's clock follows, at the same moment.
    sa.Column("reference_at", UtcDateTime, nullable=False),
)
