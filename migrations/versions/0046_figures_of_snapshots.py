"""Adds the figures of snapshots that the metrics add up, as columns that the database derives from the summaries.

Replicas of earlier versions do not name these columns, but the database fills them.
"""

from __future__ import annotations

from alembic import op

revision = "0046"
down_revision = "0045"
works_with = "0039"

_NUMBERS = ("log_bytes", "base_bytes", "timeline_commits")
_COLUMNS = (*_NUMBERS, "delta_commits")
_IS_MERGED = "'MERGE_ON_READ'"


def upgrade() -> None:
    if op.get_bind().dialect.name == "postgresql":
        found = {name: f"(summary ->> '{name}')::bigint" for name in _NUMBERS}
        commits = "(summary #>> '{since_compaction,commits}')::bigint"
        found["delta_commits"] = f"CASE WHEN summary ->> 'table_type' = {_IS_MERGED} THEN {commits} END"
        added = [f"ADD COLUMN {name} bigint GENERATED ALWAYS AS ({of}) STORED" for name, of in found.items()]
        # A single statement rewrites the table once.
        op.execute(f"ALTER TABLE snapshots {', '.join(added)}")
    else:
        _add_to_sqlite()
    op.create_index("ix_snapshots_figures", "snapshots", _COLUMNS)


def _add_to_sqlite() -> None:
    def member(path: str) -> str:
        # Python's encoder may have written NaN, which is no JSON.
        return f"CASE WHEN json_valid(summary) THEN json_extract(summary, '$.{path}') END"

    found = {name: f"CAST({member(name)} AS BIGINT)" for name in _NUMBERS}
    commits = f"CAST({member('since_compaction.commits')} AS BIGINT)"
    found["delta_commits"] = f"CASE WHEN {member('table_type')} = {_IS_MERGED} THEN {commits} END"
    for name, of in found.items():
        # SQLite adds only columns that it computes at each read; the index keeps their values.
        op.execute(f"ALTER TABLE snapshots ADD COLUMN {name} BIGINT GENERATED ALWAYS AS ({of}) VIRTUAL")


def downgrade() -> None:
    op.drop_index("ix_snapshots_figures")
    for name in _COLUMNS:
        op.execute(f"ALTER TABLE snapshots DROP COLUMN {name}")
