"""Samples of tables, which show how their backlogs and files change over time."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Annotated

from jobs.spec import Documented, Spec
from service.lake.snapshot import TableSnapshot
from service.lake.table import TableType


@dataclass(frozen=True)
class Sample(Documented):
    """Some figures of a table at one time."""

    at: Annotated[datetime, Spec(examples=("2026-01-01T12:00:00Z",))]
    log_bytes: Annotated[int, Spec("Size of the current log files, which wait for a compaction", examples=(4096,))]
    base_bytes: Annotated[int, Spec("Size of the current base files", examples=(10240,))]
    delta_commits: Annotated[
        int, Spec("Commits of writers since the last compaction; 0 for a copy-on-write table", examples=(4,))
    ]
    file_groups: Annotated[int, Spec(examples=(8,))]
    base_files: Annotated[int, Spec("Number of current base files", examples=(8,))]
    small_files: Annotated[int, Spec("Base files below GROUNDSKEEPER_SMALL_FILE_BYTES", examples=(8,))]
    freed_bytes: Annotated[int, Spec("Size of files in no latest slice: the most that cleaning could free")]
    timeline_commits: Annotated[int, Spec("Completed commits on the active timeline", examples=(12,))]
    compacted_at: Annotated[datetime | None, Spec("Completion of the last compaction")] = None
    metadata_commits: Annotated[
        int | None, Spec("Commits of the metadata table since its last compaction; null without one", examples=(3,))
    ] = None
    metadata_log_files: Annotated[int | None, Spec("Log files of the metadata table", examples=(6,))] = None
    metadata_bytes: Annotated[int | None, Spec("Size of the metadata table, logs included", examples=(61440,))] = None

    @property
    def log_ratio(self) -> float | None:
        """Log bytes divided by base file bytes; None without base files."""
        return round(self.log_bytes / self.base_bytes, 4) if self.base_bytes else None

    @classmethod
    def of(cls, snapshot: TableSnapshot) -> Sample:
        totals, is_merged = snapshot.totals, snapshot.table_type is TableType.MERGE_ON_READ
        own = snapshot.metadata_table
        return cls(
            at=snapshot.taken_at,
            log_bytes=totals.log_bytes,
            base_bytes=totals.base_bytes,
            delta_commits=snapshot.since_compaction.commits if is_merged else 0,
            file_groups=totals.file_groups,
            base_files=totals.base_files,
            small_files=totals.small_files,
            freed_bytes=totals.freed_bytes,
            timeline_commits=snapshot.timeline_commits,
            compacted_at=snapshot.since_compaction.at,
            metadata_commits=own.commits if own else None,
            metadata_log_files=own.log_files if own else None,
            metadata_bytes=own.base_bytes + own.log_bytes if own else None,
        )
