"""Reads from the database what jobs wait for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from service.queue import breaker_store, lease_store, lock_sighting_store, worker_store
from service.queue.job import JobState
from service.queue.queue_status import waits_for

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from sqlalchemy import Connection

    from service.queue.job import Job
    from service.queue.worker import Worker


def waits_of(
    connection: Connection, jobs: Sequence[Job], now: datetime, workers: Sequence[Worker] | None = None
) -> dict[str, str]:
    """Returns what each of the jobs waits for, by job id, without those that wait for nothing. It reads the held jobs
    and, unless they are given, the workers once for all of them, and only if one is queued."""
    tables = {job.table_id for job in jobs if job.state is JobState.QUEUED}
    held = lease_store.on_tables(connection, tables) if tables else {}
    if workers is None:
        workers = worker_store.every(connection) if tables else []
    locks = lock_sighting_store.of_tables(connection, tables)
    breakers = breaker_store.of_tables(connection, tables, now)
    found = (
        (
            job.id,
            waits_for(
                job,
                held.get(job.table_id, []),
                workers,
                now,
                lock=locks.get(job.table_id),
                breaker=breakers.get((job.table_id, job.kind)),
            ),
        )
        for job in jobs
    )
    return {job_id: waits for job_id, waits in found if waits is not None}
