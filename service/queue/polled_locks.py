"""Makes a job wait until its table's lock has been checked, if the last poll found that lock held."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import Connection

from jobs.format.lock_file import SIGNED_BY
from service.catalog import watch_store
from service.model.lock_state import LockState
from service.queue import lock_sighting_store
from service.queue.job import Job, mutates
from service.queue.lock_sighting import LockSighting


def is_in_the_way(connection: Connection, job: Job, now: datetime) -> bool:
    """Returns whether the job must wait for a check of the lock. If so, the check is due at once.

    A poll reports only locks that have been held for a minute. If the lock of the table is checked already, the poll is
    ignored. If a worker of this service has left the lock, the job itself decides whether the lock may be removed."""
    if not mutates(job.kind, dry_run=job.dry_run):
        return False
    seen = watch_store.polled_lock(connection, job.table_id)
    if seen is None or seen.holder.startswith(SIGNED_BY) or lock_sighting_store.of_tables(connection, [job.table_id]):
        return False
    lock_sighting_store.watch(connection, [job.table_id], now)
    sighting = LockSighting(job.table_id, LockState.HELD, True, now, seen.holder, seen.since)
    lock_sighting_store.record(connection, sighting, next_look_at=now)
    return True
