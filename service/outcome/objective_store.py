"""Store of how well objectives are kept, by hours."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime, timedelta
from functools import cache

import sqlalchemy as sa
from sqlalchemy import Connection

from service.db import schema
from service.db.upsert import insert_into, upsert
from service.outcome.objective import WEEK, Kept, ObjectiveCheck, ObjectiveState
from service.outcome.read_store import hour_of

_h = schema.objective_hours
_s = schema.objective_states

_LONGEST = timedelta(hours=2)
"""If more time than this is between two checks, the state in between counts as unknown. Tables are checked at least
once an hour."""

_STATE = sa.select(_s).where(_s.c.table_id == sa.bindparam("of_table"))


def record(
    connection: Connection,
    table_id: str,
    found: ObjectiveCheck,
    now: datetime,
    *,
    level: str | None = None,
    reads_per_day: float | None = None,
) -> None:
    """Stores a check. The time since the last check is added with the result of the last check. If this check seems
    earlier than the last one, because clocks of replicas differ or were set, no time is added. `level` is the level of
    the policy that sets `of_reads`, for which the table's reads count; None without one."""
    last = connection.execute(_STATE, {"of_table": table_id}).one_or_none()
    passed = now - last.looked_at if last else timedelta()
    if last and timedelta() < passed <= _LONGEST:
        seconds = passed.total_seconds()
        row = {"table_id": table_id, "hour": hour_of(now), "seconds": seconds}
        row["missed_seconds"] = seconds if last.missed else 0.0
        connection.execute(_add(connection.dialect.name), row)
    since = last.missed_since if last and last.missed else now
    values = {
        "looked_at": now,
        "overhead": found.overhead,
        "missed": found.missed,
        "missed_since": min(since, now) if found.missed else None,
        "level": level,
        "reads_per_day": reads_per_day,
        "price": found.waiting.price if found.waiting else None,
    }
    upsert(connection, _s, {"table_id": table_id}, values)


@cache
def _add(dialect: str) -> sa.Insert:
    statement = insert_into(dialect, _h)
    new = statement.excluded
    more = {name: _h.c[name] + new[name] for name in ("seconds", "missed_seconds")}
    return statement.on_conflict_do_update(index_elements=["table_id", "hour"], set_=more)


def kept(connection: Connection, table_id: str, since: datetime) -> Kept:
    """Returns how well the objective was kept since the beginning of the hour of `since`."""
    sums = sa.select(sa.func.sum(_h.c.seconds), sa.func.sum(_h.c.missed_seconds))
    seconds, missed = connection.execute(sums.where(_h.c.table_id == table_id, _h.c.hour >= hour_of(since))).one()
    return Kept(seconds or 0.0, missed or 0.0)


def share_kept(connection: Connection, table_ids: Collection[str], since: datetime, until: datetime) -> float | None:
    """Returns the share of the time for which the objectives of these tables were kept; None if that is not known."""
    sums = sa.select(_h.c.table_id, sa.func.sum(_h.c.seconds), sa.func.sum(_h.c.missed_seconds))
    within = sums.where(_h.c.hour >= hour_of(since), _h.c.hour <= hour_of(until)).group_by(_h.c.table_id)
    wanted = set(table_ids)
    found = [Kept(seconds, missed) for table_id, seconds, missed in connection.execute(within) if table_id in wanted]
    seconds = sum(each.seconds for each in found)
    return 1 - sum(each.missed_seconds for each in found) / seconds if seconds else None


def states(
    connection: Connection, now: datetime, table_ids: Collection[str] | None = None
) -> dict[str, ObjectiveState]:
    """Returns, by id, the states of the tables that were checked recently, among these tables or among all."""
    week = (
        sa.select(
            _h.c.table_id,
            sa.func.sum(_h.c.seconds).label("seconds"),
            sa.func.sum(_h.c.missed_seconds).label("missed_seconds"),
        )
        .where(_h.c.hour >= hour_of(now - WEEK))
        .group_by(_h.c.table_id)
    )
    query = sa.select(_s).where(_s.c.looked_at > now - _LONGEST)
    if table_ids is not None:
        week = week.where(_h.c.table_id.in_(table_ids))
        query = query.where(_s.c.table_id.in_(table_ids))
    sums = {row.table_id: Kept(row.seconds, row.missed_seconds) for row in connection.execute(week)}
    return {
        row.table_id: ObjectiveState(
            row.looked_at, row.overhead, row.missed, row.missed_since, sums.get(row.table_id, Kept())
        )
        for row in connection.execute(query)
    }


def missed(
    connection: Connection, now: datetime, table_ids: Collection[str] | None = None
) -> dict[str, ObjectiveState]:
    """Returns, by id, the states of the tables whose objective was missed at the last check, among these tables or
    among all."""
    query = sa.select(_s.c.table_id).where(_s.c.looked_at > now - _LONGEST, _s.c.missed.is_not(None))
    if table_ids is not None:
        query = query.where(_s.c.table_id.in_(table_ids))
    found = connection.execute(query).scalars().all()
    return states(connection, now, found) if found else {}


def prune(connection: Connection, before: datetime, limit: int) -> int:
    """Deletes at most `limit` hours before `before`, and returns how many."""
    old = sa.select(_h.c.table_id, _h.c.hour).where(_h.c.hour < hour_of(before)).limit(limit)
    return connection.execute(_h.delete().where(sa.tuple_(_h.c.table_id, _h.c.hour).in_(old))).rowcount
