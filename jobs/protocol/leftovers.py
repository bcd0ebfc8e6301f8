"""Pending instants that nobody works on any more, judged by heartbeats and the owner's declaration."""

from __future__ import annotations

from contextlib import suppress
from datetime import datetime, timedelta

from jobs.format.instants import wall_clock
from jobs.hudi.client import WriteClient
from jobs.hudi.records import Instant
from jobs.hudi.table import HudiTable
from jobs.protocol import abandoned
from jobs.protocol.writers import ENDED_AFTER

# A writer in single-writer mode sends no heartbeats. If the owner declares writers as stopped, a writer that began this
# recently may still be ending.
ENDING = timedelta(minutes=2)
# A writer removes its markers right after its commit.
REMOVED_BY = timedelta(minutes=10)


def is_leftover(table: HudiTable, client: WriteClient, item: Instant, *, writers_stopped: bool) -> bool:
    """Returns whether nobody works on a pending instant. Its heartbeat has expired; or it has none, and the writers
    either retry conflicts (see `dead_writes`) or are stopped; or its writer has abandoned it (`abandoned.requests`). If
    Flink may write the table, the writers must be stopped, because a restarted Flink job commits its earlier
    instant."""
    stopped = writers_stopped or table.declared.writers_stopped
    if abandoned.is_request(table, item):
        return True
    if table.may_have_flink and not stopped:
        return False
    if client.has_heartbeat(item.requested):
        return client.is_dead(item.requested)
    if table.declared.writers_retry_conflicts:
        return True
    return stopped and table.now() - wall_clock(item.requested) > ENDING


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
    """Returns whether the instant is before this moment; False for a name that is not an instant."""
    with suppress(ValueError):
        return wall_clock(instant) < moment
    return False
