"""Counters of what has happened since the database was made."""

import sqlalchemy as sa

from service.db.schema.core import metadata

# Not counted from the rows of jobs and events, which are deleted after some time: a counter must not go down.
tallies = sa.Table(
    "tallies",
    metadata,
    sa.Column("name", sa.String(64), primary_key=True),
    # The values of its labels, separated by commas.
    sa.Column("labels", sa.String(128), primary_key=True),
    # Exact for whole numbers up to 2^53, which is 9 PB.
    sa.Column("value", sa.Double, nullable=False),
)
