"""What the service itself needs of a table's timeline, for the work orders of jobs that shorten it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from jobs.contract import JobKind
from service.catalog import commit_store
from service.incidents import store

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from service.queue.job import Job


def of_job(connection: Connection, job: Job) -> dict[str, Any]:
    """Returns parameters that are added to those of the job when a worker leases it; empty for most kinds.

    `seen` is the last instant that the service has recorded, and so announced: a commit that is archived before a poll
    has seen it is announced late, and of table version 6 never. `keep` are limits of `jobs.protocol.archival_limits`:
    standing incidents, which are closed by what the timeline says.
    """
    if job.kind is not JobKind.ARCHIVAL:
        return {}
    keep = [
        {"type": "incident", "instant": each.instant, "reason": f"incident {each.id} ({each.kind.value}) is open"}
        for each in store.standing(connection, job.table_id)
    ]
    return {"seen": commit_store.last_recorded(connection, job.table_id), "keep": keep}
