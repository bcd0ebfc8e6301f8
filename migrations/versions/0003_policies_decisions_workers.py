"""Adds policies, their decisions and workers, and the reason and the priority of each job."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    moment = sa.DateTime(timezone=True)
    op.add_column("jobs", sa.Column("priority", sa.Integer, nullable=False, server_default="0"))
    op.add_column("jobs", sa.Column("requested_by", sa.Text))
    op.add_column("jobs", sa.Column("reason", sa.Text))
    op.create_index("ix_jobs_table_leased_at", "jobs", ["table_id", "leased_at"])
    op.create_index("ix_jobs_finished_at", "jobs", ["finished_at"])

    op.create_table(
        "policies",
        sa.Column("pattern", sa.String(255), nullable=False),
        sa.Column("precedence", sa.Integer, nullable=False),
        sa.Column("settings", sa.JSON, nullable=False),
        sa.Column("created_at", moment, nullable=False),
        sa.Column("updated_at", moment, nullable=False),
        sa.PrimaryKeyConstraint("pattern", name="pk_policies"),
    )
    op.create_table(
        "table_policies",
        sa.Column("table_id", sa.String(64), nullable=False),
        sa.Column("settings", sa.JSON, nullable=False),
        sa.Column("updated_at", moment, nullable=False),
        sa.PrimaryKeyConstraint("table_id", name="pk_table_policies"),
        _of_a_table("table_policies"),
    )
    op.create_table(
        "planning",
        sa.Column("table_id", sa.String(64), nullable=False),
        sa.Column("next_decision_at", moment, nullable=False),
        sa.Column("due_since", moment, nullable=False),
        sa.Column("deferred_for", sa.String(32)),
        sa.PrimaryKeyConstraint("table_id", name="pk_planning"),
        _of_a_table("planning"),
    )
    op.create_index("ix_planning_next_decision_at", "planning", ["next_decision_at"])
    op.create_table(
        "decisions",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer, "sqlite"), nullable=False, autoincrement=True),
        sa.Column("table_id", sa.String(64), nullable=False),
        sa.Column("kind", sa.String(32), nullable=False),
        sa.Column("verdict", sa.String(16), nullable=False),
        sa.Column("code", sa.String(64), nullable=False),
        sa.Column("because", sa.Text, nullable=False),
        sa.Column("warning", sa.Text),
        sa.Column("params", sa.JSON, nullable=False),
        sa.Column("first_at", moment, nullable=False),
        sa.Column("last_at", moment, nullable=False),
        sa.Column("count", sa.Integer, nullable=False),
        sa.Column("wanted_since", moment),
        sa.Column("job_id", sa.String(64)),
        sa.PrimaryKeyConstraint("id", name="pk_decisions"),
        _of_a_table("decisions"),
    )
    op.create_index("ix_decisions_table_kind", "decisions", ["table_id", "kind", "id"])
    op.create_index("ix_decisions_last_at", "decisions", ["last_at"])
    op.create_table(
        "automation",
        sa.Column("id", sa.Integer, nullable=False, autoincrement=False),
        sa.Column("paused_since", moment),
        sa.Column("paused_by", sa.Text),
        sa.Column("reason", sa.Text),
        sa.PrimaryKeyConstraint("id", name="pk_automation"),
    )
    op.execute("INSERT INTO automation (id) VALUES (1)")
    op.create_table(
        "workers",
        sa.Column("id", sa.String(255), nullable=False),
        sa.Column("version", sa.Text),
        sa.Column("master", sa.Text),
        sa.Column("slots", sa.Integer),
        sa.Column("driver_memory", sa.Text),
        sa.Column("first_seen", moment, nullable=False),
        sa.Column("last_seen", moment, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_workers"),
    )


def downgrade() -> None:
    for table in ("workers", "automation", "decisions", "planning", "table_policies", "policies"):
        op.drop_table(table)
    op.drop_index("ix_jobs_finished_at", "jobs")
    op.drop_index("ix_jobs_table_leased_at", "jobs")
    for column in ("reason", "requested_by", "priority"):
        op.drop_column("jobs", column)


def _of_a_table(child: str) -> sa.ForeignKeyConstraint:
    return sa.ForeignKeyConstraint(["table_id"], ["tables.id"], name=f"fk_{child}_table_id", ondelete="CASCADE")
