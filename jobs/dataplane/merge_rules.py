"""A merge of a file slice in words: the rules of the table, the files of the slice, and the numbers that come of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal


@dataclass(frozen=True)
class MergeRules:
    """The table's rules of merging.

    `latest` is the newest instant of which blocks are known to count: the newest completed commit, rollback or delta
    commit of the active timeline (`HoodieCompactor.getMaxInstantTime`). On table version 6 only blocks of completed
    instants count: those in `completed`, and those before `archived_before` (the first instant of the active timeline;
    "" for none) that are not `pending`. From version 8 on every log file of a slice belongs to a completed instant.
    `delete_marker` are the column and value of `hoodie.payload.delete.field` and `hoodie.payload.delete.marker`.
    `by_older_hudi`: a Hudi before 1.0 writes or reads the logs too; only what it merges alike counts as proved.
    `with_default` are the columns whose default in the table's Avro schema is not null: files may not lack them.
    """

    mode: Literal["EVENT_TIME_ORDERING", "COMMIT_TIME_ORDERING"]
    ordering_fields: tuple[str, ...]
    table_version: int
    completed: frozenset[str]
    latest: str
    pending: frozenset[str] = frozenset()
    archived_before: str = ""
    delete_marker: tuple[str, str] | None = None
    with_default: frozenset[str] = frozenset()
    by_older_hudi: bool = False

    def has_completed(self, instant: str) -> bool:
        return instant in self.completed or (instant < self.archived_before and instant not in self.pending)


@dataclass(frozen=True)
class SliceFiles:
    """The files of a slice by their paths relative to the table; the order of the logs does not matter. `bytes` are
    those of all files, as whoever names them says."""

    partition_path: str
    file_id: str
    base: str | None
    logs: tuple[str, ...]
    bytes: int = field(default=0, compare=False)


@dataclass
class MergeCounts:
    """The numbers that Hudi's compaction puts into a `HoodieWriteStat`; complete after the last batch.

    log_files: totalLogFilesCompacted; log_bytes: totalLogSizeCompacted; log_blocks: totalLogBlocks; corrupt_blocks:
    totalCorruptLogBlock; rollback_blocks: totalRollbackBlocks; log_records: totalLogRecords; log_keys:
    totalUpdatedRecordsCompacted; updates: numUpdateWrites; inserts: numInserts; deletes: numDeletes; rows: numWrites.
    """

    log_files: int = 0
    log_bytes: int = 0
    log_blocks: int = 0
    corrupt_blocks: int = 0
    rollback_blocks: int = 0
    log_records: int = 0
    log_keys: int = 0
    updates: int = 0
    inserts: int = 0
    deletes: int = 0
    rows: int = 0
