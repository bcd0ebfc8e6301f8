"""Database access for requests that a worker repeats because the answer was lost."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy import Connection

from service.db import schema
from service.queue.job import WITH_WORKER, AttemptOutcome, Holder, Job
from service.queue.job_store import JOBS

_j = schema.jobs
_a = schema.job_attempts


def leased_with(connection: Connection, request_id: str, holder: Holder) -> Job | None:
    """Returns the job that was leased by this request of this holder; None once the lease has ended."""
    job = JOBS.one(connection, _LEASED_WITH, {"of_request": request_id})
    return job if job is not None and job.is_leased_to(holder) else None


def extend(connection: Connection, job: Job, deadline: datetime) -> bool:
    """Moves the deadline of this attempt's lease; returns False if the lease has ended."""
    values: dict[str, Any] = {"of_job": job.id, "of_attempt": job.attempt, "lease_deadline": deadline}
    return bool(connection.execute(_EXTEND, values).rowcount)


def reported(connection: Connection, job_id: str, attempt: int, outcome: AttemptOutcome, holder: Holder) -> Job | None:
    """Returns the job if this attempt of this worker has ended by a report with this outcome; else None."""
    ended = {"of_job": job_id, "of_attempt": attempt, "of_worker": holder.worker_id, "ended_as": outcome.value}
    return JOBS.one(connection, _REPORTED, ended)


# States are literals, because SQLite uses the partial index only with literals.
_HAS_WORKER = _j.c.state.in_(schema.literals(WITH_WORKER))
_LEASED_WITH = JOBS.select().where(_HAS_WORKER, _j.c.lease_request == sa.bindparam("of_request"))
ANY_LEASED_WITH = sa.select(_j.c.id).where(_HAS_WORKER, _j.c.lease_request == sa.bindparam("of_request"))
_EXTEND = _j.update().where(_j.c.id == sa.bindparam("of_job"), _j.c.attempt == sa.bindparam("of_attempt"), _HAS_WORKER)
_REPORTED = (
    JOBS.select()
    .join(_a, _a.c.job_id == _j.c.id)
    .where(
        _j.c.id == sa.bindparam("of_job"),
        _a.c.attempt == sa.bindparam("of_attempt"),
        _a.c.worker_id == sa.bindparam("of_worker"),
        _a.c.outcome == sa.bindparam("ended_as"),
    )
)
