"""Database access to jobs that wait until the writers have stopped."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy import Connection

from jobs.contract import Problem
from service.db import schema
from service.model.hand_over import HandOver
from service.queue import job_store
from service.queue.job import Job
from service.queue.job_store import JOBS

_j = schema.jobs
_WAITING = JOBS.select().where(schema.JOB_IS_QUEUED, _j.c.waits_for_writers)
ANY_WAITING = sa.select(_j.c.id).where(schema.JOB_IS_QUEUED, _j.c.waits_for_writers).limit(1)
"""Selects a waiting job."""


def waiting(connection: Connection) -> list[Job]:
    """Returns all waiting jobs, oldest first."""
    return JOBS.many(connection, _WAITING.order_by(_j.c.created_at, _j.c.id))


def begin(connection: Connection, job: Job, hand_over: HandOver) -> None:
    """Marks the job as waiting. The caller has locked it, or has just created it."""
    _update(connection, job.id, hand_over, waits=True)


def claim(connection: Connection, job_id: str, *, now: datetime, until: datetime) -> Job | None:
    """Claims the job until `until` and returns it; None if it no longer waits or another replica has claimed it.

    The claim replaces a row lock, because the steps that follow call external systems.
    """
    job = JOBS.one(connection, _WAITING.where(_j.c.id == job_id).with_for_update(skip_locked=True))
    if job is None or job.hand_over is None or (job.hand_over.claimed_until and job.hand_over.claimed_until > now):
        return None
    claimed = job.hand_over.evolve(claimed_until=until)
    _update(connection, job.id, claimed, waits=True)
    return job.evolve(hand_over=claimed)


def step(connection: Connection, job: Job, hand_over: HandOver) -> bool:
    """Records the progress of the stop. Returns False if the job no longer waits or the claim has changed."""
    if not _is_as_claimed(connection, job):
        return False
    _update(connection, job.id, hand_over, waits=True)
    return True


def release(connection: Connection, job_id: str, hand_over: HandOver) -> None:
    """Makes the job available for leasing after the writers have stopped. The caller has locked it."""
    _update(connection, job_id, hand_over, waits=False)


def drop(connection: Connection, job_id: str) -> None:
    """Removes the hand-over of a job that has no writer to wait for any more. The caller has locked it."""
    connection.execute(_j.update().where(_j.c.id == job_id).values(hand_over=None, waits_for_writers=False))


def give_up(connection: Connection, job_id: str, hand_over: HandOver, *, error: Problem, now: datetime) -> None:
    """Fails a job whose writers were not stopped in time. The caller has locked it."""
    _update(connection, job_id, hand_over, waits=False)
    job_store.fail_queued(connection, job_id, error=error, now=now)


def _is_as_claimed(connection: Connection, job: Job) -> bool:
    found = JOBS.one(connection, _WAITING.where(_j.c.id == job.id).with_for_update())
    current = found.hand_over if found else None
    return current is not None and job.hand_over is not None and current.claimed_until == job.hand_over.claimed_until


def _update(connection: Connection, job_id: str, hand_over: HandOver, *, waits: bool) -> None:
    values: dict[str, Any] = {"hand_over": hand_over.to_json(), "waits_for_writers": waits}
    connection.execute(_j.update().where(_j.c.id == job_id).values(**values))
