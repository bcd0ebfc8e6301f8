"""Jobs that wait until the writers have been stopped."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import sqlalchemy as sa

from service.db import schema
from service.queue.job import JobState
from service.queue.job_store import job_of

if TYPE_CHECKING:
    from datetime import datetime

    from sqlalchemy import Connection

    from jobs.contract import Problem
    from service.queue.hand_over import HandOver
    from service.queue.job import Job

_j = schema.jobs


def waiting(connection: Connection) -> list[Job]:
    """The oldest first."""
    return [job_of(row) for row in connection.execute(_waiting().order_by(_j.c.created_at, _j.c.id))]


def begin(connection: Connection, job: Job, hand_over: HandOver) -> None:
    """From now on the job waits. The caller has locked it, or has just made it."""
    _update(connection, job.id, hand_over, waits=True)


def claim(connection: Connection, job_id: str, *, now: datetime, until: datetime) -> Job | None:
    """The job, if it still waits and nobody else is at it; nobody else gets it until then. It is not locked for long:
    what is to be done takes calls of others."""
    row = connection.execute(_waiting().where(_j.c.id == job_id).with_for_update(skip_locked=True)).one_or_none()
    job = job_of(row) if row else None
    if job is None or job.hand_over is None or (job.hand_over.claimed_until and job.hand_over.claimed_until > now):
        return None
    claimed = job.hand_over.evolve(claimed_until=until)
    _update(connection, job.id, claimed, waits=True)
    return job.evolve(hand_over=claimed)


def step(connection: Connection, job: Job, hand_over: HandOver) -> bool:
    """Records how far the stop is; false if the job does not wait any more, or waits anew."""
    if not _is_as_claimed(connection, job):
        return False
    _update(connection, job.id, hand_over, waits=True)
    return True


def release(connection: Connection, job_id: str, hand_over: HandOver) -> None:
    """The writers were stopped: the job may be leased. The caller has locked it."""
    _update(connection, job_id, hand_over, waits=False)


def drop(connection: Connection, job_id: str) -> None:
    """The job has nobody to wait for any more. The caller has locked it."""
    connection.execute(_j.update().where(_j.c.id == job_id).values(hand_over=None, waits_for_writers=False))


def give_up(connection: Connection, job_id: str, hand_over: HandOver, *, error: Problem, now: datetime) -> None:
    """The writers were not stopped in time. The caller has locked the job."""
    _update(connection, job_id, hand_over, waits=False)
    connection.execute(
        _j.update().where(_j.c.id == job_id).values(state=JobState.FAILED.value, error=error.to_json(), finished_at=now)
    )


def _is_as_claimed(connection: Connection, job: Job) -> bool:
    row = connection.execute(_waiting().where(_j.c.id == job.id).with_for_update()).one_or_none()
    standing = job_of(row).hand_over if row else None
    return standing is not None and job.hand_over is not None and standing.claimed_until == job.hand_over.claimed_until


def _update(connection: Connection, job_id: str, hand_over: HandOver, *, waits: bool) -> None:
    values: dict[str, Any] = {"hand_over": hand_over.to_json(), "waits_for_writers": waits}
    connection.execute(_j.update().where(_j.c.id == job_id).values(**values))


def _waiting() -> sa.Select[Any]:
    # Written out, not as a parameter: only then SQLite sees that the small index of queued jobs answers this.
    queued: sa.BindParameter[str] = sa.bindparam("queued", JobState.QUEUED.value, literal_execute=True)
    return sa.select(_j).where(_j.c.state == queued, _j.c.waits_for_writers)
