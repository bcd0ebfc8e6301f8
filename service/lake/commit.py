"""A completed instant of a registered table, as its timeline tells it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from datetime import datetime

COMPACTION = "COMPACT"
CLUSTERING = "CLUSTER"
BUCKET_RESCALE = "BUCKET_RESCALE"
CLEAN = "clean"
"""An action, which has no operation type."""

WRITING_ACTIONS = ("commit", "deltacommit", "replacecommit")
"""The actions that add or replace rows."""

SERVICE_OPERATIONS = (COMPACTION, "LOG_COMPACT", CLUSTERING, BUCKET_RESCALE, "INDEX")
"""Hudi's `WriteOperationType`s that no writer ingests rows by (1.2)."""


@dataclass(frozen=True)
class Commit:
    """Times of instants are Hudi's own strings (see `service.lake.instant`); `seen_at` is the service's clock.

    `action` is the one it completed as: a compaction is a `commit`, a clustering a `replacecommit`. `completed_at` is
    the completion time as a moment; before table version 8, where timelines do not tell it, when the file was written.
    `operation` is Hudi's `WriteOperationType` (UPSERT, COMPACT, CLUSTER, BUCKET_RESCALE ...), None where the action has
    none. `rows_written` counts what the instant's files hold of inserts and updates, `bytes_written` those files; both
    None where the action writes no data. `partitions` are the paths it touched; `file_groups` counts those that it
    wrote or replaced. `schema_changed`: against the commit before it that had a schema. `is_news` is false for what had
    been completed when the table was registered: nobody is told of that. `id` orders what has been seen, and the
    commits of one table by their completion; 0 before it is stored.
    """

    table_id: str
    requested_time: str
    action: str
    completion_time: str | None
    seen_at: datetime
    completed_at: datetime
    operation: str | None = None
    rows_written: int | None = None
    rows_deleted: int | None = None
    bytes_written: int | None = None
    partitions: tuple[str, ...] = ()
    file_groups: int = 0
    schema_changed: bool = False
    is_news: bool = True
    id: int = 0

    @property
    def ingests(self) -> bool:
        """Whether a writer made it, and not a table service, and it changed anything: an idle Flink job commits nothing
        at each of its checkpoints."""
        is_writers = self.action in WRITING_ACTIONS and self.operation not in SERVICE_OPERATIONS
        return is_writers and self.file_groups > 0
