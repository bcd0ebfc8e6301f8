"""Reads from the database what jobs wait for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection

from service.queue import breaker_store, lease_store, lock_sighting_store, worker_store
from service.queue.breaker import Breaker
from service.queue.job import Job, JobState
from service.queue.queue_status import waits_for
from service.queue.worker import Worker


@dataclass(frozen=True)
class Wait:
    """The reason why a job waits. `what` it waits for is None if it does not wait. `breaker` is the breaker of its
    table and kind, if the job is queued."""

    at: datetime
    what: str | None = None
    breaker: Breaker | None = None


def waits_of(
    connection: Connection, jobs: Sequence[Job], now: datetime, workers: Sequence[Worker] | None = None
) -> dict[str, Wait]:
    """Returns what each of the jobs waits for, by job id. If one is queued, the held jobs and the workers are read,
    once for all jobs; `workers` saves the second query."""
    tables = {job.table_id for job in jobs if job.state is JobState.QUEUED}
    held = lease_store.on_tables(connection, tables) if tables else {}
    if workers is None:
        workers = worker_store.every(connection) if tables else []
    locks = lock_sighting_store.of_tables(connection, tables)
    breakers = breaker_store.of_tables(connection, tables, now)
    found = {}
    for job in jobs:
        is_breakable = job.state is JobState.QUEUED and not job.dry_run
        breaker = breakers.get((job.table_id, job.kind)) if is_breakable else None
        of_table, lock = held.get(job.table_id, []), locks.get(job.table_id)
        found[job.id] = Wait(now, waits_for(job, of_table, workers, now, lock=lock, breaker=breaker), breaker)
    return found
