"""Adds the open problems of all tables, jobs and workers."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0020"
down_revision = "0019"
works_with = "0010"


def upgrade() -> None:
    moment = sa.DateTime(timezone=True)
    op.create_table(
        "standing_problems",
        sa.Column("id", sa.String(32), nullable=False),
        sa.Column("kind", sa.String(64), nullable=False),
        sa.Column("severity", sa.String(16), nullable=False),
        sa.Column("rank", sa.Integer, nullable=False),
        sa.Column("about_type", sa.String(16), nullable=False),
        sa.Column("about_id", sa.Text, nullable=False),
        sa.Column("about_name", sa.Text, nullable=False),
        sa.Column("table_id", sa.String(64)),
        sa.Column("since", moment, nullable=False),
        sa.Column("opened_at", moment, nullable=False),
        sa.Column("seen_at", moment, nullable=False),
        sa.Column("missed", sa.Integer, nullable=False),
        sa.Column("is_announced", sa.Boolean, nullable=False),
        sa.Column("resolved_at", moment),
        sa.Column("data", sa.JSON, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_standing_problems"),
    )
    op.create_index("ix_standing_problems_rank", "standing_problems", ["rank", "since", "id"])
    op.create_index("ix_standing_problems_table_id", "standing_problems", ["table_id", "rank"])
    op.create_index("ix_standing_problems_kind", "standing_problems", ["kind", "severity"])
    op.create_table(
        "problem_rounds",
        sa.Column("id", sa.Integer, nullable=False),
        sa.Column("at", moment, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_problem_rounds"),
    )


def downgrade() -> None:
    op.drop_table("problem_rounds")
    op.drop_table("standing_problems")
