"""Whether a table can be looked at. Others are told when that changes, and not each time somebody looks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from service.model.announcement import table_recovered, table_unhealthy
from service.store import outbox, tables

if TYPE_CHECKING:
    from datetime import datetime

    from sqlalchemy import Connection

    from jobs.contract import Problem


def note(connection: Connection, table_id: str, problem: Problem | None, *, now: datetime) -> bool:
    """What the last look at a table met, None if nothing; answers whether others are told.

    Call it last in a transaction, and ring the bell afterwards. Raises TableNotFoundError.
    """
    table = tables.get(connection, table_id, for_update=True)
    if (table.unhealthy is None) == (problem is None):
        return False
    tables.change(connection, table.evolve(unhealthy=problem))
    event = table_unhealthy(table, problem, now) if problem else table_recovered(table, now)
    outbox.publish(connection, [event], now=now)
    return True
