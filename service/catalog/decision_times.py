"""When each table is decided about next."""

from __future__ import annotations

from typing import TYPE_CHECKING

import sqlalchemy as sa

from service.db import schema
from service.db.upsert import upsert

if TYPE_CHECKING:
    from collections.abc import Collection
    from datetime import datetime

    from sqlalchemy import Connection

_p = schema.planning


def wake(connection: Connection, table_id: str, now: datetime) -> None:
    """Something about the table has changed: it is decided about as soon as it can be. Call it in the transaction of
    the change. A table that waits already keeps its place."""
    upsert(
        connection,
        _p,
        {"table_id": table_id},
        {name: _earlier(_p.c[name], now) for name in ("next_decision_at", "due_since")},
        only_new={"next_decision_at": now, "due_since": now},
    )


def wake_all(connection: Connection, now: datetime) -> None:
    """As `wake`, for every table that was ever looked at."""
    # Locked in one order, for two that wake all at once must not wait for each other.
    later = sa.select(_p.c.table_id).where(_p.c.next_decision_at > now).order_by(_p.c.table_id).with_for_update()
    connection.execute(
        _p.update()
        .where(_p.c.table_id.in_(later))
        .values(next_decision_at=now, due_since=_earlier(_p.c.due_since, now))
    )


def wake_deferred(connection: Connection, now: datetime, limit: int, *, rooms: Collection[str]) -> None:
    """Lets `limit` tables try again of those that wait for one of these `rooms`, those that have for longest."""
    first = (
        sa.select(_p.c.table_id)
        .where(
            _p.c.deferred_for.in_(rooms),
            _p.c.next_decision_at > now,
        )
        .order_by(_p.c.due_since)
        .limit(limit)
        .with_for_update(skip_locked=True)
    )
    connection.execute(_p.update().where(_p.c.table_id.in_(first)).values(next_decision_at=now))


def wanted_capacity(connection: Connection, now: datetime) -> list[str]:
    """What tables wait for of other tables' jobs, each once."""
    room = _p.c.deferred_for
    query = sa.select(room).where(room.is_not(None), _p.c.next_decision_at > now).distinct()
    return list(connection.execute(query).scalars())


def due(connection: Connection, now: datetime, limit: int) -> list[str]:
    """The tables that are due, those that have been for longest first. Nothing is claimed yet."""
    query = sa.select(_p.c.table_id).where(_p.c.next_decision_at <= now).order_by(_p.c.due_since).limit(limit)
    return list(connection.execute(query).scalars())


def claim(connection: Connection, table_id: str, now: datetime) -> bool:
    """Locks a table that is due until the transaction ends. False when another service has it, or has just decided."""
    query = (
        sa.select(_p.c.table_id)
        .where(_p.c.table_id == table_id, _p.c.next_decision_at <= now)
        .with_for_update(skip_locked=True)
    )
    return connection.execute(query).first() is not None


def settle(connection: Connection, table_id: str, *, next_decision_at: datetime) -> None:
    """The table has been decided about."""
    values = {"next_decision_at": next_decision_at, "due_since": next_decision_at, "deferred_for": None}
    connection.execute(_p.update().where(_p.c.table_id == table_id).values(**values))


def defer(connection: Connection, table_id: str, *, next_decision_at: datetime, wanted: str) -> None:
    """The table has been decided about, and keeps its place: it waits until other tables' jobs leave the room that is
    `wanted` (`service.scheduling.admission.capacity_wanted`)."""
    values = {"next_decision_at": next_decision_at, "deferred_for": wanted}
    connection.execute(_p.update().where(_p.c.table_id == table_id).values(**values))


def _earlier(column: sa.ColumnElement[datetime], now: datetime) -> sa.ColumnElement[datetime]:
    """The earlier of both; PostgreSQL and SQLite have no common function for that."""
    return sa.case((column > now, sa.literal(now, column.type)), else_=column)
