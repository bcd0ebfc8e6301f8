"""Finds commits that have vanished from the middle of a table's timeline.

Hudi archives the oldest instants first. Otherwise it removes a completed instant from the timeline only by a rollback
or a restore. If an instant disappears in another way, somebody has deleted it or the storage has lost it. Readers then
consider its files uncommitted.
"""

from __future__ import annotations

from collections.abc import Sequence

from service.lake.commit import WRITING_ACTIONS
from service.lake.history import is_archived
from service.lake.instant_metadata import read_metadata
from service.lake.storage import Storage
from service.lake.table_config import TableConfig
from service.lake.timeline import Timeline
from service.observation.timeline_diff import KnownState, ObservedInstant

MOST_VANISHED = 20
"""One poll searches the history for at most this many commits. Later polls search for the others, once the first ones
are explained."""

_UNDOING = ("rollback", "restore")


def vanished_commits(
    storage: Storage, config: TableConfig, timeline: Timeline, before: KnownState, new: Sequence[ObservedInstant]
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Returns the requested times of the commits that have vanished, oldest first, and of the known commits that were
    undone. Reads no file while every known commit is on the timeline or older than the timeline."""
    starts_at = timeline.starts_at
    if starts_at is None:
        return (), ()
    completed = {each.requested_time for each in timeline.instants if each.is_completed}
    known = {time for time, action in before.known if action in WRITING_ACTIONS and time > starts_at}
    gone = known - completed
    undone = gone & set(before.stored.snapshot.undone if before.stored else ())
    undone.update(gone.intersection(time for seen in new for time in seen.metadata.rolled_back))
    if gone - undone:
        # All rollbacks on the timeline are read, because an earlier version of the service, which did not record them,
        # may have polled the table before.
        for instant in timeline.instants:
            if instant.is_completed and instant.action in _UNDOING:
                undone.update(gone.intersection(read_metadata(storage, config, instant).rolled_back))
    candidates = sorted(gone - undone)[:MOST_VANISHED]
    # The history is checked, because Hudi deletes archived instants in any order, so a later instant may disappear
    # before an earlier one.
    found = tuple(each for each in candidates if not is_archived(storage, config, timeline, each))
    return found, tuple(sorted(undone))
