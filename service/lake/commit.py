"""A completed instant of a registered table, as its timeline records it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from datetime import datetime

COMPACTION = "COMPACT"
CLUSTERING = "CLUSTER"
BUCKET_RESCALE = "BUCKET_RESCALE"
CLEAN = "clean"
"""An action without an operation type."""

WRITING_ACTIONS = ("commit", "deltacommit", "replacecommit")
"""The actions that add or replace rows."""

SERVICE_OPERATIONS = (COMPACTION, "LOG_COMPACT", CLUSTERING, BUCKET_RESCALE, "INDEX")
"""Hudi's `WriteOperationType`s that ingest no rows (1.2)."""


@dataclass(frozen=True)
class Commit:
    """Times of instants are Hudi's own strings (see `service.lake.instant`); `seen_at` is the service's clock.

    `action` is the action at completion: a compaction is a `commit`, a clustering a `replacecommit`. `completed_at` is
    the completion time as a datetime; before table version 8, whose timelines do not record it, the modification time
    of the instant's file. `operation` is Hudi's `WriteOperationType` (UPSERT, COMPACT, CLUSTER, BUCKET_RESCALE ...),
    None if the action has none. `rows_written` counts the inserts and updates in the instant's files, `bytes_written`
    is the size of those files; both are None if the action writes no data. `partitions` are the paths that the instant
    touched; `file_groups` counts the file groups that it wrote or replaced. `schema_changed` compares with the last
    commit before it that had a schema. `is_news` is false if the instant had completed when the table was registered:
    no event is published for it. `id` orders commits by discovery, and the commits of one table by completion; 0 before
    the commit is stored.
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
        """Returns whether a writer, not a table service, made the commit, and it changed anything. An idle Flink job
        makes an empty commit at each checkpoint."""
        is_from_writer = self.action in WRITING_ACTIONS and self.operation not in SERVICE_OPERATIONS
        return is_from_writer and self.file_groups > 0
