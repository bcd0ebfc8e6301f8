"""Policies, decisions, and the times at which tables are decided about."""

import sqlalchemy as sa

from service.db.schema.core import Serial, UtcDateTime, metadata

# One row per level of a policy: first the levels of patterns, then those of tables.
policies = sa.Table(
    "policies",
    metadata,
    sa.Column("pattern", sa.String(255), primary_key=True),
    sa.Column("precedence", sa.Integer, nullable=False),
    sa.Column("settings", sa.JSON, nullable=False),
    sa.Column("created_at", UtcDateTime, nullable=False),
    sa.Column("updated_at", UtcDateTime, nullable=False),
)

table_policies = sa.Table(
    "table_policies",
    metadata,
    sa.Column("table_id", sa.String(64), sa.ForeignKey("tables.id", ondelete="CASCADE"), primary_key=True),
    sa.Column("settings", sa.JSON, nullable=False),
    sa.Column("updated_at", UtcDateTime, nullable=False),
)

# The time of each table's next decision. `due_since` orders the due tables, so that a table that waits for capacity
# keeps its place.
planning = sa.Table(
    "planning",
    metadata,
    sa.Column("table_id", sa.String(64), sa.ForeignKey("tables.id", ondelete="CASCADE"), primary_key=True),
    sa.Column("next_decision_at", UtcDateTime, nullable=False),
    sa.Column("due_since", UtcDateTime, nullable=False),
    # Set while the table waits until jobs of other tables end: any jobs, or those of a kind or worker group.
    sa.Column("deferred_for", sa.String(64)),
    sa.Index("ix_planning_next_decision_at", "next_decision_at"),
)

decisions = sa.Table(
    "decisions",
    metadata,
    # The database counts these numbers up, so that the order does not depend on the clocks of several replicas.
    sa.Column("id", Serial, primary_key=True, autoincrement=True),
    sa.Column("table_id", sa.String(64), sa.ForeignKey("tables.id", ondelete="CASCADE"), nullable=False),
    sa.Column("kind", sa.String(32), nullable=False),
    sa.Column("verdict", sa.String(16), nullable=False),
    sa.Column("code", sa.String(64), nullable=False),
    sa.Column("because", sa.Text, nullable=False),
    sa.Column("warning", sa.Text),
    sa.Column("params", sa.JSON, nullable=False),
    sa.Column("first_at", UtcDateTime, nullable=False),
    sa.Column("last_at", UtcDateTime, nullable=False),
    sa.Column("count", sa.Integer, nullable=False),
    sa.Column("wanted_since", UtcDateTime),
    sa.Column("job_id", sa.String(64)),
    sa.Index("ix_decisions_table_kind", "table_id", "kind", "id"),
    sa.Index("ix_decisions_last_at", "last_at"),
)

freezes = sa.Table(
    "freezes",
    metadata,
    sa.Column("name", sa.String(64), primary_key=True),
    sa.Column("starts_at", UtcDateTime, nullable=False),
    sa.Column("ends_at", UtcDateTime, nullable=False),
    sa.Column("tables", sa.JSON, nullable=False),
    sa.Column("reason", sa.Text, nullable=False),
    sa.Column("set_by", sa.Text, nullable=False),
    sa.Column("created_at", UtcDateTime, nullable=False),
    sa.Column("updated_at", UtcDateTime, nullable=False),
)

# A transaction that starts jobs by policy first locks this one row, so that limits hold and a pause takes effect at
# once.
automation = sa.Table(
    "automation",
    metadata,
    sa.Column("id", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("paused_since", UtcDateTime),
    sa.Column("paused_by", sa.Text),
    sa.Column("reason", sa.Text),
)

# Shadow policies of patterns, which decide beside the real policies and start nothing.
policy_shadows = sa.Table(
    "policy_shadows",
    metadata,
    sa.Column("pattern", sa.String(255), primary_key=True),
    sa.Column("precedence", sa.Integer, nullable=False),
    sa.Column("settings", sa.JSON, nullable=False),
    sa.Column("started_at", UtcDateTime, nullable=False),
)

# The last advice about each table (`service.simulation.advice`). `own_before` is the value that the table's own level
# had before the advice was applied, null if it had none. `changed_at` is when the advice was applied or taken back.
advice = sa.Table(
    "advice",
    metadata,
    sa.Column("table_id", sa.String(64), sa.ForeignKey("tables.id", ondelete="CASCADE"), primary_key=True),
    sa.Column("computed_at", UtcDateTime, nullable=False),
    sa.Column("state", sa.String(16), nullable=False),
    sa.Column("setting", sa.String(64)),
    sa.Column("before", sa.Integer),
    sa.Column("after", sa.Integer),
    sa.Column("figures", sa.JSON, nullable=False),
    sa.Column("because", sa.Text, nullable=False),
    sa.Column("own_before", sa.Integer),
    sa.Column("changed_at", UtcDateTime),
    sa.Index("ix_advice_computed_at", "computed_at"),
)
