"""The slot-seconds of each table, so that tables share slots fairly by time, not by number of jobs. The weight of
slot-seconds halves with each `HALF_LIFE`. The column has the logarithm of the weighted sum, as of a fixed moment
("forward decay"). So the order of two tables does not depend on the time of the query, and the database can sort by the
column."""

from __future__ import annotations

import math
from datetime import datetime, timedelta

import sqlalchemy as sa
from sqlalchemy import Connection

from service.db import schema
from service.db.upsert import upsert

HALF_LIFE = timedelta(minutes=10)

AT_LEAST = 1.0
"""Seconds that are charged for each lease when it begins, so that a table does not get all free slots at once."""

_t = schema.turns
_USED = sa.select(_t.c.used).where(_t.c.table_id == sa.bindparam("of_table"))


def used_after(before: float | None, seconds: float, at: float) -> float | None:
    """Returns the value of the column after a table has had a slot for `seconds` until `at`. `at` is in seconds since
    the epoch; if `since` has converted `before` to another moment, `at` is in seconds since that moment."""
    if seconds <= 0:
        return before
    more = math.log2(seconds) + at / HALF_LIFE.total_seconds()
    if before is None:
        return more
    high, low = max(before, more), min(before, more)
    return high + math.log2(1 + 2.0 ** (low - high))


def since(used: float, moment: datetime) -> float:
    """Converts a value of the column, so that its times count from `moment` instead of the epoch."""
    return used - moment.timestamp() / HALF_LIFE.total_seconds()


def charge(connection: Connection, table_id: str, seconds: float, at: datetime) -> None:
    if seconds > 0:
        before = connection.execute(_USED, {"of_table": table_id}).scalar_one_or_none()
        upsert(connection, _t, {"table_id": table_id}, {"used": used_after(before, seconds, at.timestamp())})
