"""The open problems, and the rounds that find them."""

import sqlalchemy as sa

from service.db.schema.core import UtcDateTime, metadata

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
