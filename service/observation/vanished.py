"""Finds commits that have vanished from the middle of a table's timeline.

Hudi archives the oldest instants first, and takes a completed one off the timeline only by a rollback or a restore. If
one is gone otherwise, somebody deleted it or the storage lost it, and readers take its files for uncommitted ones.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from service.lake.commit import WRITING_ACTIONS
from service.lake.file_slices import Visibility
from service.lake.history import is_archived
from service.lake.instant_metadata import read_metadata

if TYPE_CHECKING:
    from collections.abc import Sequence

    from service.lake.storage import Storage
    from service.lake.table_config import TableConfig
    from service.lake.timeline import Timeline
    from service.observation.timeline_diff import KnownState, ObservedInstant

MOST_VANISHED = 20
"""Commits that one poll looks for in the history; others are looked at once these are explained."""

_UNDOING = ("rollback", "restore")


def vanished_commits(
    storage: Storage, config: TableConfig, timeline: Timeline, before: KnownState, new: Sequence[ObservedInstant]
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Returns the requested times of the commits that have vanished, oldest first, and of the known commits that were
    undone. Reads nothing while every known commit is where it was."""
    starts_at = Visibility.of(timeline, config.timeline_layout).starts_at
    if starts_at is None:
        return (), ()
    completed = {each.requested_time for each in timeline.instants if each.is_completed}
    known = {time for time, action in before.known if action in WRITING_ACTIONS and time > starts_at}
    gone = known - completed
    undone = gone & set(before.stored.snapshot.undone if before.stored else ())
    undone.update(gone.intersection(time for seen in new for time in seen.metadata.rolled_back))
    if gone - undone:
        # The poll that saw the rollback may have been one of an earlier version.
        for instant in timeline.instants:
            if instant.is_completed and instant.action in _UNDOING:
                undone.update(gone.intersection(read_metadata(storage, config, instant).rolled_back))
    candidates = sorted(gone - undone)[:MOST_VANISHED]
    # Hudi deletes archived instants in any order, so a poll may see a later one gone first.
    found = tuple(each for each in candidates if not is_archived(storage, config, timeline, each))
    return found, tuple(sorted(undone))
