"""Events about jobs, and about expansions and contractions of buckets (`expansion.*`, with the job's kind)."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from service.catalog.registration import Registration
from service.catalog.table_events import event_of_table
from service.events.event import Event, EventType
from service.queue.job import Job, JobState

_ENDED = {
    JobState.SUCCEEDED: EventType.JOB_SUCCEEDED,
    JobState.FAILED: EventType.JOB_FAILED,
    JobState.CANCELLED: EventType.JOB_CANCELLED,
}


def job_queued(job: Job, table: Registration, at: datetime) -> Event:
    """Returns `job.queued`. After a failed attempt, when the job waits for the next one, `attempt` is not 0 and `error`
    has the reason."""
    return _of_job(EventType.JOB_QUEUED, job, table, at, job.attempt)


def job_held_back(job: Job, table: Registration, at: datetime) -> Event:
    """Returns `job.queued` for a job that was queued already and from now on waits for the writers to stop."""
    return _of_job(EventType.JOB_QUEUED, job, table, at, job.attempt, "hand-over", at.isoformat())


def job_started(job: Job, table: Registration, at: datetime) -> Event:
    """Returns `job.started`: an attempt has begun to run."""
    return _of_job(EventType.JOB_STARTED, job, table, at, job.attempt)


def job_ended(job: Job, table: Registration, at: datetime) -> Event:
    return _of_job(_ENDED[job.state], job, table, at)


def expansion_draining(job: Job, table: Registration, at: datetime) -> Event:
    """Returns `expansion.draining`. All calls of one attempt return the same event, however often the attempt rewrites
    changed files."""
    return _of_expansion(EventType.EXPANSION_DRAINING, job, table, at, job.attempt)


def expansion_held_back(job: Job, table: Registration, at: datetime) -> Event:
    """Returns `expansion.draining` for a job that must not begin an attempt before the writers have stopped."""
    return _of_expansion(EventType.EXPANSION_DRAINING, job, table, at, job.attempt, "hand-over", at.isoformat())


def expansion_committed(job: Job, table: Registration, at: datetime) -> Event:
    return _of_expansion(EventType.EXPANSION_COMMITTED, job, table, at)


def expansion_aborted(job: Job, table: Registration, at: datetime) -> Event:
    return _of_expansion(EventType.EXPANSION_ABORTED, job, table, at)


def _of_job(type_: EventType, job: Job, table: Registration, at: datetime, *more: object) -> Event:
    data = {
        "id": job.id,
        "kind": job.kind.value,
        "dry_run": job.dry_run,
        "attempt": job.attempt,
        "max_attempts": job.max_attempts,
        "instants": list(job.instants),
        "verdict": job.verdict.value if job.verdict else None,
        "error": job.error.to_json() if job.error else None,
        "hand_over": _hand_over(job, is_over=not job.state.is_active),
    }
    return event_of_table(type_, table, at, (job.id, *more), {"job": data})


def _of_expansion(type_: EventType, job: Job, table: Registration, at: datetime, *more: object) -> Event:
    data = {
        "job_id": job.id,
        "kind": job.kind.value,
        "attempt": job.attempt,
        "instant": job.instants[-1] if job.instants else None,
        "params": dict(job.params),
        "hand_over": _hand_over(job, is_over=type_ is not EventType.EXPANSION_DRAINING),
    }
    return event_of_table(type_, table, at, (job.id, *more), {"expansion": data})


def _hand_over(job: Job, *, is_over: bool) -> dict[str, Any] | None:
    if job.hand_over is None:
        return None
    what_to_do = job.hand_over.what_to_do(job.id, job.table_id, is_over=is_over)
    return {**job.hand_over.public_json(), "what_to_do": what_to_do}
