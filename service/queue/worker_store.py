"""Database access to the known workers."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta
from itertools import groupby
from operator import itemgetter
from typing import Any

import sqlalchemy as sa
from sqlalchemy import Connection

from jobs.contract import WorkerInfo, WorkerState
from service.db import schema
from service.db.documents import Documents, Reading, rows_of
from service.db.upsert import upsert
from service.outcome.read_cost import ReadRates
from service.queue.worker import Worker

_w = schema.workers
_j = schema.jobs
_INFOS = Documents(WorkerInfo, _w)
_Row = tuple[str, WorkerInfo, datetime, datetime, str | None]

_PROBED = 9
"""How many workers count for the read rates: those that have called last."""

# Every job executes these statements, so they are built once.
_IS_WORKER = _w.c.id == sa.bindparam("of_worker")
_FRESH = sa.select(_w.c.state, _w.c.executors).where(_IS_WORKER, _w.c.last_seen > sa.bindparam("seen"))
_SEEN = _w.update().where(_IS_WORKER, _w.c.last_seen <= sa.bindparam("seen"))
# Each row has one of the jobs of a worker, if it holds any.
_EVERY = (
    sa.select(_w.c.id, _INFOS.value().label("info"), _w.c.first_seen, _w.c.last_seen, _j.c.id.label("job_id"))
    .select_from(_w.outerjoin(_j, sa.and_(_j.c.worker_id == _w.c.id, schema.JOB_HAS_WORKER)))
    .order_by(_w.c.last_seen.desc(), _w.c.id, _j.c.leased_at, _j.c.id)
)

RATES: Reading[ReadRates] = rows_of(
    tuple[dict[str, Any]],
    sa.select(_w.c.read_rates).where(_w.c.read_rates.is_not(None)).order_by(_w.c.last_seen.desc()).limit(_PROBED),
).then(lambda rows: ReadRates.middle([each for (given,) in rows if (each := ReadRates.from_json(given))]))
"""Reads what `read_rates` returns."""

_PRECISION = timedelta(seconds=5)
"""Accuracy of `last_seen`. It is coarse to save writes, because workers call all the time."""


_FAILED_FOR = timedelta(minutes=10)
"""Minimum time for which a worker that did not start is listed."""


def is_fresh(connection: Connection, worker_id: str, info: WorkerInfo, now: datetime) -> bool:
    """Returns whether the stored state and `last_seen` are recent enough to skip a write."""
    row = connection.execute(_FRESH, {"of_worker": worker_id, "seen": now - _PRECISION}).one_or_none()
    return row is not None and (row.state, row.executors) == (info.state, info.executors)


def announce(connection: Connection, worker_id: str, info: WorkerInfo, now: datetime) -> None:
    """Stores the worker's description of itself, which it sends with each request for a job, or on its own."""
    values = {**info.to_json(), "last_seen": now}
    if info.state is WorkerState.FAILED:
        # A supervisor restarts a failing worker repeatedly, each time under another name.
        failed = (_w.c.group == info.group) & (_w.c.state == WorkerState.FAILED.value)
        connection.execute(_w.delete().where(failed, _w.c.last_seen < now - _FAILED_FOR))
    upsert(connection, _w, {"id": worker_id}, values, only_new={"first_seen": now})


def seen(connection: Connection, worker_id: str, now: datetime) -> None:
    """Updates `last_seen` of a worker that sent a heartbeat."""
    connection.execute(_SEEN, {"of_worker": worker_id, "seen": now - _PRECISION, "last_seen": now})


def every(connection: Connection) -> list[Worker]:
    """Returns all workers with the jobs that they hold, the most recently seen first."""
    return EVERY.read(connection)


def _workers(rows: Iterable[_Row]) -> list[Worker]:
    found = []
    for _, (row, *others) in groupby(rows, key=itemgetter(0)):
        worker_id, info, first_seen, last_seen, _ = row
        jobs = tuple(job_id for *_, job_id in (row, *others) if job_id is not None)
        found.append(Worker(worker_id, info, first_seen, last_seen, jobs))
    return found


EVERY = rows_of(_Row, _EVERY).then(_workers)
"""Reads what `every` returns."""


def read_rates(connection: Connection) -> ReadRates:
    """Returns the medians of the read rates that the workers which have called last have measured."""
    return RATES.read(connection)


def prune(connection: Connection, before: datetime, limit: int) -> int:
    """Deletes at most `limit` workers last seen before `before`, and returns how many."""
    old = sa.select(_w.c.id).where(_w.c.last_seen < before).limit(limit)
    return connection.execute(_w.delete().where(_w.c.id.in_(old))).rowcount
