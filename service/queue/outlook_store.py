"""Reads the data of a forecast: queued jobs, and jobs that workers hold."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy import Connection

from service.db import schema
from service.model.calls import calls
from service.queue import lock_sighting_store
from service.queue.circumstances import UNKNOWN, Circumstances
from service.queue.lock_sighting import FRESH

_a = schema.job_attempts
_j = schema.jobs
_t = schema.turns

MOST_QUEUED = 10_000
"""Jobs beyond this number are only counted."""

_IS_OF_POLICY = _j.c.reason.is_not(None).label("is_of_policy")
_OF_JOB = (_j.c.id, _j.c.table_id, _j.c.kind, _j.c.dry_run, _j.c.mutating, _j.c.worker_group)
# Every submission executes these statements, so they are built once.
_LOCKED = lock_sighting_store.locked(sa.bindparam("looked_after", type_=schema.UtcDateTime))
_QUEUED: sa.Select[Any] = (
    sa.select(
        *(*_OF_JOB, _j.c.priority, _j.c.created_at, _j.c.not_before, _j.c.waits_for_writers),
        _IS_OF_POLICY,
        (_j.c.mutating & _j.c.table_id.in_(_LOCKED)).label("is_locked"),
        _j.c.held_back,
        _j.c.worth,
        _j.c.starts_by,
    )
    .where(schema.JOB_IS_QUEUED)
    .order_by(_j.c.priority.desc(), _j.c.created_at, _j.c.id)
    .limit(MOST_QUEUED)
)
_LEASED: sa.Select[Any] = (
    sa.select(*_OF_JOB, _j.c.leased_at, _IS_OF_POLICY, _a.c.jobs_before, _a.c.jobs_beside)
    .outerjoin(_a, (_a.c.job_id == _j.c.id) & (_a.c.attempt == _j.c.attempt))
    .where(schema.JOB_HAS_WORKER, _j.c.leased_at.is_not(None))
)
_USED = sa.select(_t.c.table_id, _t.c.used).where(
    _t.c.table_id.in_(sa.select(_j.c.table_id).where(schema.JOB_IS_QUEUED).distinct()), _t.c.used.is_not(None)
)


@dataclass(frozen=True, slots=True)
class QueuedRow:
    id: str
    table_id: str
    kind: str
    dry_run: bool
    mutating: bool
    worker_group: str
    priority: int
    created_at: datetime
    not_before: datetime
    waits_for_writers: bool
    is_of_policy: bool = False
    is_locked: bool = False
    held_back: str | None = None
    worth: float | None = None
    starts_by: datetime | None = None


@dataclass(frozen=True, slots=True)
class LeasedRow:
    id: str
    table_id: str
    kind: str
    dry_run: bool
    mutating: bool
    worker_group: str
    leased_at: datetime
    is_of_policy: bool = False
    circumstances: Circumstances = UNKNOWN


def queued(connection: Connection, now: datetime) -> list[QueuedRow]:
    """Returns the queued jobs, at most MOST_QUEUED of them: highest priority first, then oldest first."""
    return [QueuedRow(*row) for row in calls.giving_way(connection.execute(_QUEUED, {"looked_after": now - FRESH}))]


def leased(connection: Connection) -> list[LeasedRow]:
    found = []
    for row in connection.execute(_LEASED):
        values = row._asdict()
        circumstances = Circumstances(values.pop("jobs_before"), values.pop("jobs_beside"))
        found.append(LeasedRow(**values, circumstances=circumstances))
    return found


def used(connection: Connection) -> dict[str, float]:
    """Returns the slot use of tables with queued jobs (`service.queue.slot_use`)."""
    return {row.table_id: row.used for row in connection.execute(_USED)}
