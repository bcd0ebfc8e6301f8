"""Plans of table services that writers delegate."""

import sqlalchemy as sa

from service.db.schema.core import UtcDateTime, metadata

# One row for each plan. The id is derived from base path, service and instant, so a repeated request finds the row.
delegated_plans = sa.Table(
    "delegated_plans",
    metadata,
    sa.Column("id", sa.String(64), primary_key=True),
    # Path of the data table, even if the plan belongs to its metadata table.
    sa.Column("base_path", sa.Text, nullable=False),
    sa.Column("service", sa.String(16), nullable=False),
    sa.Column("instant", sa.String(32), nullable=False),
    # Null while no table is registered with the base path.
    sa.Column("table_id", sa.String(64), sa.ForeignKey("tables.id", ondelete="CASCADE")),
    sa.Column("is_metadata", sa.Boolean, nullable=False),
    sa.Column("table_name", sa.Text, nullable=False),
    # What the writer asks for: queue, resource, parallelism, engine and user name.
    sa.Column("wishes", sa.JSON, nullable=False),
    sa.Column("requested_by", sa.Text, nullable=False),
    sa.Column("requested_at", UtcDateTime, nullable=False),
    sa.Column("last_requested_at", UtcDateTime, nullable=False),
    sa.Column("state", sa.String(16), nullable=False),
    # The reason for the state, as a sentence.
    sa.Column("because", sa.Text),
    sa.Column("job_id", sa.String(64)),
    sa.Column("ended_at", UtcDateTime),
    sa.Index("ix_delegated_plans_requested_at", "requested_at", "id"),
    sa.Index("ix_delegated_plans_table_id", "table_id", "state", "requested_at", "id"),
    sa.Index("ix_delegated_plans_base_path", "base_path", "requested_at"),
)
