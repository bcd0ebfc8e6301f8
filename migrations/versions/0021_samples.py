"""Adds samples of tables over time."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0021"
down_revision = "0020"
works_with = "0010"


def upgrade() -> None:
    op.create_table(
        "samples",
        sa.Column("table_id", sa.String(64), nullable=False),
        sa.Column("step", sa.Integer, nullable=False),
        sa.Column("slot", sa.BigInteger, nullable=False),
        sa.Column("at", sa.DateTime(timezone=True), nullable=False),
        *(
            sa.Column(name, sa.BigInteger, nullable=False)
            for name in (
                "log_bytes",
                "base_bytes",
                "delta_commits",
                "file_groups",
                "base_files",
                "small_files",
                "freed_bytes",
                "timeline_commits",
            )
        ),
        sa.Column("compacted_at", sa.DateTime(timezone=True)),
        sa.PrimaryKeyConstraint("table_id", "step", "slot", name="pk_samples"),
        sa.ForeignKeyConstraint(["table_id"], ["tables.id"], name="fk_samples_table_id", ondelete="CASCADE"),
    )
    op.create_index("ix_samples_step_at", "samples", ["step", "at"])
    # Snapshots have new figures. The next poll of each table writes them, without listing its partitions again.
    op.execute("UPDATE watches SET fingerprint = NULL")


def downgrade() -> None:
    op.drop_table("samples")
