"""Database access to queued jobs that are held back: by the lock of their table, a pause, or a closed window."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime

import sqlalchemy as sa
from sqlalchemy import Connection

from jobs.contract import LOCK_UNAVAILABLE, TABLE_LOCKED
from service.db import schema
from service.queue import job_store
from service.queue.job import Job, JobState
from service.queue.job_store import JOBS

_j = schema.jobs

_OF_LOCK = (TABLE_LOCKED, LOCK_UNAVAILABLE)
_WAITING = sa.select(_j.c.table_id, _j.c.error["type"].as_string().label("error")).where(
    schema.JOB_IS_QUEUED,
    _j.c.mutating,
    sa.not_(_j.c.waits_for_writers),
    _j.c.table_id.not_in(sa.select(_j.c.table_id).where(schema.JOB_HAS_WORKER, _j.c.mutating)),
)
_WAITING_AMONG = _WAITING.where(schema.among(_j.c.table_id, "of_tables"))
_KEPT_OUT = _WAITING.where(_j.c.error["type"].as_string().in_(_OF_LOCK)).with_only_columns(_j.c.table_id)


def hold(connection: Connection, job_id: str, *, until: datetime, because: str | None = None) -> None:
    """Delays a queued job. The caller has locked the job. `because` is None if the breaker states the reason."""
    connection.execute(_j.update().where(_j.c.id == job_id).values(not_before=until, held_back=because))


def release(connection: Connection, now: datetime) -> None:
    """Lets all jobs that were held back be leased now. A job that still has to wait is held back again later."""
    is_held_back = sa.and_(schema.JOB_IS_QUEUED, _j.c.held_back.is_not(None))
    connection.execute(_j.update().where(is_held_back, _j.c.not_before > now).values(not_before=now))


def waiting_for_lock(connection: Connection, table_ids: Collection[str] | None = None) -> dict[str, str | None]:
    """Returns the tables, among all or these, that have a queued job that takes the table's lock, while no worker holds
    such a job. The values are the error types of the jobs' last attempts. If a table has several, an error about the
    lock is preferred."""
    rows = (
        connection.execute(_WAITING)
        if table_ids is None
        else connection.execute(_WAITING_AMONG, {"of_tables": list(table_ids)})
    )
    found: dict[str, str | None] = {}
    for row in rows:
        if row.error in _OF_LOCK or row.table_id not in found:
            found[row.table_id] = row.error
    return found


def tables_locked_out(connection: Connection) -> set[str]:
    """Returns the tables, among those of `waiting_for_lock`, whose last attempt found that the lock was held or that
    its server did not answer."""
    return set(connection.execute(_KEPT_OUT).scalars())


def locked_out(connection: Connection, table_ids: Collection[str]) -> list[Job]:
    """Returns the queued jobs of these tables that take the table's lock, the oldest first."""
    if not table_ids:
        return []
    query = JOBS.select().where(schema.JOB_IS_QUEUED, _j.c.mutating, _j.c.table_id.in_(list(table_ids)))
    return JOBS.many(connection, query.order_by(_j.c.created_at, _j.c.id))


def begun_or_locked_out(
    connection: Connection, locks: Collection[str], table_ids: Collection[str] | None = None
) -> list[Job]:
    """Returns the jobs that have begun, of all tables or of these. Adds the queued jobs that are held back by their
    tables' `locks`, even jobs without an attempt."""
    jobs = [*job_store.begun(connection, table_ids), *locked_out(connection, locks)]
    return list({job.id: job for job in jobs}.values())


def make_locked_out_due(connection: Connection, table_id: str, now: datetime) -> None:
    """Makes the table's queued jobs due if their last attempts found that the lock was held or that its server did not
    answer."""
    is_locked_out = _j.c.error["type"].as_string().in_(_OF_LOCK)
    is_waiting = sa.and_(_j.c.table_id == table_id, _j.c.state == JobState.QUEUED.value, _j.c.not_before > now)
    connection.execute(_j.update().where(is_waiting, is_locked_out).values(not_before=now))
