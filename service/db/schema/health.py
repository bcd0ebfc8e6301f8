"""The open problems with the rounds that find them, and the incidents of tables."""

import sqlalchemy as sa

from service.db.schema.core import UtcDateTime, literals, metadata

# There is no foreign key to the tables, because after a table was unregistered, a round resolves its problems and
# announces this.
standing_problems = sa.Table(
    "standing_problems",
    metadata,
    sa.Column("id", sa.String(32), primary_key=True),
    sa.Column("kind", sa.String(64), nullable=False),
    sa.Column("severity", sa.String(16), nullable=False),
    # Number of the severity, for the order of the list.
    sa.Column("rank", sa.Integer, nullable=False),
    sa.Column("about_type", sa.String(16), nullable=False),
    sa.Column("about_id", sa.Text, nullable=False),
    sa.Column("about_name", sa.Text, nullable=False),
    sa.Column("table_id", sa.String(64)),
    sa.Column("since", UtcDateTime, nullable=False),
    sa.Column("opened_at", UtcDateTime, nullable=False),
    # When a round last wrote the row. A round that finds no change writes nothing.
    sa.Column("seen_at", UtcDateTime, nullable=False),
    # How many rounds in a row have not found the problem.
    sa.Column("missed", sa.Integer, nullable=False),
    sa.Column("is_announced", sa.Boolean, nullable=False),
    # Set when the problem has ended, until the end is announced; then the row is deleted.
    sa.Column("resolved_at", UtcDateTime),
    sa.Column("data", sa.JSON, nullable=False),
    sa.Index("ix_standing_problems_rank", "rank", "since", "id"),
    sa.Index("ix_standing_problems_table_id", "table_id", "rank"),
    sa.Index("ix_standing_problems_kind", "kind", "severity"),
)

# One row, which each transaction of a round locks, so that the replicas take turns. `at` is when the last round began.
problem_rounds = sa.Table(
    "problem_rounds",
    metadata,
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("at", UtcDateTime, nullable=False),
)

# A row lasts as long as its problem, but is deleted when the problem becomes more serious.
acknowledgements = sa.Table(
    "acknowledgements",
    metadata,
    sa.Column("problem_id", sa.String(32), primary_key=True),
    sa.Column("acknowledged_by", sa.Text, nullable=False),
    sa.Column("at", UtcDateTime, nullable=False),
    # Null: until the problem ends.
    sa.Column("until", UtcDateTime),
    sa.Column("reason", sa.Text),
)

INCIDENT_INSTANT = "uq_incidents_instant"

# Problems of a table that somebody must resolve. Each instant that has caused a problem has one row.
incidents = sa.Table(
    "incidents",
    metadata,
    sa.Column("id", sa.String(64), primary_key=True),
    sa.Column("table_id", sa.String(64), sa.ForeignKey("tables.id", ondelete="CASCADE"), nullable=False),
    sa.Column("kind", sa.String(32), nullable=False),
    sa.Column("instant", sa.String(32), nullable=False),
    sa.Column("state", sa.String(16), nullable=False),
    sa.Column("operation", sa.String(32)),
    sa.Column("details", sa.JSON, nullable=False),
    sa.Column("opened_at", UtcDateTime, nullable=False),
    sa.Column("closed_at", UtcDateTime),
    # The reason for closing, as a sentence.
    sa.Column("because", sa.Text),
    sa.UniqueConstraint("table_id", "kind", "instant", name=INCIDENT_INSTANT),
    sa.Index("ix_incidents_table_opened_at", "table_id", "opened_at", "id"),
    sa.Index("ix_incidents_opened_at", "opened_at", "id"),
)

INCIDENT_IS_STANDING = incidents.c.state.in_(literals(["suspected", "open"]))
sa.Index(
    "ix_incidents_standing",
    incidents.c.table_id,
    incidents.c.kind,
    incidents.c.state,
    sqlite_where=INCIDENT_IS_STANDING,
    postgresql_where=INCIDENT_IS_STANDING,
)

INCIDENT_IS_OF_LATE_FILES = incidents.c.kind == "late-files"
