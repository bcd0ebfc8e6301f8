"""The time of each table's next decision."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import datetime
from functools import cache

import sqlalchemy as sa
from sqlalchemy import Connection
from sqlalchemy.dialects import postgresql, sqlite

from service.db import schema

_p = schema.planning
# Every decision executes these statements, so they are built once.
_OF_TABLE = _p.c.table_id == sa.bindparam("of_table")
_CLAIM = (
    sa.select(_p.c.table_id)
    .where(_OF_TABLE, _p.c.next_decision_at <= sa.bindparam("now"))
    .with_for_update(skip_locked=True)
)
_UPDATE = _p.update().where(_OF_TABLE)
_DUE = (
    sa.select(_p.c.table_id)
    .where(_p.c.next_decision_at <= sa.bindparam("now"))
    .order_by(_p.c.due_since)
    .limit(sa.bindparam("most"))
)
ANY_DEFERRED = sa.select(_p.c.table_id).where(_p.c.deferred_for.is_not(None)).limit(1)
"""Selects a table that waits for capacity."""
ANY_DUE = (
    sa.select(_p.c.table_id)
    .where(sa.or_(_p.c.next_decision_at <= sa.bindparam("now"), _p.c.deferred_for.is_not(None)))
    .limit(1)
)
"""Selects a table about which a decision is due `now`, or which waits for capacity."""


def wake(connection: Connection, table_id: str, now: datetime) -> None:
    """Makes the table's next decision due now, because something about the table has changed. Call it in the
    transaction of the change. A table that is already due keeps its place."""
    wake_each(connection, {table_id: now})


def wake_each(connection: Connection, times: Mapping[str, datetime]) -> None:
    """Does the same as `wake` for several tables, each with its own time."""
    rows = [{"of_table": table_id, "at": at} for table_id, at in times.items()]
    connection.execute(_wake(connection.dialect.name), rows)


@cache
def _wake(dialect: str) -> sa.Insert:
    at: sa.ColumnElement[datetime] = sa.bindparam("at", type_=_p.c.due_since.type)
    times = ("next_decision_at", "due_since")
    insert = postgresql.insert if dialect == "postgresql" else sqlite.insert
    row = insert(_p).values(table_id=sa.bindparam("of_table"), **dict.fromkeys(times, at))
    return row.on_conflict_do_update(
        index_elements=["table_id"], set_={name: _earlier(_p.c[name], at) for name in times}
    )


def wake_all(connection: Connection, now: datetime) -> None:
    """Does the same as `wake` for every table that was ever polled."""
    # Rows are locked in a fixed order, so that two concurrent calls cannot block each other for ever.
    later = sa.select(_p.c.table_id).where(_p.c.next_decision_at > now).order_by(_p.c.table_id).with_for_update()
    connection.execute(
        _p.update()
        .where(_p.c.table_id.in_(later))
        .values(next_decision_at=now, due_since=_earlier(_p.c.due_since, sa.literal(now, _p.c.due_since.type)))
    )


def wake_deferred(connection: Connection, now: datetime, limit: int, *, capacities: Collection[str]) -> None:
    """Makes decisions due about at most `limit` of the tables that wait for one of these `capacities`; those that have
    waited the longest come first."""
    first = (
        sa.select(_p.c.table_id)
        .where(
            _p.c.deferred_for.in_(capacities),
            _p.c.next_decision_at > now,
        )
        .order_by(_p.c.due_since)
        .limit(limit)
        .with_for_update(skip_locked=True)
    )
    connection.execute(_p.update().where(_p.c.table_id.in_(first)).values(next_decision_at=now))


def wanted_capacity(connection: Connection, now: datetime) -> list[str]:
    """Returns the capacities for which deferred tables wait, without duplicates."""
    wanted = _p.c.deferred_for
    query = sa.select(wanted).where(wanted.is_not(None), _p.c.next_decision_at > now).distinct()
    return list(connection.execute(query).scalars())


def due(connection: Connection, now: datetime, limit: int) -> list[str]:
    """Returns the due tables without claiming them, the longest due first."""
    return list(connection.execute(_DUE, {"now": now, "most": limit}).scalars())


def claim(connection: Connection, table_id: str, now: datetime) -> bool:
    """Locks a due table until the transaction ends. Returns False if another replica has locked it or has just
    decided."""
    return connection.execute(_CLAIM, {"of_table": table_id, "now": now}).first() is not None


def settle(connection: Connection, table_id: str, *, next_decision_at: datetime) -> None:
    """Records that a decision about the table was made."""
    values = {"next_decision_at": next_decision_at, "due_since": next_decision_at, "deferred_for": None}
    connection.execute(_UPDATE, {"of_table": table_id, **values})


def defer(connection: Connection, table_id: str, *, next_decision_at: datetime, wanted: str) -> None:
    """Records a decision to wait until jobs of other tables free the capacity `wanted`
    (`service.scheduling.admission.capacity_wanted`). The table keeps its place."""
    values = {"next_decision_at": next_decision_at, "deferred_for": wanted}
    connection.execute(_UPDATE, {"of_table": table_id, **values})


def _earlier(column: sa.ColumnElement[datetime], at: sa.ColumnElement[datetime]) -> sa.ColumnElement[datetime]:
    """Returns the earlier of both times. PostgreSQL and SQLite have no common function for this."""
    return sa.case((column > at, at), else_=column)
