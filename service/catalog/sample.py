"""Samples of tables: how their backlogs and files develop."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from service.lake.table import TableType

if TYPE_CHECKING:
    from datetime import datetime

    from service.lake.snapshot import TableSnapshot


@dataclass(frozen=True)
class Sample:
    """Some figures of a table at one time."""

    at: datetime
    log_bytes: int
    base_bytes: int
    delta_commits: int  # Writers' commits since the last compaction; 0 for a copy-on-write table.
    file_groups: int
    base_files: int
    small_files: int
    freed_bytes: int  # Bytes of files that are in no latest file slice.
    timeline_commits: int  # Completed commits on the active timeline.
    compacted_at: datetime | None = None  # Completion of the last compaction.

    @property
    def log_ratio(self) -> float | None:
        """Log bytes divided by base file bytes; None without base files."""
        return round(self.log_bytes / self.base_bytes, 4) if self.base_bytes else None

    @classmethod
    def of(cls, snapshot: TableSnapshot) -> Sample:
        totals, is_merged = snapshot.totals, snapshot.table_type is TableType.MERGE_ON_READ
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
        )
