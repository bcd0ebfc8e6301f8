"""What there is to tell of what has just been written, of a job or of a look at a table.

The events are published last in the same transaction; afterwards the bell is rung.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from jobs.contract import ExpansionStep, JobKind
from service.model import announcement
from service.model.job import AttemptOutcome, Job, JobState
from service.store import jobs, outbox, tables

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from datetime import datetime

    from sqlalchemy import Connection

    from jobs.contract import Problem
    from service.model.commit import Commit
    from service.model.event import Event
    from service.model.registration import Registration
    from service.model.watch import Watch

UNHEALTHY_AFTER = 3
"""So many looks in a row have to fail until others are told: storages have their moments."""

# A worker that tells one of these has undone what it began; of a lost one nobody knows.
_UNDONE = (AttemptOutcome.FAILED, AttemptOutcome.CANCELLED)


def of_job(
    connection: Connection, job_id: str, at: datetime, announce: Callable[[Job, Registration, datetime], Event]
) -> Event:
    """What `announce` makes of a job as it is now."""
    job = jobs.get(connection, job_id)
    return announce(job, tables.get(connection, job.table_id), at)


def of_look(
    connection: Connection, watch: Watch, commits: Sequence[Commit], open_incidents: int, now: datetime
) -> list[Event]:
    """The commits that are news, and that the table is well again: it can be looked at, and has no open incidents.
    `watch` still counts the looks that failed before this one."""
    news = [commit for commit in commits if commit.is_news]
    is_back = watch.failures >= UNHEALTHY_AFTER and not open_incidents
    if not news and not is_back:
        return []
    table = tables.get(connection, watch.table_id)
    events = [announcement.table_recovered(table, now)] if is_back else []
    return [*events, *(announcement.commit_published(commit, table) for commit in news)]


def of_failed_look(
    connection: Connection, table_id: str, failures: int, problem: Problem, now: datetime
) -> list[Event]:
    """`failures` looks in a row have failed, this one among them."""
    if failures != UNHEALTHY_AFTER:
        return []
    return [announcement.table_unhealthy(tables.get(connection, table_id), problem, now)]


def of_heartbeat(connection: Connection, before: Job, after: Job, now: datetime) -> list[Event]:
    """`before` is the job as it was held, `after` as it is now."""
    has_started = before.state is JobState.LEASED
    step = _step(after)
    if not has_started and step == _step(before):
        return []  # The usual heartbeat, once a second: nothing more to look up.
    table = tables.get(connection, after.table_id)
    events = [announcement.job_started(after, table, now)] if has_started else []
    if not _is_under_way(after):
        return events
    if step == ExpansionStep.DRAINING:
        events.append(announcement.expansion_draining(after, table, now))
    elif step == ExpansionStep.SETTLING:
        events.append(announcement.expansion_committed(after, table, now))
    return events


def of_report(connection: Connection, before: Job, after: Job, outcome: AttemptOutcome, now: datetime) -> list[Event]:
    """Of the job that it started, as far as it did; and that it ended, and what became of an expansion."""
    table = tables.get(connection, after.table_id)
    # A short attempt may end before its first heartbeat; it started all the same.
    events = [announcement.job_started(before, table, now)] if before.state is JobState.LEASED else []
    if after.state is JobState.QUEUED:
        return [*events, announcement.job_queued(after, table, now)]
    return [
        *events,
        *_expansion_ended(connection, after, table, outcome, now),
        announcement.job_ended(after, table, now),
    ]


def _expansion_ended(
    connection: Connection, job: Job, table: Registration, outcome: AttemptOutcome, now: datetime
) -> list[Event]:
    if not _is_under_way(job):
        return []
    committed = announcement.expansion_committed(job, table, now)
    if job.state is JobState.SUCCEEDED:
        return [committed]
    if outcome in _UNDONE and not outbox.has(connection, committed.id):
        return [announcement.expansion_aborted(job, table, now)]
    return []


def _is_under_way(job: Job) -> bool:
    """A real expansion that has put an instant on the table's timeline; before that there is nothing to tell of."""
    return job.kind is JobKind.BUCKET_EXPANSION and not job.dry_run and bool(job.instants)


def _step(job: Job) -> str | None:
    return job.progress.step if job.progress else None
