"""Submits and cancels jobs."""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from jobs import tracing
from jobs.clustering_refusals import refusal
from jobs.contract import JobKind
from jobs.kinds.registry import KINDS
from service.catalog import decision_times, table_store, watch_store
from service.catalog.declared import check_declared, check_metastore
from service.db import audit_record
from service.db.engine import writing
from service.delivery import outbox
from service.incidents import store
from service.incidents.incident import HELD_BACK, astray
from service.model.job_errors import (
    FenceLosesFlinkError,
    IdempotencyKeyReusedError,
    IncidentOpenError,
    JobNotCancellableError,
)
from service.policies.policy_registry import effective_of
from service.queue import breaker_store, job_store, job_trace, retry, wait_for_writers
from service.queue.errors import REFUSALS_OF_CLUSTERING
from service.queue.hand_over_policy import loses_batches
from service.queue.job import Job, JobState
from service.queue.job_events import job_ended, job_queued

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sqlalchemy import Connection, Engine

    from jobs.storage.permissions import Permissions
    from service.access.secret_cipher import SecretCipher
    from service.catalog.registration import Registration
    from service.events.notifier import Notifier
    from service.model.clock import Clock


@dataclass(frozen=True)
class Submission:
    """Result of `submit`. `is_new` is False when the idempotency key was used before; `job` is then the earlier one."""

    job: Job
    is_new: bool


def submit(
    engine: Engine,
    notifier: Notifier,
    clock: Clock,
    cipher: SecretCipher,
    *,
    table_id: str,
    kind: JobKind,
    params: Mapping[str, Any],
    dry_run: bool,
    max_attempts: int,
    idempotency_key: str | None,
    permissions: Permissions,
    priority: int = 0,
    timeout_seconds: int | None = None,
    requested_by: str | None = None,
    retry_of: str | None = None,
) -> Submission:
    """Queues a job. `params` have been validated by the caller. Without `timeout_seconds` the policy's limit counts.
    Of the jobs that repeat the same one (`retry_of`) one is active at a time.

    Raises TableNotFoundError, PathForbiddenError, OptionNotAllowedError, MetastoreForbiddenError,
    SecretUnreadableError, JobConflictError, IdempotencyKeyReusedError, FenceLosesFlinkError, IncidentOpenError, or one
    of REFUSALS_OF_CLUSTERING.
    """
    now = clock()
    with writing(engine) as connection:
        if retry_of is not None and (running := job_store.active_retry(connection, retry_of)):
            return Submission(running, is_new=False)
        table = table_store.get(connection, table_id)
        check_declared(table.to_contract({}, cipher), permissions)
        check_metastore(kind, params, permissions)
        policy = effective_of(connection, table).policy
        wanted = Job(
            id=f"job_{secrets.token_hex(8)}",
            table_id=table_id,
            kind=kind,
            params=params,
            dry_run=dry_run,
            max_attempts=max_attempts,
            created_at=now,
            not_before=now,
            idempotency_key=idempotency_key,
            priority=priority,
            worker_group=policy.worker_group,
            timeout_seconds=policy.timeout_seconds if timeout_seconds is None else timeout_seconds,
            requested_by=requested_by,
            retry_of=retry_of,
            traceparent=tracing.for_new_job(),
        )
        if loses_batches(kind, params, table, watch_store.engines_of(connection, table_id)):
            raise FenceLosesFlinkError('`on_active_writers` is "fence".')
        job = job_store.submit(connection, wait_for_writers.held_back(connection, wanted, table, now))
        if job.id == wanted.id:
            audit_record.about("job", job.id)
            _refuse_impossible(job, table)
            _refuse_beside_incidents(connection, job)
            if not dry_run:
                # Whoever submits it may have mended what was wrong.
                breaker_store.half_open(connection, table_id, now, kind=kind)
            outbox.publish(
                connection, [job_queued(job, table, now), *wait_for_writers.draining_events(job, table, now)], now=now
            )
    if job.id == wanted.id:
        notifier.notify()
        return Submission(job, is_new=True)
    if (job.kind, dict(job.params), job.dry_run) != (kind, dict(params), dry_run):
        raise IdempotencyKeyReusedError(
            f"It belongs to {job.id}, a job of another kind or with other parameters.", extensions={"job_id": job.id}
        )
    return Submission(job, is_new=False)


def _refuse_impossible(job: Job, table: Registration) -> None:
    """A dry run goes to a worker all the same: it lists every reason at once."""
    if job.dry_run or job.kind is not JobKind.CLUSTERING:
        return
    if found := refusal(KINDS[job.kind].read(job.params), has_index=table.index is not None):
        raise next(each for each in REFUSALS_OF_CLUSTERING if each.type == found.type)(found.detail)


def _refuse_beside_incidents(connection: Connection, job: Job) -> None:
    if job.dry_run or job.kind not in HELD_BACK:
        return
    if standing := astray(store.standing(connection, job.table_id)):
        details = "; ".join(each.problem().detail for each in standing[:3])
        raise IncidentOpenError(details, extensions={"incident_ids": [each.id for each in standing]})


def cancel(engine: Engine, notifier: Notifier, clock: Clock, job_id: str) -> Job:
    """Ends a queued job at once; the worker of a held job gets the request with its next heartbeat. Idempotent.

    Raises JobNotFoundError, or JobNotCancellableError when the job has ended.
    """
    now = clock()
    with writing(engine) as connection:
        job = job_store.get(connection, job_id, for_update=True)
        if job.state is JobState.CANCELLED:
            return job
        if not job.state.is_active:
            raise JobNotCancellableError(f"Job {job_id} has {job.state.value}.")
        if job.state.is_held:
            job_store.request_cancel(connection, job_id)
        else:
            job_store.cancel_queued(connection, job_id, error=retry.cancelled_while_queued(job), now=now)
            decision_times.wake(connection, job.table_id, now)
        job = job_store.get(connection, job_id)
        if not job.state.is_active:
            outbox.publish(connection, [job_ended(job, table_store.get(connection, job.table_id), now)], now=now)
    notifier.notify()
    job_trace.ended(job)
    return job
