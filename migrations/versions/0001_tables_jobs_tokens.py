"""Creates the tables of registered tables, jobs with their attempts, and tokens."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None

_ACTIVE = "state IN ('queued', 'leased', 'running')"
_HELD = "state IN ('leased', 'running')"


def upgrade() -> None:
    moment = sa.DateTime(timezone=True)
    op.create_table(
        "tables",
        sa.Column("id", sa.String(64), nullable=False),
        sa.Column("base_path", sa.Text, nullable=False),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("index", sa.JSON),
        sa.Column("lock", sa.JSON, nullable=False),
        sa.Column("writers", sa.JSON, nullable=False),
        sa.Column("hudi_options", sa.JSON, nullable=False),
        sa.Column("profile", sa.JSON, nullable=False),
        sa.Column("created_at", moment, nullable=False),
        sa.Column("updated_at", moment, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_tables"),
        sa.UniqueConstraint("base_path", name="uq_tables_base_path"),
    )
    op.create_index("ix_tables_created_at", "tables", ["created_at", "id"])

    op.create_table(
        "jobs",
        sa.Column("id", sa.String(64), nullable=False),
        sa.Column("table_id", sa.String(64), nullable=False),
        sa.Column("kind", sa.String(32), nullable=False),
        sa.Column("params", sa.JSON, nullable=False),
        sa.Column("dry_run", sa.Boolean, nullable=False),
        sa.Column("mutating", sa.Boolean, nullable=False),
        sa.Column("rewriting", sa.Boolean),
        sa.Column("state", sa.String(16), nullable=False),
        sa.Column("attempt", sa.Integer, nullable=False),
        sa.Column("max_attempts", sa.Integer, nullable=False),
        sa.Column("not_before", moment, nullable=False),
        sa.Column("lease_deadline", moment),
        sa.Column("worker_id", sa.Text),
        sa.Column("progress", sa.JSON),
        sa.Column("instants", sa.JSON, nullable=False),
        sa.Column("result", sa.JSON),
        sa.Column("error", sa.JSON),
        sa.Column("cancel_requested", sa.Boolean, nullable=False),
        sa.Column("idempotency_key", sa.String(255)),
        sa.Column("created_at", moment, nullable=False),
        sa.Column("leased_at", moment),
        sa.Column("started_at", moment),
        sa.Column("finished_at", moment),
        sa.PrimaryKeyConstraint("id", name="pk_jobs"),
        sa.ForeignKeyConstraint(["table_id"], ["tables.id"], name="fk_jobs_table_id", ondelete="CASCADE"),
        sa.UniqueConstraint("table_id", "idempotency_key", name="uq_jobs_idempotency_key"),
    )
    op.create_index("ix_jobs_created_at", "jobs", ["created_at", "id"])
    op.create_index("ix_jobs_table_created_at", "jobs", ["table_id", "created_at", "id"])
    _partial("uq_jobs_active_kind", ["table_id", "kind"], f"{_ACTIVE} AND NOT dry_run", unique=True)
    _partial("uq_jobs_active_rewriting", ["table_id", "rewriting"], _ACTIVE, unique=True)
    _partial("uq_jobs_held_mutating", ["table_id"], f"{_HELD} AND mutating", unique=True)
    _partial("ix_jobs_queued", ["created_at", "id"], "state = 'queued'")
    _partial("ix_jobs_held", ["lease_deadline"], _HELD)

    op.create_table(
        "job_attempts",
        sa.Column("job_id", sa.String(64), nullable=False),
        sa.Column("attempt", sa.Integer, nullable=False, autoincrement=False),
        sa.Column("worker_id", sa.Text, nullable=False),
        sa.Column("started_at", moment, nullable=False),
        sa.Column("ended_at", moment),
        sa.Column("outcome", sa.String(16)),
        sa.Column("error", sa.JSON),
        sa.PrimaryKeyConstraint("job_id", "attempt", name="pk_job_attempts"),
        sa.ForeignKeyConstraint(["job_id"], ["jobs.id"], name="fk_job_attempts_job_id", ondelete="CASCADE"),
    )
    op.create_table(
        "tokens",
        sa.Column("id", sa.String(32), nullable=False),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("role", sa.String(16), nullable=False),
        sa.Column("digest", sa.String(64), nullable=False),
        sa.Column("created_at", moment, nullable=False),
        sa.Column("revoked_at", moment),
        sa.PrimaryKeyConstraint("id", name="pk_tokens"),
    )


def downgrade() -> None:
    for table in ("tokens", "job_attempts", "jobs", "tables"):
        op.drop_table(table)


def _partial(name: str, columns: list[str], where: str, *, unique: bool = False) -> None:
    condition = sa.text(where)
    op.create_index(name, "jobs", columns, unique=unique, sqlite_where=condition, postgresql_where=condition)
