"""The workers that have made themselves known."""

from __future__ import annotations

from collections import defaultdict
from datetime import timedelta
from typing import TYPE_CHECKING

import sqlalchemy as sa

from jobs.contract import WorkerInfo
from service.db import schema
from service.db.upsert import upsert
from service.queue.job import HELD
from service.queue.worker import Worker

if TYPE_CHECKING:
    from datetime import datetime

    from sqlalchemy import Connection

_w = schema.workers
_j = schema.jobs

_PRECISION = timedelta(seconds=5)
"""`last_seen` is no more exact than this: workers call all the time, and each write costs something."""


def is_fresh(connection: Connection, worker_id: str, now: datetime) -> bool:
    """Whether it was seen a moment ago, and need not be written down again."""
    query = sa.select(_w.c.id).where(_w.c.id == worker_id, _w.c.last_seen > now - _PRECISION)
    return connection.execute(query).first() is not None


def announce(connection: Connection, worker_id: str, info: WorkerInfo, now: datetime) -> None:
    """What a worker says of itself with each call for a job."""
    said = {**info.to_json(), "last_seen": now}
    upsert(connection, _w, {"id": worker_id}, said, only_new={"first_seen": now})


def seen(connection: Connection, worker_id: str, now: datetime) -> None:
    """A sign of life of a worker that is at work."""
    connection.execute(
        _w.update().where(_w.c.id == worker_id, _w.c.last_seen <= now - _PRECISION).values(last_seen=now)
    )


def every(connection: Connection) -> list[Worker]:
    """The one seen last first."""
    held = defaultdict(list)
    is_held = _j.c.state.in_([state.value for state in HELD])
    for row in connection.execute(sa.select(_j.c.worker_id, _j.c.id).where(is_held).order_by(_j.c.leased_at, _j.c.id)):
        held[row.worker_id].append(row.id)
    query = sa.select(_w).order_by(_w.c.last_seen.desc(), _w.c.id)
    return [
        Worker(
            id=row.id,
            info=WorkerInfo(row.version, row.master, row.slots, row.driver_memory, row.group),
            first_seen=row.first_seen,
            last_seen=row.last_seen,
            job_ids=tuple(held[row.id]),
        )
        for row in connection.execute(query)
    ]


def prune(connection: Connection, before: datetime) -> int:
    """Forgets those that were not seen since `before`, and answers how many."""
    return connection.execute(_w.delete().where(_w.c.last_seen < before)).rowcount
