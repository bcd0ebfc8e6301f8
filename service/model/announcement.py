"""What is told of a change: an event from a commit, a job, a table or a webhook.

The ids follow from what happened, so whoever announces the same thing again says nothing new.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from service.model.event import Event, EventType, event_id
from service.model.job import JobState

if TYPE_CHECKING:
    from datetime import datetime

    from jobs.contract import Problem
    from service.model.commit import Commit
    from service.model.incident import Incident
    from service.model.job import Job
    from service.model.registration import Registration
    from service.model.webhook import Webhook

# A commit may touch thousands of partitions; the receiver of an event can ask the table for the rest.
MOST_PARTITIONS = 100

_ENDED = {
    JobState.SUCCEEDED: EventType.JOB_SUCCEEDED,
    JobState.FAILED: EventType.JOB_FAILED,
    JobState.CANCELLED: EventType.JOB_CANCELLED,
}


def commit_published(commit: Commit, table: Registration) -> Event:
    data = {
        "instant": commit.requested_time,
        "action": commit.action,
        "operation": commit.operation,
        "completion_time": commit.completion_time,
        "rows_written": commit.rows_written,
        "rows_deleted": commit.rows_deleted,
        "bytes_written": commit.bytes_written,
        "partitions": list(commit.partitions[:MOST_PARTITIONS]),
        "partition_count": len(commit.partitions),
        "file_groups": commit.file_groups,
        "schema_changed": commit.schema_changed,
    }
    return _of_table(
        EventType.COMMIT_PUBLISHED,
        table,
        commit.seen_at,
        (commit.table_id, commit.requested_time, commit.action),
        {"commit": data},
    )


def job_queued(job: Job, table: Registration, at: datetime) -> Event:
    """Also when an attempt failed and the job waits for the next one: then `attempt` is not 0, and `error` says why."""
    return _of_job(EventType.JOB_QUEUED, job, table, at, job.attempt)


def job_held_back(job: Job, table: Registration, at: datetime) -> Event:
    """A job that had been queued waits for the writers to be stopped from now on."""
    return _of_job(EventType.JOB_QUEUED, job, table, at, job.attempt, "hand-over", at.isoformat())


def job_started(job: Job, table: Registration, at: datetime) -> Event:
    """An attempt has begun to run."""
    return _of_job(EventType.JOB_STARTED, job, table, at, job.attempt)


def job_ended(job: Job, table: Registration, at: datetime) -> Event:
    return _of_job(_ENDED[job.state], job, table, at)


def expansion_draining(job: Job, table: Registration, at: datetime) -> Event:
    """Once for an attempt, however often it goes back to rewriting what changed."""
    return _of_expansion(EventType.EXPANSION_DRAINING, job, table, at, job.attempt)


def expansion_held_back(job: Job, table: Registration, at: datetime) -> Event:
    """No attempt may begin before the writers were stopped."""
    return _of_expansion(EventType.EXPANSION_DRAINING, job, table, at, job.attempt, "hand-over", at.isoformat())


def expansion_committed(job: Job, table: Registration, at: datetime) -> Event:
    return _of_expansion(EventType.EXPANSION_COMMITTED, job, table, at)


def expansion_aborted(job: Job, table: Registration, at: datetime) -> Event:
    return _of_expansion(EventType.EXPANSION_ABORTED, job, table, at)


def table_registered(table: Registration, at: datetime) -> Event:
    return _of_table(EventType.TABLE_REGISTERED, table, at, (table.id,), {})


def table_unhealthy(table: Registration, problem: Problem, at: datetime) -> Event:
    return _of_table(EventType.TABLE_UNHEALTHY, table, at, (table.id, at.isoformat()), {"problem": problem.to_json()})


def table_recovered(table: Registration, at: datetime) -> Event:
    return _of_table(EventType.TABLE_RECOVERED, table, at, (table.id, at.isoformat()), {})


def incident_opened(incident: Incident, table: Registration, at: datetime) -> Event:
    """Of what is sure; a suspicion is told of when it has turned out to be right."""
    return _of_incident(EventType.TABLE_INCIDENT_OPENED, incident, table, at)


def incident_closed(incident: Incident, table: Registration, at: datetime) -> Event:
    return _of_incident(EventType.TABLE_INCIDENT_CLOSED, incident, table, at)


def webhook_disabled(webhook: Webhook, at: datetime) -> Event:
    data = {"webhook": _webhook(webhook), "because": webhook.disabled_because}
    type_ = EventType.WEBHOOK_DISABLED
    return Event(event_id(type_.value, webhook.id, at.isoformat()), type_, at, data=data)


def webhook_test(webhook: Webhook, at: datetime, nonce: str) -> Event:
    """Each test is an event of its own: `nonce` is another one every time."""
    type_ = EventType.WEBHOOK_TEST
    return Event(event_id(type_.value, webhook.id, nonce), type_, at, data={"webhook": _webhook(webhook)})


def _webhook(webhook: Webhook) -> dict[str, Any]:
    # Not the URL: others may hear this, and URLs of chat services are secrets.
    return {"id": webhook.id, "description": webhook.description}


def _of_job(type_: EventType, job: Job, table: Registration, at: datetime, *more: object) -> Event:
    data = {
        "id": job.id,
        "kind": job.kind.value,
        "dry_run": job.dry_run,
        "attempt": job.attempt,
        "max_attempts": job.max_attempts,
        "instants": list(job.instants),
        "error": job.error.to_json() if job.error else None,
        "hand_over": _hand_over(job, is_over=not job.state.is_active),
    }
    return _of_table(type_, table, at, (job.id, *more), {"job": data})


def _of_expansion(type_: EventType, job: Job, table: Registration, at: datetime, *more: object) -> Event:
    data = {
        "job_id": job.id,
        "attempt": job.attempt,
        "instant": job.instants[-1] if job.instants else None,
        "params": dict(job.params),
        "hand_over": _hand_over(job, is_over=type_ is not EventType.EXPANSION_DRAINING),
    }
    return _of_table(type_, table, at, (job.id, *more), {"expansion": data})


def _of_incident(type_: EventType, incident: Incident, table: Registration, at: datetime) -> Event:
    data = {
        "id": incident.id,
        "kind": incident.kind.value,
        "instant": incident.instant,
        "operation": incident.operation,
        "state": incident.state.value,
        "opened_at": incident.opened_at.isoformat(),
        "closed_at": incident.closed_at.isoformat() if incident.closed_at else None,
        "because": incident.because,
        "details": dict(incident.details),
    }
    return _of_table(type_, table, at, (incident.id,), {"incident": data})


def _hand_over(job: Job, *, is_over: bool) -> dict[str, Any] | None:
    if job.hand_over is None:
        return None
    what_to_do = job.hand_over.what_to_do(job.id, job.table_id, is_over=is_over)
    return {**job.hand_over.shown(), "what_to_do": what_to_do}


def _of_table(
    type_: EventType, table: Registration, at: datetime, parts: tuple[object, ...], data: dict[str, Any]
) -> Event:
    about = {"id": table.id, "name": table.name, "base_path": table.base_path}
    return Event(event_id(type_.value, *parts), type_, at, table.id, {"table": about, **data})
