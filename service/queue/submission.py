"""Submits and cancels jobs."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from sqlalchemy import Connection

from jobs import tracing
from jobs.clustering_refusals import refusal
from jobs.contract import JobKind
from jobs.kinds.registry import KINDS
from jobs.storage.permissions import Permissions
from service.catalog import decision_times, table_store, watch_store
from service.catalog.declared import check_declared, check_metastore
from service.catalog.registration import Registration
from service.db import audit_record
from service.db.documents import AtOnce
from service.db.engine import writing
from service.delivery import outbox
from service.events.database import Database
from service.incidents import store
from service.incidents.incident import HELD_BACK, with_misplaced_rows
from service.model.job_errors import (
    FenceLosesFlinkError,
    IdempotencyKeyReusedError,
    IncidentOpenError,
    JobNotCancellableError,
)
from service.policies import store as policy_store
from service.policies.policy import Policy
from service.policies.precedence import Subject, effective
from service.queue import breaker_store, job_store, job_trace, retry
from service.queue.errors import REFUSALS_OF_CLUSTERING, JobNotRetriableError
from service.queue.hand_over import wait_for_writers
from service.queue.hand_over.policy import loses_batches
from service.queue.job import Job, JobState
from service.queue.job_events import job_ended, job_queued

_BEFORE = AtOnce(table_store.OF_ID, watch_store.ENGINES, policy_store.EVERY, policy_store.OF_TABLE)


@dataclass(frozen=True)
class JobRequest:
    """A request for a job. The caller has validated `params`. If `timeout_seconds` is None, the policy's limit applies.
    `retry_of` is the job that this one repeats."""

    table_id: str
    kind: JobKind
    params: Mapping[str, Any] = field(default_factory=dict)
    dry_run: bool = False
    max_attempts: int = 3
    idempotency_key: str | None = None
    priority: int = 0
    timeout_seconds: int | None = None
    requested_by: str | None = None
    retry_of: str | None = None

    @classmethod
    def again(cls, job: Job, **more: Any) -> JobRequest:
        """Returns a request that repeats `job`. Raises JobNotRetriableError unless it has failed or was cancelled."""
        if job.state not in (JobState.FAILED, JobState.CANCELLED):
            raise JobNotRetriableError(f"Job {job.id} is {job.state.value}.")
        same = ("table_id", "kind", "params", "dry_run", "priority", "timeout_seconds")
        return cls(**{name: getattr(job, name) for name in same}, retry_of=job.id, **more)

    def job(self, policy: Policy, now: datetime) -> Job:
        """Returns the requested job, with a new id."""
        return Job(
            id=f"job_{secrets.token_hex(8)}",
            table_id=self.table_id,
            kind=self.kind,
            params=self.params,
            dry_run=self.dry_run,
            max_attempts=self.max_attempts,
            created_at=now,
            not_before=now,
            idempotency_key=self.idempotency_key,
            priority=self.priority,
            worker_group=policy.worker_group,
            timeout_seconds=policy.timeout_seconds if self.timeout_seconds is None else self.timeout_seconds,
            requested_by=self.requested_by,
            retry_of=self.retry_of,
            traceparent=tracing.for_new_job(),
        )


@dataclass(frozen=True)
class Submission:
    """Result of `submit`. `is_new` is False when the idempotency key was used before; `job` is then the earlier job."""

    job: Job
    is_new: bool


def submit(database: Database, permissions: Permissions, asked: JobRequest) -> Submission:
    """Queues a job. An earlier job can have only one active job that repeats it.

    Raises TableNotFoundError, PathForbiddenError, OptionNotAllowedError, MetastoreForbiddenError,
    SecretUnreadableError, JobConflictError, IdempotencyKeyReusedError, FenceLosesFlinkError, IncidentOpenError, or one
    of REFUSALS_OF_CLUSTERING.
    """
    now = database.clock()
    kind, params, table_id = asked.kind, asked.params, asked.table_id
    with writing(database.engine) as connection:
        if asked.retry_of is not None and (running := job_store.active_retry(connection, asked.retry_of)):
            return Submission(running, is_new=False)
        found, sightings, patterns, own = _BEFORE.read(connection, {"of_table": table_id, "of_tables": [table_id]})
        table, seen = table_store.existing(found, table_id), sightings.get(table_id, {})
        check_declared(table.to_contract({}, database.cipher), permissions)
        check_metastore(kind, params, permissions)
        wanted = asked.job(effective(patterns, Subject.of(table), own).policy, now)
        if loses_batches(kind, params, table, seen):
            raise FenceLosesFlinkError('`on_active_writers` is "fence".')
        job = job_store.submit(connection, wait_for_writers.made_to_wait(connection, wanted, table, seen, now))
        if job.id == wanted.id:
            audit_record.about("job", job.id)
            _refuse_impossible(job, table)
            _refuse_beside_incidents(connection, job)
            if not asked.dry_run:
                # A submitted job need not wait for the breaker, because the caller may have removed the cause of the
                # failures.
                breaker_store.half_open(connection, table_id, now, kind=kind)
            outbox.publish(
                connection, [job_queued(job, table, now), *wait_for_writers.draining_events(job, table, now)], now=now
            )
    if job.id == wanted.id:
        database.notifier.notify()
        return Submission(job, is_new=True)
    if (job.kind, dict(job.params), job.dry_run) != (kind, dict(params), asked.dry_run):
        raise IdempotencyKeyReusedError(
            f"The key belongs to {job.id}, a job of another kind or with other parameters.",
            extensions={"job_id": job.id},
        )
    return Submission(job, is_new=False)


def _refuse_impossible(job: Job, table: Registration) -> None:
    """Refuses a job that a worker would certainly refuse. A dry run is not refused, because its result lists all
    reasons at once."""
    if job.dry_run or job.kind is not JobKind.CLUSTERING:
        return
    if found := refusal(KINDS[job.kind].read(job.params), has_index=table.index is not None):
        raise next(each for each in REFUSALS_OF_CLUSTERING if each.type == found.type)(found.detail)


def _refuse_beside_incidents(connection: Connection, job: Job) -> None:
    if job.dry_run or job.kind not in HELD_BACK:
        return
    if unresolved := with_misplaced_rows(store.unresolved(connection, job.table_id)):
        details = "; ".join(each.problem().detail for each in unresolved[:3])
        raise IncidentOpenError(details, extensions={"incident_ids": [each.id for each in unresolved]})


def cancel(database: Database, job_id: str) -> Job:
    """Ends a queued job at once. If a worker has the job, the worker gets the request with its next heartbeat.
    Idempotent.

    Raises JobNotFoundError, or JobNotCancellableError when the job has ended.
    """
    now = database.clock()
    with writing(database.engine) as connection:
        job = job_store.get(connection, job_id, for_update=True)
        if job.state is JobState.CANCELLED:
            return job
        if not job.state.is_active:
            raise JobNotCancellableError(f"Job {job_id} has {job.state.value}.")
        if job.state.has_worker:
            job_store.request_cancel(connection, job_id)
        else:
            job_store.cancel_queued(connection, job_id, error=retry.cancelled_while_queued(job), now=now)
            decision_times.wake(connection, job.table_id, now)
        job = job_store.get(connection, job_id)
        if not job.state.is_active:
            outbox.publish(connection, [job_ended(job, table_store.get(connection, job.table_id), now)], now=now)
    database.notifier.notify()
    job_trace.ended(job)
    return job
