"""Store of gains: what a job of a policy was expected to save readers, and what the job has saved them."""

from __future__ import annotations

from datetime import datetime

import sqlalchemy as sa
from sqlalchemy import Connection

from service.db import schema
from service.db.documents import Reading, rows_of
from service.outcome.gain import Gain, MeasuredGain
from service.queue.job import Job

_g = schema.job_gains

# Every job executes these statements, so they are built once.
_ENDED = _g.update().where(_g.c.job_id == sa.bindparam("of_job"))
_SEEN = _g.update().where(
    _g.c.table_id == sa.bindparam("of_table"),
    _g.c.overhead_after.is_(None),
    _g.c.ended_at < sa.bindparam("polled_at"),
)
ARE_UNSEEN: Reading[bool] = rows_of(
    tuple[str],
    sa.select(_g.c.job_id)
    .where(_g.c.table_id == sa.bindparam("of_table"), _g.c.overhead_after.is_(None), _g.c.ended_at.is_not(None))
    .limit(1),
).then(bool)
"""Reads whether a job of the table still lacks the value that `record_overhead` stores."""


def expect(connection: Connection, job: Job, gain: Gain, overhead: float) -> None:
    """Stores the expected gain of a job that has just been queued."""
    row = {
        "job_id": job.id,
        "table_id": job.table_id,
        "kind": job.kind.value,
        "created_at": job.created_at,
        "expected_seconds": gain.seconds_per_read,
        "reads_per_day": gain.reads_per_day,
        "overhead_before": overhead,
    }
    connection.execute(_g.insert(), row)


def end(connection: Connection, job_id: str, saved_seconds: float, at: datetime) -> None:
    """Stores the actual gain of a job, if an expected gain was stored."""
    connection.execute(_ENDED, {"of_job": job_id, "saved_seconds": saved_seconds, "ended_at": at})


def record_overhead(connection: Connection, table_id: str, overhead: float, polled_at: datetime) -> None:
    """Stores the overhead of reads that a poll has found, for each job that had ended before the poll and has no such
    value yet."""
    connection.execute(_SEEN, {"of_table": table_id, "polled_at": polled_at, "overhead_after": overhead})


def of_table(connection: Connection, table_id: str, limit: int) -> list[MeasuredGain]:
    """Returns the last gains, the newest first."""
    query = sa.select(_g).where(_g.c.table_id == table_id).order_by(_g.c.created_at.desc(), _g.c.job_id).limit(limit)
    return [MeasuredGain.of_row(row) for row in connection.execute(query)]
