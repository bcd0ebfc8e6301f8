"""Reads from the database what jobs wait for."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection

from service.catalog import table_store
from service.db.documents import AtOnce
from service.queue import breaker_store, lease_store, lock_sighting_store, worker_store
from service.queue.breaker import Breaker
from service.queue.job import Job, JobState
from service.queue.queue_status import waits_for
from service.queue.worker import Worker


@dataclass(frozen=True)
class Wait:
    """The reason why a job waits. `what` names it; None if the job does not wait. `breaker` is the breaker of the job's
    table and kind, if the job is queued."""

    at: datetime
    what: str | None = None
    breaker: Breaker | None = None


@dataclass(frozen=True)
class Waiting:
    """What some jobs wait for, by job id, with all workers, and the names of the jobs' tables by their ids."""

    waits: Mapping[str, Wait]
    names: Mapping[str, str]
    workers: Sequence[Worker]


def waiting_of(connection: Connection, jobs: Sequence[Job], now: datetime) -> Waiting:
    """Reads what the jobs wait for, in one statement."""
    tables = {job.table_id for job in jobs}
    leased, locks, breakers, workers, names = _ALL.read(
        connection, {"of_tables": list(tables), **breaker_store.since(now)}
    )
    of_tables = defaultdict(list)
    for job in leased:
        of_tables[job.table_id].append(job)
    waits = {}
    for job in jobs:
        is_breakable = job.state is JobState.QUEUED and not job.dry_run
        breaker = breakers.get((job.table_id, job.kind)) if is_breakable else None
        what = waits_for(job, of_tables[job.table_id], workers, now, lock=locks.get(job.table_id), breaker=breaker)
        waits[job.id] = Wait(now, what, breaker)
    return Waiting(waits, names, workers)


_ALL = AtOnce(
    lease_store.WITH_WORKER_ON_TABLES,
    lock_sighting_store.OF_TABLES,
    breaker_store.OF_TABLES,
    worker_store.EVERY,
    table_store.NAMES,
)
