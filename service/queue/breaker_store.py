"""Database access to the breakers."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy import Connection

from jobs.contract import JobKind
from service.catalog import decision_times
from service.db import schema
from service.db.documents import Documents, Reading, rows_of
from service.db.upsert import upsert
from service.queue.breaker import COUNTED, REMEMBERED, Breaker
from service.queue.job import JobState

_b = schema.breakers
_j = schema.jobs
_t = schema.turns
# Every decision or job executes these statements, so they are built once.
MENDED_AT: Reading[datetime | None] = rows_of(
    tuple[datetime | None], sa.select(_t.c.mended_at).where(_t.c.table_id == sa.bindparam("of_table"))
).then(lambda rows: rows[0][0] if rows else None)
"""Reads the time since which failures of a table's jobs count."""
_breakers = Documents(Breaker, _b)
OF_TABLES = _breakers.all_of(
    _breakers.select().where(schema.among(_b.c.table_id, "of_tables"), _b.c.failed_at > sa.bindparam("failed_after"))
).then(lambda found: {(each.table_id, each.kind): each for each in found})
"""Reads what `of_tables` returns."""
_REMOVE = (
    _b.delete()
    .where(_b.c.table_id == sa.bindparam("of_table"), _b.c.kind == sa.bindparam("of_kind"))
    .returning(_b.c.worker_group, _b.c.error)
)
_OPEN = (
    _b.update()
    .where(_b.c.table_id == sa.bindparam("of_table"), _b.c.next_try_at > _b.c.failed_at)
    .values(next_try_at=_b.c.failed_at)
    .returning(_b.c.kind)
)
_OPEN_KIND = _OPEN.where(_b.c.kind == sa.bindparam("of_kind"))

_ALIKE = 20
"""At most this many breakers are half opened when another table that had the same error succeeds."""


def find(connection: Connection, table_id: str, kind: JobKind, now: datetime) -> Breaker | None:
    return of_tables(connection, [table_id], now).get((table_id, kind))


def of_tables(connection: Connection, table_ids: Collection[str], now: datetime) -> dict[tuple[str, JobKind], Breaker]:
    """Returns the breakers of these tables that are not closed, by table id and kind."""
    return OF_TABLES.read(connection, {"of_tables": list(table_ids), **since(now)}) if table_ids else {}


def since(now: datetime) -> dict[str, Any]:
    """Returns the parameter that `OF_TABLES` needs besides the tables."""
    return {"failed_after": now - REMEMBERED}


def every(connection: Connection, now: datetime, table_ids: Collection[str] | None = None) -> list[Breaker]:
    """Returns the breakers of all tables, or of these, whose last failure is recent enough to count."""
    query = sa.select(_b).where(_b.c.failed_at > now - COUNTED)
    rows = connection.execute(query if table_ids is None else query.where(_b.c.table_id.in_(table_ids)))
    return [Breaker.of_row(row) for row in rows]


def failing(connection: Connection, group: str, now: datetime, *, without: tuple[str, JobKind]) -> int:
    """Counts the breakers of a worker group whose last failure is recent enough to count."""
    query = sa.select(sa.func.count()).where(
        _b.c.failed_at > now - COUNTED,
        _b.c.worker_group == group,
        sa.or_(_b.c.table_id != without[0], _b.c.kind != without[1].value),
    )
    return int(connection.execute(query).scalar_one())


def record(connection: Connection, breaker: Breaker) -> None:
    key = {"table_id": breaker.table_id, "kind": breaker.kind.value}
    upsert(connection, _b, key, breaker.to_row(*key))


def close(connection: Connection, table_id: str, kind: JobKind, now: datetime) -> None:
    """Closes the breaker, because an attempt has succeeded. Tables of the group that failed with the same error are
    retried at once, because they may have had the same cause."""
    removed = connection.execute(_REMOVE, {"of_table": table_id, "of_kind": kind.value}).one_or_none()
    if removed is None or removed.error is None:
        return
    alike = sa.select(_b).where(
        _b.c.failed_at > now - COUNTED, _b.c.next_try_at > now, _b.c.worker_group == removed.worker_group
    )
    same = [Breaker.of_row(row) for row in connection.execute(alike.order_by(_b.c.next_try_at))]
    for each in [each for each in same if each.error and each.error.type == removed.error.get("type")][:_ALIKE]:
        half_open(connection, each.table_id, now, kind=each.kind)


def half_open(connection: Connection, table_id: str, now: datetime, *, kind: JobKind | None = None) -> None:
    """Lets the next attempt of one kind of job, or of all kinds, start now. Jobs that wait for this become due.

    `next_try_at` becomes the time of the failure, which marks the attempt as requested (`Breaker.put_off`).
    """
    which = {"of_table": table_id} if kind is None else {"of_table": table_id, "of_kind": kind.value}
    kinds = connection.execute(_OPEN if kind is None else _OPEN_KIND, which).scalars().all()
    if kinds:
        is_waiting = (_j.c.table_id == table_id, _j.c.state == JobState.QUEUED.value, _j.c.not_before > now)
        connection.execute(_j.update().where(*is_waiting, _j.c.kind.in_(kinds)).values(not_before=now))


def mended(connection: Connection, table_id: str, now: datetime) -> None:
    """Half opens all breakers of a table that was repaired or changed. Policies no longer count failures of earlier
    jobs."""
    half_open(connection, table_id, now)
    upsert(connection, _t, {"table_id": table_id}, {"mended_at": now})
    decision_times.wake(connection, table_id, now)
