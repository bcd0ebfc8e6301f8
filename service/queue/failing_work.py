"""Opens and closes breakers when attempts end."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import Connection

from jobs.contract import Problem
from service.queue import breaker_store, lease_store, worker_store
from service.queue.breaker import IDLE, Pressure, after_failure, counts_as_failure
from service.queue.job import AttemptOutcome, Job


def next_try_at(
    connection: Connection,
    job: Job,
    *,
    outcome: AttemptOutcome,
    error: Problem | None,
    refused: bool = False,
    now: datetime,
) -> datetime:
    """Closes or opens the breaker of the table and the kind after an attempt, and returns when the next attempt may
    start. `job` is the job as it was leased, which the worker still has. Dry runs change nothing, because only people
    request them."""
    if job.dry_run:
        return now
    if outcome is AttemptOutcome.SUCCEEDED:
        breaker_store.close(connection, job.table_id, job.kind, now)
    if not counts_as_failure(outcome, error, refused=refused):
        return now
    breaker = after_failure(
        breaker_store.find(connection, job.table_id, job.kind, now),
        job,
        outcome=outcome,
        error=error,
        pressure=_pressure(connection, job, now),
        now=now,
    )
    breaker_store.record(connection, breaker)
    return breaker.next_try_at


def put_off(connection: Connection, job: Job, now: datetime) -> datetime | None:
    """Returns until when a due attempt has to wait because more tables fail now than when its time was set; None if it
    may start. The wait is at most a minute. After that, the caller checks again whether other jobs need the slots."""
    breaker = None if job.dry_run else breaker_store.find(connection, job.table_id, job.kind, now)
    if breaker is None:
        return None
    until = breaker.put_off(_pressure(connection, job, now))
    return min(until, now + IDLE) if until > now else None


def _pressure(connection: Connection, job: Job, now: datetime) -> Pressure:
    alive = [each for each in worker_store.every(connection) if each.is_alive(now)]
    slots = sum(each.info.slots or 1 for each in alive if each.info.group == job.worker_group)
    is_any_due = lease_store.is_any_due(connection, now, job.worker_group, without=job.id)
    return Pressure(
        failing=breaker_store.failing(connection, job.worker_group, now, without=(job.table_id, job.kind)),
        slots=slots,
        others_wait=is_any_due or _others_need_all(connection, job, slots, now),
    )


def _others_need_all(connection: Connection, job: Job, slots: int, now: datetime) -> bool:
    """Returns whether other jobs needed all slots in the last minute. If so, a failing attempt that keeps a slot for
    long would soon make other jobs wait, even if none waits at this moment."""
    since = now - IDLE
    spent = lease_store.slot_seconds_of_others(connection, job.worker_group, since, now, without=job.table_id)
    return spent > max(slots - 1, 0) * IDLE.total_seconds()
