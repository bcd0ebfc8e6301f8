"""Compactions and clusterings of a table that processes other than this service execute."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import timedelta

from sqlalchemy import Connection

from service.delegation import plan_store
from service.lake.commit import CLUSTERING, COMPACTION, Commit
from service.lake.snapshot import OtherRun
from service.queue import job_store

STOPPED_AFTER = timedelta(days=1)
"""If the last run was this long ago, the other process has stopped executing such plans."""

_RECENT_JOBS = 200


def with_new(
    connection: Connection, table_id: str, before: Iterable[OtherRun], added: Sequence[Commit]
) -> tuple[OtherRun, ...]:
    """Adds the runs of other processes among the commits that a poll has found. The instants of this service's own jobs
    are already known, because a job reports its instant before it commits."""
    found = {run.operation: run for run in before}
    runs = [each for each in added if each.is_news and each.operation in (COMPACTION, CLUSTERING)]
    if not runs:
        return tuple(found.values())
    ours = {instant for job in job_store.recent(connection, table_id, _RECENT_JOBS) for instant in job.instants}
    delegated = {plan.instant for plan in plan_store.open_plans(connection, table_id)}
    for commit in runs:
        instant, operation, at = commit.requested_time, str(commit.operation), commit.completed_at
        if instant not in ours:
            last = found.get(operation)
            since = last.since if last is not None and at - last.at < STOPPED_AFTER else at
            found[operation] = OtherRun(operation, instant, at, since, is_delegated=instant in delegated)
    return tuple(found.values())
