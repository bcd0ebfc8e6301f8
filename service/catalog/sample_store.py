"""Store of samples, at most one of a table for each five minutes, hour and day.

A sample is written to all three at once and replaces the earlier one of the same time slot, so that thinning only has
to delete: five-minute samples after a day, hourly ones after a month.
"""

from __future__ import annotations

import dataclasses
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import TYPE_CHECKING

import sqlalchemy as sa

from service.catalog.sample import Sample
from service.db import schema
from service.db.upsert import insert_into

if TYPE_CHECKING:
    from sqlalchemy import Connection

_s = schema.samples

_SHORT, _HOUR, _DAY = 300, 3600, 86_400

_STEPS_KEPT = ((_SHORT, timedelta(days=1), _HOUR), (_HOUR, timedelta(days=30), _DAY))
"""The seconds of each step, how long its samples are kept, and the seconds of the next step, to whose beginning that
time is rounded, so that the next step's samples go on where these end."""


def record(connection: Connection, table_id: str, sample: Sample) -> None:
    """Writes a sample, which replaces an earlier one of the same five minutes, hour or day."""
    values = dataclasses.asdict(sample)
    seconds = int(sample.at.timestamp())
    rows = [{"table_id": table_id, "step": step, "slot": seconds // step, **values} for step in (_SHORT, _HOUR, _DAY)]
    connection.execute(_upsert(connection.dialect.name), rows)


@cache
def _upsert(dialect: str) -> sa.Insert:
    statement = insert_into(dialect, _s)
    changes = {each.name: statement.excluded[each.name] for each in dataclasses.fields(Sample)}
    return statement.on_conflict_do_update(index_elements=["table_id", "step", "slot"], set_=changes)


def of_table(
    connection: Connection,
    table_id: str,
    now: datetime,
    *,
    since: datetime | None = None,
    until: datetime | None = None,
    limit: int,
) -> list[Sample]:
    """Returns the newest `limit` samples from `since` to `until` (exclusive), oldest first: one for each five minutes
    of the last day, each hour of the last month, and each day before."""
    parts, end = [], None
    for step, kept, slot in _STEPS_KEPT:
        begin = _begin(now - kept, slot)
        parts.append(sa.and_(_s.c.step == step, _s.c.at >= begin, *([_s.c.at < end] if end else [])))
        end = begin
    parts.append(sa.and_(_s.c.step == _DAY, _s.c.at < end))
    query = sa.select(_s).where(_s.c.table_id == table_id, sa.or_(*parts))
    if since is not None:
        query = query.where(_s.c.at >= since)
    if until is not None:
        query = query.where(_s.c.at < until)
    rows = connection.execute(query.order_by(_s.c.at.desc()).limit(limit)).all()
    names = [each.name for each in dataclasses.fields(Sample)]
    return [Sample(**{name: getattr(row, name) for name in names}) for row in reversed(rows)]


def prune(connection: Connection, now: datetime, before: datetime, limit: int) -> int:
    """Deletes up to `limit` samples that are closer together than their age allows, or from before `before`. Returns
    how many."""
    ends = [(step, max(before, _begin(now - kept, slot))) for step, kept, slot in _STEPS_KEPT] + [(_DAY, before)]
    deleted = 0
    for step, end in ends:
        old = (
            sa.select(_s.c.table_id, _s.c.step, _s.c.slot)
            .where(_s.c.step == step, _s.c.at < end)
            .order_by(_s.c.at)
            .limit(limit - deleted)
        )
        key = sa.tuple_(_s.c.table_id, _s.c.step, _s.c.slot)
        deleted += connection.execute(_s.delete().where(key.in_(old))).rowcount
        if deleted >= limit:
            break
    return deleted


def _begin(at: datetime, slot: int) -> datetime:
    """Returns the beginning of the slot of so many seconds that `at` is in."""
    seconds = int(at.timestamp())
    return datetime.fromtimestamp(seconds - seconds % slot, UTC)
