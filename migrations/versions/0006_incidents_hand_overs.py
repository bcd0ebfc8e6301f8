"""Adds incidents of tables, the engines that write a table, and jobs that wait until the writers have been stopped."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from service.db.schema import UtcDateTime

revision = "0006"
down_revision = "0005"


def upgrade() -> None:
    op.add_column("jobs", sa.Column("waits_for_writers", sa.Boolean, nullable=False, server_default=sa.false()))
    op.add_column("jobs", sa.Column("hand_over", sa.JSON(none_as_null=True)))
    op.add_column("watches", sa.Column("engines", sa.JSON, nullable=False, server_default="{}"))
    op.create_table(
        "incidents",
        sa.Column("id", sa.String(64), primary_key=True),
        sa.Column("table_id", sa.String(64), nullable=False),
        sa.Column("kind", sa.String(32), nullable=False),
        sa.Column("instant", sa.String(32), nullable=False),
        sa.Column("state", sa.String(16), nullable=False),
        sa.Column("operation", sa.String(32)),
        sa.Column("details", sa.JSON, nullable=False),
        sa.Column("opened_at", UtcDateTime, nullable=False),
        sa.Column("closed_at", UtcDateTime),
        sa.Column("because", sa.Text),
        sa.ForeignKeyConstraint(["table_id"], ["tables.id"], name="fk_incidents_table_id", ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id", name="pk_incidents"),
        sa.UniqueConstraint("table_id", "kind", "instant", name="uq_incidents_instant"),
    )
    op.create_index("ix_incidents_table_opened_at", "incidents", ["table_id", "opened_at", "id"])
    op.create_index("ix_incidents_opened_at", "incidents", ["opened_at", "id"])


def downgrade() -> None:
    op.drop_table("incidents")
    op.drop_column("watches", "engines")
    op.drop_column("jobs", "hand_over")
    op.drop_column("jobs", "waits_for_writers")
