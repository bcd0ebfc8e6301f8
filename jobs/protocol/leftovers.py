"""Pending instants that nobody works on any more, as far as heartbeats and the owner's word can tell."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from jobs.format.instants import wall_clock

if TYPE_CHECKING:
    from jobs.hudi.client import WriteClient
    from jobs.hudi.records import Instant
    from jobs.hudi.table import HudiTable

# A writer in single-writer mode sends no heartbeats; when all are declared to be stopped, one that has begun so
# recently may still be ending.
ENDING = timedelta(minutes=2)


def is_leftover(table: HudiTable, client: WriteClient, item: Instant, *, writers_stopped: bool) -> bool:
    """Returns whether nobody works on a pending instant: its heartbeat has expired; or it has none, and the writers
    retry conflicts (see `dead_writes`) or are stopped.

    An instant without a living writer may be Flink's, which a restarted job commits: then only stopped writers count.
    """
    stopped = writers_stopped or table.declared.writers_stopped
    if table.may_have_flink and not stopped:
        return False
    if client.has_heartbeat(item.requested):
        return client.is_dead(item.requested)
    if table.declared.writers_retry_conflicts:
        return True
    return stopped and table.now() - wall_clock(item.requested) > ENDING
