"""Database access to advice about tables. Each table has at most one row."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime

import sqlalchemy as sa
from sqlalchemy import Connection

from service.db import schema
from service.db.upsert import upsert
from service.simulation.advice import Advice, AdviceState

_a = schema.advice


def find(connection: Connection, table_id: str) -> Advice | None:
    row = connection.execute(sa.select(_a).where(_a.c.table_id == table_id)).one_or_none()
    return Advice.of_row(row) if row else None


def every(connection: Connection, states: Collection[AdviceState], limit: int) -> list[Advice]:
    """Returns the advice in these states, the latest first."""
    query = sa.select(_a).where(_a.c.state.in_([each.value for each in states]))
    rows = connection.execute(query.order_by(_a.c.computed_at.desc(), _a.c.table_id).limit(limit))
    return [Advice.of_row(row) for row in rows]


def put(connection: Connection, advice: Advice) -> None:
    upsert(connection, _a, {"table_id": advice.table_id}, advice.to_row("table_id"))


def due(connection: Connection, before: datetime, applied_before: datetime, now: datetime, limit: int) -> list[str]:
    """Returns the ids of polled tables that have no advice, and of those whose advice was last looked at before
    `before`, or before `applied_before` if it was applied; the longest ago first. A time in the future, which comes
    from a clock that was set back, is due too."""
    tables, snapshots = schema.tables, schema.snapshots
    is_applied = _a.c.state == AdviceState.APPLIED.value
    query = (
        sa.select(tables.c.id)
        .join(snapshots, snapshots.c.table_id == tables.c.id)
        .outerjoin(_a, _a.c.table_id == tables.c.id)
        .where(
            sa.or_(
                _a.c.table_id.is_(None),
                _a.c.computed_at < before,
                sa.and_(is_applied, _a.c.computed_at < applied_before),
                _a.c.computed_at > now,
            )
        )
        .order_by(_a.c.computed_at.asc().nulls_first(), tables.c.id)
        .limit(limit)
    )
    return list(connection.execute(query).scalars())
