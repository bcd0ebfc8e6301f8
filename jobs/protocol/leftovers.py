"""Pending instants that nobody works on any more, judged by heartbeats and the owner's declaration."""

from __future__ import annotations

from contextlib import suppress
from datetime import datetime, timedelta

from jobs.format.instants import wall_clock
from jobs.hudi.client import WriteClient
from jobs.hudi.records import Instant
from jobs.hudi.table import HudiTable
from jobs.protocol.writers import ENDED_AFTER

# A writer in single-writer mode sends no heartbeats. If writers are declared as stopped, one that began this recently
# may still be ending.
ENDING = timedelta(minutes=2)
# A rollback deletes the files of one write, which takes minutes at most.
ROLLED_BACK_BY = timedelta(hours=1)
# A writer removes its markers right after its commit.
REMOVED_BY = timedelta(minutes=10)


def is_leftover(table: HudiTable, client: WriteClient, item: Instant, *, writers_stopped: bool) -> bool:
    """Returns whether nobody works on a pending instant: its heartbeat has expired; or it has none, and the writers
    retry conflicts (see `dead_writes`) or are stopped. If Flink may write the table, the writers must be stopped,
    because a restarted Flink job commits its earlier instant."""
    stopped = writers_stopped or table.declared.writers_stopped
    if table.may_have_flink and not stopped:
        return False
    if client.has_heartbeat(item.requested):
        return client.is_dead(item.requested)
    if table.declared.writers_retry_conflicts:
        return True
    return stopped and table.now() - wall_clock(item.requested) > ENDING


def remove_base_files_of(table: HudiTable, client: WriteClient, instant: str) -> None:
    """Removes the base files and markers of a service's instant that has left the timeline without a commit; the lock
    must be held and the service's tasks must have ended.

    Somebody has rolled the instant back, or has deleted the table and made it anew (`SaveMode.Overwrite` of Spark),
    while tasks of the service went on. No commit names their files, but readers that list the storage take files that
    are older than the timeline for those of archived commits. Logs are left alone: before table version 8 writers name
    theirs by the instant of a compaction.
    """
    if table.state_of(instant) is not None or table.was_archived(instant):
        return
    late = client.late_files
    files = late.marked_files(instant) | late.files_of({instant: instant}).get(instant, set())
    late.remove(instant, {file for file in files if ".log." not in file})
    client.tidy_up(instant)


def old_rollbacks(table: HudiTable, client: WriteClient) -> dict[str, str]:
    """Returns the rollbacks that have been pending for so long that nobody works on them, each with the instant that it
    rolls back. Hudi's rollbacks have no heartbeat."""
    if all(item.action != "rollback" for item in table.pending()):
        return {}
    latest = table.now() - ROLLED_BACK_BY
    return {rollback: each for rollback, each in client.pending_rollbacks().items() if _is_before(rollback, latest)}


def old_markers(table: HudiTable, client: WriteClient) -> list[str]:
    """Returns the instants that have markers although they ended long ago.

    Markers of recently rolled-back writes are left out, because they name the files that a live writer may still write.
    """
    instants = table.instants()
    pending = {item.requested for item in instants if item.state != "COMPLETED"}
    ended = {item.requested: item.completed for item in instants if item.state == "COMPLETED"}
    watched = {
        instant
        for instant, rollback in client.late_files.rolled_back_but_writing().items()
        if table.now() - wall_clock(rollback) < ENDED_AFTER
    }
    latest = table.now() - REMOVED_BY
    idle = client.late_files.marked() - pending - watched
    return sorted(instant for instant in idle if _is_before(ended.get(instant) or instant, latest))


def _is_before(instant: str, moment: datetime) -> bool:
    """Returns False also for a folder whose name is not an instant."""
    with suppress(ValueError):
        return wall_clock(instant) < moment
    return False
