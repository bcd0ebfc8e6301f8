"""Moves completed restores and indexings to the history, where Hudi's archiver (1.2.0) never moves them.

The archiver takes only commits, cleans and rollbacks (`TimelineArchiverV2`), so a restore or an indexing becomes the
first instant of the active timeline. Hudi takes each instant that is later than the first one, and not on the active
timeline, for pending from table version 8 on (`CompletionTimeQueryViewV2.getCompletionTime`). So Hudi takes commits
that were archived meanwhile for pending, and their logs for newer than each base file: readers see deleted rows and old
values again, compactions write these into base files, and cleans leave the logs.
"""

from __future__ import annotations

import logging
from datetime import timedelta

from jobs.contract import JobKind
from jobs.errors import HudiError
from jobs.format.instants import wall_clock
from jobs.format.table_version import WITH_COMPLETION_TIMES
from jobs.hudi.archiver import remove_unfinished
from jobs.hudi.client import WriteClient
from jobs.hudi.lock import Checkpoint, TableLock
from jobs.hudi.options import UNDER_OUR_LOCK
from jobs.hudi.records import Instant
from jobs.hudi.table import HudiTable

logger = logging.getLogger(__name__)

LEAVING_THEM = frozenset({JobKind.RESTORE, JobKind.METADATA_TABLE, JobKind.UPGRADE})
"""Jobs that do not archive such instants. The next attempt of a restore looks for its own restore on the timeline. The
other jobs merge no rows, and have to run on damaged tables, too."""

_ACTIONS = frozenset({"restore", "indexing"})
# Polls learn from a restore which commits it has removed.
_POLLED_AFTER = timedelta(minutes=30)


def archive(table: HudiTable, lock: TableLock, checkpoint: Checkpoint) -> None:
    """Archives the restores and indexings that are old, or that commits in the history have overtaken. The lock must be
    free. Raises HudiError if that fails for an overtaken one; then no rows may be merged."""
    if not _due(table):
        return
    remove_unfinished(table, checkpoint)
    with lock.held(checkpoint):
        table.reload()
        if not (due := _due(table)):
            return
        with WriteClient(table, UNDER_OUR_LOCK) as client:
            # Readers of the metadata table look for the instants of its logs on the active timeline.
            merged = client.metadata_table.compacted_at() if table.metadata_partitions else None
            ready = [item for item in due if not table.metadata_partitions or (merged and item.completed < merged)]
            lock.verify()
            try:
                client.archiver.move(ready)
            except HudiError:
                if overtaken(table):
                    raise
                logger.warning("could not archive %s", ", ".join(map(str, ready)), exc_info=True)
        lock.verify()
        table.reload()


def overtaken(table: HudiTable) -> list[Instant]:
    """Returns the restores and indexings of the active timeline that commits in the history have overtaken."""
    return [item for item in _completed(table) if table.has_archived_after(item.requested)]


def _due(table: HudiTable) -> list[Instant]:
    found = _completed(table)
    late = overtaken(table) if found else []
    return [item for item in found if item in late or table.now() - wall_clock(item.requested) > _POLLED_AFTER]


def _completed(table: HudiTable) -> list[Instant]:
    if table.version < WITH_COMPLETION_TIMES or not table.is_merge_on_read:
        return []
    return [item for item in table.instants() if item.action in _ACTIONS and item.state == "COMPLETED"]
