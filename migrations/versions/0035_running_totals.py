"""Replaces the figures of single attempts by running totals, so that reports of long and short periods are equally
fast.

Also adds samples of the state of all tables, the weekly report of a notification, and the Spark application of an
attempt.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0035"
down_revision = "0034"
# Earlier versions of the service would mix figures of single attempts with the totals.
works_with = "0035"

_AMOUNTS = (
    *("succeeded", "failed", "seconds", "gb_seconds", "freed_bytes", "files_deleted", "files_before", "files_after"),
    *("log_files", "log_bytes", "locked_seconds", "stopped_seconds"),
)
_PROBLEMS = sa.text("type IN ('problem.opened', 'problem.resolved')")


def upgrade() -> None:
    moment = sa.DateTime(timezone=True)
    op.create_table(
        "figure_totals",
        sa.Column("table_id", sa.String(64), primary_key=True),
        sa.Column("kind", sa.String(32), primary_key=True),
        sa.Column("ended_at", moment, nullable=False),
        *(sa.Column(name, sa.Integer if name in _AMOUNTS[:2] else sa.Double, nullable=False) for name in _AMOUNTS),
    )
    op.create_index("ix_attempt_figures_key", "attempt_figures", ["table_id", "kind", "ended_at"])
    _rewrite("sum({}) OVER (PARTITION BY table_id, kind ORDER BY ended_at, id)")
    names = ", ".join(_AMOUNTS)
    op.execute(
        f"INSERT INTO figure_totals (table_id, kind, ended_at, {names}) SELECT table_id, kind, ended_at, {names}"  # noqa: S608
        " FROM attempt_figures a WHERE NOT EXISTS (SELECT 1 FROM attempt_figures b WHERE b.table_id = a.table_id"
        " AND b.kind = a.kind AND (b.ended_at > a.ended_at OR (b.ended_at = a.ended_at AND b.id > a.id)))"
    )
    op.create_index("ix_events_problems", "events", ["at"], sqlite_where=_PROBLEMS, postgresql_where=_PROBLEMS)
    op.create_table(
        "fleet_samples",
        sa.Column("slot", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("at", moment, nullable=False),
        sa.Column("tables", sa.Integer, nullable=False),
        sa.Column("log_bytes", sa.BigInteger, nullable=False),
        sa.Column("queued", sa.Integer, nullable=False),
        sa.Column("running", sa.Integer, nullable=False),
        sa.Column("slots", sa.Integer, nullable=False),
        sa.Column("succeeded", sa.Double, nullable=False),
        sa.Column("failed", sa.Double, nullable=False),
        sa.Column("cancelled", sa.Double, nullable=False),
        sa.Column("freed_bytes", sa.Double, nullable=False),
    )
    op.add_column("notifications", sa.Column("report", sa.JSON))
    op.add_column("notifications", sa.Column("reported_at", moment))
    for table in ("workers", "job_attempts"):
        op.add_column(table, sa.Column("application_id", sa.String(128)))
        op.add_column(table, sa.Column("ui_url", sa.Text))


def downgrade() -> None:
    for table in ("workers", "job_attempts"):
        op.drop_column(table, "ui_url")
        op.drop_column(table, "application_id")
    op.drop_column("notifications", "reported_at")
    op.drop_column("notifications", "report")
    op.drop_table("fleet_samples")
    op.drop_index("ix_events_problems", "events")
    _rewrite("{0} - coalesce(lag({0}) OVER (PARTITION BY table_id, kind ORDER BY ended_at, id), 0)")
    op.drop_index("ix_attempt_figures_key", "attempt_figures")
    op.drop_table("figure_totals")


def _rewrite(amount: str) -> None:
    """Replaces each amount by this expression, computed over all rows."""
    names = ", ".join(("id", "ended_at", "table_id", "kind", *_AMOUNTS))
    wanted = ", ".join(f"{amount.format(name)} AS {name}" for name in _AMOUNTS)
    op.execute(f"CREATE TABLE figures_anew AS SELECT id, ended_at, table_id, kind, {wanted} FROM attempt_figures")  # noqa: S608
    op.execute("DELETE FROM attempt_figures")
    op.execute(f"INSERT INTO attempt_figures ({names}) SELECT {names} FROM figures_anew")  # noqa: S608
    op.execute("DROP TABLE figures_anew")
