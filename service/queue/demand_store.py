"""Counts queued and running jobs by worker group."""

from __future__ import annotations

from datetime import datetime
from functools import cache
from typing import Any

import sqlalchemy as sa
from sqlalchemy import Connection

from service.db import schema
from service.queue import lock_sighting_store
from service.queue.demand import Queued
from service.queue.job import WITH_WORKER
from service.queue.lock_sighting import FRESH

_j = schema.jobs
_s = schema.snapshots


_COUNT_QUEUED = sa.select(_j.c.worker_group, sa.func.count()).where(schema.JOB_IS_QUEUED).group_by(_j.c.worker_group)
_RUNNING = (
    sa.select(_j.c.worker_group, sa.func.count().label("number"))
    .where(schema.JOB_HAS_WORKER)
    .group_by(_j.c.worker_group)
)


def count_queued(connection: Connection) -> dict[str, int]:
    """Returns the number of queued jobs of each group that has any."""
    return {row[0]: row[1] for row in connection.execute(_COUNT_QUEUED)}


def queued(connection: Connection, now: datetime) -> dict[str, Queued]:
    """Returns the queued jobs of each group that has any."""
    jobs = {group: Queued(jobs=number) for group, number in count_queued(connection).items()}
    for row in connection.execute(_queued(), {"now": now, "seen_since": now - FRESH}):
        jobs[row.worker_group] = Queued(jobs[row.worker_group].jobs, row.startable, row.bytes, row.oldest)
    return jobs


@cache
def _queued() -> sa.Select[Any]:
    # One row for each table and group: jobs that write the table exclude each other, the others do not.
    writing = sa.func.max(sa.case((_j.c.mutating, 1), else_=0))
    others = sa.func.sum(sa.case((_j.c.mutating, 0), else_=1))
    leased = schema.jobs.alias("leased")
    is_leased = leased.c.state.in_(schema.literals(WITH_WORKER))
    busy = sa.select(leased.c.table_id).where(is_leased, leased.c.mutating)
    locked = lock_sighting_store.locked(sa.bindparam("seen_since", type_=schema.UtcDateTime))
    tables = (
        sa.select(
            _j.c.worker_group,
            _j.c.table_id,
            (writing + others).label("startable"),
            sa.func.min(_j.c.not_before).label("oldest"),
        )
        .where(
            schema.JOB_IS_QUEUED,
            _j.c.not_before <= sa.bindparam("now", type_=schema.UtcDateTime),
            sa.not_(_j.c.waits_for_writers),
            sa.not_(_j.c.mutating & _j.c.table_id.in_(busy)),
            sa.not_(_j.c.mutating & _j.c.table_id.in_(locked)),
        )
        .group_by(_j.c.worker_group, _j.c.table_id)
        .subquery()
    )
    files = sa.func.coalesce(_s.c.base_bytes, 0) + sa.func.coalesce(_s.c.log_bytes, 0)
    size = sa.select(files).where(_s.c.table_id == tables.c.table_id).scalar_subquery()
    return sa.select(
        tables.c.worker_group,
        sa.cast(sa.func.sum(tables.c.startable), sa.BigInteger).label("startable"),
        sa.cast(sa.func.coalesce(sa.func.sum(size), 0), sa.BigInteger).label("bytes"),
        sa.func.min(tables.c.oldest).label("oldest"),
    ).group_by(tables.c.worker_group)


def running(connection: Connection) -> dict[str, int]:
    """Returns how many jobs the workers of each group hold."""
    return {row.worker_group: row.number for row in connection.execute(_RUNNING)}
