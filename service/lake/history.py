"""Instants that have left the active timeline.

Table version 8 and later keep them in Parquet files (`service.lake.lsm_history`), earlier versions in log files
(`service.lake.archive_log`).
"""

from __future__ import annotations

from service.lake import archive_log, lsm_history
from service.lake.archived import Archived
from service.lake.storage import Storage
from service.lake.table_config import TableConfig
from service.lake.timeline import Timeline


def is_archived(storage: Storage, config: TableConfig, timeline: Timeline, requested_time: str) -> bool:
    """Returns whether an instant completed and left the active timeline.

    Before table version 8, any instant older than the active timeline counts as archived.
    """
    if config.timeline_layout < 2:
        return bool(timeline.instants) and requested_time < timeline.instants[0].requested_time
    return lsm_history.has(storage, config, requested_time)


def is_forgotten(storage: Storage, config: TableConfig, timeline: Timeline, requested_time: str) -> bool:
    """Returns whether an instant is older than the active timeline, but the history does not reach back to it, because
    the history was removed, or not copied with the table."""
    if config.timeline_layout < 2 or timeline.starts_at is None or requested_time >= timeline.starts_at:
        return False
    return not lsm_history.reaches(storage, config, requested_time)


def archived_since(storage: Storage, config: TableConfig, since: str) -> tuple[tuple[Archived, ...], bool]:
    """Returns the archived instants that were requested at `since` or later, in the order of their times, and whether
    all files that may contain such instants could be read. Only those files are read. Raises StorageError."""
    read = archive_log.archived_since if config.timeline_layout < 2 else lsm_history.archived_since
    found, is_whole = read(storage, config, since)
    return tuple(found[key] for key in sorted(found)), is_whole
