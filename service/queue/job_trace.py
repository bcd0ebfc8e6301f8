"""The spans of jobs, from their submission to their end."""

from __future__ import annotations

from collections.abc import Iterable

from sqlalchemy import Engine

from jobs import tracing
from jobs.trace_context import span_id_of
from service.db.engine import reading
from service.queue import job_store
from service.queue.job import Job, JobState


def ended(job: Job) -> None:
    """Exports the span of a job if it has ended; call it after the commit."""
    span_id = span_id_of(job.id)
    if not tracing.is_on() or job.finished_at is None or job.traceparent is None or span_id is None:
        return
    failed = job.state not in (JobState.SUCCEEDED, JobState.CANCELLED)
    tracing.record(
        f"job {job.kind.value}",
        parent=job.traceparent,
        start=job.created_at,
        end=job.finished_at,
        span_id=span_id,
        error=(job.error.title if job.error else job.state.value) if failed else None,
        job__id=job.id,
        job__kind=job.kind.value,
        job__state=job.state.value,
        job__dry_run=job.dry_run,
        job__attempts=job.attempt,
        table__id=job.table_id,
    )


def have_ended(engine: Engine, job_ids: Iterable[str]) -> None:
    """Reads these jobs, which have just ended, and exports their spans."""
    if not tracing.is_on():
        return
    with reading(engine) as connection:
        found = [job_store.get(connection, job_id) for job_id in job_ids]
    for job in found:
        ended(job)
