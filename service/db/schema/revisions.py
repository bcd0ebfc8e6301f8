"""The declarations of the revisions of the schema about earlier versions of the service."""

import sqlalchemy as sa

from service.db.schema.core import metadata

schema_revisions = sa.Table(
    "schema_revisions",
    metadata,
    sa.Column("revision", sa.String(32), primary_key=True),
    # The newest revision that is known to the oldest version that can work with this one.
    sa.Column("works_with", sa.String(32), nullable=False),
)
