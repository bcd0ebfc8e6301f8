"""Registered tables, and the state in which the last poll found them."""

from typing import Any

import sqlalchemy as sa
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.compiler import SQLCompiler

from service.db.schema.core import Serial, UtcDateTime, metadata

TABLE_BASE_PATH = "uq_tables_base_path"

COMMIT_INSTANT = "uq_commits_instant"

tables = sa.Table(
    "tables",
    metadata,
    sa.Column("id", sa.String(64), primary_key=True),
    sa.Column("base_path", sa.Text, nullable=False),
    sa.Column("name", sa.Text, nullable=False),
    sa.Column("index", sa.JSON(none_as_null=True)),
    sa.Column("lock", sa.JSON, nullable=False),
    sa.Column("writers", sa.JSON, nullable=False),
    sa.Column("hudi_options", sa.JSON, nullable=False),
    sa.Column("profile", sa.JSON, nullable=False),
    sa.Column("created_at", UtcDateTime, nullable=False),
    sa.Column("updated_at", UtcDateTime, nullable=False),
    sa.Column("readers", sa.JSON(none_as_null=True)),
    sa.Column("owner", sa.Text),
    sa.Column("tags", sa.JSON, nullable=False, server_default="{}"),
    sa.UniqueConstraint("base_path", name=TABLE_BASE_PATH),
    sa.Index("ix_tables_created_at", "created_at", "id"),
)

# The watch of each table: one row, inserted at registration.
watches = sa.Table(
    "watches",
    metadata,
    sa.Column("table_id", sa.String(64), sa.ForeignKey("tables.id", ondelete="CASCADE"), primary_key=True),
    # A claim advances this at once. So if the process that has claimed a poll dies, the next poll is only delayed.
    sa.Column("next_poll_at", UtcDateTime, nullable=False),
    # Fingerprint of the timeline's files at the last recorded poll, and when that poll began.
    sa.Column("fingerprint", sa.String(64)),
    sa.Column("looked_at", UtcDateTime),
    sa.Column("timeline_path", sa.Text),
    # The oldest instant of the active timeline. Commits from this one on must be kept, so that new ones are recognized.
    sa.Column("active_from", sa.String(32)),
    sa.Column("schema_digest", sa.String(32)),
    sa.Column("has_pending", sa.Boolean, nullable=False),
    sa.Column("gap_at", UtcDateTime),
    sa.Column("failures", sa.Integer, nullable=False),
    sa.Column("failing_since", UtcDateTime),
    sa.Column("error", sa.JSON(none_as_null=True)),
    # The engines that write the table, by the marks of its commits: engine -> sighting.
    sa.Column("engines", sa.JSON, nullable=False, server_default="{}"),
    sa.Index("ix_watches_next_poll_at", "next_poll_at"),
)

commits = sa.Table(
    "commits",
    metadata,
    # The numbers grow in the order in which a table's commits completed.
    sa.Column("id", Serial, primary_key=True, autoincrement=True),
    sa.Column("table_id", sa.String(64), sa.ForeignKey("tables.id", ondelete="CASCADE"), nullable=False),
    sa.Column("requested_time", sa.String(32), nullable=False),
    sa.Column("action", sa.String(32), nullable=False),
    sa.Column("completion_time", sa.String(32)),
    sa.Column("completed_at", UtcDateTime, nullable=False),
    sa.Column("seen_at", UtcDateTime, nullable=False),
    sa.Column("operation", sa.String(32)),
    sa.Column("rows_written", sa.BigInteger),
    sa.Column("rows_deleted", sa.BigInteger),
    sa.Column("bytes_written", sa.BigInteger),
    sa.Column("partitions", sa.JSON, nullable=False),
    sa.Column("file_groups", sa.Integer, nullable=False),
    sa.Column("schema_changed", sa.Boolean, nullable=False),
    sa.Column("is_news", sa.Boolean, nullable=False),
    sa.UniqueConstraint("table_id", "requested_time", "action", name=COMMIT_INSTANT),
    sa.Index("ix_commits_table_id", "table_id", "id"),
    sa.Index("ix_commits_seen_at", "seen_at"),
    # Pages of the list, by time.
    sa.Index("ix_commits_completed_at", "completed_at", "id"),
    sa.Index("ix_commits_table_completed_at", "table_id", "completed_at", "id"),
    sa.Index("ix_commits_action_completed_at", "action", "completed_at", "id"),
    sqlite_autoincrement=True,
)


class _InSummary(sa.ColumnElement[int]):
    """A figure in the summary of a snapshot."""

    inherit_cache = False

    def __init__(self, name: str) -> None:
        self.name = name


@compiles(_InSummary, "postgresql")
def _of_postgresql(element: _InSummary, _: SQLCompiler, **__: Any) -> str:
    if element.name != "delta_commits":
        return f"(summary ->> '{element.name}')::bigint"
    commits = "(summary #>> '{since_compaction,commits}')::bigint"
    return f"CASE WHEN summary ->> 'table_type' = 'MERGE_ON_READ' THEN {commits} END"


@compiles(_InSummary, "sqlite")
def _of_sqlite(element: _InSummary, _: SQLCompiler, **__: Any) -> str:
    def member(path: str) -> str:
        # Python's encoder may have written NaN, which is not valid JSON.
        return f"CASE WHEN json_valid(summary) THEN json_extract(summary, '$.{path}') END"

    if element.name != "delta_commits":
        return f"CAST({member(element.name)} AS BIGINT)"
    commits = f"CAST({member('since_compaction.commits')} AS BIGINT)"
    return f"CASE WHEN {member('table_type')} = 'MERGE_ON_READ' THEN {commits} END"


snapshots = sa.Table(
    "snapshots",
    metadata,
    sa.Column("table_id", sa.String(64), sa.ForeignKey("tables.id", ondelete="CASCADE"), primary_key=True),
    sa.Column("taken_at", UtcDateTime, nullable=False),
    sa.Column("summary", sa.JSON, nullable=False),
    # The database derives these columns from the summary, so that sums over all tables need not parse it. SQLite
    # computes them at each read that does not use the index.
    *(
        sa.Column(name, sa.BigInteger, sa.Computed(_InSummary(name), persisted=True))
        for name in ("log_bytes", "base_bytes", "timeline_commits", "delta_commits")
    ),
    sa.Index("ix_snapshots_figures", "log_bytes", "base_bytes", "timeline_commits", "delta_commits"),
)

# Samples of each table over time (`service.catalog.sample_store`). `slot` is the time in units of `step` seconds.
samples = sa.Table(
    "samples",
    metadata,
    sa.Column("table_id", sa.String(64), sa.ForeignKey("tables.id", ondelete="CASCADE"), primary_key=True),
    sa.Column("step", sa.Integer, primary_key=True),
    sa.Column("slot", sa.BigInteger, primary_key=True),
    sa.Column("at", UtcDateTime, nullable=False),
    sa.Column("log_bytes", sa.BigInteger, nullable=False),
    sa.Column("base_bytes", sa.BigInteger, nullable=False),
    sa.Column("delta_commits", sa.BigInteger, nullable=False),
    sa.Column("file_groups", sa.BigInteger, nullable=False),
    sa.Column("base_files", sa.BigInteger, nullable=False),
    sa.Column("small_files", sa.BigInteger, nullable=False),
    sa.Column("freed_bytes", sa.BigInteger, nullable=False),
    sa.Column("timeline_commits", sa.BigInteger, nullable=False),
    sa.Column("compacted_at", UtcDateTime),
    sa.Column("metadata_commits", sa.BigInteger),
    sa.Column("metadata_log_files", sa.BigInteger),
    sa.Column("metadata_bytes", sa.BigInteger),
    sa.Index("ix_samples_step_at", "step", "at"),
)

partitions = sa.Table(
    "partitions",
    metadata,
    sa.Column("table_id", sa.String(64), sa.ForeignKey("tables.id", ondelete="CASCADE"), primary_key=True),
    sa.Column("path", sa.Text, primary_key=True),
    sa.Column("state", sa.JSON, nullable=False),
    # The buckets, and the data that the next listing of this partition needs.
    sa.Column("buckets", sa.JSON, nullable=False),
    sa.Column("base_rows", sa.JSON, nullable=False),
    sa.Column("replaced", sa.JSON, nullable=False),
)

# Readers that follow a table's commits, and the last commit that each has seen.
consumers = sa.Table(
    "consumers",
    metadata,
    sa.Column("table_id", sa.String(64), sa.ForeignKey("tables.id", ondelete="CASCADE"), primary_key=True),
    sa.Column("name", sa.String(64), primary_key=True),
    sa.Column("instant", sa.String(32), nullable=False),
    sa.Column("created_at", UtcDateTime, nullable=False),
    sa.Column("seen_at", UtcDateTime, nullable=False),
)

# One row for each catalog that the settings declare, with its last sync (`service.registration.catalogs`).
catalogs = sa.Table(
    "catalogs",
    metadata,
    sa.Column("name", sa.String(63), primary_key=True),
    # A claim moves this time forward at once, so that only one replica syncs.
    sa.Column("next_at", UtcDateTime, nullable=False),
    sa.Column("synced_at", UtcDateTime),
    sa.Column("failing_since", UtcDateTime),
    # When the first sync of the present series of syncs with findings ran.
    sa.Column("differs_since", UtcDateTime),
    sa.Column("failures", sa.Integer, nullable=False),
    sa.Column("error", sa.JSON(none_as_null=True)),
    sa.Column("report", sa.JSON(none_as_null=True)),
)

# There is no foreign key to the tables, because a table that somebody has unregistered must not be registered again.
catalog_tables = sa.Table(
    "catalog_tables",
    metadata,
    sa.Column("catalog", sa.String(63), primary_key=True),
    sa.Column("name", sa.String(400), primary_key=True),
    sa.Column("base_path", sa.Text, nullable=False),
    sa.Column("table_id", sa.String(64), nullable=False),
    sa.Column("is_ours", sa.Boolean, nullable=False),
    # When a sync first no longer found the table in the catalog.
    sa.Column("missing_since", UtcDateTime),
)
