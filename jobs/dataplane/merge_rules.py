"""The rules, the files and the counts of a merge of a file slice."""

from __future__ import annotations

from dataclasses import astuple, dataclass, field, replace
from operator import add
from typing import Literal


@dataclass(frozen=True)
class MergeRules:
    """The table's rules of merging.

    On table version 6 only blocks of completed instants count: those in `completed`, and those before `archived_before`
    that are not `pending`. Since version 8 every log file of a slice belongs to a completed instant.
    """

    mode: Literal["EVENT_TIME_ORDERING", "COMMIT_TIME_ORDERING"]
    ordering_fields: tuple[str, ...]
    table_version: int
    completed: frozenset[str]
    # The newest instant whose blocks are known to count: the newest completed commit, rollback or delta commit of the
    # active timeline (`HoodieCompactor.getMaxInstantTime`).
    latest: str
    pending: frozenset[str] = frozenset()
    archived_before: str = ""  # The first instant of the active timeline, "" for none.
    # Column and value of `hoodie.payload.delete.field` and `hoodie.payload.delete.marker`.
    delete_marker: tuple[str, str] | None = None
    # Columns whose default in the table's Avro schema is not null: files may not lack them.
    with_default: frozenset[str] = frozenset()
    # Whether a Hudi before 1.0 also writes or reads the logs; then only merges in which both agree count as proved.
    by_older_hudi: bool = False

    def has_completed(self, instant: str) -> bool:
        return instant in self.completed or (instant < self.archived_before and instant not in self.pending)


@dataclass(frozen=True)
class SliceFiles:
    """The files of a slice by their paths relative to the table."""

    partition_path: str
    file_id: str
    base: str | None
    logs: tuple[str, ...]  # The order does not matter.
    bytes: int = field(default=0, compare=False)  # The size of all files; the caller has measured it.


@dataclass
class MergeCounts:
    """The numbers that Hudi's compaction puts into a `HoodieWriteStat`, by their names there; complete after the last
    batch."""

    log_files: int = 0  # totalLogFilesCompacted
    log_bytes: int = 0  # totalLogSizeCompacted
    log_blocks: int = 0  # totalLogBlocks
    corrupt_blocks: int = 0  # totalCorruptLogBlock
    rollback_blocks: int = 0  # totalRollbackBlocks
    log_records: int = 0  # totalLogRecords
    log_keys: int = 0  # totalUpdatedRecordsCompacted
    updates: int = 0  # numUpdateWrites
    inserts: int = 0  # numInserts
    deletes: int = 0  # numDeletes
    rows: int = 0  # numWrites

    def copy(self) -> MergeCounts:
        return replace(self)

    def __add__(self, other: MergeCounts) -> MergeCounts:
        return MergeCounts(*map(add, astuple(self), astuple(other)))
