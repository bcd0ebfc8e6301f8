"""Events that follow from a change of a job. The events are published last in the transaction that makes the change."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from sqlalchemy import Connection

from jobs.contract import ExpansionStep
from jobs.kinds.registry import RESCALES
from service.catalog import table_store
from service.catalog.registration import Registration
from service.delivery import outbox
from service.events.event import Event
from service.queue import job_events, job_store
from service.queue.job import AttemptOutcome, Job, JobState

# A worker that reports one of these outcomes has undone its work. The work of a lost worker is in an unknown state.
_UNDONE = (AttemptOutcome.FAILED, AttemptOutcome.CANCELLED)


def of_job(
    connection: Connection, job_id: str, at: datetime, announce: Callable[[Job, Registration, datetime], Event]
) -> Event:
    """Returns the event that `announce` creates from the job's current state."""
    job = job_store.get(connection, job_id)
    return announce(job, table_store.get(connection, job.table_id), at)


def of_heartbeat(connection: Connection, before: Job, after: Job, now: datetime) -> list[Event]:
    """Returns the events of a heartbeat. `before` is the job before the heartbeat, `after` the job after it."""
    has_started = before.state is JobState.LEASED
    step = _step(after)
    if not has_started and step == _step(before):
        return []  # The usual heartbeat, which comes once a second, ends here without a query.
    table = table_store.get(connection, after.table_id)
    events = [job_events.job_started(after, table, now)] if has_started else []
    if not _is_under_way(after):
        return events
    if step == ExpansionStep.DRAINING:
        events.append(job_events.expansion_draining(after, table, now))
    elif step == ExpansionStep.SETTLING:
        events.append(job_events.expansion_committed(after, table, now))
    return events


def of_report(connection: Connection, before: Job, after: Job, outcome: AttemptOutcome, now: datetime) -> list[Event]:
    """Returns the events of a report: the start if not yet published, the end, and the outcome of an expansion."""
    table = table_store.get(connection, after.table_id)
    # A short attempt may end before its first heartbeat, so its start is published here.
    events = [job_events.job_started(before, table, now)] if before.state is JobState.LEASED else []
    if after.state is JobState.QUEUED:
        return [*events, job_events.job_queued(after, table, now)]
    if after.state is JobState.UNKNOWN:
        return events
    return [
        *events,
        *_expansion_ended(connection, after, table, outcome, now),
        job_events.job_ended(after, table, now),
    ]


def of_settlement(connection: Connection, job: Job, now: datetime) -> list[Event]:
    """Returns the events of a job whose unknown outcome the timeline has settled."""
    table = table_store.get(connection, job.table_id)
    committed = job.state is JobState.SUCCEEDED and _is_under_way(job)
    events = [job_events.expansion_committed(job, table, now)] if committed else []
    return [*events, job_events.job_ended(job, table, now)]


def _expansion_ended(
    connection: Connection, job: Job, table: Registration, outcome: AttemptOutcome, now: datetime
) -> list[Event]:
    if not _is_under_way(job):
        return []
    committed = job_events.expansion_committed(job, table, now)
    if job.state is JobState.SUCCEEDED:
        return [committed]
    if outcome in _UNDONE and not outbox.has(connection, committed.id):
        return [job_events.expansion_aborted(job, table, now)]
    return []


def _is_under_way(job: Job) -> bool:
    """Returns whether this is a real expansion or contraction with an instant on the table's timeline; before that,
    nothing is published about it."""
    return job.kind in RESCALES and not job.dry_run and bool(job.instants)


def _step(job: Job) -> str | None:
    return job.progress.step if job.progress else None
