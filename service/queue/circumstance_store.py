"""Notes the circumstances of attempts: at the lease, and at the end."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import sqlalchemy as sa

from service.db import engine, schema
from service.queue.circumstances import UNKNOWN, Circumstances

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from service.queue.job import Job

_a = schema.job_attempts
_j = schema.jobs
_w = schema.workers

_LEASED_BESIDE = (
    sa.select(sa.func.count())
    .where(
        schema.JOB_HAS_WORKER,
        _j.c.worker_id == sa.bindparam("of_worker"),
        _j.c.id != sa.bindparam("of_job"),
    )
    .scalar_subquery()
)

AT_LEASE: dict[str, Any] = {
    "jobs_before": sa.select(_w.c.jobs_taken).where(_w.c.id == sa.bindparam("of_worker")).scalar_subquery(),
    "jobs_beside": _LEASED_BESIDE,
}
"""The values of a new attempt. The job `of_job` has just been leased to the worker `of_worker`."""

_TAKEN = _w.update().where(_w.c.id == sa.bindparam("of_worker")).values(jobs_taken=_w.c.jobs_taken + 1)
_AT_END = sa.select(_a.c.jobs_before, _a.c.jobs_beside, _LEASED_BESIDE.label("at_end")).where(
    _a.c.job_id == sa.bindparam("of_job"), _a.c.attempt == sa.bindparam("of_attempt")
)


def count_lease(connection: Connection, worker_id: str) -> None:
    """Counts a job that the worker has leased; `AT_LEASE` has to be stored before. The worker's row is written only at
    the end of the transaction, because leases of the worker's other slots wait for that row."""
    engine.at_end(connection, _count, worker_id)


def _count(connection: Connection, worker_ids: list[str]) -> None:
    for each in worker_ids:
        connection.execute(_TAKEN, {"of_worker": each})


def at_end(connection: Connection, job: Job) -> Circumstances:
    """Returns the circumstances of an attempt that ends now. The number of jobs beside the attempt is the mean of the
    numbers at the lease and at the end."""
    known = {"of_job": job.id, "of_attempt": job.attempt, "of_worker": job.worker_id}
    row = connection.execute(_AT_END, known).one_or_none()
    if row is None or row.jobs_before is None:
        return UNKNOWN
    return Circumstances(row.jobs_before, (row.jobs_beside + row.at_end) / 2)
